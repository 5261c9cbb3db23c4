//! The same program computed without a runtime: one task after the other, every new buffer in memory of its own.

use super::functions::FUNCTIONS;
use super::memory::{Memory, Place};
use super::{Access, Book, Fill, Kernel, Numbers, compute, direct, kernel_name, no_memory};
use crate::engine::RunError;
use crate::workload::{Operation, Region, Submit, Workload};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Compares what a run left in the device's buffers with a computation in program order, bit by bit, and for BGEMM, Cholesky and
/// flash attention with the formula itself. Returns sentences for the report.
///
/// # Errors
/// When the workload cannot be read again or the numbers differ; the message names buffer and place.
pub fn verify(workload: &dyn Workload, numbers: &Numbers) -> Result<Vec<String>, RunError> {
    let expected = replay(workload)?;
    let found = numbers.device();
    for ((buffer, expected), (_, found)) in expected.iter().zip(&found) {
        if let Some(at) = (0..expected.len()).find(|&at| expected[at] != found[at]) {
            let message = format!(
                "verification failed: byte {at} of device buffer {} is {:#04x}, a computation in program order gives {:#04x}",
                buffer.0, found[at], expected[at]
            );
            return Err(RunError::Kernel(message));
        }
    }
    let bytes: usize = found.iter().map(|(_, bytes)| bytes.len()).sum();
    let mut notes = vec![format!(
        "verified: all {bytes} bytes of {} device buffers equal a computation in program order",
        found.len()
    )];
    if let Some(error) = direct::compare(&workload.name(), &found) {
        notes.push(error.map_err(RunError::Kernel)?);
    }
    Ok(notes)
}

/// Computes a program task by task; returns the bytes of its device buffers.
fn replay(workload: &dyn Workload) -> Result<Vec<(crate::id::BufferId, Vec<u8>)>, RunError> {
    let kernels: BTreeMap<&str, Kernel> =
        FUNCTIONS.iter().map(|&(name, function)| (name, Arc::new(function) as Kernel)).collect();
    let (mut source, mut task) = (workload.open()?, Submit::default());
    let mut book = Book { fill: Fill::of(&workload.name()), ..Book::default() };
    while let Some(operation) = source.next(&mut task)? {
        match operation {
            Operation::Buffer { buffer, bytes } => book.declare(buffer, bytes)?,
            Operation::ScopeBegin | Operation::ScopeEnd => {}
            Operation::Submit => {
                let name = kernel_name(source.symbols(), task.kernel);
                let mut operands: Vec<(Access, Place)> = book.operands(&task).collect();
                for new in &task.allocates {
                    let memory = Memory::new(new.bytes).ok_or_else(|| no_memory(new.bytes))?;
                    book.bound_to(new.buffer, memory.clone(), 0);
                    operands.push((
                        Access::New,
                        Place { memory, base: 0, region: Region::range(new.buffer, 0, new.bytes) },
                    ));
                }
                // As in the run: a task without regions has nothing to compute.
                if let Some(kernel) = kernels.get(name)
                    && !operands.is_empty()
                {
                    compute(kernel, &operands)
                        .map_err(|message| RunError::Kernel(format!("kernel `{name}`: {message}")))?;
                }
            }
        }
    }
    let read = |(buffer, memory): &(crate::id::BufferId, Memory)| {
        let mut bytes = Vec::new();
        memory.read(0, memory.len(), &mut bytes);
        (*buffer, bytes)
    };
    Ok(book.device.iter().map(read).collect())
}

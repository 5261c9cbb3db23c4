//! What every target does with its bytes: read them as a program of one format, walk over all of it,
//! and write it as a binary trace that reads the same.

use ptosim::workload::binary::{BinaryTrace, write_binary};
use ptosim::workload::import::{Options, open_stream};
use ptosim::workload::{Submit, Workload, WorkloadError};
use std::io::Cursor;

/// Reads `bytes` as a program of `format`. What is wrong with them is an error with a message, never a crash.
pub fn read(format: &str, bytes: &[u8]) {
    if let Err(error) = walk(format, bytes) {
        let message = error.to_string();
        assert!(!message.is_empty() && message.len() < 4096, "a message of {} bytes", message.len());
    }
}

fn walk(format: &str, bytes: &[u8]) -> Result<(), WorkloadError> {
    let options = Options { from: Some(format.into()), ..Options::default() };
    let workload = open_stream("input", Box::new(Cursor::new(bytes.to_vec())), &options)?;
    let operations = count(workload.as_ref())?;
    workload.controls()?;
    let mut binary = Vec::new();
    write_binary(workload.as_ref(), &mut binary).expect("what was read can be written");
    let again = BinaryTrace::from_memory(binary, "binary").expect("what was written can be read");
    assert_eq!(count(&again).expect("every operation"), operations);
    Ok(())
}

fn count(workload: &dyn Workload) -> Result<u64, WorkloadError> {
    let (mut source, mut task, mut operations) = (workload.open()?, Submit::default(), 0);
    while source.next(&mut task)?.is_some() {
        operations += 1;
    }
    Ok(operations)
}

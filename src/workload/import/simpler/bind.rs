//! Makes sure that every region lies in a buffer that is bound before it and large enough.

use crate::id::BufferId;
use crate::workload::Operation;
use crate::workload::program::Content;

/// Where a buffer got its present size.
#[derive(Clone, Copy)]
enum Binding {
    /// Nowhere yet.
    None,
    /// In front of the program, by its place there.
    Added(usize),
    /// A declaration, by its place among the operations.
    Declared(usize),
    /// An allocation, by task and place in its list.
    Allocated(usize, usize),
}

/// Lets bindings grow to the regions used of them, and declares buffers that are used before they are allocated.
pub fn bind(content: &mut Content) {
    let mut bindings = vec![Binding::None; content.buffers.len()];
    let mut undeclared: Vec<(BufferId, u64)> = Vec::new();
    let mut next_task = 0;
    for place in 0..content.operations.len() {
        match content.operations[place] {
            Operation::Buffer { buffer, .. } => bindings[buffer.0 as usize] = Binding::Declared(place),
            Operation::Submit => {
                let task = &content.tasks[next_task];
                let regions = task.reads.iter().chain(&task.writes).chain(&task.updates);
                let uses: Vec<(BufferId, u64)> = regions.map(|region| (region.buffer, region.end())).collect();
                for (buffer, end) in uses {
                    grow(content, &mut bindings, &mut undeclared, (buffer, end));
                }
                for (index, new) in content.tasks[next_task].allocates.iter().enumerate() {
                    bindings[new.buffer.0 as usize] = Binding::Allocated(next_task, index);
                }
                next_task += 1;
            }
            Operation::ScopeBegin | Operation::ScopeEnd => {}
        }
    }
    let declarations = undeclared.into_iter().map(|(buffer, bytes)| Operation::Buffer { buffer, bytes });
    content.operations.splice(0..0, declarations);
}

fn grow(
    content: &mut Content,
    bindings: &mut [Binding],
    undeclared: &mut Vec<(BufferId, u64)>,
    (buffer, end): (BufferId, u64),
) {
    match bindings[buffer.0 as usize] {
        Binding::Declared(place) => {
            if let Operation::Buffer { bytes, .. } = &mut content.operations[place] {
                *bytes = end.max(*bytes);
            }
        }
        Binding::Allocated(task, index) => {
            let bytes = &mut content.tasks[task].allocates[index].bytes;
            *bytes = end.max(*bytes);
        }
        Binding::Added(place) => undeclared[place].1 = end.max(undeclared[place].1),
        Binding::None => {
            bindings[buffer.0 as usize] = Binding::Added(undeclared.len());
            undeclared.push((buffer, end));
        }
    }
}

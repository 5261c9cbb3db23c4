//! A table of tasks.

use super::Subject;
use crate::id::TaskId;
use std::io::{self, Write};

/// Writes one row a task; its producers stand in one cell, with blanks between them.
pub fn write(subject: &Subject<'_>, output: &mut dyn Write) -> io::Result<()> {
    let graph = subject.graph;
    let mut table = csv::Writer::from_writer(output);
    table.write_record(["id", "name", "kernel", "worker_type", "cycles", "blocks", "scope_depth", "producers"])?;
    for (index, task) in graph.tasks.iter().enumerate() {
        let id = TaskId(index as u64);
        let producers: Vec<String> = graph.producers(id).iter().map(TaskId::to_string).collect();
        table.write_record([
            id.to_string(),
            graph.name(id),
            task.kernel.map_or("", |kernel| graph.symbols.name(kernel)).to_owned(),
            task.kind.to_string(),
            task.cycles().to_string(),
            task.blocks.to_string(),
            task.depth.to_string(),
            producers.join(" "),
        ])?;
    }
    table.flush()
}

//! A table of tasks.

use super::Subject;
use crate::id::TaskId;
use std::io::{self, Write};

/// Writes one row a task; its producers stand in one cell, with blanks between them.
pub fn write(subject: &Subject<'_>, output: &mut dyn Write) -> io::Result<()> {
    let graph = subject.graph;
    let mut table = csv::Writer::from_writer(output);
    let titles = ["id", "name", "kernel", "worker_type", "cycles", "blocks", "scope_depth", "producers"];
    table.write_record(titles).map_err(of_file)?;
    for (index, task) in graph.tasks.iter().enumerate() {
        let id = TaskId(index as u64);
        let producers: Vec<String> = graph.producers(id).iter().map(TaskId::to_string).collect();
        let row = [
            id.to_string(),
            graph.name(id),
            task.kernel.map_or("", |kernel| graph.symbols.name(kernel)).to_owned(),
            task.kind.to_string(),
            task.cycles().to_string(),
            task.blocks.to_string(),
            task.depth.to_string(),
            producers.join(" "),
        ];
        table.write_record(row).map_err(of_file)?;
    }
    table.flush()
}

/// The error of the file itself, which tells a reader that has gone from a disk that is full.
fn of_file(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

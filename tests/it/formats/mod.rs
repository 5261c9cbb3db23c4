//! Traces of other programs: each reader on small inputs of its own, and on what is wrong with inputs.

mod damage;
#[cfg(feature = "parquet")]
mod parquet;
mod round_trips;
mod samples;
mod stg;
mod timelines;

use ptosim::config::Machine;
use ptosim::graph::Graph;
use ptosim::id::TaskId;
use ptosim::workload::import::{Options, open_stream};
use ptosim::workload::{Workload, WorkloadError};
use std::fmt::Write;
use std::io::Cursor;

/// A text read as a workload, recognised by its content.
pub fn open(bytes: impl Into<Vec<u8>>, options: &Options) -> Result<Box<dyn Workload>, WorkloadError> {
    open_stream("input", Box::new(Cursor::new(bytes.into())), options)
}

/// A text read as a workload of a format.
pub fn open_as(format: &str, bytes: impl Into<Vec<u8>>) -> Result<Box<dyn Workload>, WorkloadError> {
    open(bytes, &Options { from: Some(format.into()), ..Options::default() })
}

/// What is wrong with a text of a format.
pub fn refusal(format: &str, bytes: impl Into<Vec<u8>>) -> String {
    match open_as(format, bytes) {
        Ok(workload) => panic!("{} was taken", workload.name()),
        Err(error) => error.to_string(),
    }
}

/// One line a task: `name kernel type cycles < producers`.
pub fn picture(workload: &dyn Workload) -> String {
    let graph = Graph::load(workload, &Machine::default()).expect("a graph");
    let mut text = String::new();
    for (index, task) in graph.tasks.iter().enumerate() {
        let id = TaskId(index as u64);
        let kernel = task.kernel.map_or("-", |kernel| graph.symbols.name(kernel));
        let mut producers: Vec<u64> = graph.producers(id).iter().map(|producer| producer.0).collect();
        producers.sort_unstable();
        let blocks = if task.blocks == 1 { String::new() } else { format!(" x{}", task.blocks) };
        let cost = task.cycles();
        let _ = writeln!(text, "{} {kernel} {}{blocks} {cost} < {producers:?}", graph.name(id), task.kind);
    }
    text
}

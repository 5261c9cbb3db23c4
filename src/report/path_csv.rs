//! Both critical paths as CSV: the observed one, step by step from cycle 0 to the makespan, and the static one, task by task.

use super::blame::PathStep;
use crate::graph::Graph;
use crate::id::Symbol;
use crate::workload::Symbols;
use std::io::{self, Write};

const HEADER: [&str; 10] = ["path", "step", "from", "to", "cycles", "blame", "task", "name", "kernel", "worker"];

/// Writes the observed path, then the longest path through `graph`, whose moments are those of a machine that is never busy.
///
/// # Errors
/// Those of `writer`.
pub fn write_paths(steps: &[PathStep], names: &Symbols, graph: &Graph, writer: impl Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(writer);
    csv.write_record(HEADER)?;
    let name = |symbol: Option<Symbol>| symbol.map_or("", |symbol| names.name(symbol)).to_owned();
    for (index, step) in steps.iter().enumerate() {
        let label = match step.task {
            Some(task) if step.is_kernel && step.name.is_none() => format!("task{task}"),
            _ => name(step.name),
        };
        csv.write_record([
            "observed".to_owned(),
            index.to_string(),
            step.from.to_string(),
            step.to.to_string(),
            (step.to - step.from).to_string(),
            step.blame.name().to_owned(),
            step.task.map_or(String::new(), |task| task.to_string()),
            label,
            name(step.kernel),
            step.worker.map_or(String::new(), |worker| worker.0.to_string()),
        ])?;
    }
    let mut clock = 0_u64;
    for (index, task) in graph.critical_path().into_iter().enumerate() {
        let facts = &graph.tasks[task.0 as usize];
        let end = clock.saturating_add(facts.cycles());
        csv.write_record([
            "static".to_owned(),
            index.to_string(),
            clock.to_string(),
            end.to_string(),
            facts.cycles().to_string(),
            "compute".to_owned(),
            task.to_string(),
            graph.name(task),
            facts.kernel.map_or("", |kernel| graph.symbols.name(kernel)).to_owned(),
            String::new(),
        ])?;
        clock = end;
    }
    csv.flush()
}

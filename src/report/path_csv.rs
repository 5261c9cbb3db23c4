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
    let mut rows = Rows { csv: csv::Writer::from_writer(writer), digits: itoa::Buffer::new() };
    rows.csv.write_record(HEADER)?;
    for (index, step) in steps.iter().enumerate() {
        rows.span("observed", index, (step.from, step.to), step.blame.name())?;
        rows.optional(step.task.map(|task| task.0))?;
        match (step.task, step.name) {
            (Some(task), None) if step.is_kernel => rows.csv.write_field(format!("task{task}"))?,
            (_, name) => rows.name(name, names)?,
        }
        rows.name(step.kernel, names)?;
        rows.optional(step.worker.map(|worker| worker.0.into()))?;
        rows.end()?;
    }
    let mut clock = 0_u64;
    for (index, task) in graph.critical_path().into_iter().enumerate() {
        let facts = &graph.tasks[task.0 as usize];
        let end = clock.saturating_add(facts.cycles());
        rows.span("static", index, (clock, end), "compute")?;
        rows.optional(Some(task.0))?;
        rows.csv.write_field(graph.name(task))?;
        rows.name(facts.kernel, &graph.symbols)?;
        rows.optional(None)?;
        rows.end()?;
        clock = end;
    }
    rows.csv.flush()
}

/// Rows in the making, field by field.
struct Rows<W: Write> {
    csv: csv::Writer<W>,
    digits: itoa::Buffer,
}

impl<W: Write> Rows<W> {
    /// The fields from `path` to `blame`.
    fn span(&mut self, path: &str, index: usize, (from, to): (u64, u64), blame: &str) -> csv::Result<()> {
        self.csv.write_field(path)?;
        for number in [index as u64, from, to, to - from] {
            self.csv.write_field(self.digits.format(number))?;
        }
        self.csv.write_field(blame)
    }

    fn optional(&mut self, number: Option<u64>) -> csv::Result<()> {
        let Rows { csv, digits } = self;
        csv.write_field(number.map_or("", |number| digits.format(number)))
    }

    fn name(&mut self, symbol: Option<Symbol>, names: &Symbols) -> csv::Result<()> {
        self.csv.write_field(symbol.map_or("", |symbol| names.name(symbol)))
    }

    fn end(&mut self) -> csv::Result<()> {
        self.csv.write_record(None::<&[u8]>)
    }
}

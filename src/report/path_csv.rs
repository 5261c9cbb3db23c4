//! Both critical paths as CSV: the observed one, step by step from cycle 0 to the makespan, and the static one, task by task.

use super::blame::PathStep;
use super::pen::Pen;
use crate::engine::journal::Names;
use crate::graph::Graph;
use crate::id::Symbol;
use std::io::{self, Write};

/// Writes the observed path while it is found, then the longest path through the graph.
pub struct PathRows<W: Write> {
    pen: Pen<W>,
    n_steps: u64,
}

impl<W: Write> PathRows<W> {
    /// Starts with the header line.
    pub fn new(writer: W) -> PathRows<W> {
        let mut pen = Pen::new(writer);
        pen.text(b"path,step,from,to,cycles,blame,task,name,kernel,worker\n");
        PathRows { pen, n_steps: 0 }
    }

    /// The next step of the observed path.
    pub fn step(&mut self, step: &PathStep, names: &Names) {
        let span = (step.from, step.to);
        self.beginning(b"observed,", self.n_steps, span, step.blame.name(), step.task.map(|task| task.0));
        self.n_steps += 1;
        match (step.task, step.name) {
            (Some(task), None) if step.is_kernel => self.pen.line(|line| {
                line.literal(b"task");
                line.number(task.0);
            }),
            (_, name) => self.name(name.map(|name| names.name(name))),
        }
        self.pen.line(|line| line.byte(b','));
        self.name(step.kernel.map(|kernel| names.name(kernel)));
        self.pen.line(|line| {
            line.byte(b',');
            if let Some(worker) = step.worker {
                line.number(worker.0.into());
            }
            line.byte(b'\n');
        });
    }

    /// Writes the longest path through `graph`, whose moments are those of a machine that is never busy; gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer.
    pub fn finish(mut self, graph: &Graph) -> io::Result<W> {
        let kernel = |kernel: Option<Symbol>| kernel.map(|kernel| graph.symbols.name(kernel));
        let mut clock = 0_u64;
        for (task, index) in graph.critical_path().into_iter().zip(0..) {
            let facts = &graph.tasks[task.0 as usize];
            let end = clock.saturating_add(facts.cycles());
            self.beginning(b"static,", index, (clock, end), "compute", Some(task.0));
            self.name(Some(&graph.name(task)));
            self.pen.line(|line| line.byte(b','));
            self.name(kernel(facts.kernel));
            self.pen.line(|line| line.literal(b",\n"));
            clock = end;
        }
        self.pen.finish()
    }

    /// The fields up to the task.
    fn beginning(&mut self, path: &[u8], step: u64, (from, to): (u64, u64), blame: &str, task: Option<u64>) {
        self.pen.text(path);
        self.pen.line(|line| {
            for number in [step, from, to, to - from] {
                line.number(number);
                line.byte(b',');
            }
        });
        self.pen.text(blame.as_bytes());
        self.pen.line(|line| {
            line.byte(b',');
            if let Some(task) = task {
                line.number(task);
            }
            line.byte(b',');
        });
    }

    /// A text, in quotes where it needs them.
    fn name(&mut self, name: Option<&str>) {
        let name = name.unwrap_or_default();
        if name.bytes().any(|byte| matches!(byte, b',' | b'"' | b'\r' | b'\n')) {
            let quoted = format!("\"{}\"", name.replace('"', "\"\""));
            self.pen.text(quoted.as_bytes());
        } else {
            self.pen.text(name.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Machine;
    use crate::engine::{read_along, simulate};
    use crate::report::PathRecorder;
    use crate::workload;

    #[test]
    fn names_with_commas_quotes_and_line_feeds_come_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.jsonl");
        let header = r#"{"op":"header","format":"ptosim-trace","version":1}"#;
        let task = r#"{"op":"submit","name":"a,\"b\"\r\nc","kernel":"k","cycles":5}"#;
        std::fs::write(&path, format!("{header}\n{task}\n")).expect("room on the disk");
        let program = workload::open(path.to_str().expect("a plain path")).expect("a trace");
        let machine = Machine::default();
        let (report, path, names) = read_along(PathRecorder::new(Vec::new()), |journal| {
            simulate(program.as_ref(), &machine, journal).expect("it runs")
        });
        let mut rows = PathRows::new(Vec::new());
        path.finish(&names).iter().for_each(|step| rows.step(step, &names));
        let graph = Graph::load(program.as_ref(), &machine).expect("a graph");
        let bytes = rows.finish(&graph).expect("memory does not fail");
        let mut reader = csv::Reader::from_reader(&bytes[..]);
        let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
        assert_eq!((rows.len(), report.makespan), (2, 5));
        for row in rows {
            assert_eq!((&row[3], &row[7], &row[8]), ("5", "a,\"b\"\r\nc", "k"));
        }
    }
}

//! Both critical paths as CSV: the observed one, step by step from cycle 0 to the makespan, and the static one, task by task.

use super::blame::{Blame, PathStep};
use super::line::{Digits, Line};
use super::pen::{Pen, ROOM};
use super::stamp::Stamp;
use crate::engine::journal::Names;
use crate::graph::StaticPath;
use crate::id::{Symbol, TaskId, WorkerId};
use std::borrow::Cow;
use std::io::{self, Write};

/// Writes the observed path while it is found, then the longest path through the graph.
pub struct PathRows<W: Write> {
    pen: Pen<W>,
    n_steps: u64,
    /// Numbers that mostly begin like those before them: step, from, to and task.
    columns: [Digits; 4],
    /// The causes with a comma at each end.
    blames: Vec<([u8; MOST_BLAME], usize)>,
    /// Kernels with a comma behind them, by symbol.
    kernels: Vec<Option<Stamp>>,
}

/// Most bytes of the name of a cause and two commas.
const MOST_BLAME: usize = 24;

/// One row.
struct Row<'a> {
    path: &'static [u8; 9],
    span: (u64, u64),
    blame: Blame,
    task: Option<TaskId>,
    /// Whether a task without a name is called by its number.
    is_called: bool,
    name: Option<&'a str>,
    kernel: Option<(Symbol, &'a str)>,
    worker: Option<WorkerId>,
}

const OBSERVED: &[u8; 9] = b"observed,";
const STATIC: &[u8; 9] = b"static,\0\0";

impl<W: Write> PathRows<W> {
    /// Starts with the header line.
    pub fn new(writer: W) -> PathRows<W> {
        let mut pen = Pen::new(writer);
        pen.text(b"path,step,from,to,cycles,blame,task,name,kernel,worker\n");
        let blames = Blame::ALL.iter().map(|blame| {
            let (mut text, name) = ([b','; MOST_BLAME], blame.name().as_bytes());
            text[1..=name.len()].copy_from_slice(name);
            (text, name.len() + 2)
        });
        PathRows { pen, n_steps: 0, columns: Default::default(), blames: blames.collect(), kernels: Vec::new() }
    }

    /// The next step of the observed path.
    pub fn step(&mut self, step: &PathStep, names: &Names) {
        self.row(&Row {
            path: OBSERVED,
            span: (step.from, step.to),
            blame: step.blame,
            task: step.task,
            is_called: step.is_kernel,
            name: step.name.map(|name| names.name(name)),
            kernel: step.kernel.map(|kernel| (kernel, names.name(kernel))),
            worker: step.worker,
        });
    }

    /// Writes the longest path through the graph, whose moments are those of a machine that is never busy; gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer.
    pub fn finish(mut self, path: &StaticPath) -> io::Result<W> {
        // The symbols of the program as it was read for this path have nothing to do with those of the run.
        (self.n_steps, self.kernels) = (0, Vec::new());
        let mut clock = 0_u64;
        for task in path.tasks() {
            let end = clock.saturating_add(task.cycles);
            self.row(&Row {
                path: STATIC,
                span: (clock, end),
                blame: Blame::Compute,
                task: Some(task.task),
                is_called: true,
                name: task.name.map(|name| path.symbols.name(name)),
                kernel: task.kernel.map(|kernel| (kernel, path.symbols.name(kernel))),
                worker: None,
            });
            clock = end;
        }
        self.pen.finish()
    }

    fn row(&mut self, row: &Row<'_>) {
        let PathRows { pen, n_steps, columns: [steps, froms, tos, tasks], blames, kernels } = self;
        let ((from, to), (blame, blame_length)) = (row.span, &blames[row.blame.index()]);
        pen.line(|line| {
            line.beginning(row.path, if row.path == STATIC { 7 } else { 9 });
            for (column, number) in [(steps, *n_steps), (froms, from), (tos, to)] {
                line.digits(column, number);
                line.byte(b',');
            }
            line.number(to - from);
            line.beginning(blame, *blame_length);
            if let Some(task) = row.task {
                line.digits(tasks, task.0);
                if row.is_called && row.name.is_none() {
                    line.literal(b",task");
                    line.digits(tasks, task.0);
                    return line.byte(b',');
                }
            }
            line.byte(b',');
            if row.name.is_none() {
                line.byte(b',');
            }
        });
        *n_steps += 1;
        if let Some(name) = row.name {
            pen.text(&field(name));
            pen.text(b",");
        }
        let rest = |line: &mut Line<'_, ROOM>| {
            if let Some(worker) = row.worker {
                line.number(worker.0.into());
            }
            line.byte(b'\n');
        };
        let Some((kernel, name)) = row.kernel else {
            return pen.line(|line| {
                line.byte(b',');
                rest(line);
            });
        };
        let index = kernel.0 as usize;
        if index >= kernels.len() {
            kernels.resize(index + 1, None);
        }
        kernels[index].get_or_insert_with(|| Stamp::new(&[&*field(name), b","].concat())).line(pen, rest);
    }
}

/// A text, in quotes where it needs them.
fn field(text: &str) -> Cow<'_, [u8]> {
    if text.bytes().any(|byte| matches!(byte, b',' | b'"' | b'\r' | b'\n')) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")).into_bytes())
    } else {
        Cow::Borrowed(text.as_bytes())
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
        let path = StaticPath::load(program.as_ref(), &machine).expect("a graph");
        let bytes = rows.finish(&path).expect("memory does not fail");
        let mut reader = csv::Reader::from_reader(&bytes[..]);
        let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
        assert_eq!((rows.len(), report.makespan), (2, 5));
        for row in rows {
            assert_eq!((&row[3], &row[7], &row[8]), ("5", "a,\"b\"\r\nc", "k"));
        }
    }
}

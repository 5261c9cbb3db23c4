//! Both critical paths as CSV: the static one, task by task, then the observed one, step by step from cycle 0 to the makespan. A step
//! ends so many cycles after it begins, which is where the next one of its path begins.
//!
//! ```text
//! program ─▶ StaticRows ── pen, once all its rows are written ──▶ PathRows ◀─ steps of the run
//! ```
//!
//! The program is read faster than it is run, so the static path is written while the run has only begun.

use super::blame::{Blame, PathStep};
use super::line::{Column, Line};
use super::pen::{Pen, ROOM};
use super::stamp::{Phrase, Phrases, Stamp, WorkerTexts};
use crate::engine::journal::Names;
use crate::graph::{PathTask, StaticPath};
use crate::id::{Symbol, TaskId, WorkerId};
use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::mpsc::{self, Receiver, Sender};

/// Writes the longest path through the graph.
pub struct StaticRows<W> {
    pen: Pen<W>,
    then: Sender<Pen<W>>,
}

/// Writes the observed path while it is found, as soon as the static path is written.
pub struct PathRows<W> {
    pen: Option<Pen<W>>,
    coming: Receiver<Pen<W>>,
    columns: Columns,
}

/// What is written again and again.
struct Columns {
    /// Moments, each behind the name of its path.
    moments: Column<32>,
    tasks: Column<16>,
    /// Cycles and cause, with a comma at each end and one between them.
    lengths: Phrases,
    /// Kernels of tasks without name, with the commas around both, by symbol.
    kernels: Vec<Option<Stamp>>,
    /// Each worker with the end of its row.
    workers: WorkerTexts,
}

/// Numbers of cycles beyond this take too many digits to be kept.
const LONGEST: u64 = 1_000_000_000_000;

/// One row.
struct Row<'a> {
    span: (u64, u64),
    blame: Blame,
    task: Option<TaskId>,
    name: Option<&'a str>,
    kernel: Option<Symbol>,
    worker: Option<WorkerId>,
}

/// Starts a file with the header line. The rows of both paths are put together by different threads, one after the other.
pub fn path_rows<W: Write>(writer: W) -> (StaticRows<W>, PathRows<W>) {
    let (then, coming) = mpsc::channel();
    let mut pen = Pen::new(writer);
    pen.text(b"path,from,cycles,blame,task,name,kernel,worker\n");
    (StaticRows { pen, then }, PathRows { pen: None, coming, columns: Columns::new(b"observed,") })
}

impl<W: Write> StaticRows<W> {
    /// Writes all rows; moments are those of a machine that is never busy.
    pub fn write(self, path: &StaticPath) {
        let StaticRows { mut pen, then } = self;
        let mut columns = Columns::new(b"static,");
        path.tasks().for_each(|task| columns.static_row(&mut pen, path, &task));
        // Nobody wants to go on when the run has failed.
        let _ = then.send(pen);
    }
}

impl<W: Write> PathRows<W> {
    /// Whether rows can be written without waiting for the static path.
    pub fn is_open(&mut self) -> bool {
        if self.pen.is_none() {
            self.pen = self.coming.try_recv().ok();
        }
        self.pen.is_some()
    }

    /// Waits for the static path; `None` if it was not found.
    #[inline]
    fn open(&mut self) -> Option<(&mut Pen<W>, &mut Columns)> {
        if self.pen.is_none() {
            self.pen = self.coming.recv().ok();
        }
        Some((self.pen.as_mut()?, &mut self.columns))
    }

    /// The next step of the observed path.
    #[inline]
    pub fn step(&mut self, step: &PathStep, names: &Names) {
        let row = Row {
            span: (step.from, step.to),
            blame: step.blame,
            task: step.task,
            name: step.name.map(|name| names.name(name)),
            kernel: step.kernel,
            worker: step.worker,
        };
        if let Some((pen, columns)) = self.open() {
            columns.row(pen, &row, |kernel| names.name(kernel));
        }
    }

    /// Writes what is left and gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer, or that there was no static path.
    pub fn finish(mut self) -> io::Result<W> {
        self.open();
        self.pen.ok_or_else(|| io::Error::other("the static path was not found"))?.finish()
    }
}

impl Columns {
    fn new(path: &[u8]) -> Columns {
        Columns {
            moments: Column::new(path),
            tasks: Column::new(b""),
            lengths: Phrases::default(),
            kernels: Vec::new(),
            workers: WorkerTexts::new("", "\n"),
        }
    }

    #[inline]
    fn static_row<W: Write>(&mut self, pen: &mut Pen<W>, path: &StaticPath, task: &PathTask) {
        let row = Row {
            span: (task.from, task.to),
            blame: Blame::Compute,
            task: Some(task.task),
            name: task.name.map(|name| path.symbols.name(name)),
            kernel: task.kernel,
            worker: None,
        };
        self.row(pen, &row, |kernel| path.symbols.name(kernel));
    }

    #[inline(always)]
    fn row<'a, W: Write>(&mut self, pen: &mut Pen<W>, row: &Row<'_>, text: impl FnOnce(Symbol) -> &'a str) {
        let mut line = pen.room();
        self.beginning(&mut line, row);
        match (row.name, row.kernel) {
            (None, None) => line.literal(b",,,"),
            (None, Some(kernel)) => match self.kernel(kernel, text) {
                Stamp::Short(text, length) => line.beginning(text, *length),
                Stamp::Long(text) => {
                    let length = line.length();
                    line = pen.text_within(length, text);
                }
            },
            (Some(name), kernel) => {
                let kernel = kernel.map_or(Cow::default(), |kernel| field(text(kernel)));
                let length = line.length();
                line = pen.text_within(length, &[b",", &*field(name), b",", &*kernel, b","].concat());
            }
        }
        if let Some(worker) = row.worker {
            self.workers.put(&mut line, worker);
        } else {
            line.byte(b'\n');
        }
        let length = line.length();
        pen.advance(length);
    }

    /// A row up to its task.
    #[inline(always)]
    fn beginning(&mut self, line: &mut Line<'_, ROOM>, row: &Row<'_>) {
        let Columns { moments, tasks, lengths, .. } = self;
        let ((from, to), blame) = (row.span, row.blame);
        line.column(moments, from);
        let cycles = to - from;
        if cycles < LONGEST {
            let number = cycles * Blame::ALL.len() as u64 + blame.index() as u64;
            let Phrase { text, length, .. } = lengths.of(number, |line| put_length(line, cycles, blame));
            line.beginning(text, *length);
        } else {
            put_length(line, cycles, blame);
        }
        if let Some(task) = row.task {
            line.column(tasks, task.0);
        }
    }

    /// The text of a kernel behind no name.
    #[inline(always)]
    fn kernel<'a>(&mut self, kernel: Symbol, text: impl FnOnce(Symbol) -> &'a str) -> &Stamp {
        let index = kernel.0 as usize;
        if index >= self.kernels.len() {
            self.kernels.resize(index + 1, None);
        }
        self.kernels[index].get_or_insert_with(|| Stamp::new(&[b",,", &*field(text(kernel)), b","].concat()))
    }
}

/// Cycles and cause between their commas.
fn put_length<const ROOM: usize>(line: &mut Line<'_, ROOM>, cycles: u64, blame: Blame) {
    line.byte(b',');
    line.number(cycles);
    line.byte(b',');
    blame.name().bytes().for_each(|byte| line.byte(byte));
    line.byte(b',');
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
        let (static_rows, mut rows) = path_rows(Vec::new());
        assert!(!rows.is_open());
        static_rows.write(&StaticPath::load(program.as_ref(), &machine).expect("a graph"));
        path.finish(&names).iter().for_each(|step| rows.step(step, &names));
        let bytes = rows.finish().expect("memory does not fail");
        let mut reader = csv::Reader::from_reader(&bytes[..]);
        let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
        assert_eq!((rows.len(), report.makespan), (2, 5));
        for (row, path) in rows.iter().zip(["static", "observed"]) {
            assert_eq!((&row[0], &row[2], &row[5], &row[6]), (path, "5", "a,\"b\"\r\nc", "k"));
        }
    }
}

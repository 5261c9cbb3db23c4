//! A run as Chrome trace events in JSON, for Perfetto's page, `chrome://tracing` and other viewers.

use super::export::{BlockFacts, Counter, Form, Lane, PlainBlock, Slice, worker_names};
use super::line::{Column, Line};
use super::pen::{Pen, ROOM};
use super::stamp::{Phrase, Phrases, Stamp};
use crate::config::Machine;
use crate::id::{TaskId, WorkerType};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

/// Process ids: one a worker type, then the runtime.
const ORCHESTRATOR: u32 = 10;
const SCHEDULER: u32 = 11;
const COUNTERS: u32 = 12;

/// The form. What is written again and again is kept ready.
#[derive(Default)]
pub struct Chrome {
    kinds: Vec<WorkerType>,
    /// By worker, the place of its slices up to their moment, and the beginning of the last one.
    workers: Vec<(Vec<u8>, Head)>,
    /// The beginning of each counter's events, up to the moment.
    counters: Vec<Stamp>,
    /// The beginning of slices by the number of their name.
    names: Vec<Option<Vec<u8>>>,
    /// Where arrows begin that have not arrived yet, by number: `(pid, tid, end)`.
    ends: BTreeMap<u64, (u32, u32, u64)>,
    columns: Columns,
}

/// The beginning of a slice on some worker up to its moment.
struct Head {
    /// Number of its name.
    name: u64,
    text: Stamp,
}

/// Numbers of slices and counters that mostly begin like those before them, with what stands before them.
struct Columns {
    from: Column<16>,
    task: Column<16>,
    submit: Column<32>,
    ready: Column<32>,
    counter: Column<16>,
    /// How long a slice of a task takes, as it is written between its moment and its task.
    lengths: Phrases,
}

/// Lengths beyond this take too many digits to be kept.
const LONGEST: u64 = 1_000_000_000_000;

impl Default for Columns {
    fn default() -> Columns {
        Columns {
            from: Column::new(b""),
            task: Column::new(b""),
            submit: Column::new(b",\"submit\":"),
            ready: Column::new(b",\"ready\":"),
            counter: Column::new(b""),
            lengths: Phrases::default(),
        }
    }
}

impl Columns {
    /// A slice from its moment on, up to its label if it has one.
    #[inline(always)]
    fn put(
        &mut self,
        line: &mut Line<'_, ROOM>,
        (from, to): (u64, u64),
        task: Option<TaskId>,
        block: Option<BlockFacts<'_>>,
    ) {
        micros(line, from, |line, whole| line.column(&mut self.from, whole));
        let (length, Some(task)) = (to - from, task) else { return put_end(line, to - from) };
        if length < LONGEST {
            let Phrase { text, length, .. } = self.lengths.of(length, |line| put_length(line, length));
            line.beginning(text, *length);
        } else {
            put_length(line, length);
        }
        line.column(&mut self.task, task.0);
        let Some(block) = block else { return line.literal(b"}}") };
        if block.block > 0 {
            line.literal(b",\"block\":");
            line.number(block.block.into());
        }
        line.column(&mut self.submit, block.submit);
        if block.ready != from {
            line.column(&mut self.ready, block.ready);
        }
        if block.label.is_some() {
            line.literal(b",\"label\":");
        } else {
            line.literal(b"}}");
        }
    }
}

/// How long a slice of a task takes, up to the number of the task.
fn put_length<const ROOM: usize>(line: &mut Line<'_, ROOM>, length: u64) {
    line.literal(b",\"dur\":");
    micros(line, length, Line::number);
    line.literal(b",\"args\":{\"task\":");
}

/// How long a slice of no task takes, and its end.
fn put_end(line: &mut Line<'_, ROOM>, length: u64) {
    line.literal(b",\"dur\":");
    micros(line, length, Line::number);
    line.byte(b'}');
}

impl Chrome {
    fn place(&self, lane: Lane) -> (u32, u32) {
        match lane {
            Lane::Worker(worker) => (self.kinds[worker.0 as usize] as u32 + 1, worker.0),
            Lane::Orchestrator => (ORCHESTRATOR, 0),
            Lane::Scheduler(thread) => (SCHEDULER, thread),
        }
    }

    /// The slices of a worker have another name from here on.
    #[inline(never)]
    fn change_name(&mut self, worker: usize, slice: &Slice<'_>) {
        let (place, head) = &mut self.workers[worker];
        *head = Head { name: slice.name_id, text: Stamp::joined(name_of(&mut self.names, slice), place) };
    }

    /// Arrows that arrive, each written whole now that both ends are known, and the beginnings of those that leave.
    fn flows<W: Write>(&mut self, pen: &mut Pen<W>, slice: &Slice<'_>) {
        let (pid, tid) = self.place(slice.lane);
        for &flow in slice.flows_in {
            let Some((from_pid, from_tid, end)) = self.ends.remove(&flow) else { continue };
            pen.line(|line| {
                line.literal(b",\n{\"name\":\"dependency\",\"cat\":\"dependency\",\"ph\":\"s\",\"id\":");
                line.number(flow);
                place(line, from_pid, from_tid);
                micros(line, end, Line::number);
                line.literal(b"},\n{\"name\":\"dependency\",\"cat\":\"dependency\",\"ph\":\"f\",\"bp\":\"e\",\"id\":");
                line.number(flow);
                place(line, pid, tid);
                micros(line, slice.from, Line::number);
                line.byte(b'}');
            });
        }
        self.ends.extend(slice.flows_out.iter().map(|&flow| (flow, (pid, tid, slice.to))));
    }
}

impl Form for Chrome {
    fn open(&mut self, workload: &str, machine: &Machine) -> Vec<u8> {
        self.counters =
            Counter::all(machine).into_iter().map(|all| counter_head(&all.name(machine.limits.rings))).collect();
        let out = &mut Vec::new();
        write(out, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"workload\":");
        text(out, workload);
        write(out, ",\"machine\":");
        text(out, &machine.name);
        let _ = writeln!(out, ",\"clock_mhz\":{},\"unit\":\"1 ns is 1 cycle\"}},\"traceEvents\":[", machine.clock_mhz);
        write(out, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":10,\"args\":{\"name\":\"Orchestrator\"}}");
        name(out, "thread_name", ORCHESTRATOR, 0, "orchestrator");
        name(out, "process_name", SCHEDULER, 0, "Scheduler");
        for thread in 0..machine.scheduler.threads {
            name(out, "thread_name", SCHEDULER, thread, &format!("thread {thread}"));
        }
        name(out, "process_name", COUNTERS, 0, "Occupancy");
        for kind in WorkerType::ALL {
            let count = machine.workers.count(kind);
            if count > 0 {
                name(out, "process_name", kind as u32 + 1, 0, &format!("{kind} workers ({count})"));
            }
        }
        for (id, (kind, label)) in worker_names(machine).into_iter().enumerate() {
            self.kinds.push(kind);
            let pid = kind as u32 + 1;
            let place = format!(",\"pid\":{pid},\"tid\":{id},\"ts\":").into_bytes();
            self.workers.push((place, Head { name: u64::MAX, text: Stamp::new(b"") }));
            name(out, "thread_name", pid, id as u32, &label);
        }
        std::mem::take(out)
    }

    #[inline(always)]
    fn slice<W: Write>(&mut self, pen: &mut Pen<W>, slice: &Slice<'_>) {
        let mut line = match slice.lane {
            Lane::Worker(worker) => {
                let worker = worker.0 as usize;
                if self.workers[worker].1.name != slice.name_id {
                    self.change_name(worker, slice);
                }
                self.workers[worker].1.text.begin(pen)
            }
            Lane::Orchestrator | Lane::Scheduler(_) => {
                pen.text(name_of(&mut self.names, slice));
                let (mut line, (pid, tid)) = (pen.room(), self.place(slice.lane));
                place(&mut line, pid, tid);
                line
            }
        };
        self.columns.put(&mut line, (slice.from, slice.to), slice.task, slice.block);
        let length = line.length();
        pen.advance(length);
        if let Some(label) = slice.block.and_then(|block| block.label) {
            quoted(pen, label);
        }
        if !slice.flows_in.is_empty() || !slice.flows_out.is_empty() {
            self.flows(pen, slice);
        }
    }

    #[inline(always)]
    fn like_before<W: Write>(&mut self, pen: &mut Pen<W>, block: &PlainBlock) -> bool {
        let &PlainBlock { worker, name_id, from, to, task, submit, ready } = block;
        match &self.workers[worker.0 as usize].1 {
            Head { name, text: Stamp::Short(text, length) } if *name == name_id => {
                let mut line = pen.room();
                line.beginning(text, *length);
                let facts = BlockFacts { label: None, block: 0, submit, ready };
                self.columns.put(&mut line, (from, to), Some(task), Some(facts));
                let length = line.length();
                pen.advance(length);
                true
            }
            _ => false,
        }
    }

    #[inline]
    fn counter<W: Write>(&mut self, pen: &mut Pen<W>, counter: usize, value: u64, now: u64) {
        let moment = &mut self.columns.counter;
        self.counters[counter].line(pen, |line| {
            micros(line, now, |line, whole| line.column(moment, whole));
            line.literal(b",\"args\":{\"value\":");
            line.number(value);
            line.literal(b"}}");
        });
    }

    fn close<W: Write>(&mut self, pen: &mut Pen<W>) {
        pen.text(b"\n]}\n");
    }
}

fn counter_head(name: &str) -> Stamp {
    let mut head = b",\n{\"name\":".to_vec();
    text(&mut head, name);
    let _ = write!(head, ",\"ph\":\"C\",\"pid\":{COUNTERS},\"ts\":");
    Stamp::new(&head)
}

fn write(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// The beginning of a slice up to its place, from among those that are known.
fn name_of<'a>(names: &'a mut Vec<Option<Vec<u8>>>, slice: &Slice<'_>) -> &'a [u8] {
    let index = slice.name_id as usize;
    if index >= names.len() {
        names.resize(index + 1, None);
    }
    names[index].get_or_insert_with(|| slice_head(slice))
}

/// A slice up to its place.
fn slice_head(slice: &Slice<'_>) -> Vec<u8> {
    let mut head = b",\n{\"name\":".to_vec();
    text(&mut head, slice.name);
    write(&mut head, ",\"ph\":\"X\"");
    head
}

/// Nanoseconds as microseconds, exactly.
#[inline(always)]
fn micros<'a, const ROOM: usize>(line: &mut Line<'a, ROOM>, nanos: u64, whole: impl FnOnce(&mut Line<'a, ROOM>, u64)) {
    whole(line, nanos / 1000);
    let rest = nanos % 1000;
    if rest > 0 {
        line.thousandths(rest as u32);
    }
}

/// A label as JSON, and the end of its slice; most labels need no more than quotes.
fn quoted<W: Write>(pen: &mut Pen<W>, label: &str) {
    if label.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        pen.text(b"\"");
        pen.text(label.as_bytes());
        pen.text(b"\"}}");
    } else {
        let mut escaped = Vec::new();
        text(&mut escaped, label);
        pen.text(&escaped);
        pen.text(b"}}");
    }
}

#[inline(always)]
fn place(line: &mut Line<'_, ROOM>, pid: u32, tid: u32) {
    line.literal(b",\"pid\":");
    line.number(pid.into());
    line.literal(b",\"tid\":");
    line.number(tid.into());
    line.literal(b",\"ts\":");
}

fn name(out: &mut Vec<u8>, what: &str, pid: u32, tid: u32, label: &str) {
    let mut line = String::new();
    let _ = write!(
        line,
        ",\n{{\"name\":\"{what}\",\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"args\":{{\"name\":\"{label}\"}}}}"
    );
    let order = if what == "thread_name" { ("thread_sort_index", tid) } else { ("process_sort_index", pid) };
    let _ = write!(
        line,
        ",\n{{\"name\":\"{}\",\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"args\":{{\"sort_index\":{}}}}}",
        order.0, order.1
    );
    write(out, &line);
}

/// Any text as JSON.
fn text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("memory does not fail");
}

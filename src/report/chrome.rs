//! A run as Chrome trace events in JSON, for Perfetto's page, `chrome://tracing` and other viewers.

use super::export::{Counter, Form, Lane, Slice, worker_names};
use super::line::{Digits, Line};
use super::pen::{Pen, ROOM};
use super::stamp::{Phrase, Phrases, Stamp};
use crate::config::Machine;
use crate::id::WorkerType;
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
    /// The place of a slice on each worker, up to its moment.
    workers: Vec<Stamp>,
    /// The beginning of each counter's events, up to the moment.
    counters: Vec<Stamp>,
    /// The beginning of slices by the number of their name.
    names: Vec<Option<Stamp>>,
    /// Where arrows begin that have not arrived yet, by number: `(pid, tid, end)`.
    ends: BTreeMap<u64, (u32, u32, u64)>,
    columns: Columns,
}

/// Numbers of slices and counters that mostly begin like those before them.
#[derive(Default)]
struct Columns {
    from: Digits,
    task: Digits,
    submit: Digits,
    ready: Digits,
    counter: Digits,
    /// How long a slice of a task takes, as it is written between its moment and its task.
    lengths: Phrases,
}

/// Lengths beyond this take too many digits to be kept.
const LONGEST: u64 = 1_000_000_000_000;

impl Columns {
    /// A slice from its moment on, up to its label if it has one.
    #[inline(always)]
    fn put(&mut self, line: &mut Line<'_, ROOM>, slice: &Slice<'_>) {
        micros(line, &mut self.from, slice.from);
        let length = slice.to - slice.from;
        let Some(task) = slice.task.filter(|_| length < LONGEST) else { return self.put_long(line, slice) };
        let Phrase { text, length, .. } = self.lengths.of(length, |line| {
            line.literal(b",\"dur\":");
            micros(line, &mut Digits::default(), length);
            line.literal(b",\"args\":{\"task\":");
        });
        line.beginning(text, *length);
        line.digits(&mut self.task, task.0);
        self.put_facts(line, slice);
    }

    /// A slice behind its moment that is very long or about no task.
    #[cold]
    fn put_long(&mut self, line: &mut Line<'_, ROOM>, slice: &Slice<'_>) {
        line.literal(b",\"dur\":");
        micros(line, &mut Digits::default(), slice.to - slice.from);
        let Some(task) = slice.task else { return line.byte(b'}') };
        line.literal(b",\"args\":{\"task\":");
        line.digits(&mut self.task, task.0);
        self.put_facts(line, slice);
    }

    /// What is told of a block, up to its label if it has one.
    #[inline(always)]
    fn put_facts(&mut self, line: &mut Line<'_, ROOM>, slice: &Slice<'_>) {
        if let Some(block) = &slice.block {
            if block.block > 0 {
                line.literal(b",\"block\":");
                line.number(block.block.into());
            }
            line.literal(b",\"submit\":");
            line.digits(&mut self.submit, block.submit);
            if block.ready != slice.from {
                line.literal(b",\"ready\":");
                line.digits(&mut self.ready, block.ready);
            }
            if block.label.is_some() {
                return line.literal(b",\"label\":");
            }
        }
        line.literal(b"}}");
    }
}

impl Chrome {
    fn place(&self, lane: Lane) -> (u32, u32) {
        match lane {
            Lane::Worker(worker) => (self.kinds[worker.0 as usize] as u32 + 1, worker.0),
            Lane::Orchestrator => (ORCHESTRATOR, 0),
            Lane::Scheduler(thread) => (SCHEDULER, thread),
        }
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
                micros(line, &mut Digits::default(), end);
                line.literal(b"},\n{\"name\":\"dependency\",\"cat\":\"dependency\",\"ph\":\"f\",\"bp\":\"e\",\"id\":");
                line.number(flow);
                place(line, pid, tid);
                micros(line, &mut Digits::default(), slice.from);
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
            self.workers.push(Stamp::new(format!(",\"pid\":{pid},\"tid\":{id},\"ts\":").as_bytes()));
            name(out, "thread_name", pid, id as u32, &label);
        }
        std::mem::take(out)
    }

    #[inline(always)]
    fn slice<W: Write>(&mut self, pen: &mut Pen<W>, slice: &Slice<'_>) {
        let index = slice.name_id as usize;
        if index >= self.names.len() {
            self.names.resize(index + 1, None);
        }
        let head = self.names[index].get_or_insert_with(|| slice_head(slice));
        let mut line = head.begin(pen);
        match slice.lane {
            Lane::Worker(worker) => match &self.workers[worker.0 as usize] {
                Stamp::Short(text, length) => line.beginning(text, *length),
                Stamp::Long(_) => unreachable!("numbers of a place are short"),
            },
            Lane::Orchestrator => place(&mut line, ORCHESTRATOR, 0),
            Lane::Scheduler(thread) => place(&mut line, SCHEDULER, thread),
        }
        self.columns.put(&mut line, slice);
        let length = line.length();
        pen.advance(length);
        if let Some(label) = slice.block.and_then(|block| block.label) {
            quoted(pen, label);
        }
        if !slice.flows_in.is_empty() || !slice.flows_out.is_empty() {
            self.flows(pen, slice);
        }
    }

    #[inline]
    fn counter<W: Write>(&mut self, pen: &mut Pen<W>, counter: usize, value: u64, now: u64) {
        let moment = &mut self.columns.counter;
        self.counters[counter].line(pen, |line| {
            micros(line, moment, now);
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

/// A slice up to its place.
fn slice_head(slice: &Slice<'_>) -> Stamp {
    let mut head = b",\n{\"name\":".to_vec();
    text(&mut head, slice.name);
    write(&mut head, ",\"ph\":\"X\"");
    Stamp::new(&head)
}

/// Nanoseconds as microseconds, exactly.
#[inline(always)]
fn micros<const ROOM: usize>(line: &mut Line<'_, ROOM>, whole: &mut Digits, nanos: u64) {
    line.digits(whole, nanos / 1000);
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

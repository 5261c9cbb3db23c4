//! A run as Chrome trace events in JSON, for Perfetto's page, `chrome://tracing` and other viewers.

use super::export::{Counter, Form, Lane, Slice, worker_names};
use super::pen::Pen;
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
    workers: Vec<Vec<u8>>,
    /// The beginning of each counter's events, up to the moment.
    counters: Vec<Vec<u8>>,
    /// The beginning of slices by the number of their name; empty until it is used.
    names: Vec<Vec<u8>>,
    /// Where arrows begin that have not arrived yet, by number: `(pid, tid, end)`.
    ends: BTreeMap<u64, (u32, u32, u64)>,
}

impl Chrome {
    fn place(&self, lane: Lane) -> (u32, u32) {
        match lane {
            Lane::Worker(worker) => (self.kinds[worker.0 as usize] as u32 + 1, worker.0),
            Lane::Orchestrator => (ORCHESTRATOR, 0),
            Lane::Scheduler(thread) => (SCHEDULER, thread),
        }
    }

    /// A slice up to its place.
    #[inline]
    fn head(&mut self, slice: &Slice<'_>) -> &[u8] {
        let index = slice.name_id as usize;
        if index >= self.names.len() {
            self.names.resize(index + 1, Vec::new());
        }
        let head = &mut self.names[index];
        if head.is_empty() {
            write(head, ",\n{\"name\":");
            text(head, slice.name);
            let category = if slice.block.is_some() { "task" } else { "runtime" };
            let _ = write!(head, ",\"cat\":\"{category}\",\"ph\":\"X\"");
        }
        head
    }

    /// Arrows that arrive, each written whole now that both ends are known, and the beginnings of those that leave.
    fn flows<W: Write>(&mut self, pen: &mut Pen<W>, slice: &Slice<'_>) {
        let (pid, tid) = self.place(slice.lane);
        for &flow in slice.flows_in {
            let Some((from_pid, from_tid, end)) = self.ends.remove(&flow) else { continue };
            pen.make_room();
            pen.literal(b",\n{\"name\":\"dependency\",\"cat\":\"dependency\",\"ph\":\"s\",\"id\":");
            pen.number(flow);
            place(pen, from_pid, from_tid);
            micros(pen, end);
            pen.literal(b"},\n{\"name\":\"dependency\",\"cat\":\"dependency\",\"ph\":\"f\",\"bp\":\"e\",\"id\":");
            pen.number(flow);
            place(pen, pid, tid);
            micros(pen, slice.from);
            pen.byte(b'}');
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
            self.workers.push(format!(",\"pid\":{pid},\"tid\":{id},\"ts\":").into_bytes());
            name(out, "thread_name", pid, id as u32, &label);
        }
        std::mem::take(out)
    }

    #[inline]
    fn slice<W: Write>(&mut self, pen: &mut Pen<W>, slice: &Slice<'_>) {
        pen.text(self.head(slice));
        pen.make_room();
        match slice.lane {
            Lane::Worker(worker) => pen.text(&self.workers[worker.0 as usize]),
            Lane::Orchestrator => place(pen, ORCHESTRATOR, 0),
            Lane::Scheduler(thread) => place(pen, SCHEDULER, thread),
        }
        micros(pen, slice.from);
        pen.literal(b",\"dur\":");
        micros(pen, slice.to - slice.from);
        pen.literal(b",\"args\":{");
        if let Some(task) = slice.task {
            pen.literal(b"\"task\":");
            pen.number(task.0);
        }
        if let Some(block) = slice.block {
            pen.literal(b",\"block\":");
            pen.number(block.block.into());
            pen.literal(b",\"submit\":");
            pen.number(block.submit);
            pen.literal(b",\"ready\":");
            pen.number(block.ready);
            if let Some(label) = block.label {
                pen.literal(b",\"label\":");
                quoted(pen, label);
            }
        }
        pen.literal(b"}}");
        if !slice.flows_in.is_empty() || !slice.flows_out.is_empty() {
            self.flows(pen, slice);
        }
    }

    #[inline]
    fn counter<W: Write>(&mut self, pen: &mut Pen<W>, counter: usize, value: u64, now: u64) {
        pen.text(&self.counters[counter]);
        micros(pen, now);
        pen.literal(b",\"args\":{\"value\":");
        pen.number(value);
        pen.literal(b"}}");
    }

    fn close<W: Write>(&mut self, pen: &mut Pen<W>) {
        pen.literal(b"\n]}\n");
    }
}

fn counter_head(name: &str) -> Vec<u8> {
    let mut head = b",\n{\"name\":".to_vec();
    text(&mut head, name);
    let _ = write!(head, ",\"ph\":\"C\",\"pid\":{COUNTERS},\"tid\":0,\"ts\":");
    head
}

fn write(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Nanoseconds as microseconds, exactly.
#[inline]
fn micros<W: Write>(pen: &mut Pen<W>, nanos: u64) {
    pen.number(nanos / 1000);
    let rest = nanos % 1000;
    if rest > 0 {
        pen.literal(&[b'.', b'0' + (rest / 100) as u8, b'0' + (rest / 10 % 10) as u8, b'0' + (rest % 10) as u8]);
    }
}

/// Any text as JSON; most need no more than quotes.
fn quoted<W: Write>(pen: &mut Pen<W>, label: &str) {
    if label.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        pen.byte(b'"');
        pen.text(label.as_bytes());
        pen.make_room();
        pen.byte(b'"');
    } else {
        let mut escaped = Vec::new();
        text(&mut escaped, label);
        pen.text(&escaped);
        pen.make_room();
    }
}

fn place<W: Write>(pen: &mut Pen<W>, pid: u32, tid: u32) {
    pen.literal(b",\"pid\":");
    pen.number(pid.into());
    pen.literal(b",\"tid\":");
    pen.number(tid.into());
    pen.literal(b",\"ts\":");
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

//! A run as Chrome trace events in JSON, for Perfetto's page, `chrome://tracing` and other viewers.

use super::export::{Counter, Form, Lane, Slice, worker_names};
use crate::config::Machine;
use crate::id::WorkerType;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

/// Process ids: one a worker type, then the runtime.
const ORCHESTRATOR: u32 = 10;
const SCHEDULER: u32 = 11;
const COUNTERS: u32 = 12;

/// The form.
#[derive(Default)]
pub struct Chrome {
    kinds: Vec<WorkerType>,
    /// The beginning of each counter's events, up to the moment.
    counters: Vec<Vec<u8>>,
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

    /// Arrows that arrive, each written whole now that both ends are known, and the beginnings of those that leave.
    fn flows(&mut self, out: &mut Vec<u8>, slice: &Slice<'_>, pid: u32, tid: u32) {
        for &flow in slice.flows_in {
            let Some((from_pid, from_tid, end)) = self.ends.remove(&flow) else { continue };
            write(out, ",\n{\"name\":\"dependency\",\"cat\":\"dependency\",\"ph\":\"s\",\"id\":");
            number(out, flow);
            place(out, from_pid, from_tid, end);
            write(out, "},\n{\"name\":\"dependency\",\"cat\":\"dependency\",\"ph\":\"f\",\"bp\":\"e\",\"id\":");
            number(out, flow);
            place(out, pid, tid, slice.from);
            write(out, "}");
        }
        self.ends.extend(slice.flows_out.iter().map(|&flow| (flow, (pid, tid, slice.to))));
    }
}

impl Form for Chrome {
    fn open(&mut self, out: &mut Vec<u8>, workload: &str, machine: &Machine) {
        self.counters =
            Counter::all(machine).into_iter().map(|all| counter_head(&all.name(machine.limits.rings))).collect();
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
            name(out, "thread_name", kind as u32 + 1, id as u32, &label);
        }
    }

    fn slice(&mut self, out: &mut Vec<u8>, slice: &Slice<'_>) {
        let (pid, tid) = self.place(slice.lane);
        write(out, ",\n{\"name\":");
        text(out, slice.name);
        write(out, ",\"cat\":");
        write(out, if slice.block.is_some() { "\"task\"" } else { "\"runtime\"" });
        write(out, ",\"ph\":\"X\"");
        place(out, pid, tid, slice.from);
        write(out, ",\"dur\":");
        micros(out, slice.to - slice.from);
        write(out, ",\"args\":{");
        if let Some(task) = slice.task {
            write(out, "\"task\":");
            number(out, task.0);
        }
        if let Some(block) = slice.block {
            for (key, value) in
                [(",\"block\":", block.block.into()), (",\"submit\":", block.submit), (",\"ready\":", block.ready)]
            {
                write(out, key);
                number(out, value);
            }
            if let Some(label) = block.label {
                write(out, ",\"label\":");
                text(out, label);
            }
        }
        write(out, "}}");
        self.flows(out, slice, pid, tid);
    }

    fn counter(&mut self, out: &mut Vec<u8>, counter: Counter, value: u64, now: u64) {
        out.extend_from_slice(&self.counters[counter.index()]);
        micros(out, now);
        write(out, ",\"args\":{\"value\":");
        number(out, value);
        write(out, "}}");
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        write(out, "\n]}\n");
    }
}

fn counter_head(name: &str) -> Vec<u8> {
    let mut head = b",\n{\"name\":".to_vec();
    text(&mut head, name);
    let _ = write!(head, ",\"ph\":\"C\",\"pid\":{COUNTERS},\"tid\":0,\"ts\":");
    head
}

#[inline]
fn write(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Nanoseconds as microseconds, exactly.
fn micros(out: &mut Vec<u8>, nanos: u64) {
    number(out, nanos / 1000);
    let rest = nanos % 1000;
    if rest > 0 {
        let digits = [b'.', b'0' + (rest / 100) as u8, b'0' + (rest / 10 % 10) as u8, b'0' + (rest % 10) as u8];
        out.extend_from_slice(&digits);
    }
}

fn place(out: &mut Vec<u8>, pid: u32, tid: u32, now: u64) {
    write(out, ",\"pid\":");
    number(out, pid.into());
    write(out, ",\"tid\":");
    number(out, tid.into());
    write(out, ",\"ts\":");
    micros(out, now);
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

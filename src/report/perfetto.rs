//! A run as a Perfetto trace: protobuf packets with track events, encoded by hand.
//!
//! Numbers of fields come from Perfetto's published schema; only the few that are used here have names.

use super::export::{Counter, Form, Lane, Slice, worker_names};
use super::varint::{self, Record};
use crate::config::Machine;
use crate::id::WorkerType;
use std::collections::BTreeSet;

/// Fields of a packet.
mod packet {
    pub const TIMESTAMP: u64 = 8;
    pub const SEQUENCE_ID: u64 = 10;
    pub const TRACK_EVENT: u64 = 11;
    pub const INTERNED_DATA: u64 = 12;
    pub const SEQUENCE_FLAGS: u64 = 13;
    pub const TRACK_DESCRIPTOR: u64 = 60;
}

/// Fields of a track descriptor.
mod descriptor {
    pub const UUID: u64 = 1;
    pub const NAME: u64 = 2;
    pub const PROCESS: u64 = 3;
    pub const PARENT_UUID: u64 = 5;
    pub const COUNTER: u64 = 8;
    pub const CHILD_ORDERING: u64 = 11;
    pub const SIBLING_ORDER_RANK: u64 = 12;
}

/// Fields of a track event.
mod event {
    pub const DEBUG_ANNOTATIONS: u64 = 4;
    pub const TYPE: u64 = 9;
    pub const NAME_IID: u64 = 10;
    pub const TRACK_UUID: u64 = 11;
    pub const COUNTER_VALUE: u64 = 30;
    pub const FLOW_IDS: u64 = 47;
    pub const TERMINATING_FLOW_IDS: u64 = 48;
}

/// Tables of names that are told once.
mod interned {
    pub const EVENT_NAMES: u64 = 2;
    pub const ANNOTATION_NAMES: u64 = 3;
}

const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const COUNTER: u64 = 4;
const NO_FLAGS: u64 = 0;
const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;

/// Identities of tracks: the process, groups, then lanes and counters from these numbers on.
const PROCESS: u64 = 1;
const WORKER_GROUPS: u64 = 2;
const RUNTIME: u64 = 10;
const OCCUPANCY: u64 = 11;
const ORCHESTRATOR: u64 = 12;
const SCHEDULER: u64 = 1 << 20;
const COUNTERS: u64 = 1 << 21;
const WORKERS: u64 = 1 << 22;

/// Numbers beside a slice; their names are told once, numbered from 1.
const FACTS: [&str; 4] = ["task", "block", "submit", "ready"];

/// The form.
#[derive(Default)]
pub struct Perfetto {
    known_names: BTreeSet<u64>,
    scratch: Vec<u8>,
}

impl Perfetto {
    fn track(lane: Lane) -> u64 {
        match lane {
            Lane::Worker(worker) => WORKERS + u64::from(worker.0),
            Lane::Orchestrator => ORCHESTRATOR,
            Lane::Scheduler(thread) => SCHEDULER + u64::from(thread),
        }
    }

    /// A track below another, at a place among its siblings.
    fn describe(&mut self, out: &mut Vec<u8>, track: u64, (parent, rank): (u64, u64), name: &str, is_counter: bool) {
        let body = &mut self.scratch;
        body.clear();
        field(body, descriptor::UUID, track);
        field(body, descriptor::PARENT_UUID, parent);
        bytes(body, descriptor::NAME, name.as_bytes());
        field(body, descriptor::CHILD_ORDERING, 3);
        field(body, descriptor::SIBLING_ORDER_RANK, rank);
        if is_counter {
            bytes(body, descriptor::COUNTER, &[]);
        }
        packet(out, None, NO_FLAGS, (packet::TRACK_DESCRIPTOR, body));
    }

    /// Tells the text of a name at its first use.
    fn intern(&mut self, out: &mut Vec<u8>, id: u64, name: &str) {
        if !self.known_names.insert(id) {
            return;
        }
        self.scratch.clear();
        name_entry(&mut self.scratch, interned::EVENT_NAMES, id, name);
        packet(out, None, NEEDS_STATE, (packet::INTERNED_DATA, &self.scratch));
    }
}

impl Form for Perfetto {
    fn open(&mut self, out: &mut Vec<u8>, workload: &str, machine: &Machine) {
        let title = format!("{workload} on {} (1 ns is 1 cycle of {} MHz)", machine.name, machine.clock_mhz);
        let mut process = Vec::new();
        field(&mut process, 1, 1);
        bytes(&mut process, 6, title.as_bytes());
        self.scratch.clear();
        field(&mut self.scratch, descriptor::UUID, PROCESS);
        bytes(&mut self.scratch, descriptor::PROCESS, &process);
        field(&mut self.scratch, descriptor::CHILD_ORDERING, 3);
        packet(out, None, STATE_CLEARED, (packet::TRACK_DESCRIPTOR, &self.scratch));
        self.scratch.clear();
        for (name, id) in FACTS.into_iter().zip(1..) {
            name_entry(&mut self.scratch, interned::ANNOTATION_NAMES, id, name);
        }
        packet(out, None, NEEDS_STATE, (packet::INTERNED_DATA, &self.scratch));
        self.describe(out, RUNTIME, (PROCESS, 0), "Runtime", false);
        self.describe(out, ORCHESTRATOR, (RUNTIME, 0), "orchestrator", false);
        for thread in 0..machine.scheduler.threads {
            let (track, rank) = (SCHEDULER + u64::from(thread), u64::from(thread) + 1);
            self.describe(out, track, (RUNTIME, rank), &format!("scheduler thread {thread}"), false);
        }
        self.describe(out, OCCUPANCY, (PROCESS, 1), "Occupancy", false);
        for counter in Counter::all(machine) {
            let (name, rank) = (counter.name(machine.limits.rings), counter.index() as u64);
            self.describe(out, COUNTERS + rank, (OCCUPANCY, rank), &name, true);
        }
        for kind in WorkerType::ALL {
            let count = machine.workers.count(kind);
            if count > 0 {
                let name = format!("{kind} workers ({count})");
                self.describe(out, WORKER_GROUPS + kind as u64, (PROCESS, 2 + kind as u64), &name, false);
            }
        }
        for (id, (kind, name)) in worker_names(machine).into_iter().enumerate() {
            self.describe(out, WORKERS + id as u64, (WORKER_GROUPS + kind as u64, id as u64), &name, false);
        }
    }

    fn slice(&mut self, out: &mut Vec<u8>, slice: &Slice<'_>) {
        self.intern(out, slice.name_id, slice.name);
        let track = Perfetto::track(slice.lane);
        let mut record = event(SLICE_BEGIN, track);
        record.number(event::NAME_IID << 3);
        record.number(slice.name_id);
        if let Some(task) = slice.task {
            annotate(&mut record, 1, task.0);
        }
        if let Some(block) = slice.block {
            annotate(&mut record, 2, block.block.into());
            annotate(&mut record, 3, block.submit);
            annotate(&mut record, 4, block.ready);
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(record.bytes());
        if let Some(label) = slice.block.and_then(|block| block.label) {
            let mut annotation = Vec::new();
            bytes(&mut annotation, 10, b"label");
            bytes(&mut annotation, 6, label.as_bytes());
            bytes(&mut self.scratch, event::DEBUG_ANNOTATIONS, &annotation);
        }
        for &flow in slice.flows_out {
            fixed(&mut self.scratch, event::FLOW_IDS, flow);
        }
        for &flow in slice.flows_in {
            fixed(&mut self.scratch, event::TERMINATING_FLOW_IDS, flow);
        }
        packet(out, Some(slice.from), NEEDS_STATE, (packet::TRACK_EVENT, &self.scratch));
        packet(out, Some(slice.to), NEEDS_STATE, (packet::TRACK_EVENT, event(SLICE_END, track).bytes()));
    }

    fn counter(&mut self, out: &mut Vec<u8>, counter: Counter, value: u64, now: u64) {
        let mut record = event(COUNTER, COUNTERS + counter.index() as u64);
        record.number(event::COUNTER_VALUE << 3);
        record.number(value);
        packet(out, Some(now), NEEDS_STATE, (packet::TRACK_EVENT, record.bytes()));
    }

    fn close(&mut self, _out: &mut Vec<u8>) {}
}

/// A number.
#[inline]
fn field(out: &mut Vec<u8>, number: u64, value: u64) {
    varint::push(out, number << 3);
    varint::push(out, value);
}

/// A number of eight bytes.
fn fixed(out: &mut Vec<u8>, number: u64, value: u64) {
    varint::push(out, number << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// A text or a message.
#[inline]
fn bytes(out: &mut Vec<u8>, number: u64, value: &[u8]) {
    varint::push(out, number << 3 | 2);
    varint::push(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// The beginning of an event on a track.
#[inline]
fn event(kind: u64, track: u64) -> Record {
    let mut record = Record::new();
    for (number, value) in [(event::TYPE, kind), (event::TRACK_UUID, track)] {
        record.number(number << 3);
        record.number(value);
    }
    record
}

/// The number beside a slice that [`FACTS`] names in this place, from 1.
#[inline]
fn annotate(record: &mut Record, name: u8, value: u64) {
    let length = 3 + varint::length(value) as u8;
    for byte in [(event::DEBUG_ANNOTATIONS << 3 | 2) as u8, length, 1 << 3, name, 3 << 3] {
        record.byte(byte);
    }
    record.number(value);
}

/// A text with its number in a table of names.
fn name_entry(out: &mut Vec<u8>, table: u64, id: u64, name: &str) {
    let mut entry = Vec::new();
    field(&mut entry, 1, id);
    bytes(&mut entry, 2, name.as_bytes());
    bytes(out, table, &entry);
}

/// A packet that holds `body` as the field `number`, at a moment if it has one.
#[inline]
fn packet(out: &mut Vec<u8>, now: Option<u64>, flags: u64, (number, body): (u64, &[u8])) {
    let mut head = Record::new();
    for (number, value) in [(packet::SEQUENCE_ID, 1), (packet::SEQUENCE_FLAGS, flags)] {
        head.number(number << 3);
        head.number(value);
    }
    if let Some(now) = now {
        head.number(packet::TIMESTAMP << 3);
        head.number(now);
    }
    head.number(number << 3 | 2);
    head.number(body.len() as u64);
    varint::push(out, 1 << 3 | 2);
    varint::push(out, (head.bytes().len() + body.len()) as u64);
    out.extend_from_slice(head.bytes());
    out.extend_from_slice(body);
}

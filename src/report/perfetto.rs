//! A run as a Perfetto trace: protobuf packets with track events, encoded by hand.
//!
//! Numbers of fields come from Perfetto's published schema; only the few that are used here have names.

use super::export::{BlockFacts, Counter, Form, Lane, PlainBlock, Slice, worker_names};
use super::line::Line;
use super::mould::{Mould, Places};
use super::pen::{Pen, ROOM};
use super::varint::{self, Width};
use crate::config::Machine;
use crate::id::WorkerType;
use std::io::Write;

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

/// Identities of tracks: the process, groups and the orchestrator; threads, counters and workers follow. Small numbers take few
/// bytes, and every slice names its track twice.
const PROCESS: u64 = 1;
const WORKER_GROUPS: u64 = 2;
const RUNTIME: u64 = 10;
const OCCUPANCY: u64 = 11;
const ORCHESTRATOR: u64 = 12;
const THREADS: u64 = 13;

/// Numbers beside a slice; their names are told once, numbered from 1. Where there is no block it is block 0, and where there is no
/// ready it is the beginning of the slice.
const FACTS: [&str; 4] = ["task", "block", "submit", "ready"];

/// The form.
#[derive(Default)]
pub struct Perfetto {
    /// Whether each name was told.
    known_names: Vec<bool>,
    /// Identities of the first counter and of the first worker.
    counters: u64,
    workers: u64,
    moments: Width,
    tasks: Width,
    /// By worker, for slices that begin when their task became READY and for others.
    moulds: Vec<[Option<Mould>; 2]>,
}

impl Perfetto {
    /// Bytes of moments and of tasks.
    #[inline(always)]
    fn widths(&self) -> [u8; 2] {
        [self.moments.bytes() as u8, self.tasks.bytes() as u8]
    }

    #[inline(always)]
    fn track(&self, lane: Lane) -> u64 {
        match lane {
            Lane::Worker(worker) => self.workers + u64::from(worker.0),
            Lane::Orchestrator => ORCHESTRATOR,
            Lane::Scheduler(thread) => THREADS + u64::from(thread),
        }
    }

    /// A slice without label and arrows.
    #[inline(always)]
    fn short(&self, line: &mut Line<'_, ROOM>, slice: &Slice<'_>) -> Places {
        let (track, &Slice { from, to, .. }, mut places) = (self.track(slice.lane), slice, Places::default());
        let begin = ShortEvent::begin(line, &BEGIN, (&self.moments, from), (SLICE_BEGIN, track));
        places.from = (begin.start + BEGIN.len()) as u8;
        line.byte((event::NAME_IID << 3) as u8);
        places.name = line.length() as u8;
        line.varint(slice.name_id);
        if let Some(task) = slice.task {
            places.task = annotate(line, 1, (&self.tasks, task.0));
        }
        if let Some(block) = &slice.block {
            if block.block > 0 {
                annotate(line, 2, (&Width::of(block.block.into()), block.block.into()));
            }
            places.submit = annotate(line, 3, (&self.moments, block.submit));
            if block.ready != from {
                places.ready = annotate(line, 4, (&self.moments, block.ready));
            }
        }
        begin.end(line);
        let end = ShortEvent::begin(line, &END, (&self.moments, to), (SLICE_END, track));
        places.to = (end.start + END.len()) as u8;
        end.end(line);
        places
    }

    /// Tells the text of a name at its first use.
    #[cold]
    fn intern<W: Write>(&mut self, pen: &mut Pen<W>, slice: &Slice<'_>) {
        let id = slice.name_id as usize;
        if id >= self.known_names.len() {
            self.known_names.resize(id + 1, false);
        }
        self.known_names[id] = true;
        let mut entry = Vec::new();
        name_entry(&mut entry, interned::EVENT_NAMES, slice.name_id, slice.name);
        pen.text(&packet(None, NEEDS_STATE, (packet::INTERNED_DATA, &entry)));
    }

    /// The beginning of a slice that has a label or arrows, which may take any number of bytes.
    #[cold]
    fn long_begin<W: Write>(&self, pen: &mut Pen<W>, slice: &Slice<'_>) {
        let mut body = event_body(SLICE_BEGIN, self.track(slice.lane));
        field(&mut body, event::NAME_IID, slice.name_id);
        let facts = facts(slice);
        for (name, value) in facts.into_iter().zip(1..).filter_map(|(value, name)| Some((name, value?))) {
            let mut annotation = Vec::new();
            field(&mut annotation, 1, name);
            field(&mut annotation, 3, value);
            bytes(&mut body, event::DEBUG_ANNOTATIONS, &annotation);
        }
        if let Some(label) = slice.block.and_then(|block| block.label) {
            let mut annotation = Vec::new();
            bytes(&mut annotation, 10, b"label");
            bytes(&mut annotation, 6, label.as_bytes());
            bytes(&mut body, event::DEBUG_ANNOTATIONS, &annotation);
        }
        for &flow in slice.flows_out {
            fixed(&mut body, event::FLOW_IDS, flow);
        }
        for &flow in slice.flows_in {
            fixed(&mut body, event::TERMINATING_FLOW_IDS, flow);
        }
        pen.text(&packet(Some(slice.from), NEEDS_STATE, (packet::TRACK_EVENT, &body)));
    }
}

/// The numbers that [`FACTS`] names.
#[inline(always)]
fn facts(slice: &Slice<'_>) -> [Option<u64>; FACTS.len()] {
    let of_block = |fact: fn(&BlockFacts<'_>) -> u64| slice.block.as_ref().map(fact);
    let (task, block) = (slice.task.map(|task| task.0), of_block(|block| block.block.into()));
    let ready = of_block(|block| block.ready).filter(|&ready| ready != slice.from);
    [task, block.filter(|&block| block > 0), of_block(|block| block.submit), ready]
}

impl Form for Perfetto {
    fn open(&mut self, workload: &str, machine: &Machine) -> Vec<u8> {
        let title = format!("{workload} on {} (1 ns is 1 cycle of {} MHz)", machine.name, machine.clock_mhz);
        let (mut process, mut body) = (Vec::new(), Vec::new());
        field(&mut process, 1, 1);
        bytes(&mut process, 6, title.as_bytes());
        field(&mut body, descriptor::UUID, PROCESS);
        bytes(&mut body, descriptor::PROCESS, &process);
        field(&mut body, descriptor::CHILD_ORDERING, 3);
        let mut out = packet(None, STATE_CLEARED, (packet::TRACK_DESCRIPTOR, &body));
        body.clear();
        for (name, id) in FACTS.into_iter().zip(1..) {
            name_entry(&mut body, interned::ANNOTATION_NAMES, id, name);
        }
        out.extend(packet(None, NEEDS_STATE, (packet::INTERNED_DATA, &body)));
        describe(&mut out, RUNTIME, (PROCESS, 0), "Runtime", false);
        describe(&mut out, ORCHESTRATOR, (RUNTIME, 0), "orchestrator", false);
        for thread in 0..u64::from(machine.scheduler.threads) {
            let name = format!("scheduler thread {thread}");
            describe(&mut out, THREADS + thread, (RUNTIME, thread + 1), &name, false);
        }
        describe(&mut out, OCCUPANCY, (PROCESS, 1), "Occupancy", false);
        self.counters = THREADS + u64::from(machine.scheduler.threads);
        let counters = Counter::all(machine);
        self.workers = self.counters + counters.len() as u64;
        for counter in counters {
            let (name, rank) = (counter.name(machine.limits.rings), counter.index() as u64);
            describe(&mut out, self.counters + rank, (OCCUPANCY, rank), &name, true);
        }
        for kind in WorkerType::ALL {
            let count = machine.workers.count(kind);
            if count > 0 {
                let name = format!("{kind} workers ({count})");
                describe(&mut out, WORKER_GROUPS + kind as u64, (PROCESS, 2 + kind as u64), &name, false);
            }
        }
        for (id, (kind, name)) in worker_names(machine).into_iter().enumerate() {
            describe(&mut out, self.workers + id as u64, (WORKER_GROUPS + kind as u64, id as u64), &name, false);
        }
        out
    }

    #[inline(always)]
    fn slice<W: Write>(&mut self, pen: &mut Pen<W>, slice: &Slice<'_>) {
        if self.known_names.get(slice.name_id as usize) != Some(&true) {
            self.intern(pen, slice);
        }
        let to = slice.to;
        let has_label = slice.block.is_some_and(|block| block.label.is_some());
        let is_long = has_label || !slice.flows_in.is_empty() || !slice.flows_out.is_empty();
        let latest = slice.block.as_ref().map_or(to, |block| to.max(block.submit).max(block.ready));
        let is_wide = !self.moments.fits(latest) || !slice.task.is_none_or(|task| self.tasks.fits(task.0));
        if is_long || is_wide {
            self.long_begin(pen, slice);
            return pen.text(&event_at(to, SLICE_END, self.track(slice.lane)));
        }
        let mut line = pen.room();
        let places = self.short(&mut line, slice);
        if let (Lane::Worker(worker), Some(BlockFacts { block: 0, ready, .. })) = (slice.lane, slice.block)
            && slice.name_id < 0x80
        {
            let (worker, mould) = (worker.0 as usize, Mould::of(&line, places, self.widths()));
            if worker >= self.moulds.len() {
                self.moulds.resize_with(worker + 1, Default::default);
            }
            self.moulds[worker][usize::from(ready == slice.from)] = mould;
        }
        let length = line.length();
        pen.advance(length);
    }

    #[inline(always)]
    fn like_before<W: Write>(&mut self, pen: &mut Pen<W>, block: &PlainBlock) -> bool {
        let kind = usize::from(block.ready == block.from);
        let Some(Some(mould)) = self.moulds.get(block.worker.0 as usize).map(|moulds| &moulds[kind]) else {
            return false;
        };
        let latest = block.to.max(block.submit).max(block.ready);
        let is_known = self.known_names.get(block.name_id as usize) == Some(&true) && block.name_id < 0x80;
        let fits = mould.widths == self.widths() && self.moments.holds(latest) && self.tasks.holds(block.task.0);
        if !is_known || !fits {
            return false;
        }
        let mut line = pen.room();
        if mould.is_narrow() {
            mould.cast(&mut line, block, varint::few_sevens);
        } else {
            mould.cast(&mut line, block, varint::sevens);
        }
        let length = line.length();
        pen.advance(length);
        true
    }

    #[inline]
    fn counter<W: Write>(&mut self, pen: &mut Pen<W>, counter: usize, value: u64, now: u64) {
        let track = self.counters + counter as u64;
        if !self.moments.fits(now) {
            let mut body = event_body(COUNTER, track);
            field(&mut body, event::COUNTER_VALUE, value);
            return pen.text(&packet(Some(now), NO_FLAGS, (packet::TRACK_EVENT, &body)));
        }
        pen.line(|line| {
            let event = ShortEvent::begin(line, &END, (&self.moments, now), (COUNTER, track));
            line.literal(&[(event::COUNTER_VALUE << 3) as u8 | 0x80, (event::COUNTER_VALUE >> 4) as u8]);
            line.varint(value);
            event.end(line);
        });
    }

    fn close<W: Write>(&mut self, _pen: &mut Pen<W>) {}
}

/// A packet with an event whose lengths fit into one byte each: they are filled in when they are known.
struct ShortEvent {
    /// Where the packet begins.
    start: usize,
    /// Where the event in it begins, behind its length.
    event: usize,
}

impl ShortEvent {
    #[inline(always)]
    fn begin<const N: usize>(
        line: &mut Line<'_, ROOM>,
        head: &[u8; N],
        (moments, now): (&Width, u64),
        (kind, track): (u64, u64),
    ) -> ShortEvent {
        let start = line.length();
        line.literal(head);
        line.wide(moments, now);
        let event = line.length() + 2;
        let [field, length, kind_field, _, track_field] = EVENT;
        line.literal(&[field, length, kind_field, kind as u8, track_field]);
        line.varint(track);
        ShortEvent { start, event }
    }

    #[inline(always)]
    fn end(self, line: &mut Line<'_, ROOM>) {
        let end = line.length();
        debug_assert!(end - self.start < 0x80, "{} bytes", end - self.start);
        line.amend(self.event - 1, (end - self.event) as u8);
        line.amend(self.start + 1, (end - self.start - 2) as u8);
    }
}

/// The beginning of a packet with an event, up to its moment; its length stands in the second byte. What begins a slice makes use
/// of names told before, what ends it or counts does not.
const BEGIN: [u8; 7] = bytes_of([
    1 << 3 | 2,
    0,
    packet::SEQUENCE_ID << 3,
    1,
    packet::SEQUENCE_FLAGS << 3,
    NEEDS_STATE,
    packet::TIMESTAMP << 3,
]);
const END: [u8; 5] = bytes_of([1 << 3 | 2, 0, packet::SEQUENCE_ID << 3, 1, packet::TIMESTAMP << 3]);
/// What follows the moment, with the length of the event in its second byte and the kind in its fourth; then comes the track.
const EVENT: [u8; 5] = bytes_of([packet::TRACK_EVENT << 3 | 2, 0, event::TYPE << 3, 0, event::TRACK_UUID << 3]);

/// Small numbers as bytes, when this is compiled.
const fn bytes_of<const N: usize>(numbers: [u64; N]) -> [u8; N] {
    let (mut bytes, mut at) = ([0; N], 0);
    while at < N {
        bytes[at] = numbers[at] as u8;
        at += 1;
    }
    bytes
}

/// An event of which nothing but its kind and track is told, at a moment of any length.
#[cold]
fn event_at(now: u64, kind: u64, track: u64) -> Vec<u8> {
    packet(Some(now), NO_FLAGS, (packet::TRACK_EVENT, &event_body(kind, track)))
}

fn event_body(kind: u64, track: u64) -> Vec<u8> {
    let mut body = Vec::new();
    field(&mut body, event::TYPE, kind);
    field(&mut body, event::TRACK_UUID, track);
    body
}

/// A track below another, at a place among its siblings.
fn describe(out: &mut Vec<u8>, track: u64, (parent, rank): (u64, u64), name: &str, is_counter: bool) {
    let mut body = Vec::new();
    field(&mut body, descriptor::UUID, track);
    field(&mut body, descriptor::PARENT_UUID, parent);
    bytes(&mut body, descriptor::NAME, name.as_bytes());
    field(&mut body, descriptor::CHILD_ORDERING, 3);
    field(&mut body, descriptor::SIBLING_ORDER_RANK, rank);
    if is_counter {
        bytes(&mut body, descriptor::COUNTER, &[]);
    }
    out.extend(packet(None, NO_FLAGS, (packet::TRACK_DESCRIPTOR, &body)));
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

/// The number beside a slice that [`FACTS`] names in this place, from 1; returns where it stands.
#[inline(always)]
fn annotate(line: &mut Line<'_, ROOM>, name: u8, (width, value): (&Width, u64)) -> u8 {
    line.literal(&[(event::DEBUG_ANNOTATIONS << 3 | 2) as u8, 3 + width.bytes() as u8, 1 << 3, name, 3 << 3]);
    line.wide(width, value);
    (line.length() - width.bytes()) as u8
}

/// A text with its number in a table of names.
fn name_entry(out: &mut Vec<u8>, table: u64, id: u64, name: &str) {
    let mut entry = Vec::new();
    field(&mut entry, 1, id);
    bytes(&mut entry, 2, name.as_bytes());
    bytes(out, table, &entry);
}

/// A packet that holds `body` as the field `number`, at a moment if it has one.
fn packet(now: Option<u64>, flags: u64, (number, body): (u64, &[u8])) -> Vec<u8> {
    let mut inner = Vec::with_capacity(body.len() + 32);
    field(&mut inner, packet::SEQUENCE_ID, 1);
    field(&mut inner, packet::SEQUENCE_FLAGS, flags);
    if let Some(now) = now {
        field(&mut inner, packet::TIMESTAMP, now);
    }
    bytes(&mut inner, number, body);
    let mut packet = Vec::with_capacity(inner.len() + 8);
    bytes(&mut packet, 1, &inner);
    packet
}

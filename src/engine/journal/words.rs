//! Events as words of 64 bits: written by the engine's thread ([`super::write`]), read by others.
//!
//! ```text
//! first word of an event: what it is | small facts << 4 | worker << 8 or more facts | slot, ring or block << 32
//! the words that follow:  task, cycles, counts
//! ```
//!
//! The cycle is a word of its own and only written when it changes, because much happens at one cycle; moments are told by their
//! distance from it.

use super::Reader;
use super::facts::{DoneJob, Names, Occupancy, Started, Submitted};
use crate::engine::{BlockRow, JobKind, JobStep, Phase, Placed, SchedulerJob};
use crate::id::{Symbol, TaskId, TaskType, WorkerId};
use crate::window::{self, Resource, prefetch_to_write};
use std::sync::Arc;

/// Words of a page, a power of two, and room for what begins in it. Threads wake each other once a page, which takes microseconds; much
/// larger ones leave the caches.
pub(super) const PAGE_WORDS: usize = 1 << 16;
/// How many words ahead of what is written the page is fetched. Whoever read it last still has it, and what a processor does next waits
/// for what it has written before.
const AHEAD: usize = 128;
/// Words of the largest event.
pub(super) const EVENT_WORDS: usize = 1 + MOST_PRODUCERS as usize;

/// So many cycles have passed.
pub(super) const CYCLE: u64 = 0;
pub(super) const BLOCK: u64 = 1;
pub(super) const SUBMITTED: u64 = 2;
pub(super) const READY: u64 = 3;
pub(super) const WITHDRAWN: u64 = 4;
pub(super) const PLACED: u64 = 5;
pub(super) const JOB: u64 = 6;
pub(super) const ORCHESTRATOR: u64 = 7;
pub(super) const OCCUPIED: u64 = 8;
pub(super) const CONSUMED: u64 = 9;
pub(super) const POLICY_ACTS: u64 = 10;
pub(super) const CHILD_RELEASED: u64 = 11;
pub(super) const FINISHED: u64 = 12;
/// The only block of a task without name that was placed on one worker and started at once; its moments are told by their distance.
pub(super) const STARTED: u64 = 13;
/// A task of one block and without name, the one that follows the task submitted before it, and the slots of its producers.
pub(super) const NEXT: u64 = 14;

/// Most cycles that one word tells of.
pub(super) const MOST_CYCLES: u64 = u64::MAX >> 4;
/// In a phase of the orchestrator: where its cycles stand. More than these stand in a word of their own, and there are [`MORE`].
pub(super) const SPAN: u32 = 8;
pub(super) const MORE: u64 = 1 << 7;

/// Steps of a job, in the two bits above its kind.
pub(super) const QUEUED: u64 = 0 << 6;
pub(super) const BEGUN: u64 = 1 << 6;
pub(super) const DONE: u64 = 2 << 6;
pub(super) const JOINED: u64 = 3 << 6;
pub(super) const STEPS: u64 = 3 << 6;
/// Queued, begun without cost and done; such a job does not name its task.
pub(super) const AT_ONCE: u64 = 4 << 6;
/// In a task that is admitted or a block that is dispatched right away: the job that does it stands in no event of its own.
pub(super) const WITH_JOB: u64 = 1 << 11;
/// In a job: a task was consumed as an effect of it.
pub(super) const WITH_CONSUMED: u64 = 1 << 31;
/// Place of the leader's number + 1 in a job; 0 is none. A machine has at most 2^20 workers.
pub(super) const LEADER: u32 = 9;
pub(super) const LEADERS: u64 = (1 << 22) - 1;
/// In a placed block: how many workers it is placed on, if that is one.
pub(super) const ONE_WORKER: u64 = 1 << 8;
/// Place of the first worker of a placed block; others stand in a word of their own.
pub(super) const FIRST: u32 = 12;
pub(super) const FIRSTS: u64 = (1 << 20) - 1;
/// Places of the number of producers and of the kernel's number + 1 in the next task.
pub(super) const PRODUCERS: u32 = 7;
pub(super) const MOST_PRODUCERS: u32 = 15;
pub(super) const KERNEL: u32 = 12;
pub(super) const MOST_KERNELS: u64 = (1 << 20) - 1;

/// The lower half of a word.
pub(super) const LOW: u64 = u32::MAX as u64;

/// Part of a journal.
pub(super) struct Page {
    pub(super) words: Box<[u64; PAGE_WORDS + EVENT_WORDS]>,
    /// Words in use.
    pub(super) used: usize,
    /// The first task that may be submitted in it.
    next_task: u64,
    /// Producers of those tasks that do not bring them along, one after the other.
    pub(super) producers: Vec<u64>,
    /// Names that are new in it.
    pub(super) names: Vec<Arc<str>>,
}

impl Page {
    pub(super) fn empty() -> Page {
        let words = vec![0; PAGE_WORDS + EVENT_WORDS].try_into().expect("so many words were asked for");
        Page { words, used: 0, next_task: 0, producers: Vec::new(), names: Vec::new() }
    }

    /// The first task that may be submitted in it.
    pub(super) fn starting_with(mut self, next_task: u64) -> Page {
        self.next_task = next_task;
        self
    }

    /// The same page to be used again.
    pub(super) fn wiped(mut self) -> Page {
        self.used = 0;
        self.producers.clear();
        self.names.clear();
        self
    }

    /// Room for an event in a page that is not full.
    #[inline(always)]
    pub(super) fn room(&mut self) -> &mut [u64; EVENT_WORDS] {
        prefetch_to_write(&self.words[(self.used + AHEAD) & (PAGE_WORDS - 1)]);
        // An event begins within the page, which the compiler sees by this.
        self.words[self.used & (PAGE_WORDS - 1)..].first_chunk_mut().expect("there is room behind the page")
    }

    /// Tells `reader` everything; the rest goes on from page to page.
    pub(super) fn read(&self, reader: &mut impl Reader, now: &mut u64, names: &mut Names, tenants: &mut Tenants) {
        names.0.extend_from_slice(&self.names);
        let found = [0; MOST_PRODUCERS as usize];
        let (mut at, mut left) = (0, Left { task: self.next_task, producers: &self.producers, tenants, found });
        while at < self.used {
            // An event begins within the page, which the compiler sees by this.
            let event = self.words[at & (PAGE_WORDS - 1)..].first_chunk().expect("there is room behind the page");
            at += if event[0] & 15 == CYCLE {
                *now += event[0] >> 4;
                1
            } else {
                tell(event, &mut left, reader, *now, names)
            };
        }
    }
}

/// The type in a first word.
#[inline]
fn kind(head: u64) -> TaskType {
    TaskType::of_number(head >> 4)
}

#[inline]
fn symbol(number: u64) -> Option<Symbol> {
    window::symbol(number as u32)
}

/// The task submitted last into each slot, if producers are asked for: they are told by their slots.
#[derive(Default)]
pub(super) struct Tenants {
    is_kept: bool,
    tasks: Vec<u64>,
}

impl Tenants {
    pub(super) fn new(is_kept: bool) -> Tenants {
        Tenants { is_kept, tasks: Vec::new() }
    }

    #[inline(always)]
    fn note(&mut self, slot: u32, task: u64) {
        if self.is_kept {
            let slot = slot as usize;
            if slot >= self.tasks.len() {
                self.tasks.resize(slot + 1, 0);
            }
            self.tasks[slot] = task;
        }
    }
}

/// What the tasks of a page that were not told yet have in common.
struct Left<'a> {
    /// The next task.
    task: u64,
    /// Their producers.
    producers: &'a [u64],
    tenants: &'a mut Tenants,
    /// Producers found by their slots.
    found: [u64; MOST_PRODUCERS as usize],
}

impl<'a> Left<'a> {
    #[inline(always)]
    fn take(&mut self, n_producers: u64) -> &'a [u64] {
        let (own, others) = self.producers.split_at(n_producers as usize);
        self.producers = others;
        own
    }

    /// A task of one block and without name that follows the one before.
    #[inline(always)]
    fn next(&mut self, event: &[u64; EVENT_WORDS]) -> Submitted<'_> {
        let [head, slots @ ..] = event;
        let (kernel, slot) = ((head >> KERNEL & MOST_KERNELS) as u32, (head >> 32) as u32);
        let n_producers = if self.tenants.is_kept { n_producers(*head) } else { 0 };
        for (producer, &slot) in self.found.iter_mut().zip(slots).take(n_producers) {
            *producer = self.tenants.tasks[slot as usize];
        }
        self.tenants.note(slot, self.task);
        let (task, kernel) = (TaskId(self.task), kernel.checked_sub(1).map(Symbol));
        self.task += 1;
        Submitted {
            task,
            slot,
            kind: kind(*head),
            name: None,
            kernel,
            blocks: 1,
            producers: &self.found[..n_producers],
        }
    }

    /// Any task.
    #[inline(always)]
    fn submitted(&mut self, event: &[u64; EVENT_WORDS]) -> Submitted<'a> {
        let [head, task, symbols, counts, ..] = *event;
        self.task = task + 1;
        let (name, kernel, slot) = (symbol(symbols), symbol(symbols >> 32), (head >> 32) as u32);
        self.tenants.note(slot, task);
        let producers = self.take(counts >> 32);
        Submitted { task: TaskId(task), slot, kind: kind(head), name, kernel, blocks: counts as u32, producers }
    }
}

/// How many producers the next task has.
#[inline(always)]
fn n_producers(head: u64) -> usize {
    (head >> PRODUCERS & u64::from(MOST_PRODUCERS)) as usize
}

/// Tells one event and returns how many words it takes.
#[inline(always)]
fn tell(event: &[u64; EVENT_WORDS], left: &mut Left<'_>, reader: &mut impl Reader, now: u64, names: &Names) -> usize {
    let head = event[0];
    match head & 15 {
        BLOCK => {
            reader.block(&block(event), names);
            7
        }
        STARTED => {
            reader.started(&started(event, now), names, now);
            4
        }
        NEXT => {
            tell_submitted(head, &left.next(event), reader, now);
            1 + n_producers(head)
        }
        SUBMITTED => {
            tell_submitted(head, &left.submitted(event), reader, now);
            4
        }
        PLACED => tell_placed(event, reader, now),
        JOB => tell_job(event, reader, now),
        ORCHESTRATOR => {
            let (span, length) = if head & MORE == 0 { (head >> SPAN, 1) } else { (event[1], 2) };
            reader.orchestrator(phase(head >> 4 & 7), now - span, now);
            length
        }
        OCCUPIED => {
            reader.occupied(head as u32 >> 4, &occupancy(event), now);
            3
        }
        READY => {
            reader.ready((head >> 32) as u32, kind(head), now);
            1
        }
        _ => {
            tell_word(head, reader, now);
            1
        }
    }
}

/// Tells an event of one word that does not come often.
#[inline(always)]
fn tell_word(head: u64, reader: &mut impl Reader, now: u64) {
    let slot = (head >> 32) as u32;
    match head & 15 {
        WITHDRAWN => reader.withdrawn(kind(head), now),
        CONSUMED => reader.consumed(),
        POLICY_ACTS => reader.policy_acts(),
        CHILD_RELEASED => reader.child_released(slot, now),
        FINISHED => reader.finished(now),
        other => unreachable!("no event is written as {other}"),
    }
}

#[inline(always)]
fn tell_submitted(head: u64, submitted: &Submitted<'_>, reader: &mut impl Reader, now: u64) {
    reader.submitted(submitted, now);
    if head & WITH_JOB != 0 {
        reader.job_at_once(&DoneJob { kind: JobKind::Admit, slot: submitted.slot, worker: None });
    }
}

#[inline(always)]
fn tell_placed(event: &[u64; EVENT_WORDS], reader: &mut impl Reader, now: u64) -> usize {
    let [head, task, others, ..] = *event;
    let (slot, size) = ((head >> 32) as u32, (head >> 8 & 3) as usize);
    let crew = [(head >> FIRST & FIRSTS) as u32, others as u32, (others >> 32) as u32];
    let (task, kind, is_last) = (TaskId(task), kind(head), head >> 10 & 1 == 1);
    reader.placed(&Placed { slot, task, kind, is_last, crew: &crew[..size] }, now);
    if head & WITH_JOB != 0 {
        reader.job_at_once(&DoneJob { kind: JobKind::Dispatch, slot, worker: Some(WorkerId(crew[0])) });
    }
    if size > 1 { 3 } else { 2 }
}

#[inline(always)]
fn occupancy(event: &[u64; EVENT_WORDS]) -> Occupancy {
    let [head, heap, entries, ..] = *event;
    Occupancy { window: head >> 32, heap, deps: entries & LOW, tensors: entries >> 32 }
}

/// A block that started by itself.
#[inline(always)]
fn block(event: &[u64; EVENT_WORDS]) -> BlockRow {
    let [head, task, submit, ready, start, end, symbols, ..] = *event;
    let (worker, kind) = (WorkerId((head >> 8) as u32 & 0xff_ffff), kind(head));
    let (task, name, kernel) = (TaskId(task), symbol(symbols), symbol(symbols >> 32));
    BlockRow { task, block: (head >> 32) as u32, worker, submit, ready, start, end, name, kernel, kind }
}

/// A block that was placed on one worker and started there now.
#[inline(always)]
fn started(event: &[u64; EVENT_WORDS], now: u64) -> Started {
    let [head, task, waits, run, ..] = *event;
    let (slot, worker) = ((head >> 32) as u32, WorkerId((head >> FIRST & FIRSTS) as u32));
    let (submit, ready, end) = (now - (waits & LOW), now - (waits >> 32), now + (run & LOW));
    let (task, kernel, kind) = (TaskId(task), symbol(run >> 32), kind(head));
    Started {
        slot,
        is_last: head >> 10 & 1 == 1,
        is_dispatched: head & WITH_JOB != 0,
        row: BlockRow { task, block: 0, worker, submit, ready, start: now, end, name: None, kernel, kind },
    }
}

#[inline(always)]
fn tell_job(event: &[u64; EVENT_WORDS], reader: &mut impl Reader, now: u64) -> usize {
    let [head, task, cost, ..] = *event;
    let kind = match head >> 4 & 3 {
        0 => JobKind::Admit,
        1 => JobKind::Complete,
        _ => JobKind::Dispatch,
    };
    let leader = (head >> LEADER & LEADERS) as u32;
    let worker = leader.checked_sub(1).map(WorkerId);
    let slot = (head >> 32) as u32;
    if head & AT_ONCE != 0 {
        reader.job_at_once(&DoneJob { kind, slot, worker });
        if head & WITH_CONSUMED != 0 {
            reader.consumed();
        }
        return 1;
    }
    let job = SchedulerJob { kind, slot, task: TaskId(task), worker };
    match head & STEPS {
        QUEUED => reader.job(&job, JobStep::Queued, now),
        BEGUN => {
            reader.job(&job, JobStep::Begun(cost), now);
            return 3;
        }
        JOINED => {
            reader.job(&job, JobStep::Joined(cost), now);
            return 3;
        }
        _ => reader.job(&job, JobStep::Done, now),
    }
    2
}

#[inline]
fn phase(code: u64) -> Phase {
    match code {
        0 => Phase::Working,
        1 => Phase::Waiting,
        2 => Phase::Blocked(Resource::Window),
        3 => Phase::Blocked(Resource::Heap),
        4 => Phase::Blocked(Resource::Deps),
        _ => Phase::Blocked(Resource::Tensors),
    }
}

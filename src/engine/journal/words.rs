//! Events as words of 64 bits: written by the engine's thread, read by others.
//!
//! ```text
//! first word of an event: what it is | small facts << 4 | worker << 8 or more facts | slot, ring or block << 32
//! the words that follow:  task, cycles, counts
//! ```
//!
//! The cycle is a word of its own and only written when it changes, because much happens at one cycle.

use super::facts::{DoneJob, Names, Occupancy, Submitted};
use super::{Journal, Reader};
use crate::engine::{BlockRow, JobKind, JobStep, Observer, Phase, Placed, SchedulerJob};
use crate::id::{Symbol, TaskId, TaskType, WorkerId};
use crate::sync::{Local, Word};
use crate::window::{NONE, Resource, SlotRef, Window};
use crate::workload::Symbols;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Words of a page.
const PAGE_WORDS: usize = 1 << 15;
/// Words of the largest event, and of a cycle before it.
const MOST_WORDS: usize = 9;

const CYCLE: u64 = 0;
const BLOCK: u64 = 1;
const SUBMITTED: u64 = 2;
const READY: u64 = 3;
const WITHDRAWN: u64 = 4;
const PLACED: u64 = 5;
const JOB: u64 = 6;
const ORCHESTRATOR: u64 = 7;
const OCCUPIED: u64 = 8;
const CONSUMED: u64 = 9;
const POLICY_ACTS: u64 = 10;
const CHILD_RELEASED: u64 = 11;
const FINISHED: u64 = 12;

/// Steps of a job, in the two bits above its kind.
const QUEUED: u64 = 0 << 6;
const BEGUN: u64 = 1 << 6;
const DONE: u64 = 2 << 6;
const JOINED: u64 = 3 << 6;
const STEPS: u64 = 3 << 6;
/// Queued, begun without cost and done; such a job does not name its task.
const AT_ONCE: u64 = 4 << 6;
/// In a task that is admitted or a block that is dispatched right away: the job that does it stands in no event of its own.
const WITH_JOB: u64 = 1 << 11;
/// Place of the leader's number + 1 in a job; 0 is none. A machine has at most 2^20 workers.
const LEADER: u32 = 9;
const LEADERS: u64 = (1 << 23) - 1;
/// Place of the first worker of a placed block; others stand in a word of their own.
const FIRST: u32 = 12;
const FIRSTS: u64 = (1 << 20) - 1;

/// Part of a journal.
pub(super) struct Page {
    words: Box<[u64; PAGE_WORDS]>,
    /// Words in use.
    used: usize,
    /// Producers of its tasks, one after the other.
    producers: Vec<u64>,
    /// Names that are new in it.
    names: Vec<Arc<str>>,
}

impl Page {
    pub(super) fn empty() -> Page {
        let words = vec![0; PAGE_WORDS].try_into().expect("so many words were asked for");
        Page { words, used: 0, producers: Vec::new(), names: Vec::new() }
    }

    /// The same page to be used again.
    pub(super) fn wiped(mut self) -> Page {
        self.used = 0;
        self.producers.clear();
        self.names.clear();
        self
    }

    /// Tells `reader` everything; `now` and `names` go on from page to page.
    pub(super) fn read(&self, reader: &mut impl Reader, now: &mut u64, names: &mut Names) {
        names.0.extend_from_slice(&self.names);
        let (mut rest, mut producers) = (&self.words[..self.used], &self.producers[..]);
        while let [head, after @ ..] = rest {
            rest = after;
            if *head == CYCLE {
                [*now] = take(&mut rest);
            } else {
                rest = tell(*head, rest, &mut producers, reader, *now, names);
            }
        }
    }
}

/// The next words of an event.
#[inline]
fn take<const N: usize>(rest: &mut &[u64]) -> [u64; N] {
    let (words, after) = rest.split_first_chunk().expect("an event is written whole");
    *rest = after;
    *words
}

/// The type in a first word.
#[inline]
fn kind(head: u64) -> TaskType {
    match head >> 4 & 7 {
        0 => TaskType::Mix,
        1 => TaskType::Cube,
        2 => TaskType::Vector,
        3 => TaskType::AiCpu,
        4 => TaskType::Accelerator,
        _ => TaskType::None,
    }
}

#[inline]
fn symbol(number: u64) -> Option<Symbol> {
    let number = number as u32;
    (number != NONE).then_some(Symbol(number))
}

#[inline]
fn number(symbol: Option<Symbol>) -> u64 {
    symbol.map_or(NONE, |symbol| symbol.0).into()
}

/// Tells one event and returns the words behind it.
#[inline(always)]
fn tell<'a>(
    head: u64,
    mut rest: &'a [u64],
    producers: &mut &'a [u64],
    reader: &mut impl Reader,
    now: u64,
    names: &Names,
) -> &'a [u64] {
    let high = (head >> 32) as u32;
    match head & 15 {
        BLOCK => {
            let [task, submit, ready, start, end, symbols] = take(&mut rest);
            let (worker, kind) = (WorkerId((head >> 8) as u32 & 0xff_ffff), kind(head));
            let (task, name, kernel) = (TaskId(task), symbol(symbols), symbol(symbols >> 32));
            reader.block(&BlockRow { task, block: high, worker, submit, ready, start, end, name, kernel, kind }, names);
        }
        SUBMITTED => {
            let [task, symbols, counts] = take(&mut rest);
            let (own, others) = producers.split_at((counts >> 32) as usize);
            *producers = others;
            let (name, kernel) = (symbol(symbols), symbol(symbols >> 32));
            let (task, kind, blocks) = (TaskId(task), kind(head), counts as u32);
            reader.submitted(&Submitted { task, slot: high, kind, name, kernel, blocks, producers: own }, now);
            if head & WITH_JOB != 0 {
                reader.job_at_once(&DoneJob { kind: JobKind::Admit, slot: high, worker: None });
            }
        }
        READY => reader.ready(high, kind(head), now),
        WITHDRAWN => reader.withdrawn(kind(head), now),
        PLACED => {
            let [task] = take(&mut rest);
            let size = (head >> 8 & 3) as usize;
            let [others] = if size > 1 { take(&mut rest) } else { [0] };
            let crew = [(head >> FIRST & FIRSTS) as u32, others as u32, (others >> 32) as u32];
            let (task, kind, is_last) = (TaskId(task), kind(head), head >> 10 & 1 == 1);
            let crew = &crew[..size];
            reader.placed(&Placed { slot: high, task, kind, is_last, crew }, now);
            if head & WITH_JOB != 0 {
                let worker = Some(WorkerId(crew[0]));
                reader.job_at_once(&DoneJob { kind: JobKind::Dispatch, slot: high, worker });
            }
        }
        JOB => return tell_job(head, rest, reader, now),
        ORCHESTRATOR => {
            let [from] = take(&mut rest);
            reader.orchestrator(phase(head >> 4 & 7), from, now);
        }
        OCCUPIED => {
            let [heap, entries] = take(&mut rest);
            let (window, deps, tensors) = (high.into(), entries as u32, (entries >> 32) as u32);
            let occupancy = Occupancy { window, heap, deps: deps.into(), tensors: tensors.into() };
            reader.occupied(head as u32 >> 4, &occupancy, now);
        }
        CONSUMED => reader.consumed(),
        POLICY_ACTS => reader.policy_acts(),
        CHILD_RELEASED => reader.child_released(high, now),
        FINISHED => reader.finished(now),
        other => unreachable!("no event is written as {other}"),
    }
    rest
}

#[inline]
fn tell_job<'a>(head: u64, mut rest: &'a [u64], reader: &mut impl Reader, now: u64) -> &'a [u64] {
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
        return rest;
    }
    let [task] = take(&mut rest);
    let job = SchedulerJob { kind, slot, task: TaskId(task), worker };
    match head & STEPS {
        QUEUED => reader.job(&job, JobStep::Queued, now),
        BEGUN => {
            let [cost] = take(&mut rest);
            reader.job(&job, JobStep::Begun(cost), now);
        }
        JOINED => {
            let [cost] = take(&mut rest);
            reader.job(&job, JobStep::Joined(cost), now);
        }
        _ => reader.job(&job, JobStep::Done, now),
    }
    rest
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

fn phase_code(phase: Phase) -> u64 {
    match phase {
        Phase::Working => 0,
        Phase::Waiting => 1,
        Phase::Blocked(Resource::Window) => 2,
        Phase::Blocked(Resource::Heap) => 3,
        Phase::Blocked(Resource::Deps) => 4,
        Phase::Blocked(Resource::Tensors) => 5,
    }
}

impl Journal {
    /// Appends an event and returns where; a page that is nearly full is handed on before.
    #[inline(always)]
    fn write<const N: usize>(&mut self, now: u64, words: [u64; N]) -> usize {
        const { assert!(N + 2 <= MOST_WORDS) };
        if self.page.used > PAGE_WORDS - MOST_WORDS {
            self.turn_page();
        }
        let page = &mut self.page;
        let mut at = page.used;
        let room: &mut [u64; MOST_WORDS] = page.words[at..].first_chunk_mut().expect("the page is not full");
        if self.now == now {
            room[..N].copy_from_slice(&words);
        } else {
            self.now = now;
            room[..2].copy_from_slice(&[CYCLE, now]);
            room[2..N + 2].copy_from_slice(&words);
            at += 2;
        }
        page.used = at + N;
        at
    }

    /// Remembers an event to which the job that follows it can be added.
    #[inline(always)]
    fn remember(&mut self, at: usize) {
        (self.last, self.last_end) = (at, self.page.used);
    }

    /// Adds the job to the event before it, if it is about the same and nothing has happened since; false if not.
    #[inline]
    fn add_job(&mut self, event: u64, slot: SlotRef) -> bool {
        let Page { words, used, .. } = &mut self.page;
        if self.last_end != *used {
            return false;
        }
        let head = &mut words[self.last];
        let fits = *head & 15 == event && *head >> 32 == u64::from(slot);
        if fits {
            *head |= WITH_JOB;
        }
        fits
    }

    #[cold]
    fn note_names(&mut self, names: &Symbols) {
        let new = names.iter().skip(self.n_names).map(|(_, name)| Arc::from(name));
        self.page.names.extend(new);
        self.n_names = names.len();
    }
}

impl Observer for Journal {
    #[inline(always)]
    fn watches(&self) -> bool {
        self.is_read
    }

    #[inline(always)]
    fn heeds(&self, step: JobStep) -> bool {
        self.needs.causes || self.needs.levels && matches!(step, JobStep::Begun(1..))
    }

    fn journal(&mut self) -> Option<&mut Journal> {
        Some(self)
    }

    #[inline(always)]
    fn block(&mut self, row: &BlockRow, names: &Symbols) {
        let (head, worker) = (BLOCK | (row.kind as u64) << 4, u64::from(row.worker.0));
        let head = head | worker << 8 | u64::from(row.block) << 32;
        let symbols = number(row.name) | number(row.kernel) << 32;
        // The moment of a row is its start, which may lie ahead: the cycle is left as it is.
        self.write(self.now, [head, row.task.0, row.submit, row.ready, row.start, row.end, symbols]);
        self.n_blocks += 1;
        if names.len() > self.n_names {
            self.note_names(names);
        }
    }

    #[inline(always)]
    fn submitted(&mut self, task: TaskId, slot: SlotRef, window: &Window<Local>, now: u64) {
        if !self.needs.tasks && !self.needs.causes {
            return;
        }
        let job = &window.slot(slot).job;
        let head = SUBMITTED | (job.kind() as u64) << 4 | u64::from(slot) << 32;
        let names = u64::from(job.name()) | u64::from(job.kernel.load(Relaxed)) << 32;
        let at = self.write(now, [head, task.0, names, job.blocks().into()]);
        self.remember(at);
        let Page { words, producers, .. } = &mut self.page;
        if self.needs.tasks {
            let before = producers.len();
            window.each_producer(slot, |producer| producers.push(window.slot(producer).task().0));
            words[at + 3] |= ((producers.len() - before) as u64) << 32;
        }
    }

    #[inline(always)]
    fn consumed(&mut self, _task: TaskId, now: u64) {
        if self.needs.causes {
            self.write(now, [CONSUMED]);
        }
    }

    #[inline(always)]
    fn ready(&mut self, _task: TaskId, slot: SlotRef, kind: TaskType, now: u64) {
        if self.needs.levels || self.needs.causes {
            self.write(now, [READY | (kind as u64) << 4 | u64::from(slot) << 32]);
        }
    }

    fn withdrawn(&mut self, kind: TaskType, now: u64) {
        if self.needs.levels {
            self.write(now, [WITHDRAWN | (kind as u64) << 4]);
        }
    }

    #[inline(always)]
    fn placed(&mut self, placed: &Placed<'_>, now: u64) {
        if !self.needs.levels && !self.needs.causes {
            return;
        }
        let worker = |nth: usize| placed.crew.get(nth).map_or(0, |&worker| u64::from(worker));
        let head = PLACED | (placed.kind as u64) << 4 | (placed.crew.len() as u64) << 8 | worker(0) << FIRST;
        let head = head | u64::from(placed.is_last) << 10 | u64::from(placed.slot) << 32;
        let at = if placed.crew.len() == 1 {
            self.write(now, [head, placed.task.0])
        } else {
            self.write(now, [head, placed.task.0, worker(1) | worker(2) << 32])
        };
        self.remember(at);
    }

    #[inline]
    fn job(&mut self, job: &SchedulerJob, step: JobStep, now: u64) {
        if !self.heeds(step) {
            return;
        }
        let leader = job.worker.map_or(0, |leader| u64::from(leader.0) + 1);
        let head = JOB | (job.kind as u64) << 4 | leader << LEADER | u64::from(job.slot) << 32;
        let task = job.task;
        match step {
            JobStep::Queued => self.write(now, [head | QUEUED, task.0]),
            JobStep::Begun(cost) => self.write(now, [head | BEGUN, task.0, cost]),
            JobStep::Joined(cost) => self.write(now, [head | JOINED, task.0, cost]),
            JobStep::Done => self.write(now, [head | DONE, task.0]),
        };
    }

    #[inline(always)]
    fn job_at_once(&mut self, job: &SchedulerJob, now: u64) {
        if !self.needs.causes {
            return;
        }
        let is_added = match job.kind {
            JobKind::Admit => self.add_job(SUBMITTED, job.slot),
            JobKind::Dispatch => self.add_job(PLACED, job.slot),
            JobKind::Complete => false,
        };
        if !is_added {
            let leader = job.worker.map_or(0, |leader| u64::from(leader.0) + 1);
            self.write(now, [JOB | (job.kind as u64) << 4 | AT_ONCE | leader << LEADER | u64::from(job.slot) << 32]);
        }
    }

    #[inline(always)]
    fn orchestrator(&mut self, phase: Phase, from: u64, now: u64) {
        if self.needs.levels || self.needs.causes {
            self.write(now, [ORCHESTRATOR | phase_code(phase) << 4, from]);
        }
    }

    #[inline(always)]
    fn occupied(&mut self, ring: u32, window: &Window<Local>, now: u64) {
        if self.needs.levels {
            let state = window.ring(ring);
            let head = OCCUPIED | u64::from(ring) << 4 | (state.submitted() - state.retired()) << 32;
            // Entries in use are in memory, which holds fewer than 2^32 of them.
            self.write(now, [head, state.heap_used(), state.deps_used() | window.tensors() << 32]);
        }
    }

    #[inline(always)]
    fn policy_acts(&mut self, now: u64) {
        // Once is enough as long as nothing else happens.
        if self.needs.causes && self.acts_end != self.page.used {
            self.write(now, [POLICY_ACTS]);
            self.acts_end = self.page.used;
        }
    }

    fn child_released(&mut self, slot: SlotRef, now: u64) {
        if self.needs.causes {
            self.write(now, [CHILD_RELEASED | u64::from(slot) << 32]);
        }
    }

    fn finished(&mut self, names: &Symbols, now: u64) {
        self.note_names(names);
        self.write(now, [FINISHED]);
    }
}

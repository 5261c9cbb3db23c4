//! What happens, appended to the page at hand; see [`super::words`] for how.

use super::facts::Occupancy;
use super::words::{
    AT_ONCE, BEGUN, BLOCK, CHILD_RELEASED, CONSUMED, CYCLE, DONE, EVENT_WORDS, FINISHED, FIRST, FIRSTS, JOB, JOINED,
    KERNEL, LEADER, LOW, MORE, MOST_CYCLES, MOST_KERNELS, MOST_PRODUCERS, NEXT, ONE_WORKER, ORCHESTRATOR, PAGE_WORDS,
    PLACED, POLICY_ACTS, PRODUCERS, Page, QUEUED, READY, SPAN, STARTED, SUBMITTED, WITH_CONSUMED, WITH_JOB, WITHDRAWN,
};
use super::{Journal, NEVER};
use crate::engine::tell::step_by_step;
use crate::engine::{BlockRow, JobKind, JobStep, Observer, Phase, Placed, SchedulerJob};
use crate::id::{Symbol, TaskId, TaskType};
use crate::sync::{Local, Word};
use crate::window::{NONE, SlotRef, Window};
use crate::workload::Symbols;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Journal {
    /// Appends an event and returns where; a full page is handed on before.
    #[inline(always)]
    fn write<const N: usize>(&mut self, now: u64, words: [u64; N]) -> usize {
        const { assert!(N <= EVENT_WORDS) };
        self.come_to(now);
        self.append(words)
    }

    /// Writes what must stand before an event of this cycle.
    #[inline(always)]
    fn come_to(&mut self, now: u64) {
        if self.settled != now {
            self.settle(now);
        }
    }

    /// Writes a block that waits for what belongs to it, and the cycle if time has moved on.
    #[inline(never)]
    pub(super) fn settle(&mut self, now: u64) {
        if self.settled == NEVER {
            self.append(self.placed);
        }
        if self.now != now {
            let mut passed = now - self.now;
            while passed > MOST_CYCLES {
                self.append([CYCLE | MOST_CYCLES << 4]);
                passed -= MOST_CYCLES;
            }
            self.append([CYCLE | passed << 4]);
            self.now = now;
        }
        self.settled = now;
    }

    /// Appends some words and returns where.
    #[inline(always)]
    fn append<const N: usize>(&mut self, words: [u64; N]) -> usize {
        self.make_room();
        let at = self.page.used;
        *self.page.room().first_chunk_mut().expect("an event is no longer than the longest") = words;
        self.page.used = at + N;
        at
    }

    /// Hands a full page on.
    #[inline(always)]
    fn make_room(&mut self) {
        if self.page.used >= PAGE_WORDS {
            self.turn_page();
        }
    }

    /// Writes down what is in use in the ring that changed, if any did.
    #[inline(always)]
    fn release(&mut self, window: &Window<Local>, now: u64) {
        let look = |ring| {
            let state = window.ring(ring);
            Occupancy {
                window: state.submitted() - state.retired(),
                heap: state.heap_used(),
                deps: state.deps_used(),
                tensors: window.tensors(),
            }
        };
        if let Some(words) = self.held.release(look) {
            self.write(now, words);
        }
    }

    /// What is told next is no longer an effect of the job before.
    #[inline(always)]
    fn tell_acts(&mut self, now: u64) {
        if self.policy_acts {
            self.policy_acts = false;
            self.write(now, [POLICY_ACTS]);
        }
    }

    /// What is told next is an effect of something else.
    #[inline(always)]
    fn other_effect(&mut self) {
        self.policy_acts = false;
        self.effect = usize::MAX;
    }

    /// Adds its admission to a task, if nothing has happened since it was written; false if not.
    #[inline(always)]
    fn add_admission(&mut self, slot: SlotRef) -> bool {
        let Page { words, used, .. } = &mut self.page;
        let task = words.get_mut(self.last).filter(|head| self.last_end == *used && **head >> 32 == u64::from(slot));
        task.map(|head| *head |= WITH_JOB).is_some()
    }

    /// Adds its dispatch to the block that waits to be written; false if none does.
    #[inline(always)]
    fn add_dispatch(&mut self, slot: SlotRef) -> bool {
        let fits = self.settled == NEVER && self.placed[0] >> 32 == u64::from(slot);
        if fits {
            self.placed[0] |= WITH_JOB;
        }
        fits
    }

    /// Writes the start of a block together with its placement, if that waits to be written and both are plain; false if not.
    #[inline(always)]
    fn add_start(&mut self, row: &BlockRow) -> bool {
        let [head, task] = self.placed;
        let is_same = task == row.task.0 && head >> FIRST & FIRSTS == u64::from(row.worker.0);
        if self.settled != NEVER || row.start != self.now || !is_same {
            return false;
        }
        let Some(words) = started(head ^ PLACED ^ STARTED, row) else { return false };
        self.settled = self.now;
        self.append(words);
        true
    }

    /// One more block has started.
    #[inline(always)]
    fn count_block(&mut self, names: &Symbols) {
        self.n_blocks += 1;
        if names.len() > self.n_names {
            self.note_names(names);
        }
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

    #[inline(always)]
    fn heeds_ends(&self) -> bool {
        false
    }

    fn journal(&mut self) -> Option<&mut Journal> {
        Some(self)
    }

    #[inline(always)]
    fn block(&mut self, row: &BlockRow, names: &Symbols) {
        if !self.add_start(row) {
            self.come_to(self.now);
            self.tell_acts(self.now);
            let symbols = number(row.name) | number(row.kernel) << 32;
            let (head, worker) = (BLOCK | (row.kind as u64) << 4, u64::from(row.worker.0));
            let head = head | worker << 8 | u64::from(row.block) << 32;
            // The moment of a row is its start, which may lie ahead: the cycle is left as it is.
            self.append([head, row.task.0, row.submit, row.ready, row.start, row.end, symbols]);
        }
        self.count_block(names);
    }

    #[inline(always)]
    fn started(&mut self, slot: SlotRef, row: &BlockRow, names: &Symbols) {
        if !self.needs.levels && !self.needs.causes {
            // Nobody asks for cycles, so that the moments of the row are told whole.
            return self.block(row, names);
        }
        let head = STARTED | one_worker(row.kind, row.worker.0, true, slot);
        let Some([head, words @ ..]) = started(head, row) else {
            // A copy is told of, so that the row of others need not be in memory.
            let row = *row;
            return step_by_step(self, slot, &row, names);
        };
        self.come_to(row.start);
        let mut dispatch = 0;
        if self.needs.causes {
            self.other_effect();
            dispatch = WITH_JOB;
        }
        let [task, waits, run] = words;
        self.append([head | dispatch, task, waits, run]);
        self.count_block(names);
    }

    #[inline(always)]
    fn submitted(&mut self, task: TaskId, slot: SlotRef, window: &Window<Local>, now: u64) {
        if !self.needs.tasks && !self.needs.causes {
            return;
        }
        let (entry, is_next) = (window.slot(slot), task.0 == self.next_task);
        let job = &entry.job;
        let (name, kernel, blocks) = (job.name(), job.kernel.load(Relaxed), job.blocks());
        let facts = (job.kind() as u64) << 4 | u64::from(slot) << 32;
        self.come_to(now);
        self.make_room();
        self.next_task = task.0 + 1;
        let n_producers = if self.needs.tasks { window.n_producers(entry) } else { 0 };
        let (kernel_number, at) = (u64::from(kernel.wrapping_add(1)), self.page.used);
        let is_plain = is_next && name == NONE && blocks == 1;
        if is_plain && n_producers <= MOST_PRODUCERS && kernel_number <= MOST_KERNELS {
            let head = NEXT | facts | u64::from(n_producers) << PRODUCERS | kernel_number << KERNEL;
            let room = self.page.room();
            room[0] = head;
            let mut places = room[1..].iter_mut();
            if n_producers > 0 {
                window.each_producer(slot, |producer| {
                    let place = places.next().expect("a plain task has few producers");
                    *place = producer.into();
                });
            }
            self.page.used = at + 1 + n_producers as usize;
        } else {
            // Producers belong to the page of their task.
            let producers = &mut self.page.producers;
            if n_producers > 0 {
                window.each_producer(slot, |producer| producers.push(window.slot(producer).task().0));
            }
            let names = u64::from(name) | u64::from(kernel) << 32;
            self.append([SUBMITTED | facts, task.0, names, u64::from(blocks) | u64::from(n_producers) << 32]);
        }
        (self.last, self.last_end) = (at, self.page.used);
    }

    #[inline(always)]
    fn consumed(&mut self, _task: TaskId, now: u64) {
        if !self.needs.causes {
            return;
        }
        if let Some(job) = self.page.words.get_mut(self.effect) {
            *job |= WITH_CONSUMED;
        } else {
            self.tell_acts(now);
            self.write(now, [CONSUMED]);
        }
    }

    #[inline(always)]
    fn ready(&mut self, _task: TaskId, slot: SlotRef, kind: TaskType, now: u64) {
        if self.needs.levels || self.needs.causes {
            self.tell_acts(now);
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
        let head = |first: u32| PLACED | one_worker(placed.kind, first, placed.is_last, placed.slot);
        match *placed.crew {
            [worker] => {
                self.come_to(now);
                (self.placed, self.settled) = ([head(worker), placed.task.0], NEVER);
            }
            ref crew => {
                let worker = |nth: usize| crew.get(nth).copied().unwrap_or(0);
                let others = u64::from(worker(1)) | u64::from(worker(2)) << 32;
                // One is counted already.
                let more = (crew.len() as u64) << 8 ^ ONE_WORKER;
                self.write(now, [head(worker(0)) ^ more, placed.task.0, others]);
            }
        }
    }

    #[inline]
    fn job(&mut self, job: &SchedulerJob, step: JobStep, now: u64) {
        if !self.heeds(step) {
            return;
        }
        if step == JobStep::Done {
            self.other_effect();
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
        self.other_effect();
        let is_added = match job.kind {
            JobKind::Admit => self.add_admission(job.slot),
            JobKind::Dispatch => self.add_dispatch(job.slot),
            JobKind::Complete => false,
        };
        if !is_added {
            let leader = job.worker.map_or(0, |leader| u64::from(leader.0) + 1);
            let head = JOB | (job.kind as u64) << 4 | AT_ONCE | leader << LEADER | u64::from(job.slot) << 32;
            self.effect = self.write(now, [head]);
        }
    }

    #[inline(always)]
    fn orchestrator(&mut self, phase: Phase, from: u64, now: u64) {
        if self.needs.levels || self.needs.causes {
            // What was consumed before is not consumed after.
            self.effect = usize::MAX;
            let (head, span) = (ORCHESTRATOR | u64::from(phase.number()) << 4, now - from);
            if span <= u64::MAX >> SPAN {
                self.write(now, [head | span << SPAN]);
            } else {
                self.write(now, [head | MORE, span]);
            }
        }
    }

    #[inline(always)]
    fn occupied(&mut self, ring: u32, window: &Window<Local>, now: u64) {
        if self.needs.levels {
            if self.held.holds_other(ring) {
                self.release(window, now);
            }
            self.held.hold(ring);
        }
    }

    #[inline(always)]
    fn instant_over(&mut self, window: &Window<Local>, now: u64) {
        self.release(window, now);
    }

    #[inline(always)]
    fn policy_acts(&mut self, _now: u64) {
        // Only what is told before the next job needs to know.
        if self.needs.causes {
            self.other_effect();
            self.policy_acts = true;
        }
    }

    fn child_released(&mut self, slot: SlotRef, now: u64) {
        if self.needs.causes {
            self.other_effect();
            self.write(now, [CHILD_RELEASED | u64::from(slot) << 32]);
        }
    }

    fn finished(&mut self, names: &Symbols, now: u64) {
        self.note_names(names);
        self.write(now, [FINISHED]);
    }
}

/// What the first word of a block tells that is placed on one worker.
#[inline(always)]
fn one_worker(kind: TaskType, worker: u32, is_last: bool, slot: SlotRef) -> u64 {
    (kind as u64) << 4 | ONE_WORKER | u64::from(is_last) << 10 | u64::from(worker) << FIRST | u64::from(slot) << 32
}

/// The start of a block behind its first word, if its moments are close and its task is plain.
#[inline(always)]
fn started(head: u64, row: &BlockRow) -> Option<[u64; 4]> {
    let [submit, ready, run] = [row.start - row.submit, row.start - row.ready, row.end - row.start];
    let is_short = submit | ready | run <= LOW && row.name.is_none() && row.block == 0;
    is_short.then(|| [head, row.task.0, submit | ready << 32, run | number(row.kernel) << 32])
}

#[inline]
fn number(symbol: Option<Symbol>) -> u64 {
    symbol.map_or(NONE, |symbol| symbol.0).into()
}

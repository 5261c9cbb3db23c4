//! Blocks and the scheduler's jobs about them, in virtual time: a block ends, its end is completed, a task is admitted, a
//! placed block starts.

use super::jobs::Job;
use super::mode::Mode;
use super::virtual_time::Sim;
use super::{BlockRow, JobStep, Observer};
use crate::id::{WorkerId, WorkerType};
use crate::ledger::Class;
use crate::machine::{Crew, own_type};
use crate::policy::{AfterEnd, End, Policy};
use crate::sync::{Local, Word};
use crate::window::{Slot, SlotRef, flag, symbol};
use std::cmp::Reverse;
use std::sync::atomic::Ordering::Relaxed;

impl<P: Policy, O: Observer, M: Mode> Sim<'_, P, O, M> {
    /// Parts of MIX blocks that end now, before their block.
    pub(super) fn collect_parts(&mut self) {
        while let Some(&Reverse((end, worker))) = self.parts.peek()
            && end == self.now
        {
            self.parts.pop();
            self.ledger.part_ended(worker, self.has_costs);
        }
    }

    /// Step 2: every block that ends now becomes a job, by ascending worker.
    #[inline]
    pub(super) fn collect_ends(&mut self) {
        let at_once = M::IS_FREE || self.is_prompt && !self.has_faults && self.family.is_settled();
        let mut due = self.ends.turn();
        while let Some(leader) = self.ends.take(&mut due) {
            self.observer.block_ends(WorkerId(leader), self.now);
            self.book_end(leader);
            self.push(Job::Complete(leader), at_once);
        }
    }

    /// The workers of a block that ends wait for its completion from now on.
    #[inline(always)]
    fn book_end(&mut self, leader: u32) {
        if M::IS_USUAL || self.floor.worker(leader).block.crew.is_one() {
            return self.book_end_of(leader, false);
        }
        let crew = self.floor.worker(leader).block.crew;
        for &id in crew.ids() {
            self.book_end_of(id, self.floor.worker(id).clock < self.now);
        }
    }

    /// The same for one of them, whose own part ended `early` or ends now.
    #[inline(always)]
    fn book_end_of(&mut self, worker: u32, early: bool) {
        if !early {
            self.ledger.part_ended(worker, self.has_costs());
        }
        if self.has_costs() {
            self.ledger.block_ended(worker);
        }
    }

    /// Whether a thread may take a job as soon as it would be queued: one is free, no other job is before it or ends now, and
    /// what happens in between changes neither the job nor what it leads to.
    #[inline]
    pub(super) fn is_taken_at_once(&self, job: Job) -> bool {
        if !self.is_smooth() || !self.jobs.is_open() || self.jobs.next_end() == self.now {
            return false;
        }
        let costs = &self.machine.scheduler;
        match job {
            Job::Admit(_) => true,
            Job::Dispatch(_) => costs.dispatch > 0,
            Job::Complete(_) | Job::Join(_) => costs.complete > 0 && self.machine.rules.completion_batch <= 1,
        }
    }

    /// Step 4: a free thread takes a job; true if that takes effect at once.
    #[inline]
    pub(super) fn begin(&mut self, job: Job) -> bool {
        let costs = &self.machine.scheduler;
        let cost = match job {
            Job::Admit(_) => costs.admit,
            Job::Dispatch(_) => costs.dispatch,
            Job::Complete(_) | Job::Join(_) if self.machine.rules.completion_batch > 1 => return self.begin_batch(job),
            Job::Complete(_) | Job::Join(_) => costs.complete.saturating_add(self.edge_cost(job)),
        };
        self.tell(job, JobStep::Begun(cost));
        if cost == 0 {
            self.take_effect(job);
        } else {
            self.jobs.run(job, self.now, cost);
        }
        cost == 0
    }

    /// A completion and those that wait right behind it are one job, which pays for all their edges but completes once.
    pub(super) fn begin_batch(&mut self, first: Job) -> bool {
        let mut batch = vec![first];
        while batch.len() < self.machine.rules.completion_batch as usize
            && let Some(next) = self.jobs.take_completion()
        {
            batch.push(next);
        }
        let edges = batch.iter().map(|&job| self.edge_cost(job)).fold(0, u64::saturating_add);
        let cost = self.machine.scheduler.complete.saturating_add(edges);
        self.tell(first, JobStep::Begun(cost));
        batch[1..].iter().for_each(|&job| self.tell(job, JobStep::Joined(cost)));
        if cost == 0 {
            batch.into_iter().for_each(|job| self.take_effect(job));
        } else {
            self.jobs.run_batch(batch, self.now, cost);
        }
        cost == 0
    }

    /// The last of a task's blocks to be taken also pays for the consumers linked by then.
    #[inline]
    pub(super) fn edge_cost(&self, completion: Job) -> u64 {
        let costs = &self.machine.scheduler;
        if costs.edge == 0 {
            return 0;
        }
        let slot = match completion {
            Job::Complete(worker) => self.floor.worker(worker).block.slot,
            Job::Join(slot) | Job::Admit(slot) => slot,
            Job::Dispatch(_) => return 0,
        };
        if !self.window.slot(slot).job.take_end() {
            return 0;
        }
        costs.edge.saturating_mul(self.window.count_consumers(slot))
    }

    /// A job that went through the queue is done.
    #[inline(never)]
    pub(super) fn take_effect(&mut self, job: Job) {
        self.tell(job, JobStep::Done);
        self.effect(job);
    }

    #[inline(always)]
    pub(super) fn effect(&mut self, job: Job) {
        match job {
            Job::Admit(slot) => self.admit(slot),
            Job::Dispatch(worker) => self.start(worker),
            Job::Join(slot) => self.finish(slot, self.window.slot(slot), None),
            Job::Complete(worker) => self.complete_block(worker),
        }
    }

    /// The end of a block is processed: its workers are free, and with the last block the task is done.
    #[inline(always)]
    pub(super) fn complete_block(&mut self, leader: u32) {
        let worker = self.floor.worker(leader);
        let slot_ref = worker.block.slot;
        if self.has_costs() {
            self.tally.end_to_completed.record(self.now - worker.block_end());
        }
        if M::IS_USUAL || worker.block.crew.is_one() {
            self.free(leader);
        } else {
            { worker.block.crew }.ids().iter().for_each(|&id| self.free(id));
            self.floor.worker_mut(leader).block.crew = Crew::one(leader);
        }
        let slot = self.window.slot(slot_ref);
        if M::IS_USUAL || slot.job.finish_block() {
            self.finish(slot_ref, slot, Some(leader));
        }
    }

    #[inline(always)]
    pub(super) fn free(&mut self, worker: u32) {
        self.floor.give_back(worker);
        if self.has_costs() {
            self.ledger.freed(worker);
        }
    }

    #[inline(always)]
    pub(super) fn admit(&mut self, slot: SlotRef) {
        let task = self.window.slot(slot);
        let is_cancelled = Self::MAY_FAIL && task.job.has(flag::CANCELLED);
        if is_cancelled {
            self.family.forget(slot);
            self.window.withdraw(slot);
        }
        task.job.set(flag::ADMITTED);
        if self.has_costs() && task.fanin() == 1 && !is_cancelled {
            // It waits for nothing else.
            self.ledger.admitted(Class::from_bits(task.job.class()));
        }
        if task.count_down() == 0 {
            self.become_ready(slot, task, task.job.kind(), true);
            if Self::MAY_FAIL {
                self.follow_up();
                self.obey();
            }
        }
    }

    /// A dispatched block starts after its pickup.
    #[inline(always)]
    pub(super) fn start(&mut self, leader: u32) {
        let block = &self.floor.worker(leader).block;
        let (slot_ref, index) = (block.slot, if M::IS_USUAL { 0 } else { block.index });
        let is_one = M::IS_USUAL || block.crew.is_one();
        let slot = self.window.slot(slot_ref);
        let start = if M::IS_FREE { self.now } else { self.now + self.machine.worker.pickup };
        slot.start();
        if !M::IS_USUAL {
            self.has_faults |= slot.job.has(flag::FAULT);
        }
        if self.has_costs() {
            self.ledger.block_starts(Class::from_bits(slot.job.class()), start);
        }
        let ready = if self.keeps_times() {
            let times = &mut self.times[slot_ref as usize];
            if index == 0 {
                times.start = start;
            }
            times.ready
        } else {
            slot.take_note(start)
        };
        self.tally.ready_to_start.record(start - ready);
        self.tally.blocks += 1;
        let end = if is_one { self.run_on(leader, leader, slot, start) } else { self.run_crew(leader, slot, start) };
        if !M::IS_USUAL && index == 0 && !self.family.is_empty() {
            self.family.parent_started(slot.task(), start);
            self.release_children();
        }
        self.ends.push(self.now, end, leader);
        if P::KEEPS_ORDER {
            self.window.foresee_completion(slot);
        } else {
            self.window.foresee_neighbours(slot_ref, slot, |consumer| self.policy.foresee(consumer));
        }
    }

    /// A MIX block runs on all its workers; returns when the last of them ends.
    #[inline(never)]
    pub(super) fn run_crew(&mut self, leader: u32, slot: &Slot<Local>, start: u64) -> u64 {
        let crew = self.floor.worker(leader).block.crew;
        let last = crew.ids().iter().map(|&id| self.run_on(leader, id, slot, start)).max().unwrap_or(start);
        for &id in crew.ids() {
            let end = self.floor.worker(id).clock;
            if end < last {
                self.parts.push(Reverse((end, id)));
                self.is_usual = false;
            }
        }
        self.floor.worker_mut(leader).block.end = last;
        last
    }

    /// A worker runs its part of the block that `leader` leads; returns when it ends.
    #[inline(always)]
    pub(super) fn run_on(&mut self, leader: u32, id: u32, slot: &Slot<Local>, start: u64) -> u64 {
        let placed = if self.has_costs() { self.floor.worker(leader).block.placed } else { start };
        let worker = self.floor.worker_mut(id);
        let kind = worker.kind;
        let on_cube = kind == WorkerType::Cube;
        let cycles = if M::IS_USUAL || on_cube { slot.job.cycles.load(Relaxed) } else { slot.job.vector_cycles() };
        let end = start.saturating_add(cycles);
        let kernel = slot.job.kernel.load(Relaxed);
        worker.clock = end;
        self.ledger.runs(id, placed, start, end);
        self.tally.ran(kernel, cycles);
        if !M::IS_USUAL && kind == WorkerType::Any {
            // It stands in for the type that the task asks for.
            self.work.add(own_type(slot.job.kind()).unwrap_or(kind), cycles);
        }
        if self.observer.watches() {
            let block = &self.floor.worker(leader).block;
            let times = &self.times[block.slot as usize];
            let row = BlockRow {
                task: slot.task(),
                block: block.index,
                worker: WorkerId(id),
                submit: times.submit,
                ready: times.ready,
                start,
                end,
                name: symbol(slot.job.name()),
                kernel: symbol(kernel),
                kind: slot.job.kind(),
            };
            let names = self.orchestrator.source().symbols();
            if Self::STARTS_AT_ONCE {
                self.observer.started(block.slot, &row, names);
            } else {
                self.observer.block(&row, names);
            }
        }
        end
    }

    /// The last block of a task is processed: the task is COMPLETED, unless the policy runs it again.
    #[inline(always)]
    pub(super) fn finish(&mut self, slot_ref: SlotRef, slot: &Slot<Local>, worker: Option<u32>) {
        let failed = !M::IS_USUAL && slot.job.has(flag::FAULT);
        if worker.is_none() {
            self.times[slot_ref as usize].start = self.now;
            self.family.parent_started(slot.task(), self.now);
        }
        let end = End { slot: slot_ref, task: slot.task(), kind: slot.job.kind(), failed, worker };
        match self.policy.on_end(&end, self.now) {
            AfterEnd::Complete => {}
            AfterEnd::Again => {
                slot.job.rewind();
                self.ledger.again(Class::from_bits(slot.job.class()));
                self.observer.ready(end.task, slot_ref, end.kind, self.now);
                self.obey();
                return;
            }
            AfterEnd::Abandon => {
                let ended = &mut self.tally.ended;
                *if failed { &mut ended.failed } else { &mut ended.cancelled } += 1;
                self.obey();
                return;
            }
        }
        if failed {
            self.tally.ended.failed += 1;
            self.spoil(slot_ref, end.task);
        } else {
            self.tally.ended.completed += 1;
        }
        self.complete(slot_ref, slot);
        self.policy.on_complete(&end, self.now);
        self.obey();
    }
}

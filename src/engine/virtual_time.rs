//! The virtual engine: event-driven, deterministic, to the cycle.
//!
//! One instant repeats the steps below until nothing changes; then time moves to the next moment at which anything can happen.
//!
//! ```text
//! 1 controls   2 blocks end   3 jobs end   4 jobs start   5 orchestrator   |   6 timers and dispatch, if 1 to 5 did nothing
//! ```

use super::adaptive::Adaptive;
use super::clerk::{Action, Clerk, Duty};
use super::deadlock::{Scene, explain, name_of};
use super::family::Family;
use super::jobs::{Job, Jobs};
use super::tally::{PathCosts, Tally, Work};
use super::{BlockRow, Cause, JobKind, JobStep, Observer, Retired, RunError, SchedulerJob};
use crate::config::Machine;
use crate::id::{Symbol, TaskId, TaskType, WorkerId, WorkerType};
use crate::ledger::{Class, Ledger, Supply};
use crate::machine::Floor;
use crate::orchestrator::{Orchestrator, Step};
use crate::policy::{AfterEnd, End, Halt, Policy, Ready, Stage, Submission};
use crate::report::Deadlock;
use crate::sync::{Local, Word};
use crate::window::{NONE, Outcomes, Refusal, Resource, SlotRef, State, Window, flag};
use crate::workload::Control;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::Ordering::Relaxed;

/// A run in progress.
pub(super) struct Sim<'a, P, O> {
    pub(super) machine: &'a Machine,
    pub(super) window: Window<Local>,
    pub(super) orchestrator: Orchestrator,
    pub(super) policy: P,
    pub(super) ledger: Ledger,
    pub(super) jobs: Jobs,
    pub(super) tally: Tally,
    pub(super) work: Work,
    pub(super) clerk: Clerk,
    pub(super) now: u64,
    pub(super) floor: Floor,
    pub(super) observer: &'a mut O,
    /// `(end, 2 × worker)` when a worker's part of a block ends early, `(end, 2 × leader + 1)` when a block ends.
    ends: BinaryHeap<Reverse<(u64, u32)>>,
    /// Whether a block ends at the moment at which it started.
    ends_now: bool,
    /// When blocks being picked up start, in that order.
    pickups: VecDeque<(u64, Class)>,
    times: Vec<Times>,
    path_costs: PathCosts,
    placed: Vec<u32>,
    lists: Lists,
    /// Timed commands still to come, the next one last.
    controls: Vec<Control>,
    family: Family,
    pub(super) notes: Vec<String>,
    /// When and why the policy stopped the run.
    pub(super) halt: Option<(u64, Halt)>,
    /// Nothing more is submitted, and what becomes READY now is dropped.
    is_shut_down: bool,
    pub(super) adaptive: Option<Adaptive>,
}

/// What a change of the window leaves to do.
#[derive(Default)]
struct Lists {
    /// Tasks that wait for nothing and will never run.
    cancelled: Vec<SlotRef>,
    /// Tasks that the policy did not take.
    dropped: Vec<SlotRef>,
    /// Rings whose oldest task was consumed.
    advancing: Vec<u32>,
    /// Grows when anything is consumed, so that a blocked orchestrator knows when to look again.
    consumed: u64,
}

/// Moments of the task in a slot.
#[derive(Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) submit: u64,
    pub(super) ready: u64,
    /// Of the first block.
    start: u64,
    pub(super) line: Option<u64>,
}

impl<'a, P: Policy, O: Observer> Sim<'a, P, O> {
    pub(super) fn new(machine: &'a Machine, orchestrator: Orchestrator, policy: P, observer: &'a mut O) -> Self {
        let window = Window::new(&machine.limits, machine.rules.fanout_order);
        let floor = Floor::new(&machine.workers);
        let costs = &machine.scheduler;
        let has_costs = costs.admit + costs.complete + costs.edge + costs.dispatch > 0;
        let ledger = Ledger::new(floor.workers().iter().map(|worker| worker.kind), has_costs);
        Sim {
            machine,
            orchestrator,
            policy,
            ledger,
            jobs: Jobs::new(&machine.scheduler),
            tally: Tally::new(machine),
            work: Work::default(),
            clerk: Clerk::new(),
            now: 0,
            floor,
            observer,
            ends: BinaryHeap::new(),
            ends_now: false,
            pickups: VecDeque::new(),
            times: vec![Times::default(); window.n_slots()],
            path_costs: PathCosts::new(machine),
            placed: Vec::new(),
            lists: Lists::default(),
            controls: Vec::new(),
            family: Family::default(),
            notes: Vec::new(),
            halt: None,
            is_shut_down: false,
            adaptive: Adaptive::new(machine),
            window,
        }
    }

    /// Takes the timed commands of the program, in file order.
    pub(super) fn with_controls(mut self, mut controls: Vec<Control>) -> Self {
        controls.sort_by_key(|control| control.at);
        controls.reverse();
        self.controls = controls;
        self
    }

    /// Runs until nothing is left to happen.
    pub(super) fn run(&mut self) -> Result<(), RunError> {
        loop {
            self.instant()?;
            let next = match self.next_event() {
                None if self.widen() || self.is_rescued() => continue,
                event => event.into_iter().chain(self.next_timer()).min(),
            };
            let Some(next) = next else {
                self.check_clock()?;
                break;
            };
            debug_assert!(next > self.now, "time stands still at {next}");
            self.ledger.advance(next);
            self.now = next;
        }
        let since = self.clerk.since;
        if let Some(phase) = self.clerk.close(self.now) {
            self.observer.orchestrator(phase, since, self.now);
        }
        Ok(())
    }

    /// Sums of cycles stop at 2^64 − 1, a moment that is never reached: whatever waits for it is an error.
    fn check_clock(&self) -> Result<(), RunError> {
        let waits = matches!(self.clerk.stage, Duty::Wait(_) | Duty::Pay(..));
        if self.ends.is_empty() && self.jobs.next_end().is_none() && !waits {
            return Ok(());
        }
        let task = self.ends.peek().map_or_else(
            || format!("task {}", self.orchestrator.next_task()),
            |&Reverse((_, key))| format!("task {}", self.window.slot(self.floor.worker(key / 2).block.slot).task()),
        );
        Err(RunError::Task(format!("{task}: the run passes cycle 2^64 - 1; use smaller cycles, costs or submit_at")))
    }

    #[inline]
    fn instant(&mut self) -> Result<(), RunError> {
        loop {
            if !self.controls.is_empty() {
                self.control();
            }
            self.collect_ends();
            if !self.family.is_settled() {
                self.release_children();
            }
            while let Some(job) = self.jobs.finish(self.now) {
                self.take_effect(job);
            }
            // Steps 1 to 3 have nothing more to do now, unless a block without cycles has just started.
            while (self.take_jobs() | self.orchestrate()?) && !self.ends_now {}
            if !self.ends_now && !self.hand_out() {
                return Ok(());
            }
        }
    }

    /// Gives an adaptive window more slots when nothing else can happen; false if that does not help.
    fn widen(&mut self) -> bool {
        let is_blocked = matches!(self.clerk.stage, Duty::Blocked { on: Resource::Window, .. });
        let grows = is_blocked && self.adaptive.as_mut().is_some_and(Adaptive::grow);
        if grows {
            self.turn(Duty::Reserve);
        }
        grows
    }

    /// Step 4: free threads take jobs; true if they did.
    #[inline]
    fn take_jobs(&mut self) -> bool {
        let mut changed = false;
        while let Some(job) = self.jobs.take() {
            self.begin(job);
            changed = true;
        }
        changed
    }

    /// The next moment at which anything can happen, timers of the policy aside.
    #[inline]
    fn next_event(&self) -> Option<u64> {
        let mut next = self.ends.peek().map_or(u64::MAX, |&Reverse((end, _))| end);
        if let Some(end) = self.jobs.next_end() {
            next = next.min(end);
        }
        if let Some(&(start, _)) = self.pickups.front() {
            next = next.min(start);
        }
        if let Duty::Wait(until) | Duty::Pay(until, _) = self.clerk.stage {
            next = next.min(until);
        }
        if let Some(control) = self.controls.last() {
            next = next.min(control.at);
        }
        if let Some(at) = self.family.next_release() {
            next = next.min(at);
        }
        (next != u64::MAX).then_some(next)
    }

    #[inline]
    fn next_timer(&self) -> Option<u64> {
        if self.halt.is_some() { None } else { self.policy.next_timer() }
    }

    /// Asks the policy, when nothing else can happen and work is left, whether it can get the run going again.
    #[cold]
    fn is_rescued(&mut self) -> bool {
        if self.halt.is_some() || self.is_complete() {
            return false;
        }
        let rescued = self.policy.on_idle(self.now);
        self.obey();
        rescued
    }

    /// Step 1: timed commands.
    #[inline]
    fn control(&mut self) {
        while let Some(control) = self.controls.pop_if(|control| control.at <= self.now) {
            self.observer.policy_acts(self.now);
            let is_known = self.policy.on_control(&control, self.now);
            if !is_known && control.command == "shutdown" {
                self.shut_down();
            } else if !is_known {
                let line = control.line.map_or_else(String::new, |line| format!(" in line {line}"));
                let policy = self.policy.name();
                self.notes
                    .push(format!("control `{}`{line} is not known to policy {policy}: ignored", control.command));
            }
            self.obey();
        }
    }

    /// What is READY or runs is drained; nothing more is submitted, and what is not READY yet never runs.
    fn shut_down(&mut self) {
        self.is_shut_down = true;
        self.notes.push(format!("shut down at {}: what was READY then has run, nothing else", self.now));
    }

    /// Children whose parent started long enough ago.
    #[inline]
    fn release_children(&mut self) {
        while let Some(child) = self.family.pop_due(self.now) {
            self.release_child(child);
        }
    }

    fn release_child(&mut self, child: SlotRef) {
        self.observer.child_released(child, self.now);
        if self.window.satisfy(child) {
            self.outcomes(|_, _, outcomes| outcomes.ready(child));
            self.obey();
        } else if self.window.slot(child).fanin() == 1 {
            self.outcomes(|_, _, outcomes| outcomes.unblocked(child));
        }
    }

    /// Step 2: every block that ends now becomes a job, by ascending worker.
    #[inline]
    fn collect_ends(&mut self) {
        self.ends_now = false;
        while let Some(&(start, class)) = self.pickups.front()
            && start == self.now
        {
            self.pickups.pop_front();
            self.ledger.block_started(class);
        }
        while let Some(&Reverse((end, key))) = self.ends.peek()
            && end == self.now
        {
            self.ends.pop();
            let worker = key / 2;
            if key % 2 == 0 {
                self.ledger.ended_early(worker);
                continue;
            }
            self.observer.block_ends(WorkerId(worker), end);
            for &id in self.floor.worker(worker).block.crew.ids() {
                self.ledger.ended(id, self.floor.worker(id).clock < end);
            }
            self.push(Job::Complete(worker));
        }
    }

    /// Step 4: a free thread takes a job.
    #[inline]
    fn begin(&mut self, job: Job) {
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
    }

    /// A completion and those that wait right behind it are one job, which pays for all their edges but completes once.
    fn begin_batch(&mut self, first: Job) {
        let mut batch = vec![first];
        while batch.len() < self.machine.rules.completion_batch as usize
            && let Some(next) = self.jobs.take_completion()
        {
            batch.push(next);
        }
        let edges = batch.iter().map(|&job| self.edge_cost(job)).fold(0, u64::saturating_add);
        let cost = self.machine.scheduler.complete.saturating_add(edges);
        if cost == 0 {
            batch.into_iter().for_each(|job| self.take_effect(job));
        } else {
            self.jobs.run_batch(batch, self.now, cost);
        }
    }

    /// The last of a task's blocks to be taken also pays for the consumers linked by then.
    #[inline]
    fn edge_cost(&self, completion: Job) -> u64 {
        let costs = &self.machine.scheduler;
        if costs.edge == 0 {
            return 0;
        }
        let slot = match completion {
            Job::Complete(worker) => self.floor.worker(worker).block.slot,
            Job::Join(slot) | Job::Admit(slot) => slot,
            Job::Dispatch(_) => return 0,
        };
        let to_take = &self.window.slot(slot).job.to_take;
        to_take.store(to_take.load(Relaxed) - 1, Relaxed);
        if to_take.load(Relaxed) > 0 {
            return 0;
        }
        costs.edge.saturating_mul(self.window.count_consumers(slot))
    }

    #[inline]
    fn take_effect(&mut self, job: Job) {
        self.tell(job, JobStep::Done);
        match job {
            Job::Admit(slot) => self.admit(slot),
            Job::Dispatch(worker) => self.start(worker),
            Job::Join(slot) => self.finish(slot, None),
            Job::Complete(worker) => {
                let block = &self.floor.worker(worker).block;
                let slot = block.slot;
                self.tally.end_to_completed.record(self.now - block.end);
                if block.crew.ids().len() == 1 {
                    self.free(worker);
                } else {
                    { block.crew }.ids().iter().for_each(|&id| self.free(id));
                }
                let to_finish = &self.window.slot(slot).job.to_finish;
                let left = to_finish.load(Relaxed) - 1;
                to_finish.store(left, Relaxed);
                if left == 0 {
                    self.finish(slot, Some(worker));
                }
            }
        }
    }

    #[inline]
    fn free(&mut self, worker: u32) {
        self.floor.give_back(worker);
        self.ledger.freed(worker);
    }

    #[inline]
    fn admit(&mut self, slot: SlotRef) {
        let task = self.window.slot(slot);
        task.job.set(flag::ADMITTED);
        let waits_for_nothing = task.fanin() == 1;
        if waits_for_nothing {
            self.ledger.admitted(Class::from_bits(task.job.class()));
        }
        if self.window.satisfy(slot) {
            self.outcomes(|_, _, outcomes| {
                outcomes.by_admission = true;
                outcomes.ready(slot);
            });
            self.obey();
        }
    }

    /// A dispatched block starts after its pickup.
    #[inline]
    fn start(&mut self, leader: u32) {
        let block = &self.floor.worker(leader).block;
        let (slot_ref, index, is_crew) = (block.slot, block.index, block.crew.ids().len() > 1);
        let slot = self.window.slot(slot_ref);
        let start = self.now + self.machine.worker.pickup;
        self.window.start(slot_ref);
        let class = Class::from_bits(slot.job.class());
        if start == self.now {
            self.ledger.block_started(class);
        } else {
            self.pickups.push_back((start, class));
        }
        let times = &mut self.times[slot_ref as usize];
        if index == 0 {
            times.start = start;
        }
        self.tally.ready_to_start.record(start - times.ready);
        self.tally.blocks += 1;
        let end = if is_crew { self.run_crew(leader, start) } else { self.run_on(leader, leader, start) };
        if index == 0 && !self.family.is_empty() {
            let task = self.window.slot(slot_ref).task();
            self.family.parent_started(task, start);
            self.release_children();
        }
        self.floor.worker_mut(leader).block.end = end;
        self.ends_now |= end == self.now;
        self.ends.push(Reverse((end, 2 * leader + 1)));
    }

    /// A MIX block runs on all its workers; returns when the last of them ends.
    fn run_crew(&mut self, leader: u32, start: u64) -> u64 {
        let crew = self.floor.worker(leader).block.crew;
        let last = crew.ids().iter().map(|&id| self.run_on(id, leader, start)).max().unwrap_or(start);
        for &id in crew.ids() {
            let end = self.floor.worker(id).clock;
            if end < last {
                self.ends_now |= end == self.now;
                self.ends.push(Reverse((end, 2 * id)));
            }
        }
        last
    }

    /// A worker runs its part of the block led by `leader`; returns when it ends.
    #[inline]
    fn run_on(&mut self, id: u32, leader: u32, start: u64) -> u64 {
        let block = &self.floor.worker(leader).block;
        let (slot_ref, index, placed) = (block.slot, block.index, block.placed);
        let slot = self.window.slot(slot_ref);
        let on_cube = self.floor.worker(id).kind == WorkerType::Cube;
        let cycles = if on_cube { slot.job.cycles.load(Relaxed) } else { slot.job.vector_cycles.load(Relaxed) };
        let end = start.saturating_add(cycles);
        let kernel = slot.job.kernel.load(Relaxed);
        self.floor.worker_mut(id).clock = end;
        self.ledger.runs(id, placed, start, end);
        self.tally.ran(kernel, cycles);
        if self.observer.watches() {
            let times = &self.times[slot_ref as usize];
            let row = BlockRow {
                task: slot.task(),
                block: index,
                worker: WorkerId(id),
                submit: times.submit,
                ready: times.ready,
                start,
                end,
                name: symbol(slot.job.name.load(Relaxed)),
                kernel: symbol(kernel),
                kind: slot.job.kind(),
            };
            self.observer.block(&row, self.orchestrator.source().symbols());
        }
        end
    }

    /// The last block of a task is processed: the task is COMPLETED, unless the policy runs it again.
    #[inline]
    fn finish(&mut self, slot_ref: SlotRef, worker: Option<u32>) {
        let slot = self.window.slot(slot_ref);
        let failed = slot.job.has(flag::FAULT);
        if worker.is_none() && !self.family.is_empty() {
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
        self.outcomes(|window, _, outcomes| window.complete(slot_ref, outcomes));
        self.policy.on_complete(&end, self.now);
        self.obey();
    }

    /// Does what the policy asks for.
    #[inline]
    fn obey(&mut self) {
        while let Some(requests) = self.policy.requests() {
            self.notes.append(&mut requests.notes);
            if let Some(halt) = requests.halt.take() {
                self.halt.get_or_insert((self.now, halt));
            }
            if requests.cancel.is_empty() {
                return;
            }
            for (slot, reason) in std::mem::take(&mut requests.cancel) {
                self.drop_task(slot, &reason);
            }
        }
    }

    /// A task ended badly: everything that depends on it is cancelled.
    #[cold]
    fn spoil(&mut self, slot: SlotRef, task: TaskId) {
        self.window.slot(slot).job.set(flag::BAD);
        self.orchestrator.remember_bad(task);
        let mut list = vec![slot];
        while let Some(producer) = list.pop() {
            let cause = self.window.slot(producer).task();
            let mut consumers = Vec::new();
            self.window.each_consumer(producer, |consumer| consumers.push(consumer));
            for (orphan, _) in self.family.orphans(cause) {
                self.family.push(self.now, orphan);
                consumers.push(orphan);
            }
            for consumer in consumers {
                if !self.window.slot(consumer).job.has(flag::CANCELLED) {
                    self.mark_cancelled(consumer, cause);
                    list.push(consumer);
                }
            }
        }
    }

    #[cold]
    fn mark_cancelled(&mut self, slot: SlotRef, cause: TaskId) {
        let task = self.window.slot(slot).task();
        self.window.slot(slot).job.set(flag::CANCELLED | flag::BAD);
        self.orchestrator.remember_bad(task);
        self.tally.ended.cancelled += 1;
        self.observer.cancelled(task, &Cause::Upstream(cause), self.now);
        self.policy.on_cancel(slot, task, self.now);
    }

    /// Does something to the window and follows up what it leads to.
    #[inline]
    fn outcomes(&mut self, act: impl FnOnce(&Window<Local>, &mut Orchestrator, &mut FollowUp<'_, P, O>)) {
        let mut follow_up = FollowUp {
            window: &self.window,
            policy: &mut self.policy,
            ledger: &mut self.ledger,
            jobs: &mut self.jobs,
            tally: &mut self.tally,
            times: &mut self.times,
            lists: &mut self.lists,
            observer: self.observer,
            now: self.now,
            by_admission: false,
            is_shut_down: self.is_shut_down,
        };
        act(&self.window, &mut self.orchestrator, &mut follow_up);
        while let Some(slot) = follow_up.lists.cancelled.pop() {
            self.window.complete(slot, &mut follow_up);
        }
        while let Some(ring) = self.lists.advancing.pop() {
            let Sim { window, observer, now, .. } = self;
            window.advance(ring, |slot| {
                observer.retired(
                    &Retired { task: window.slot(slot).task(), ring, heap_tail: window.ring(ring).heap_tail() },
                    *now,
                );
            });
            observer.occupied(ring, window, *now);
        }
        while let Some(slot) = self.lists.dropped.pop() {
            self.drop_task(slot, if self.is_shut_down { "shut down" } else { "ready queue full" });
        }
    }

    /// A READY task never runs: its dependents are cancelled, the ring goes on.
    #[cold]
    fn drop_task(&mut self, slot: SlotRef, reason: &str) {
        let task = self.window.slot(slot).task();
        let job = &self.window.slot(slot).job;
        self.tally.ended.dropped += 1;
        self.ledger.all_placed(Class::from_bits(job.class()));
        self.observer.withdrawn(job.kind(), self.now);
        self.observer.cancelled(task, &Cause::Dropped(reason), self.now);
        self.spoil(slot, task);
        self.outcomes(|window, _, outcomes| window.complete(slot, outcomes));
    }

    /// Step 5: the orchestrator works until it must wait.
    #[inline]
    fn orchestrate(&mut self) -> Result<bool, RunError> {
        let mut changed = false;
        loop {
            match self.clerk.stage {
                Duty::Read | Duty::Wait(_) | Duty::Reserve | Duty::Blocked { .. } if self.is_shut_down => {
                    self.stop_submitting();
                    return Ok(true);
                }
                Duty::Read => changed |= self.read()?,
                Duty::Wait(until) | Duty::Pay(until, _) if self.now < until => return Ok(changed),
                Duty::Wait(_) => self.turn(Duty::Reserve),
                Duty::Blocked { seen, .. } if seen == self.lists.consumed => return Ok(changed),
                Duty::Reserve | Duty::Blocked { .. } => changed |= self.reserve()?,
                Duty::Pay(_, action) => {
                    self.turn(Duty::Read);
                    self.act(action)?;
                    changed = true;
                }
                Duty::Done => return Ok(changed),
            }
        }
    }

    /// Reads operations and carries them out as long as they cost nothing and nothing is full; true if anything changed.
    #[inline]
    fn read(&mut self) -> Result<bool, RunError> {
        let mut changed = false;
        let scope = self.machine.orchestrator.scope;
        loop {
            let step = self.orchestrator.read(&self.window)?;
            match step {
                Step::Submit if self.orchestrator.task.submit_at > self.now => {
                    self.turn(Duty::Wait(self.orchestrator.task.submit_at));
                }
                Step::Submit => changed |= self.reserve()?,
                Step::ScopeBegin => changed |= self.pay(scope, Action::OpenScope)?,
                Step::ScopeEnd => changed |= self.pay(scope, Action::CloseScope)?,
                Step::Done => {
                    self.ledger.supply(Supply::Done);
                    self.turn(Duty::Done);
                }
            }
            if !matches!(self.clerk.stage, Duty::Read) {
                return Ok(changed);
            }
        }
    }

    /// The program ends here: open scopes close, and no operation follows.
    #[cold]
    fn stop_submitting(&mut self) {
        while !self.orchestrator.scopes().is_empty() {
            self.outcomes(|window, orchestrator, outcomes| orchestrator.close_scope(window, outcomes));
        }
        self.ledger.supply(Supply::Done);
        self.turn(Duty::Done);
    }

    /// Whether an adaptive window refuses the task at hand.
    fn is_too_narrow(&mut self) -> bool {
        let Some(adaptive) = &mut self.adaptive else { return false };
        let ring = self.window.ring(self.orchestrator.ring());
        !adaptive.admits(ring, self.now, self.clerk.blocked_on_window(self.now))
    }

    /// Tries to reserve what the task at hand needs; true if that led to its publication at once.
    #[inline]
    fn reserve(&mut self) -> Result<bool, RunError> {
        let is_too_narrow = self.adaptive.is_some() && self.is_too_narrow();
        let reserved = if is_too_narrow {
            Err(Refusal::Full(Resource::Window))
        } else {
            self.orchestrator.try_reserve(&self.window)
        };
        match reserved {
            Ok((slot, edges)) => {
                let costs = &self.machine.orchestrator;
                let cost = costs.submit.saturating_add(costs.per_edge.saturating_mul(edges));
                self.tally.reserved(&self.window, self.orchestrator.ring());
                self.observer.occupied(self.orchestrator.ring(), &self.window, self.now);
                self.ledger.supply(Supply::Working);
                self.pay(cost, Action::Publish(slot))
            }
            Err(Refusal::Full(on)) => {
                self.ledger.supply(Supply::Blocked(on));
                self.turn(Duty::Blocked { on, seen: self.lists.consumed });
                Ok(false)
            }
            Err(Refusal::TooLarge(resource)) => Err(self.orchestrator.too_large(resource, &self.window)),
        }
    }

    /// Acts after a cost; true if that is at once.
    #[inline]
    fn pay(&mut self, cost: u64, action: Action) -> Result<bool, RunError> {
        if cost > 0 {
            self.turn(Duty::Pay(self.now.saturating_add(cost), action));
            return Ok(false);
        }
        if !matches!(self.clerk.stage, Duty::Read) {
            self.turn(Duty::Read);
        }
        self.act(action)?;
        Ok(true)
    }

    #[inline]
    fn act(&mut self, action: Action) -> Result<(), RunError> {
        match action {
            Action::Publish(slot) => self.publish(slot)?,
            Action::OpenScope => self.orchestrator.open_scope(),
            Action::CloseScope => {
                self.outcomes(|window, orchestrator, outcomes| orchestrator.close_scope(window, outcomes));
            }
        }
        Ok(())
    }

    #[inline]
    fn publish(&mut self, slot_ref: SlotRef) -> Result<(), RunError> {
        let (kind, cost) = self.orchestrator.resolved;
        let cycles = self.work.book(&self.orchestrator.task, kind, cost);
        let first = if self.orchestrator.is_root() { self.path_costs.first } else { 0 };
        let published =
            self.orchestrator.publish(&self.window, slot_ref, first.saturating_add(self.path_costs.of(cycles)));
        self.tally.edges += published.edges;
        if cycles.is_some() {
            // The makespan is the end of a block, so a task without one does not end a path.
            let path = self.orchestrator.path(slot_ref) - self.path_costs.after;
            self.tally.critical_path = self.tally.critical_path.max(path);
        }
        let line = self.orchestrator.source().line();
        self.times[slot_ref as usize] = Times { submit: self.now, ready: 0, start: self.now, line };
        let task = self.window.slot(slot_ref).task();
        let (submit, symbols) = (&self.orchestrator.task, self.orchestrator.source().symbols());
        let submission = Submission { slot: slot_ref, task, kind, submit, symbols };
        if let Err(why) = self.policy.on_submit(&submission, self.now) {
            return Err(self.refuse(slot_ref, &why));
        }
        self.observer.submitted(task, slot_ref, &self.window, self.now);
        let orphan = self.orchestrator.task.parent.and_then(|(parent, offset)| self.adopt(slot_ref, parent, offset));
        let slot = self.window.slot(slot_ref);
        self.ledger.submitted(Class::from_bits(slot.job.class()), slot.fanin() == 1);
        if let Some(cause) = published.cancelled.or(orphan) {
            self.mark_cancelled(slot_ref, cause);
        }
        self.push(Job::Admit(slot_ref));
        Ok(())
    }

    /// The error for a task that can never run under this policy.
    #[cold]
    fn refuse(&self, slot: SlotRef, why: &str) -> RunError {
        let (place, task) = (self.orchestrator.place(), self.window.slot(slot).task());
        let name = name_of(&self.window, &self.orchestrator, slot);
        RunError::Task(format!("{place}task {task} `{name}`: {why}"))
    }

    /// Makes a task wait for the start of its parent plus an offset; returns the parent if it will never start. The start of a
    /// parent that is retired lies in the past.
    #[cold]
    fn adopt(&mut self, child: SlotRef, parent: TaskId, offset: u64) -> Option<TaskId> {
        let found = self.window.find(parent)?;
        let slot = self.window.slot(found);
        if slot.job.has(flag::CANCELLED) || slot.job.has(flag::BAD) && slot.state() < State::Running {
            return Some(parent);
        }
        if slot.state() < State::Running {
            self.window.wait_for_one_more(child);
            self.family.wait_for_start(child, parent, offset);
        } else {
            let release = self.times[found as usize].start.saturating_add(offset);
            if release > self.now {
                self.window.wait_for_one_more(child);
                self.family.push(release, child);
            }
        }
        None
    }

    /// Step 6: timers, then one pass of dispatch; true if anything happened.
    #[inline]
    fn hand_out(&mut self) -> bool {
        let mut changed = false;
        self.observer.policy_acts(self.now);
        if let Some(timer) = self.policy.next_timer()
            && timer <= self.now
        {
            changed = self.policy.on_timer(self.now);
            self.obey();
        }
        if self.halt.is_some() {
            return changed;
        }
        let Sim { window, floor, ledger, placed, .. } = self;
        let mut stage = Stage { now: self.now, window, floor, ledger, placed };
        self.policy.dispatch(&mut stage);
        self.obey();
        changed |= !self.placed.is_empty();
        for index in 0..self.placed.len() {
            let leader = self.placed[index];
            self.tell_placed(leader);
            self.push(Job::Dispatch(leader));
        }
        self.placed.clear();
        changed
    }

    /// Whether everything submitted was consumed and nothing is left to submit.
    pub(super) fn is_complete(&self) -> bool {
        let retired = |ring| self.window.ring(ring).retired() == self.window.ring(ring).submitted();
        self.clerk.stage == Duty::Done && (0..self.window.n_rings()).all(retired)
    }

    /// The facts about a run that is stuck.
    pub(super) fn explain(&self) -> Deadlock {
        let blocked = match self.clerk.stage {
            Duty::Blocked { on, .. } => Some(on),
            _ => None,
        };
        explain(&Scene {
            window: &self.window,
            orchestrator: &self.orchestrator,
            machine: self.machine,
            blocked,
            at: self.now,
            line: &|slot| self.times[slot as usize].line,
        })
    }
}

fn symbol(word: u32) -> Option<Symbol> {
    (word != NONE).then_some(Symbol(word))
}

/// Follows up what a change of the window leads to.
struct FollowUp<'a, P, O> {
    window: &'a Window<Local>,
    policy: &'a mut P,
    ledger: &'a mut Ledger,
    jobs: &'a mut Jobs,
    tally: &'a mut Tally,
    times: &'a mut Vec<Times>,
    lists: &'a mut Lists,
    observer: &'a mut O,
    now: u64,
    by_admission: bool,
    is_shut_down: bool,
}

impl<P: Policy, O: Observer> Outcomes for FollowUp<'_, P, O> {
    #[inline]
    fn ready(&mut self, slot_ref: SlotRef) {
        let slot = self.window.slot(slot_ref);
        let times = &mut self.times[slot_ref as usize];
        times.ready = self.now;
        let kind = slot.job.kind();
        let class = Class::from_bits(slot.job.class());
        self.ledger.ready(class);
        if slot.job.has(flag::CANCELLED) {
            self.ledger.all_placed(class);
            self.lists.cancelled.push(slot_ref);
            return;
        }
        if self.is_shut_down {
            self.policy.on_cancel(slot_ref, slot.task(), self.now);
            self.lists.dropped.push(slot_ref);
            return;
        }
        self.tally.submit_to_ready.record(self.now - times.submit);
        self.observer.ready(slot.task(), slot_ref, kind, self.now);
        if kind == TaskType::None {
            self.ledger.all_placed(class);
            if self.observer.watches() {
                let job = SchedulerJob { kind: JobKind::Complete, slot: slot_ref, task: slot.task(), worker: None };
                self.observer.job(&job, JobStep::Queued, self.now);
            }
            self.jobs.push(Job::Join(slot_ref));
            return;
        }
        let ready = Ready { slot: slot_ref, task: slot.task(), kind, by_admission: self.by_admission };
        if self.policy.on_ready(ready, self.now).is_err() {
            self.lists.dropped.push(slot_ref);
        }
    }

    #[inline]
    fn unblocked(&mut self, slot: SlotRef) {
        let job = &self.window.slot(slot).job;
        if !job.has(flag::ADMITTED) {
            self.ledger.unblocked(Class::from_bits(job.class()));
        }
    }

    #[inline]
    fn consumed(&mut self, slot: SlotRef) {
        self.lists.consumed += 1;
        self.tally.ended.consumed += 1;
        self.observer.consumed(self.window.slot(slot).task(), self.now);
        if self.window.is_oldest(slot) {
            self.lists.advancing.push(self.window.ring_of(slot));
        }
    }
}

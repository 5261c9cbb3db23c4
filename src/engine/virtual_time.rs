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
use super::ends::Ends;
use super::family::Family;
use super::follow_up::{Lists, has_run};
use super::jobs::{Job, Jobs};
use super::mode::Mode;
use super::tally::{PathCosts, Tally, Work};
use super::{JobStep, Observer, RunError};
use crate::config::{Machine, OnReadyFull};
use crate::ledger::Ledger;
use crate::machine::Floor;
use crate::orchestrator::Orchestrator;
use crate::policy::{Halt, Policy, Stage};
use crate::report::Deadlock;
use crate::sync::Local;
use crate::window::{Outcomes, SlotRef, State, Window, zeroed};
use crate::workload::Control;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::marker::PhantomData;

/// Why a run cannot go on. A pointer, so that steps which hardly ever fail tell so in a register.
pub(super) type Fault = Box<RunError>;

/// A run in progress.
pub(super) struct Sim<'a, P, O, M> {
    pub(super) machine: &'a Machine,
    pub(super) window: &'a Window<Local>,
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
    /// When blocks end.
    pub(super) ends: Ends,
    /// When a worker's part of a MIX block ends before the block does, and the worker.
    pub(super) parts: BinaryHeap<Reverse<(u64, u32)>>,
    pub(super) times: Box<[Times]>,
    pub(super) path_costs: PathCosts,
    pub(super) placed: Vec<u32>,
    pub(super) lists: Lists,
    /// Timed commands still to come, the next one last.
    pub(super) controls: Vec<Control>,
    pub(super) family: Family,
    pub(super) notes: Vec<String>,
    /// When and why the policy stopped the run.
    pub(super) halt: Option<(u64, Halt)>,
    /// Nothing more is submitted, and what becomes READY now is dropped.
    pub(super) is_shut_down: bool,
    pub(super) adaptive: Option<Adaptive>,
    /// A task that will fail has started: what its end leads to depends on what is done before and after.
    pub(super) has_faults: bool,
    /// Jobs cost nothing and the policy does not care when they are done, so that they need no queue.
    pub(super) is_prompt: bool,
    /// Jobs of the scheduler or pickups take time.
    pub(super) has_costs: bool,
    /// Submitting takes no time: a task is published as soon as it is reserved.
    pub(super) is_submitting_free: bool,
    /// The program has had no timed commands, parents or MIX blocks so far: some steps of an instant have nothing to do.
    pub(super) is_usual: bool,
    /// The task at hand is one that this mode does not know.
    pub(super) leaves_mode: bool,
    /// Another mode was left in the middle of an instant, where the orchestrator works: it goes on there.
    pub(super) is_resumed: bool,
    pub(super) mode: PhantomData<M>,
}

/// Moments of the task in a slot.
#[cfg_attr(not(loom), derive(zerocopy::FromZeros))]
#[derive(Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) submit: u64,
    pub(super) ready: u64,
    /// Of the first block.
    pub(super) start: u64,
    /// Line of its submission, 0 if there is none.
    pub(super) line: u64,
}

impl<'a, P: Policy, O: Observer, M: Mode> Sim<'a, P, O, M> {
    pub(super) fn new(
        machine: &'a Machine,
        window: &'a Window<Local>,
        orchestrator: Orchestrator,
        policy: P,
        observer: &'a mut O,
    ) -> Self {
        let mut floor = Floor::new(&machine.workers);
        if P::ASKS_WHO_IS_FREE {
            floor.keep_free_workers();
        }
        if P::TAKES_CERTAIN_WORKERS {
            floor.leave_order();
        }
        let costs = &machine.scheduler;
        let is_costly = [costs.admit, costs.complete, costs.edge, costs.dispatch].iter().any(|&cost| cost > 0);
        let has_costs = is_costly || machine.worker.pickup > 0;
        let ledger = Ledger::new(floor.workers().iter().map(|worker| worker.kind));
        let is_steady = policy.is_steady();
        let drops = machine.rules.on_ready_queue_full == OnReadyFull::Drop;
        Sim {
            machine,
            window,
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
            ends: Ends::new(machine.workers.total() as usize, machine.worker.pickup),
            parts: BinaryHeap::new(),
            times: zeroed(window.n_slots()),
            path_costs: PathCosts::new(machine),
            placed: Vec::new(),
            lists: Lists::default(),
            controls: Vec::new(),
            family: Family::default(),
            notes: Vec::new(),
            halt: None,
            is_shut_down: false,
            adaptive: Adaptive::new(machine),
            has_faults: false,
            is_prompt: is_steady && !is_costly && !drops && machine.rules.completion_batch <= 1,
            has_costs,
            is_submitting_free: machine.orchestrator.submit == 0 && machine.orchestrator.per_edge == 0,
            is_usual: true,
            leaves_mode: false,
            is_resumed: false,
            mode: PhantomData,
        }
    }

    /// Takes the timed commands of the program, in file order.
    pub(super) fn with_controls(mut self, mut controls: Vec<Control>) -> Self {
        controls.sort_by_key(|control| control.at);
        controls.reverse();
        self.is_usual = controls.is_empty();
        self.is_prompt &= controls.is_empty();
        self.controls = controls;
        self
    }

    /// Runs until nothing is left to happen, or the mode is to be left.
    pub(super) fn run(&mut self) -> Result<(), RunError> {
        loop {
            self.instant().map_err(|fault| *fault)?;
            if M::IS_USUAL && self.leaves_mode {
                return Ok(());
            }
            let next = match self.next_event() {
                None if self.widen() || self.is_rescued() => continue,
                // The largest number is never reached.
                None => self.next_timer().filter(|&timer| timer < u64::MAX),
                Some(event) => Some(self.next_timer().map_or(event, |timer| timer.min(event))),
            };
            let Some(next) = next else { return Ok(()) };
            debug_assert!(next > self.now, "time stands still at {next}");
            self.observer.instant_over(self.window, self.now);
            self.ledger.advance(next, self.has_costs());
            self.now = next;
        }
    }

    /// The run is over: books what is still open and tells the observer.
    pub(super) fn close(&mut self) -> Result<(), RunError> {
        self.check_clock()?;
        // What is still there never retires.
        for ring in 0..self.window.n_rings() {
            self.tally.look_at(self.window, ring);
        }
        for slot in self.window.tenants() {
            let task = self.window.slot(slot);
            if task.state() >= State::Completed && has_run(task) {
                self.tally.critical_path = self.tally.critical_path.max(self.orchestrator.path_of(slot));
            }
        }
        let since = self.clerk.since;
        if let Some(phase) = self.clerk.close(self.now) {
            self.observer.orchestrator(phase, since, self.now);
        }
        self.observer.instant_over(self.window, self.now);
        self.observer.finished(self.orchestrator.source().symbols(), self.now);
        Ok(())
    }

    /// Sums of cycles stop at 2^64 − 1, a moment that is never reached: whatever waits for it is an error.
    fn check_clock(&self) -> Result<(), RunError> {
        let endless = self.floor.workers().iter().find(|worker| !worker.is_free && worker.block_end() == u64::MAX);
        let ended_by = endless.filter(|_| self.ends.has_endless()).map(|worker| worker.block.slot);
        let slot = ended_by
            .or_else(|| self.family.next_child())
            .or_else(|| self.jobs.first_running().map(|job| self.describe(job).slot));
        let why = "the run passes cycle 2^64 - 1; use smaller cycles, costs, submit_at or spawn_offset";
        Err(RunError::Task(match (slot, self.clerk.stage()) {
            (None, _) if self.next_timer() == Some(u64::MAX) && !self.is_complete() => {
                let policy = self.policy.name();
                format!(
                    "policy {policy} waits for a moment past cycle 2^64 - 1; use smaller delays, times or post_cycles"
                )
            }
            (Some(slot), _) => self.blame(slot, why),
            (None, Duty::Wait | Duty::Pay(Action::Publish)) => self.orchestrator.blame(why),
            (None, Duty::Pay(..)) => format!("{}{why}", self.orchestrator.place()),
            (None, _) => return Ok(()),
        }))
    }

    /// A message about the task in a slot.
    #[cold]
    pub(super) fn blame(&self, slot: SlotRef, message: &str) -> String {
        let (task, line) = (self.window.slot(slot).task(), self.times[slot as usize].line);
        let place = self.orchestrator.place_of(Some(line).filter(|&line| line > 0));
        format!("{place}task {task} `{}`: {message}", name_of(self.window, &self.orchestrator, slot))
    }

    #[inline]
    pub(super) fn instant(&mut self) -> Result<(), Fault> {
        let mut resumes = !M::IS_USUAL && std::mem::take(&mut self.is_resumed);
        loop {
            if !resumes {
                self.take_ends();
            }
            // Steps 1 to 3 have nothing more to do now, unless something new is due at once.
            loop {
                let took_jobs = std::mem::take(&mut resumes) || self.take_jobs();
                let changed = took_jobs | self.orchestrate()?;
                if M::IS_USUAL && self.leaves_mode {
                    return Ok(());
                }
                if !changed || self.is_due() || Self::NEVER_QUEUES || self.jobs.is_stalled() {
                    break;
                }
            }
            if !self.is_due() && !self.hand_out() && !self.is_due() {
                return Ok(());
            }
        }
    }

    /// Steps 1 to 3.
    #[inline(always)]
    fn take_ends(&mut self) {
        if self.is_unusual() {
            self.control();
            self.collect_parts();
        }
        if self.ends.next() == self.now {
            self.collect_ends();
        }
        if self.is_unusual() {
            self.release_children();
        }
        while !M::IS_FREE && self.jobs.next_end() == self.now {
            let job = self.jobs.finish(self.now);
            self.tell(job, JobStep::Done);
            self.effect(job);
        }
    }

    /// Whether a block has started that ends now, or a child is to be released now.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.ends.next() == self.now || self.is_unusual() && self.is_due_unusually()
    }

    /// Whether a part of a MIX block ends now or a child is to be released now.
    fn is_due_unusually(&self) -> bool {
        let part = self.parts.peek().map(|&Reverse((end, _))| end);
        part == Some(self.now) || self.family.next_release() == Some(self.now)
    }

    /// Whether the scheduler has nothing to do that could help the orchestrator.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        Self::NEVER_QUEUES || self.is_prompt && self.jobs.is_empty()
    }

    /// Step 4: free threads take jobs; true if any of them took effect at once.
    #[inline]
    pub(super) fn take_jobs(&mut self) -> bool {
        if Self::NEVER_QUEUES || self.jobs.is_empty() {
            return false;
        }
        let mut changed = false;
        while let Some(job) = self.jobs.take() {
            changed |= self.begin(job);
        }
        changed
    }

    /// The next moment at which anything can happen, timers of the policy aside.
    #[inline]
    pub(super) fn next_event(&self) -> Option<u64> {
        let mut next = self.ends.next();
        if !M::IS_FREE {
            next = next.min(self.jobs.next_end());
        }
        if self.clerk.due() > self.now {
            next = next.min(self.clerk.due());
        }
        if self.is_unusual() {
            next = next.min(self.next_unusual_event());
        }
        (next != u64::MAX).then_some(next)
    }

    /// The next moment of what most programs do not have.
    fn next_unusual_event(&self) -> u64 {
        let events = [
            self.parts.peek().map(|&Reverse((end, _))| end),
            self.controls.last().map(|control| control.at),
            self.family.next_release(),
        ];
        events.into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    #[inline]
    pub(super) fn next_timer(&self) -> Option<u64> {
        if self.is_halted() { None } else { self.policy.next_timer() }
    }

    /// Asks the policy, when nothing else can happen and work is left, whether it can get the run going again.
    #[cold]
    pub(super) fn is_rescued(&mut self) -> bool {
        if self.halt.is_some() || self.is_complete() {
            return false;
        }
        let rescued = self.policy.on_idle(self.now);
        self.obey();
        rescued
    }

    /// Step 1: timed commands.
    #[inline]
    pub(super) fn control(&mut self) {
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

    /// Children whose parent started long enough ago.
    #[inline]
    pub(super) fn release_children(&mut self) {
        while let Some(child) = self.family.pop_due(self.now) {
            self.release_child(child);
        }
    }

    pub(super) fn release_child(&mut self, child: SlotRef) {
        self.observer.child_released(child, self.now);
        if self.window.satisfy(child) {
            self.ready(child);
            self.follow_up();
            self.obey();
        } else if self.window.slot(child).fanin() == 1 {
            self.unblocked(child);
        }
    }

    /// Step 6: timers, then one pass of dispatch; true if anything happened.
    #[inline]
    pub(super) fn hand_out(&mut self) -> bool {
        let mut changed = false;
        self.observer.policy_acts(self.now);
        if self.policy.is_idle() {
            return false;
        }
        if let Some(timer) = self.policy.next_timer()
            && timer <= self.now
        {
            changed = self.policy.on_timer(self.now) | self.obey();
        }
        if self.is_halted() {
            return changed;
        }
        let has_costs = self.has_costs();
        let Sim { window, floor, ledger, placed, .. } = self;
        let mut stage = Stage { now: self.now, window, floor, ledger, has_costs, placed };
        self.policy.dispatch(&mut stage);
        changed |= self.obey();
        if self.placed.is_empty() {
            return changed;
        }
        let (at_once, is_childless) = (self.is_settled(), M::IS_USUAL || self.family.is_unused());
        for index in 0..self.placed.len() {
            let leader = self.placed[index];
            if !Self::STARTS_AT_ONCE {
                self.tell_placed(leader);
            }
            self.push(Job::Dispatch(leader), at_once);
        }
        self.placed.clear();
        // Blocks that have started or wait for a thread change nothing else now, unless a child waited for that.
        let is_over = if at_once { self.is_settled() } else { self.is_smooth() && self.jobs.is_stalled() };
        changed || !(is_over && is_childless)
    }

    /// Cycles of the longest path of tasks that ran, up to the end of its last block.
    pub(super) fn critical_path(&self) -> u64 {
        self.tally.critical_path.saturating_sub(self.path_costs.after)
    }

    /// Whether everything submitted was consumed and nothing is left to submit.
    pub(super) fn is_complete(&self) -> bool {
        self.clerk.stage() == Duty::Done && self.window.is_empty()
    }

    /// The facts about a run that is stuck.
    pub(super) fn explain(&self) -> Deadlock {
        let blocked = match self.clerk.stage() {
            Duty::Blocked(on) => Some(on),
            _ => None,
        };
        explain(&Scene {
            window: self.window,
            orchestrator: &self.orchestrator,
            machine: self.machine,
            blocked,
            at: self.now,
            line: &|slot| Some(self.times[slot as usize].line).filter(|&line| line > 0),
        })
    }
}

//! The orchestrator as a thread: reads the program, waits when something is full, publishes.

use super::core::{Core, Hands, ORCHESTRATOR, duty};
use super::executor::spin_until;
use super::sleep::Slept;
use super::stats::SAMPLED;
use super::{Draft, KernelError, Kernels, nanoseconds_since};
use crate::engine::RunError;
use crate::engine::tally::{Tally, Work, longest_part};
use crate::id::TaskId;
use crate::orchestrator::{Orchestrator, Step};
use crate::window::{NONE, Outcomes, Refusal, Resource, SlotRef, flag};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;

/// Submits a program.
pub(super) struct Submitter<'c, 'a, K> {
    pub(super) core: &'c Core<'a, K>,
    pub(super) orchestrator: Orchestrator,
    pub(super) hands: Hands,
    pub(super) tally: Tally,
    pub(super) work: Work,
    /// What nothing will ever give back, once that is known.
    pub(super) stuck_on: Option<Resource>,
    /// How often it had to wait.
    pub(super) waits: u64,
    /// Bad tasks it knows of.
    known_bad: u64,
    /// Line of the task in each slot.
    pub(super) lines: Vec<Option<u64>>,
}

/// How waiting for room ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waited {
    /// Something came back: try again.
    Again,
    /// Everybody else is idle: if the next attempt fails, all that follow will.
    Alone,
}

/// Without common cycles a child waits for the end of its parent instead of its start.
pub(super) fn wait_for_parent(orchestrator: &mut Orchestrator) {
    if let Some((parent, _)) = orchestrator.task.parent {
        orchestrator.task.deps.push(parent);
    }
}

impl<'c, 'a, K: Kernels> Submitter<'c, 'a, K> {
    pub(super) fn new(core: &'c Core<'a, K>, orchestrator: Orchestrator) -> Self {
        let hands = Hands::new(core, false);
        core.sleepers.register(ORCHESTRATOR);
        Submitter {
            core,
            orchestrator,
            hands,
            tally: Tally::new(core.machine),
            work: Work::default(),
            stuck_on: None,
            waits: 0,
            known_bad: 0,
            lines: vec![None; core.window.n_slots()],
        }
    }

    /// Submits the whole program and waits until everything is consumed, or nothing can happen any more.
    pub(super) fn run(&mut self) -> Result<(), RunError> {
        while !self.core.is_over() && self.step()? {}
        self.drain();
        Ok(())
    }

    /// Does the next operation of the program; false when there is none or no way on.
    pub(super) fn step(&mut self) -> Result<bool, RunError> {
        let sampled = self.orchestrator.next_task().0.is_multiple_of(SAMPLED).then(Instant::now);
        match self.orchestrator.read()? {
            Step::Done => return Ok(false),
            Step::ScopeBegin => self.orchestrator.open_scope(),
            Step::ScopeEnd => {
                let core = self.core;
                self.orchestrator.close_scope(&core.window).release(&core.window, &mut self.hands.told(core));
                self.hands.settle(core);
            }
            Step::Submit => {
                wait_for_parent(&mut self.orchestrator);
                self.orchestrator.find(&self.core.window);
                let waits = self.waits;
                let Some(slot) = self.reserve()? else { return Ok(false) };
                self.publish(slot)?;
                if let Some(start) = sampled
                    && waits == self.waits
                {
                    self.hands.stats.submit.record(nanoseconds_since(start));
                }
            }
        }
        Ok(true)
    }

    /// Takes what the task at hand needs, waiting for it; `None` if nothing will ever give it back.
    #[inline]
    fn reserve(&mut self) -> Result<Option<SlotRef>, RunError> {
        while self.learn_bad() {
            self.orchestrator.look_again(&self.core.window);
        }
        let mut waited = Waited::Again;
        loop {
            match self.orchestrator.try_reserve(&self.core.window) {
                Ok((slot, _)) => {
                    // Others may retire tasks at any time.
                    self.tally.look_at(&self.core.window, self.orchestrator.ring());
                    return Ok(Some(slot));
                }
                Err(Refusal::Full(on)) if waited == Waited::Alone => {
                    self.stuck_on = Some(on);
                    return Ok(None);
                }
                Err(Refusal::Full(_)) if self.core.is_over() => return Ok(None),
                Err(Refusal::Full(_)) => waited = self.wait(),
                Err(Refusal::TooLarge(resource)) => {
                    return Err(self.orchestrator.too_large(resource, &self.core.window));
                }
            }
        }
    }

    /// Waits until a part of what is in flight has retired: waking for every slot would cost more than the slot is worth.
    #[cold]
    fn wait(&mut self) -> Waited {
        let core = self.core;
        self.waits += 1;
        core.duty.store(duty::BLOCKED, Release); // Ordering: pairs with `all_idle`. Nobody defers an advance from here on.
        let waited = self.wait_blocked();
        core.duty.store(duty::WORKING, Release); // Ordering: pairs with `all_idle`.
        waited
    }

    fn wait_blocked(&mut self) -> Waited {
        let core = self.core;
        let advanced = core.window.advance(self.orchestrator.ring(), |_, _| {});
        let ring = core.window.ring(self.orchestrator.ring());
        let in_flight = ring.submitted() - ring.retired();
        if advanced > in_flight / 4 {
            return Waited::Again;
        }
        let target = ring.retired() + (in_flight / 4).max(1);
        let enough = || ring.retired() >= target || core.is_over();
        if spin_until(core.setup.spin, &enough) {
            return Waited::Again;
        }
        core.wake_at.store(target, Relaxed); // Ordering: the bit set by `announce` publishes it.
        core.sleepers.announce(ORCHESTRATOR);
        // Behind the fence of `announce`: what was deferred before the duty was seen.
        core.window.advance(self.orchestrator.ring(), |_, _| {});
        if enough() {
            core.sleepers.withdraw(ORCHESTRATOR);
            return Waited::Again;
        }
        self.hands.stats.parks += 1;
        match core.sleepers.sleep(ORCHESTRATOR) {
            Slept::Woken => Waited::Again,
            Slept::Last => {
                core.sleepers.stay_up(ORCHESTRATOR);
                self.nothing_left_behind()
            }
        }
    }

    /// Everybody else is idle. After a wake-up that was lost on purpose there may still be work to hand out.
    fn nothing_left_behind(&self) -> Waited {
        let core = self.core;
        if core.has_ready() {
            core.sleepers.wake(1 + core.setup.schedulers);
            return Waited::Again;
        }
        if !core.ended.is_empty() {
            core.sleepers.wake(1);
            return Waited::Again;
        }
        Waited::Alone
    }

    /// Learns which tasks ended badly since it last asked; true if there were any.
    #[inline]
    fn learn_bad(&mut self) -> bool {
        // Ordering: Acquire pairs with the Release of who noted it: a task found dead is in the list by now.
        let is_news = self.core.n_bad.load(Acquire) != self.known_bad;
        if is_news {
            for task in self.core.bad.lock().expect("nobody panics with it").drain(..) {
                self.orchestrator.remember_bad(task);
                self.known_bad += 1;
            }
        }
        is_news
    }

    #[inline]
    fn publish(&mut self, slot_ref: SlotRef) -> Result<(), RunError> {
        let core = self.core;
        // Of those that failed while this one waited, producers that are gone are known by their ids only.
        self.learn_bad();
        let submit_at = self.orchestrator.task.submit_at;
        // Ordering: Relaxed; linking and publishing make it visible.
        if submit_at > 0 {
            core.moments[slot_ref as usize].ready.store(submit_at, Relaxed);
        }
        if self.orchestrator.next_task().0.is_multiple_of(SAMPLED) {
            core.samples[slot_ref as usize].submitted_ns.store(core.nanoseconds(), Relaxed);
        }
        // A program either has lines or has none.
        if let Some(line) = self.orchestrator.line() {
            self.lines[slot_ref as usize] = Some(line);
        }
        let prepared = core.kernels.prepare(&Draft {
            window: &core.window,
            slot: slot_ref,
            id: self.orchestrator.next_task(),
            task: &self.orchestrator.task,
            symbols: self.orchestrator.source().symbols(),
        });
        prepared.map_err(|KernelError(why)| RunError::Task(self.orchestrator.blame(&why)))?;
        let (kind, cost) = self.orchestrator.resolved;
        self.work.book(&self.orchestrator.task, kind, cost);
        let cycles = longest_part(&self.orchestrator.task, kind, cost);
        let published = self.orchestrator.publish(&core.window, slot_ref, cycles.unwrap_or(0));
        self.tally.edges += published.edges;
        if let Some(end) = self.orchestrator.gone().map(|producer| self.end_of(producer)).max() {
            // Ordering: Relaxed; publishing makes it visible.
            core.moments[slot_ref as usize].ready.fetch_max(end, Relaxed);
        }
        self.tally.critical_path = self.tally.critical_path.max(published.path);
        if published.cancelled.is_some() {
            core.window.slot(slot_ref).job.set(flag::CANCELLED | flag::BAD);
        }
        if core.window.satisfy(slot_ref) {
            self.hands.told(core).ready(slot_ref);
        }
        self.hands.settle(core);
        Ok(())
    }

    /// When a task that is complete ended. Nobody knows of one whose slot has another tenant, but it was not after the latest
    /// clock of all workers.
    fn end_of(&self, (task, slot): (TaskId, SlotRef)) -> u64 {
        if slot == NONE || self.core.window.slot(slot).task() != task {
            return self.core.clocks.latest();
        }
        // Ordering: Relaxed; finding the task complete made it visible.
        self.core.moments[slot as usize].end.load(Relaxed)
    }

    /// Waits until everybody else is idle, which is when everything submitted has run.
    pub(super) fn wait_until_idle(&mut self) {
        let core = self.core;
        // Ordering: Relaxed; the bit set by `announce` publishes it. Nothing that retires is worth waking up for.
        core.wake_at.store(u64::MAX, Relaxed);
        core.duty.store(duty::BLOCKED, Release); // Ordering: pairs with `all_idle`.
        self.sleep_until_alone();
        core.duty.store(duty::WORKING, Release); // Ordering: pairs with `all_idle`.
    }

    /// Waits until all is done.
    pub(super) fn drain(&mut self) {
        let core = self.core;
        core.duty.store(duty::DONE, Release); // Ordering: pairs with `all_idle`.
        if self.sleep_until_alone() {
            core.end();
        }
    }

    /// Sleeps until everybody else is idle and nothing is left behind; false if the run is over before.
    fn sleep_until_alone(&self) -> bool {
        let core = self.core;
        loop {
            core.sleepers.announce(ORCHESTRATOR);
            if core.is_over() {
                core.sleepers.withdraw(ORCHESTRATOR);
                return false;
            }
            if core.sleepers.sleep(ORCHESTRATOR) == Slept::Woken {
                continue;
            }
            core.sleepers.stay_up(ORCHESTRATOR);
            if self.nothing_left_behind() == Waited::Alone {
                return true;
            }
        }
    }
}

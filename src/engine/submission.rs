//! The orchestrator in virtual time: it reads, waits for what is full, pays, publishes and closes scopes.

use super::adaptive::Adaptive;
use super::clerk::{Action, Duty};
use super::jobs::Job;
use super::mode::Mode;
use super::tally::longest_part;
use super::virtual_time::{Fault, Sim};
use super::{Observer, RunError};
use crate::id::{TaskId, TaskType};
use crate::ledger::Class;
use crate::orchestrator::{Published, Step};
use crate::policy::{Policy, Submission};
use crate::sync::Local;
use crate::window::{Refusal, Resource, Slot, SlotRef, State, flag};

impl<P: Policy, O: Observer, M: Mode> Sim<'_, P, O, M> {
    /// What is set in a task before it is published.
    const FLAGS: u32 = if Self::NEVER_QUEUES { flag::ADMITTED } else { 0 };

    /// Gives an adaptive window more slots when nothing else can happen; false if that does not help.
    pub(super) fn widen(&mut self) -> bool {
        let is_blocked = self.clerk.stage() == Duty::Blocked(Resource::Window);
        let grows = is_blocked && self.adaptive.as_mut().is_some_and(Adaptive::grow);
        if grows {
            self.turn(Duty::Reserve);
        }
        grows
    }

    /// Step 5: the orchestrator works until it must wait; true if anything changed.
    #[inline]
    pub(super) fn orchestrate(&mut self) -> Result<bool, Fault> {
        if self.clerk.due() > self.now { Ok(false) } else { self.work() }
    }

    #[inline(never)]
    fn work(&mut self) -> Result<bool, Fault> {
        let mut changed = false;
        if !M::IS_USUAL && self.is_shut_down {
            changed = self.wind_up()?;
        }
        while self.clerk.due() <= self.now && !(M::IS_USUAL && self.leaves_mode) {
            changed |= self.operate()?;
        }
        self.ledger.supply(self.clerk.supply());
        Ok(changed)
    }

    /// Goes on with the operation at hand, or reads the next and begins it; true if anything changed.
    #[inline(always)]
    fn operate(&mut self) -> Result<bool, Fault> {
        let mut changed = false;
        if let Duty::Pay(action) = self.clerk.stage() {
            self.turn(Duty::Read);
            self.act(action)?;
            changed = true;
        }
        if self.clerk.stage() == Duty::Read {
            match self.orchestrator.read()? {
                Step::Submit if M::IS_USUAL && !self.orchestrator.is_usual() => {
                    self.turn_until(Duty::Wait, self.orchestrator.task.submit_at.max(self.now));
                    self.leaves_mode = true;
                    return Ok(changed);
                }
                Step::Submit if self.orchestrator.task.submit_at > self.now => {
                    self.turn_until(Duty::Wait, self.orchestrator.task.submit_at);
                    return Ok(changed);
                }
                Step::Submit => {}
                step => return Ok(self.step(step)? | changed),
            }
        }
        Ok(self.reserve()? | changed)
    }

    /// An operation that submits nothing; true if it took effect at once.
    fn step(&mut self, step: Step) -> Result<bool, Fault> {
        let cost = self.machine.orchestrator.scope;
        match step {
            Step::ScopeBegin => self.pay(cost, Action::OpenScope),
            Step::ScopeEnd => self.pay(cost, Action::CloseScope),
            Step::Submit | Step::Done => {
                self.turn(Duty::Done);
                Ok(false)
            }
        }
    }

    /// The program ends here: what was paid for is done, open scopes close, and no operation follows. Tasks that are not submitted any
    /// more are lost like those that are dropped.
    #[cold]
    fn wind_up(&mut self) -> Result<bool, Fault> {
        if let Duty::Pay(action) = self.clerk.stage() {
            self.turn(Duty::Read);
            self.act(action)?;
        }
        let is_at_hand = self.clerk.stage() != Duty::Read;
        self.tally.ended.dropped += self.orchestrator.skip_rest(is_at_hand)?;
        while !self.orchestrator.scopes().is_empty() {
            self.close_scope();
        }
        self.turn(Duty::Done);
        Ok(true)
    }

    /// Whether an adaptive window refuses the task at hand.
    pub(super) fn is_too_narrow(&mut self) -> bool {
        let Some(adaptive) = &mut self.adaptive else { return false };
        let ring = self.window.ring(self.orchestrator.ring());
        !adaptive.admits(ring, self.now, self.clerk.blocked_on_window(self.now))
    }

    /// Tries to reserve what the task at hand needs; true if that led to its publication at once.
    #[inline(always)]
    pub(super) fn reserve(&mut self) -> Result<bool, Fault> {
        let is_too_narrow = !M::IS_USUAL && self.adaptive.is_some() && self.is_too_narrow();
        if !M::IS_USUAL
            && let Some((parent, _)) = self.orchestrator.task.parent
        {
            self.remember_parent(parent);
        }
        if is_too_narrow || self.window.is_full(self.ring()) {
            self.turn(Duty::Blocked(Resource::Window));
            return Ok(false);
        }
        if (M::IS_FREE || self.is_submitting_free) && self.submit_at_once()? {
            return Ok(true);
        }
        self.reserve_all()
    }

    /// The same when there is a slot.
    #[inline(always)]
    fn reserve_all(&mut self) -> Result<bool, Fault> {
        match self.orchestrator.try_reserve(self.window) {
            Ok((slot, needs)) => {
                let costs = &self.machine.orchestrator;
                let cost = if M::IS_FREE || self.is_submitting_free {
                    0
                } else {
                    costs.submit.saturating_add(costs.per_edge.saturating_mul(needs.deps))
                };
                self.observer.occupied(self.ring(), self.window, self.now);
                self.clerk.reserved = slot;
                self.pay(cost, Action::Publish)
            }
            Err(Refusal::Full(on)) => {
                self.turn(Duty::Blocked(on));
                Ok(false)
            }
            Err(Refusal::TooLarge(resource)) => Err(self.orchestrator.too_large(resource, self.window).into()),
        }
    }

    /// Acts after a cost; true if that is at once.
    #[inline(always)]
    pub(super) fn pay(&mut self, cost: u64, action: Action) -> Result<bool, Fault> {
        if !M::IS_FREE && cost > 0 {
            self.turn_until(Duty::Pay(action), self.now.saturating_add(cost));
            return Ok(false);
        }
        if self.clerk.stage() != Duty::Read {
            self.turn(Duty::Read);
        }
        self.act(action)?;
        Ok(true)
    }

    #[inline(always)]
    pub(super) fn act(&mut self, action: Action) -> Result<(), Fault> {
        match action {
            Action::Publish => self.publish(self.clerk.reserved)?,
            Action::OpenScope => self.orchestrator.open_scope(),
            Action::CloseScope => self.close_scope(),
        }
        Ok(())
    }

    fn close_scope(&mut self) {
        let window = self.window;
        self.orchestrator.close_scope(window).release(window, self);
        self.follow_up();
    }

    /// Submits the task at hand, for which there is a slot, if it is simple and there is room for its dependencies.
    #[inline(always)]
    fn submit_at_once(&mut self) -> Result<bool, Fault> {
        if !M::IS_USUAL && !self.orchestrator.is_single() {
            return Ok(false);
        }
        let cycles = self.path_part();
        let Some((slot_ref, slot, edges)) = self.orchestrator.try_submit(self.window, self.ring(), cycles, Self::FLAGS)
        else {
            return Ok(false);
        };
        self.observer.occupied(self.ring(), self.window, self.now);
        if self.clerk.stage() != Duty::Read {
            self.turn(Duty::Read);
        }
        self.announce(slot_ref, slot, Published { edges: edges.into(), path: 0, cancelled: None })?;
        Ok(true)
    }

    /// What the task at hand adds to a path through it, and what comes before the first of a path.
    #[inline(always)]
    fn path_part(&self) -> (u64, u64) {
        let (kind, cost) = self.orchestrator.resolved;
        let cycles = longest_part(&self.orchestrator.task, kind, cost);
        if M::IS_FREE { (cycles.unwrap_or(0), 0) } else { (self.path_costs.of(cycles), self.path_costs.first) }
    }

    #[inline(always)]
    pub(super) fn publish(&mut self, slot_ref: SlotRef) -> Result<(), Fault> {
        let (cycles, first) = self.path_part();
        let first = if self.orchestrator.is_root() { first } else { 0 };
        let cycles = first.saturating_add(cycles);
        let published = if M::IS_USUAL {
            self.orchestrator.publish_single(self.window, slot_ref, cycles, Self::FLAGS)
        } else {
            self.orchestrator.publish(self.window, slot_ref, cycles)
        };
        self.announce(slot_ref, self.window.slot(slot_ref), published)
    }

    /// A task was published: tells everybody and has it admitted.
    #[inline(always)]
    fn announce(&mut self, slot_ref: SlotRef, slot: &Slot<Local>, published: Published) -> Result<(), Fault> {
        self.tally.edges += published.edges;
        if self.keeps_times() {
            let times = &mut self.times[slot_ref as usize];
            (times.submit, times.start) = (self.now, self.now);
        } else {
            slot.take_note(self.now);
        }
        if let Some(line) = self.orchestrator.line() {
            self.times[slot_ref as usize].line = line;
        }
        let (kind, task) = (self.orchestrator.resolved.0, slot.task());
        if P::READS_SUBMISSIONS {
            let (submit, source) = (&self.orchestrator.task, self.orchestrator.source());
            let submission = Submission { slot: slot_ref, task, kind, submit, source };
            if let Err(why) = self.policy.on_submit(&submission, self.now) {
                return Err(RunError::Task(self.blame(slot_ref, &why)).into());
            }
        }
        self.observer.submitted(task, slot_ref, self.window, self.now);
        let parent = if M::IS_USUAL { None } else { self.orchestrator.task.parent };
        let orphan = parent.and_then(|(parent, offset)| self.adopt(slot_ref, parent, offset));
        let spoilt_by = if Self::MAY_FAIL { published.cancelled.or(orphan) } else { None };
        // What will never run does not wait for the scheduler.
        let admitting = self.has_costs() && slot.fanin() == 1 && spoilt_by.is_none();
        // A usual task runs on workers of its own type, which is its class.
        let class = if M::IS_USUAL { Class::of_type(kind) } else { Class::from_bits(slot.job.class()) };
        if !M::IS_USUAL && kind == TaskType::Mix {
            self.ledger.met_mix();
        }
        self.ledger.submitted(class, admitting);
        if let Some(cause) = spoilt_by {
            self.mark_cancelled(slot_ref, cause);
        }
        // What never runs is consumed at its admission, which must not come before the tasks behind it are linked.
        // Nor must it come before that of a child that is about to be released. A task that takes no worker waits for a thread
        // behind everything that is published in the same cycle.
        let is_settled = M::IS_USUAL || !self.is_shut_down && kind != TaskType::None && self.family.is_settled();
        let at_once = (M::IS_FREE || self.is_prompt) && spoilt_by.is_none() && is_settled;
        if Self::NEVER_QUEUES {
            self.admit_at_once(slot_ref, slot, kind);
        } else {
            self.push(Job::Admit(slot_ref), at_once);
        }
        Ok(())
    }

    /// Admits a task, which is marked as admitted, as soon as it is published; nothing else can come between.
    #[inline(always)]
    fn admit_at_once(&mut self, slot_ref: SlotRef, slot: &Slot<Local>, kind: TaskType) {
        self.count_at_once(Job::Admit(slot_ref));
        if slot.count_down() == 0 {
            self.become_ready(slot_ref, slot, kind, true);
        }
    }

    /// Makes a task wait for the start of its parent plus an offset; returns the parent if it will never start. The start of a parent
    /// that is retired is known until another task than the child takes its slot; that of an older one lies in the past.
    #[cold]
    pub(super) fn adopt(&mut self, child: SlotRef, parent: TaskId, offset: u64) -> Option<TaskId> {
        if self.family.is_lost(parent) {
            return Some(parent);
        }
        self.is_usual = false;
        let start = match self.window.last_home(parent) {
            Some(found) if self.window.slot(found).state() < State::Running => {
                self.window.wait_for_one_more(child);
                self.family.wait_for_start(child, parent, offset);
                return None;
            }
            Some(found) => Some(self.times[found as usize].start),
            None => self.family.start_of_replaced(parent),
        };
        if start.is_none() && offset > 0 {
            self.family.count_untimed();
        }
        let release = start.map(|start| start.saturating_add(offset));
        if let Some(release) = release.filter(|&release| release > self.now) {
            self.window.wait_for_one_more(child);
            self.family.push(release, child);
        }
        None
    }

    /// Remembers the start of the parent of the task at hand, if that is about to take the slot where it is known.
    #[cold]
    fn remember_parent(&mut self, parent: TaskId) {
        if let Some(found) = self.window.last_home(parent)
            && self.window.slot(found).state() >= State::Running
        {
            self.family.replace(parent, self.times[found as usize].start);
        }
    }
}

//! What a change of the window leads to in virtual time.

use super::jobs::Job;
use super::mode::Mode;
use super::virtual_time::Sim;
use super::{JobKind, JobStep, Observer, Retired, SchedulerJob};
use crate::id::TaskType;
use crate::ledger::Class;
use crate::policy::{Dropped, Policy, Ready};
use crate::sync::Local;
use crate::window::{Outcomes, Slot, SlotRef, flag};

/// Whether blocks of a completed task ran. The makespan is the end of a block, so a task without one does not end a path.
#[inline]
pub(super) fn has_run(slot: &Slot<Local>) -> bool {
    slot.job.kind() != TaskType::None && !slot.job.has(flag::CANCELLED)
}

/// What a change of the window leaves to do.
#[derive(Default)]
pub(super) struct Lists {
    /// Tasks that wait for nothing and will never run.
    pub(super) cancelled: Vec<SlotRef>,
    /// Tasks that the policy did not take.
    pub(super) dropped: Vec<SlotRef>,
    /// Rings whose oldest task was consumed, a bit each.
    pub(super) advancing: u64,
}

impl<P: Policy, O: Observer, M: Mode> Sim<'_, P, O, M> {
    /// Completes a task and follows up what that leads to.
    #[inline(always)]
    pub(super) fn complete(&mut self, slot_ref: SlotRef, slot: &Slot<Local>) {
        self.mark_completed(slot_ref, slot);
        self.follow_up();
    }

    #[inline(always)]
    fn mark_completed(&mut self, slot_ref: SlotRef, slot: &Slot<Local>) {
        if self.observer.heeds_ends() {
            self.observer.completed(slot.task(), self.now);
        }
        // In line where it is all there is to do.
        if Self::NEVER_QUEUES {
            self.window.complete_in(slot_ref, slot, self);
        } else {
            self.release_neighbours(slot_ref, slot);
        }
    }

    #[inline(never)]
    fn release_neighbours(&mut self, slot_ref: SlotRef, slot: &Slot<Local>) {
        self.window.complete_in(slot_ref, slot, self);
    }

    /// Does what the last changes of the window left to do.
    #[inline(always)]
    pub(super) fn follow_up(&mut self) {
        while Self::MAY_FAIL
            && let Some(slot) = self.lists.cancelled.pop()
        {
            self.mark_completed(slot, self.window.slot(slot));
        }
        if M::IS_FREE {
            // There is one ring.
            if std::mem::take(&mut self.lists.advancing) != 0 {
                self.advance(0);
            }
        }
        if !M::IS_FREE && self.lists.advancing != 0 {
            self.advance_several();
        }
        while Self::MAY_FAIL
            && let Some(slot) = self.lists.dropped.pop()
        {
            if self.is_shut_down {
                self.drop_task(slot, "shut down");
            } else {
                self.drop_from_full_queue(slot);
            }
        }
    }

    #[inline(never)]
    fn advance_several(&mut self) {
        while self.lists.advancing != 0 {
            let ring = self.lists.advancing.trailing_zeros();
            self.lists.advancing &= self.lists.advancing - 1;
            self.advance(ring);
        }
    }

    /// Retires what was consumed at the end of a ring.
    #[inline(always)]
    fn advance(&mut self, ring: u32) {
        // Many tasks may have been reserved since the last one retired: looking now is enough for all of them.
        self.tally.look_at(self.window, ring);
        let Sim { window, observer, now, tally, orchestrator, .. } = self;
        let heeds = observer.heeds_ends();
        let longest = &mut tally.critical_path;
        window.advance(ring, |slot, task| {
            if M::IS_USUAL || has_run(task) {
                *longest = orchestrator.path_of(slot).max(*longest);
            }
            if heeds {
                let heap_tail = window.ring(ring).heap_tail();
                observer.retired(&Retired { task: task.task(), ring, heap_tail }, *now);
            }
        });
        observer.occupied(ring, window, *now);
    }

    /// The last thing a task waited for is done, which was its own admission or not.
    #[inline(always)]
    pub(super) fn become_ready(&mut self, slot_ref: SlotRef, slot: &Slot<Local>, kind: TaskType, by_admission: bool) {
        let submit = if self.keeps_times() {
            let times = &mut self.times[slot_ref as usize];
            times.ready = self.now;
            times.submit
        } else {
            slot.take_note(self.now)
        };
        let class = if M::IS_USUAL { Class::of_type(kind) } else { Class::from_bits(slot.job.class()) };
        self.ledger.ready(class);
        if Self::MAY_FAIL && slot.job.has(flag::CANCELLED) {
            self.ledger.all_placed(class);
            self.lists.cancelled.push(slot_ref);
            return;
        }
        if !M::IS_USUAL && self.is_shut_down {
            self.policy.on_cancel(slot_ref, slot.task(), self.now);
            self.lists.dropped.push(slot_ref);
            return;
        }
        self.tally.submit_to_ready.record(self.now - submit);
        self.observer.ready(slot.task(), slot_ref, kind, self.now);
        if !M::IS_USUAL && kind == TaskType::None {
            self.ledger.all_placed(class);
            if self.observer.watches() {
                let job = SchedulerJob { kind: JobKind::Complete, slot: slot_ref, task: slot.task(), worker: None };
                self.observer.job(&job, JobStep::Queued, self.now);
            }
            self.jobs.push(Job::Join(slot_ref));
            return;
        }
        let ready = Ready { slot: slot_ref, task: slot.task(), kind, by_admission };
        match self.policy.on_ready(ready, self.now) {
            Ok(()) if M::IS_USUAL => self.ledger.one_waits(class),
            Ok(()) => self.ledger.waits(class),
            Err(Dropped) => self.lists.dropped.push(slot_ref),
        }
    }
}

impl<P: Policy, O: Observer, M: Mode> Outcomes for Sim<'_, P, O, M> {
    #[inline(always)]
    fn ready(&mut self, slot: SlotRef) {
        let task = self.window.slot(slot);
        self.become_ready(slot, task, task.job.kind(), false);
    }

    #[inline]
    fn unblocked(&mut self, slot: SlotRef) {
        if !self.has_costs() {
            return;
        }
        let job = &self.window.slot(slot).job;
        if !job.has(flag::ADMITTED | flag::CANCELLED) {
            self.ledger.unblocked(Class::from_bits(job.class()));
        }
    }

    #[inline]
    fn consumed(&mut self, slot: SlotRef) {
        self.clerk.look_again();
        self.tally.ended.consumed += 1;
        if self.observer.watches() {
            self.observer.consumed(self.window.slot(slot).task(), self.now);
        }
        let ring = if M::IS_FREE { 0 } else { self.window.ring_of(slot) };
        if self.window.is_first(ring, slot) {
            // Setting one bit of a word that is read right after would have the processor wait.
            self.lists.advancing = if M::IS_FREE { 1 } else { self.lists.advancing | 1 << ring };
        }
    }
}

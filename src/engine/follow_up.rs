//! What a change of the window leads to in virtual time.

use super::jobs::Job;
use super::virtual_time::Sim;
use super::{JobKind, JobStep, Observer, Retired, SchedulerJob};
use crate::id::TaskType;
use crate::ledger::Class;
use crate::policy::{Policy, Ready};
use crate::sync::Local;
use crate::window::{Outcomes, Slot, SlotRef, flag};

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

impl<P: Policy, O: Observer> Sim<'_, P, O> {
    /// Completes a task and follows up what that leads to.
    #[inline(always)]
    pub(super) fn complete(&mut self, slot: SlotRef) {
        self.mark_completed(slot);
        self.follow_up();
    }

    #[inline(always)]
    fn mark_completed(&mut self, slot: SlotRef) {
        if self.observer.watches() {
            self.observer.completed(self.window.slot(slot).task(), self.now);
        }
        self.window.complete(slot, self);
    }

    /// Does what the last changes of the window left to do.
    #[inline(always)]
    pub(super) fn follow_up(&mut self) {
        while let Some(slot) = self.lists.cancelled.pop() {
            self.mark_completed(slot);
        }
        while self.lists.advancing != 0 {
            let ring = self.lists.advancing.trailing_zeros();
            self.lists.advancing &= self.lists.advancing - 1;
            self.advance(ring);
        }
        while let Some(slot) = self.lists.dropped.pop() {
            self.drop_task(slot, if self.is_shut_down { "shut down" } else { "ready queue full" });
        }
    }

    /// Retires what was consumed at the end of a ring.
    #[inline(never)]
    fn advance(&mut self, ring: u32) {
        // Many tasks may have been reserved since the last one retired: looking now is enough for all of them.
        self.tally.look_at(self.window, ring);
        let Sim { window, observer, now, .. } = self;
        let watches = observer.watches();
        window.advance(ring, |slot| {
            if watches {
                let heap_tail = window.ring(ring).heap_tail();
                observer.retired(&Retired { task: window.slot(slot).task(), ring, heap_tail }, *now);
            }
        });
        observer.occupied(ring, window, *now);
    }

    /// The last thing a task waited for is done, which was its own admission or not.
    #[inline(always)]
    pub(super) fn become_ready(&mut self, slot_ref: SlotRef, slot: &Slot<Local>, by_admission: bool) {
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
        let ready = Ready { slot: slot_ref, task: slot.task(), kind, by_admission };
        if self.policy.on_ready(ready, self.now).is_err() {
            self.lists.dropped.push(slot_ref);
        }
    }
}

impl<P: Policy, O: Observer> Outcomes for Sim<'_, P, O> {
    #[inline(always)]
    fn ready(&mut self, slot: SlotRef) {
        self.become_ready(slot, self.window.slot(slot), false);
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
        self.clerk.look_again();
        self.tally.ended.consumed += 1;
        if self.observer.watches() {
            self.observer.consumed(self.window.slot(slot).task(), self.now);
        }
        if self.window.is_oldest(slot) {
            self.lists.advancing |= 1 << self.window.ring_of(slot);
        }
    }
}

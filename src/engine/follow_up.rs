//! What a change of the window leads to: tasks become READY, are consumed and retire.

use super::jobs::{Job, Jobs};
use super::tally::Tally;
use super::virtual_time::{Sim, Times};
use super::{JobKind, JobStep, Observer, Retired, SchedulerJob};
use crate::id::TaskType;
use crate::ledger::{Class, Ledger};
use crate::orchestrator::Orchestrator;
use crate::policy::{Policy, Ready};
use crate::sync::Local;
use crate::window::{Outcomes, SlotRef, Window, flag};

/// What a change of the window leaves to do.
#[derive(Default)]
pub(super) struct Lists {
    /// Tasks that wait for nothing and will never run.
    pub(super) cancelled: Vec<SlotRef>,
    /// Tasks that the policy did not take.
    pub(super) dropped: Vec<SlotRef>,
    /// Rings whose oldest task was consumed.
    pub(super) advancing: Vec<u32>,
    /// Grows when anything is consumed, so that a blocked orchestrator knows when to look again.
    pub(super) consumed: u64,
}

impl<P: Policy, O: Observer> Sim<'_, P, O> {
    /// Does something to the window and follows up what it leads to.
    #[inline]
    pub(super) fn outcomes(&mut self, act: impl FnOnce(&Window<Local>, &mut Orchestrator, &mut FollowUp<'_, P, O>)) {
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
}

/// Follows up what a change of the window leads to.
pub(super) struct FollowUp<'a, P, O> {
    pub(super) window: &'a Window<Local>,
    pub(super) policy: &'a mut P,
    pub(super) ledger: &'a mut Ledger,
    pub(super) jobs: &'a mut Jobs,
    pub(super) tally: &'a mut Tally,
    pub(super) times: &'a mut Vec<Times>,
    pub(super) lists: &'a mut Lists,
    pub(super) observer: &'a mut O,
    pub(super) now: u64,
    pub(super) by_admission: bool,
    pub(super) is_shut_down: bool,
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

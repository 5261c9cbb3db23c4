//! What happens to tasks that end badly, are dropped or will never run, and what a policy may ask for.

use super::mode::Mode;
use super::virtual_time::Sim;
use super::{Cause, Observer};
use crate::id::TaskId;
use crate::ledger::Class;
use crate::policy::Policy;
use crate::window::{Outcomes, SlotRef, flag};

impl<P: Policy, O: Observer, M: Mode> Sim<'_, P, O, M> {
    /// What is READY or runs is drained; nothing more is submitted, and what is not READY yet never runs.
    pub(super) fn shut_down(&mut self) {
        self.is_shut_down = true;
        self.clerk.hurry();
        self.notes.push(format!("shut down at {}: what was READY then has run, nothing else", self.now));
    }

    /// Does what the policy asks for, which is mostly nothing; true if tasks were dropped.
    #[inline(always)]
    pub(super) fn obey(&mut self) -> bool {
        self.policy.requests().is_some() && self.obey_requests()
    }

    #[cold]
    fn obey_requests(&mut self) -> bool {
        let mut changed = false;
        while let Some(requests) = self.policy.requests() {
            self.notes.append(&mut requests.notes);
            self.tally.ended.cancelled += std::mem::take(&mut requests.given_up);
            if let Some(halt) = requests.halt.take() {
                self.halt.get_or_insert((self.now, halt));
            }
            if requests.cancel.is_empty() {
                break;
            }
            for (slot, reason) in std::mem::take(&mut requests.cancel) {
                self.drop_task(slot, &reason);
                changed = true;
            }
        }
        changed
    }

    /// A task ended badly: everything that depends on it is cancelled, and what is admitted of that is done with at once.
    #[cold]
    pub(super) fn spoil(&mut self, slot: SlotRef, task: TaskId) {
        self.window.slot(slot).job.set(flag::BAD);
        self.orchestrator.remember_bad(task);
        let (mut list, mut cancelled) = (vec![slot], Vec::new());
        while let Some(producer) = list.pop() {
            let cause = self.window.slot(producer).task();
            let mut consumers = Vec::new();
            self.window.each_consumer(producer, |consumer| consumers.push(consumer));
            consumers.extend(self.family.orphans(cause).into_iter().map(|(orphan, _)| orphan));
            for consumer in consumers {
                if !self.window.slot(consumer).job.has(flag::CANCELLED) {
                    self.mark_cancelled(consumer, cause);
                    list.push(consumer);
                    cancelled.push(consumer);
                }
            }
        }
        for slot in cancelled {
            self.family.forget(slot);
            // What is not admitted stays linked until it is.
            if self.window.slot(slot).job.has(flag::ADMITTED) {
                self.window.withdraw(slot);
                if self.window.satisfy(slot) {
                    self.ready(slot);
                }
            }
        }
    }

    #[cold]
    pub(super) fn mark_cancelled(&mut self, slot: SlotRef, cause: TaskId) {
        let task = self.window.slot(slot).task();
        self.window.slot(slot).job.set(flag::CANCELLED | flag::BAD);
        self.orchestrator.remember_bad(task);
        self.family.remember_lost(task);
        self.tally.ended.cancelled += 1;
        self.observer.cancelled(task, &Cause::Upstream(cause), self.now);
        self.policy.on_cancel(slot, task, self.now);
    }

    /// A READY task finds its queue full.
    #[cold]
    pub(super) fn drop_from_full_queue(&mut self, slot: SlotRef) {
        const TOLD: u64 = 10;
        let task = self.window.slot(slot).task();
        // The words of the seed document, for whoever looks for them; the report counts all of them.
        if self.tally.ended.dropped < TOLD {
            self.notes.push(format!("[错误] 就绪队列满！任务 {task} 已丢弃！"));
        }
        self.drop_task(slot, "ready queue full");
    }

    /// A READY task never runs: its dependents are cancelled, the ring goes on.
    #[cold]
    pub(super) fn drop_task(&mut self, slot: SlotRef, reason: &str) {
        let task = self.window.slot(slot).task();
        let job = &self.window.slot(slot).job;
        // Like a cancelled task it never starts, which is what its children wait for.
        job.set(flag::CANCELLED);
        self.family.remember_lost(task);
        self.tally.ended.dropped += 1;
        self.ledger.all_placed(Class::from_bits(job.class()));
        self.observer.withdrawn(job.kind(), self.now);
        self.observer.cancelled(task, &Cause::Dropped(reason), self.now);
        self.spoil(slot, task);
        self.complete(slot, self.window.slot(slot));
    }
}

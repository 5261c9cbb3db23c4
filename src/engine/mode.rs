//! What is known of a run before it is compiled, so that most runs do not ask at every step for what they do not have.
//!
//! A run begins in the narrowest mode that its machine and policy allow and leaves it for [`General`] at the first task that asks
//! for more. All modes do the same to such tasks as they know; only the questions differ.

use super::Observer;
use super::virtual_time::Sim;
use crate::config::OnReadyFull;
use crate::policy::Policy;
use crate::window::State;
use std::marker::PhantomData;

/// What a run may have.
pub(super) trait Mode {
    /// There are no timed commands, no ANY workers, no adaptive window and no queue that drops tasks when it is full; every task so
    /// far has one block, runs on one worker of its own type, has no parent and does not fail.
    const IS_USUAL: bool;
    /// Nothing takes time but kernels, the policy does not care when jobs of the scheduler are done, and there is one ring.
    const IS_FREE: bool;
}

/// Usual tasks, and nothing takes time but kernels.
pub(super) enum Plain {}

/// Usual tasks.
pub(super) enum Usual {}

/// Everything.
pub(super) enum General {}

impl Mode for Plain {
    const IS_USUAL: bool = true;
    const IS_FREE: bool = true;
}

impl Mode for Usual {
    const IS_USUAL: bool = true;
    const IS_FREE: bool = false;
}

impl Mode for General {
    const IS_USUAL: bool = false;
    const IS_FREE: bool = false;
}

impl<'a, P: Policy, O: Observer, M: Mode> Sim<'a, P, O, M> {
    /// Whether tasks may fail, be dropped or be cancelled, or the run be halted.
    pub(super) const MAY_FAIL: bool = !M::IS_USUAL || P::INTERFERES;

    /// Whether every job of the scheduler is done at once.
    pub(super) const NEVER_QUEUES: bool = M::IS_FREE && !Self::MAY_FAIL;

    /// Whether every block is placed on one worker and starts there at once, so that this is told as one thing.
    pub(super) const STARTS_AT_ONCE: bool = M::IS_USUAL && Self::NEVER_QUEUES;

    /// Whether the moments of tasks stand in `times`. Otherwise the one that is needed next is the note in a task's slot: when it was
    /// submitted, became READY or started.
    #[inline(always)]
    pub(super) fn keeps_times(&self) -> bool {
        !(M::IS_USUAL && M::IS_FREE) || self.observer.watches()
    }

    /// Writes the notes of all tasks in flight to where other modes look for them.
    pub(super) fn move_notes(&mut self) {
        if self.keeps_times() {
            return;
        }
        for slot_ref in self.window.tenants() {
            let (slot, times) = (self.window.slot(slot_ref), &mut self.times[slot_ref as usize]);
            let note = slot.note();
            match slot.state() {
                State::Free | State::Pending => times.submit = note,
                State::Ready => times.ready = note,
                State::Running | State::Completed | State::Consumed => times.start = note,
            }
        }
    }

    /// The ring of the task at hand.
    #[inline(always)]
    pub(super) fn ring(&self) -> u32 {
        if M::IS_FREE { 0 } else { self.orchestrator.ring() }
    }

    /// Whether nothing goes wrong, and the policy leaves nothing that it could place when it has dispatched.
    #[inline(always)]
    pub(super) fn is_smooth(&self) -> bool {
        !Self::MAY_FAIL && self.policy.is_steady()
    }

    /// Whether the policy has stopped the run.
    #[inline(always)]
    pub(super) fn is_halted(&self) -> bool {
        Self::MAY_FAIL && self.halt.is_some()
    }

    /// Whether timed commands, parents or parts of MIX blocks are to be looked at.
    #[inline(always)]
    pub(super) fn is_unusual(&self) -> bool {
        !M::IS_USUAL && !self.is_usual
    }

    /// Whether jobs of the scheduler or pickups take time.
    #[inline(always)]
    pub(super) fn has_costs(&self) -> bool {
        !M::IS_FREE && self.has_costs
    }

    /// Whether there is nothing unusual about machine and program so far.
    pub(super) fn is_usual(&self) -> bool {
        let drops = self.machine.rules.on_ready_queue_full == OnReadyFull::Drop;
        self.is_usual && self.adaptive.is_none() && self.machine.workers.any == 0 && !drops
    }

    /// Whether, besides, nothing takes time but kernels and there is one ring.
    pub(super) fn is_plain(&self) -> bool {
        let is_free =
            self.is_prompt && !self.has_costs && self.is_submitting_free && self.machine.orchestrator.scope == 0;
        is_free && self.is_usual() && self.window.n_rings() == 1
    }

    /// The same run in another mode, told to another observer or the same.
    pub(super) fn turn_into<N: Mode, Q: Observer>(
        self,
        observer: impl FnOnce(&'a mut O) -> &'a mut Q,
    ) -> Sim<'a, P, Q, N> {
        Sim {
            machine: self.machine,
            window: self.window,
            orchestrator: self.orchestrator,
            policy: self.policy,
            ledger: self.ledger,
            jobs: self.jobs,
            tally: self.tally,
            work: self.work,
            clerk: self.clerk,
            now: self.now,
            floor: self.floor,
            observer: observer(self.observer),
            ends: self.ends,
            parts: self.parts,
            times: self.times,
            path_costs: self.path_costs,
            placed: self.placed,
            lists: self.lists,
            controls: self.controls,
            family: self.family,
            notes: self.notes,
            halt: self.halt,
            is_shut_down: self.is_shut_down,
            adaptive: self.adaptive,
            has_faults: self.has_faults,
            is_prompt: self.is_prompt,
            has_costs: self.has_costs,
            is_submitting_free: self.is_submitting_free,
            is_usual: self.is_usual,
            leaves_mode: false,
            is_resumed: self.leaves_mode,
            mode: PhantomData,
        }
    }
}

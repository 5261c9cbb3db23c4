//! The state of a slot: one word that holds the tenant's id and its state.
//!
//! `free → pending → ready → running → completed → consumed`, one method per transition.

use crate::id::TaskId;
use crate::sync::{Sharing, Word};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
#[cfg(not(loom))]
use zerocopy::FromZeros;

/// Where a task stands in its life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// No task was ever here.
    Free,
    /// Reserved or waiting for producers.
    Pending,
    /// Every producer is complete and the task is admitted.
    Ready,
    /// A block of it started.
    Running,
    /// The scheduler processed the end of its last block.
    Completed,
    /// Nobody needs it any more.
    Consumed,
}

impl State {
    /// The name used in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            State::Free => "FREE",
            State::Pending => "PENDING",
            State::Ready => "READY",
            State::Running => "RUNNING",
            State::Completed => "COMPLETED",
            State::Consumed => "CONSUMED",
        }
    }
}

/// Tenant × 8 + state.
#[cfg_attr(not(loom), derive(FromZeros))]
#[cfg_attr(loom, derive(Default))]
#[repr(transparent)]
pub(super) struct StateWord<S: Sharing>(S::U64);

impl<S: Sharing> StateWord<S> {
    #[inline]
    pub(super) fn task(&self) -> TaskId {
        TaskId(self.0.load(Relaxed) >> 3) // Ordering: the orchestrator alone changes tenants.
    }

    #[inline]
    pub(super) fn state(&self) -> State {
        // Ordering: pairs with the Release of `become_state`, so that what was written before is seen.
        match self.0.load(Acquire) & 7 {
            0 => State::Free,
            1 => State::Pending,
            2 => State::Ready,
            3 => State::Running,
            4 => State::Completed,
            _ => State::Consumed,
        }
    }

    /// Whether the tenant is CONSUMED.
    #[inline]
    pub(super) fn is_consumed(&self) -> bool {
        self.0.load(Acquire) & 7 == State::Consumed as u64 // Ordering: as in `state`.
    }

    /// A new tenant moves in.
    #[inline]
    pub(super) fn reserve(&self, task: TaskId) {
        debug_assert!(matches!(self.state(), State::Free | State::Consumed), "slot still in use by {:?}", self.task());
        self.0.store(task.0 << 3 | State::Pending as u64, Release); // Ordering: pairs with the Acquire of `state`.
    }

    /// From READY to RUNNING, by whoever starts a block first; the others find it done.
    #[inline]
    pub(super) fn start(&self) {
        let word = self.0.load(Relaxed); // Ordering: the exchange decides.
        if word & 7 == State::Ready as u64 {
            // Ordering: Release pairs with the Acquire of `state`. A failure means that another block started first.
            let _ = self.0.compare_exchange(word, word & !7 | State::Running as u64, Release, Relaxed);
        }
    }

    /// The next state of the same tenant.
    #[inline]
    pub(super) fn become_state(&self, next: State) {
        let word = self.0.load(Relaxed); // Ordering: only the winner of the count that led here writes the word.
        debug_assert!(word & 7 < next as u64, "{:?} cannot become {next:?}", self.state());
        self.0.store(word & !7 | next as u64, Release); // Ordering: pairs with the Acquire of `state`.
    }
}

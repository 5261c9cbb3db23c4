//! How far a run is, told by a thread of its own every so often. It looks at the window, so the others count nothing for it.

use super::Kernels;
use super::core::Core;
use crate::sync::Shared;
use crate::window::{State, Window};
use std::time::Duration;

/// When and to whom to tell how far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time between two calls.
    pub every: Duration,
    /// Is told the counts.
    pub tell: fn(&Counts),
}

/// Tasks of a run, at one moment of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Since the run began.
    pub elapsed: Duration,
    /// Tasks that were submitted.
    pub submitted: u64,
    /// Those of them that are complete.
    pub completed: u64,
    /// Those of them that nobody needs any more.
    pub consumed: u64,
    /// `last_task_alive` of each ring.
    pub last_alive: Vec<u64>,
    /// Nothing was completed since the last call although tasks are in flight.
    pub is_stuck: bool,
}

/// Tells how far the run is until it is over; whoever ends it unparks this thread.
pub(super) fn watch<K: Kernels>(core: &Core<'_, K>, progress: Progress) {
    let (mut told, mut next) = (0, progress.every);
    while !core.is_over() {
        let elapsed = core.epoch.elapsed();
        if let Some(left) = next.checked_sub(elapsed).filter(|left| !left.is_zero()) {
            std::thread::park_timeout(left);
            continue;
        }
        let mut counts = count(&core.window);
        counts.elapsed = elapsed;
        counts.is_stuck = counts.completed == told && counts.completed < counts.submitted;
        (progress.tell)(&counts);
        told = counts.completed;
        next = elapsed.saturating_add(progress.every);
    }
}

/// Counts what is in flight by its state; whatever left the window is consumed.
fn count(window: &Window<Shared>) -> Counts {
    let mut counts = Counts::default();
    for index in 0..window.n_rings() {
        let ring = window.ring(index);
        // Retired first, so that it is never ahead of what is submitted.
        let retired = ring.retired();
        let submitted = ring.submitted();
        let (mut completed, mut consumed) = (retired, retired);
        for position in retired..submitted {
            let state = window.slot(window.at(index, position)).state();
            // Looked at behind the state: of a task that left meanwhile, the slot may have told about its next tenant.
            let is_consumed = state == State::Consumed || position < ring.retired();
            completed += u64::from(is_consumed || state == State::Completed);
            consumed += u64::from(is_consumed);
        }
        counts.submitted += submitted;
        counts.completed += completed;
        counts.consumed += consumed;
        counts.last_alive.push(retired);
    }
    counts
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::config::{FanoutOrder, Limits};
    use crate::id::TaskId;
    use crate::window::{Needs, Outcomes, SlotRef};

    struct Silent;

    impl Outcomes for Silent {
        fn releasing(&mut self, _: SlotRef, _: SlotRef) {}
        fn ready(&mut self, _: SlotRef) {}
        fn unblocked(&mut self, _: SlotRef) {}
        fn consumed(&mut self, _: SlotRef) {}
    }

    #[test]
    fn tasks_are_counted_by_their_state_and_by_having_left() {
        let limits = Limits { window: 4, ..Limits::default() };
        let window = Window::<Shared>::new(&limits, FanoutOrder::Lifo);
        let tell = |window: &Window<Shared>| {
            let Counts { submitted, completed, consumed, last_alive, .. } = count(window);
            (submitted, completed, consumed, last_alive)
        };
        assert_eq!(tell(&window), (0, 0, 0, vec![0]));
        // Six tasks through four slots; the third is held by a scope.
        for task in 0..6 {
            let slot = window.reserve(0, TaskId(task), &Needs::default(), u32::from(task == 2)).expect("room");
            assert!(window.satisfy(slot));
            if task < 4 {
                window.complete(slot, &mut Silent);
                window.advance(0, |_, _| {});
            }
        }
        assert_eq!(tell(&window), (6, 4, 3, vec![2]));
    }
}

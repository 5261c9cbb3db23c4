//! A coroutine as Cyber's processors see it: a state, a flag that keeps two of them from running it at once, and a body.

use std::sync::atomic::{AtomicBool, Ordering};

/// Where a coroutine stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoutineState {
    /// It can run.
    Ready,
    /// It waits for a message.
    DataWait,
    /// It waits for a device.
    IoWait,
    /// It waits until a moment has passed.
    Sleep {
        /// The moment.
        until: u64,
    },
    /// It will not run again.
    Finished,
}

/// A coroutine; its body runs up to its next yield and says why it yields.
pub struct Croutine {
    state: RoutineState,
    updated: bool,
    stopped: bool,
    acquired: AtomicBool,
    body: Box<dyn FnMut() -> RoutineState + Send>,
}

impl Croutine {
    /// A ready coroutine.
    pub fn new(body: impl FnMut() -> RoutineState + Send + 'static) -> Croutine {
        Croutine {
            state: RoutineState::Ready,
            updated: false,
            stopped: false,
            acquired: AtomicBool::new(false),
            body: Box::new(body),
        }
    }

    /// Its state.
    #[must_use]
    pub fn state(&self) -> RoutineState {
        self.state
    }

    /// Puts it into a state.
    pub fn set_state(&mut self, state: RoutineState) {
        self.state = state;
    }

    /// Claims it for one processor; false if another has it.
    #[must_use]
    pub fn try_acquire(&self) -> bool {
        // Ordering: Acquire pairs with the Release of `release`: the next owner sees what the last one did.
        !self.acquired.swap(true, Ordering::Acquire)
    }

    /// Gives it up.
    pub fn release(&self) {
        // Ordering: Release pairs with the Acquire of `try_acquire`.
        self.acquired.store(false, Ordering::Release);
    }

    /// Tells it that what it waits for has come; the next [`Croutine::update_state`] takes notice, once.
    pub fn set_update_flag(&mut self) {
        self.updated = true;
    }

    /// Makes it ready if its sleep is over or it was told of news, and gives its state.
    pub fn update_state(&mut self, now: u64) -> RoutineState {
        match self.state {
            RoutineState::Sleep { until } if now > until => {
                self.state = RoutineState::Ready;
                return self.state;
            }
            _ => {}
        }
        let told = std::mem::take(&mut self.updated);
        if told && matches!(self.state, RoutineState::DataWait | RoutineState::IoWait) {
            self.state = RoutineState::Ready;
        }
        self.state
    }

    /// Makes it ready.
    pub fn wake(&mut self) {
        self.state = RoutineState::Ready;
    }

    /// It finishes when it is resumed next.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Runs it up to its next yield, if it is ready; gives the state it is in afterwards.
    pub fn resume(&mut self) -> RoutineState {
        if self.stopped {
            self.state = RoutineState::Finished;
        } else if self.state == RoutineState::Ready {
            self.state = (self.body)();
        }
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_woken_routine_runs_to_its_yield_and_a_stopped_one_finishes() {
        let mut routine = Croutine::new(|| RoutineState::IoWait);
        routine.set_state(RoutineState::DataWait);
        routine.wake();
        assert_eq!(routine.state(), RoutineState::Ready);
        assert_eq!(routine.update_state(0), RoutineState::Ready);
        assert_eq!(routine.resume(), RoutineState::IoWait);
        assert_eq!(routine.resume(), RoutineState::IoWait, "a waiting routine does not run");
        routine.stop();
        assert_eq!(routine.resume(), RoutineState::Finished);
    }

    #[test]
    fn the_update_flag_counts_once() {
        let mut routine = Croutine::new(|| RoutineState::DataWait);
        routine.set_state(RoutineState::DataWait);
        assert_eq!(routine.update_state(0), RoutineState::DataWait);
        routine.set_update_flag();
        assert_eq!(routine.update_state(0), RoutineState::Ready);
        assert_eq!(routine.resume(), RoutineState::DataWait);
        assert_eq!(routine.update_state(0), RoutineState::DataWait, "the flag is used up");
    }

    #[test]
    fn a_sleeper_wakes_after_its_moment_not_at_it() {
        let mut routine = Croutine::new(|| RoutineState::Finished);
        routine.set_state(RoutineState::Sleep { until: 10 });
        assert_eq!(routine.update_state(10), RoutineState::Sleep { until: 10 });
        assert_eq!(routine.update_state(11), RoutineState::Ready);
    }

    #[test]
    fn one_processor_at_a_time_acquires_it() {
        let routine = Croutine::new(|| RoutineState::Finished);
        assert!(routine.try_acquire());
        assert!(!routine.try_acquire());
        routine.release();
        assert!(routine.try_acquire());
    }
}

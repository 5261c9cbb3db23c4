//! The tasks that a Cyber scheduler knows, and the way its processors sleep and are woken.

use super::croutine::{Croutine, RoutineState};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Processors wait at most this long before they look again.
pub const WAIT: Duration = Duration::from_secs(1);

/// What a shutdown sets the counter to, so that every waiting processor wakes.
const ALL: u32 = 255;

/// Wake-ups of one group: a notification without a waiter is kept for the next one.
#[derive(Default)]
pub struct NotifyCounter {
    count: Mutex<u32>,
    waiting: Condvar,
}

impl NotifyCounter {
    /// Adds one wake-up.
    pub fn notify(&self) {
        *lock(&self.count) += 1;
        self.waiting.notify_one();
    }

    /// Wakes everybody, now and later.
    pub fn shutdown(&self) {
        *lock(&self.count) = ALL;
        self.waiting.notify_all();
    }

    /// Waits up to `limit` for a wake-up and uses it; false if none came.
    pub fn wait(&self, limit: Duration) -> bool {
        let none_left = |count: &mut u32| *count == 0;
        let waited = self.waiting.wait_timeout_while(lock(&self.count), limit, none_left);
        let (mut count, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let came = *count > 0;
        *count = count.saturating_sub(1);
        came
    }

    /// Wake-ups not used yet.
    pub fn count(&self) -> u32 {
        *lock(&self.count)
    }
}

/// Live tasks by id. Every method answers as Apollo's scheduler does.
#[derive(Default)]
pub struct Registry {
    tasks: Mutex<Tasks>,
    counter: NotifyCounter,
}

#[derive(Default)]
struct Tasks {
    stopped: bool,
    live: BTreeMap<u64, Croutine>,
}

impl Registry {
    /// The id of a name: the same for the same name, in every run.
    #[must_use]
    pub fn id(name: &str) -> u64 {
        // FNV-1a.
        name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }

    /// Adds a task and wakes a processor; false after a shutdown, or if a task of this name lives.
    pub fn create_task(&self, name: &str, routine: Croutine) -> bool {
        let mut tasks = lock(&self.tasks);
        let id = Registry::id(name);
        if tasks.stopped || tasks.live.contains_key(&id) {
            return false;
        }
        tasks.live.insert(id, routine);
        self.counter.notify();
        true
    }

    /// Tells a task that its data have come and wakes a processor; false if there is no such task, true after a shutdown.
    pub fn notify_task(&self, id: u64) -> bool {
        let mut tasks = lock(&self.tasks);
        if tasks.stopped {
            return true;
        }
        let Some(routine) = tasks.live.get_mut(&id) else { return false };
        if matches!(routine.state(), RoutineState::DataWait | RoutineState::IoWait) {
            routine.set_update_flag();
        }
        self.counter.notify();
        true
    }

    /// Stops and forgets a task; false if there is none of this name, true after a shutdown.
    pub fn remove_task(&self, name: &str) -> bool {
        let mut tasks = lock(&self.tasks);
        tasks.stopped || tasks.live.remove(&Registry::id(name)).is_some()
    }

    /// Forgets all tasks, wakes all processors and takes no more tasks; once is enough.
    pub fn shutdown(&self) {
        let mut tasks = lock(&self.tasks);
        if !std::mem::replace(&mut tasks.stopped, true) {
            tasks.live.clear();
            self.counter.shutdown();
        }
    }

    /// The wake-ups of its processors.
    pub fn counter(&self) -> &NotifyCounter {
        &self.counter
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Instant;

    fn idle() -> Croutine {
        Croutine::new(|| RoutineState::DataWait)
    }

    #[test]
    fn a_name_lives_once_and_can_be_removed() {
        let registry = Registry::default();
        let id = Registry::id("ABC");
        assert!(registry.create_task("ABC", idle()));
        assert!(!registry.create_task("ABC", idle()));
        assert!(registry.notify_task(id));
        assert!(registry.remove_task("ABC"));
        assert!(!registry.remove_task("ABC"));
        assert!(!registry.remove_task("driver"));
        assert!(!registry.notify_task(id));
        assert!(registry.create_task("ABC", idle()), "a removed name can be used again");
    }

    #[test]
    fn after_a_shutdown_nothing_is_created_and_the_rest_is_ignored() {
        let registry = Registry::default();
        assert!(registry.create_task("ABC", idle()));
        registry.shutdown();
        assert!(!registry.create_task("DEF", idle()));
        assert!(registry.notify_task(Registry::id("ABC")));
        assert!(registry.remove_task("ABC"));
        assert_eq!(registry.counter().count(), ALL);
        assert!(registry.counter().wait(WAIT));
        registry.shutdown();
        assert_eq!(registry.counter().count(), ALL - 1, "a second shutdown does nothing");
    }

    #[test]
    fn news_reach_a_waiting_routine_once() {
        let registry = Registry::default();
        let mut waiting = idle();
        waiting.set_state(RoutineState::DataWait);
        registry.create_task("A", waiting);
        assert!(registry.notify_task(Registry::id("A")));
        let mut tasks = lock(&registry.tasks);
        let routine = tasks.live.get_mut(&Registry::id("A")).expect("A lives");
        assert_eq!(routine.update_state(0), RoutineState::Ready);
        assert_eq!(registry.counter().count(), 2, "creation and news wake a processor each");
    }

    #[test]
    fn notifications_without_a_waiter_are_kept_and_the_count_never_falls_below_0() {
        let counter = NotifyCounter::default();
        (0..3).for_each(|_| counter.notify());
        let begin = Instant::now();
        assert!((0..3).all(|_| counter.wait(WAIT)));
        assert!(begin.elapsed() < WAIT, "three waits return at once");
        let begin = Instant::now();
        assert!(!counter.wait(WAIT));
        assert!(begin.elapsed() >= WAIT, "the fourth waits its time out");
        assert_eq!(counter.count(), 0);
    }

    #[test]
    fn a_waiter_is_woken_by_a_notification_of_another_thread() {
        let counter = Arc::new(NotifyCounter::default());
        let other = Arc::clone(&counter);
        let waiter = std::thread::spawn(move || other.wait(Duration::from_secs(60)));
        counter.notify();
        assert!(waiter.join().expect("the waiter does not panic"));
    }
}

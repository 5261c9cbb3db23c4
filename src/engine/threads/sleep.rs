//! Parking and waking: nobody polls, nobody is woken in vain, and the moment at which all are idle is known exactly.
//!
//! ```text
//! who runs out of work   sets its idle bit │ fence │ looks again │ leaves the count of the awake │ parks until the bit is gone
//! who makes work         makes it          │ fence │ takes the bit of one sleeper │ counts it as awake │ unparks it
//! ```
//!
//! Of two that write, pass a fence and read, one sees the other: either the maker sees the bit or the sleeper sees the work.
//! The waker enters the sleeper into the count before it goes to sleep itself, so the count reaches 0 only when all sleep and
//! nobody is on its way up. The one that makes it 0 learns that and decides how the run goes on.

use crate::sync::{Sharing, Thread, Word, current, park};
use crossbeam_utils::CachePadded;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// Most threads there can be: one bit each.
pub(super) const MOST_THREADS: usize = 64;

/// All threads of a run and which of them are idle.
pub(super) struct Sleepers<S: Sharing> {
    /// One bit a thread that sleeps or is about to. Set by the thread itself, taken by whoever wakes it.
    idle: CachePadded<S::U64>,
    /// Threads that are not asleep.
    awake: CachePadded<S::U32>,
    threads: Box<[OnceLock<Thread>]>,
}

/// How a sleep ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(super) enum Slept {
    /// Somebody had work.
    Woken,
    /// All others sleep: nothing can happen unless this thread makes it happen. It has not slept.
    Last,
}

impl<S: Sharing> Sleepers<S> {
    /// `threads` threads, all awake.
    pub(super) fn new(threads: usize) -> Sleepers<S> {
        assert!(threads <= MOST_THREADS, "{threads} threads: at most {MOST_THREADS} have a bit each");
        Sleepers {
            idle: CachePadded::new(S::U64::new(0)),
            awake: CachePadded::new(S::U32::new(threads as u32)),
            threads: (0..threads).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The calling thread is number `me`.
    pub(super) fn register(&self, me: usize) {
        let _ = self.threads[me].set(current());
    }

    /// The idle threads, one bit each, to be looked at after making work.
    #[inline]
    pub(super) fn idle_after_work(&self) -> u64 {
        // The work comes before the fence; pairs with the fence in `announce`.
        S::fence();
        self.idle.load(Relaxed) // Ordering: the fence orders it.
    }

    /// A look without a fence; may miss a thread that falls asleep right now.
    #[inline]
    pub(super) fn idle_hint(&self) -> u64 {
        self.idle.load(Relaxed) // Ordering: a hint.
    }

    /// The thread runs out of work; it must look for work once more afterwards.
    pub(super) fn announce(&self, me: usize) {
        self.idle.fetch_or(1 << me, AcqRel); // Ordering: AcqRel; the fence pairs with the one in `idle_after_work`.
        S::fence();
    }

    /// The thread found work after all.
    pub(super) fn withdraw(&self, me: usize) {
        if !self.take_bit(me) {
            // Somebody woke it and counted it twice.
            self.awake.fetch_sub(1, AcqRel); // Ordering: AcqRel, as everywhere on this word.
        }
    }

    /// Sleeps until woken, unless all others sleep.
    pub(super) fn sleep(&self, me: usize) -> Slept {
        self.sleep_telling(me, || ())
    }

    /// As [`Sleepers::sleep`], and says so when only one other is left awake.
    pub(super) fn sleep_telling(&self, me: usize, one_left: impl FnOnce()) -> Slept {
        // Ordering: AcqRel, so that the last one sees what all the others did before they slept.
        match self.awake.fetch_sub(1, AcqRel) {
            1 => return Slept::Last,
            2 => one_left(),
            _ => {}
        }
        self.wait(me);
        Slept::Woken
    }

    /// Sleeps until woken.
    pub(super) fn wait(&self, me: usize) {
        // Ordering: Acquire pairs with the AcqRel of `take_bit`.
        while self.idle.load(Acquire) & 1 << me != 0 {
            park();
        }
    }

    /// Whether the calling thread is the only one awake.
    #[cfg(not(loom))]
    pub(super) fn is_alone(&self) -> bool {
        self.awake.load(Acquire) == 1 // Ordering: pairs with the AcqRel of those who went to sleep.
    }

    /// The last one goes on itself.
    pub(super) fn stay_up(&self, me: usize) {
        self.awake.fetch_add(1, AcqRel); // Ordering: AcqRel, as everywhere on this word.
        self.take_bit(me);
    }

    /// Wakes a thread if it is idle; false if it is not any more.
    pub(super) fn wake(&self, thread: usize) -> bool {
        // Counted before its bit is taken: without the bit it is up at once, and may sleep again before the caller goes on. Counted
        // too late, it would take itself for the last one while the caller is awake.
        self.awake.fetch_add(1, AcqRel); // Ordering: AcqRel, as everywhere on this word.
        if !self.take_bit(thread) {
            self.awake.fetch_sub(1, AcqRel); // Ordering: AcqRel; the caller is awake, so this is not the last one.
            return false;
        }
        if let Some(thread) = self.threads[thread].get() {
            thread.unpark();
        }
        true
    }

    /// Wakes everybody, at the end of a run.
    pub(super) fn wake_all(&self) {
        for thread in 0..self.threads.len() {
            self.wake(thread);
        }
    }

    /// True for the one who takes the bit away.
    fn take_bit(&self, thread: usize) -> bool {
        // Ordering: AcqRel; the sleeper sees what the waker did before.
        self.idle.fetch_and(!(1 << thread), AcqRel) & 1 << thread != 0
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::Shared;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::thread;

    /// What the two threads of the model share.
    struct Model {
        sleepers: Sleepers<Shared>,
        work: AtomicU32,
        /// Not 0 when everything is over.
        over: AtomicU32,
        /// How often a thread was the last.
        last: AtomicU32,
    }

    impl Model {
        fn is_over(&self) -> bool {
            self.over.load(Ordering::Acquire) != 0
        }

        /// Sleeps until all is over, as often as it is woken for nothing; the last one to sleep ends it for both.
        fn sleep_to_the_end(&self, me: usize) {
            while !self.is_over() {
                self.sleepers.announce(me);
                if self.is_over() {
                    self.sleepers.withdraw(me);
                } else if self.sleepers.sleep(me) == Slept::Last {
                    assert_eq!(self.work.load(Ordering::SeqCst), 0, "all sleep although there is work");
                    self.last.fetch_add(1, Ordering::SeqCst);
                    self.sleepers.stay_up(me);
                    self.over.store(1, Ordering::Release);
                    let _ = self.sleepers.idle_after_work();
                    self.sleepers.wake_all();
                }
            }
        }

        /// Takes two pieces of work, asleep while there is none.
        fn take_two(&self, me: usize) {
            let mut taken = 0;
            while taken < 2 {
                taken += self.work.swap(0, Ordering::AcqRel);
                if taken == 2 {
                    return;
                }
                self.sleepers.announce(me);
                if self.work.load(Ordering::Acquire) > 0 {
                    self.sleepers.withdraw(me);
                    continue;
                }
                assert_eq!(self.sleepers.sleep(me), Slept::Woken, "the maker is up until it has made everything");
            }
        }
    }

    /// A maker pushes two pieces of work and goes to sleep; a taker takes them. Nobody sleeps while there is work, and exactly
    /// one of the two is the last.
    #[test]
    fn no_wake_up_is_lost_and_one_thread_is_the_last() {
        loom::model(|| {
            let [work, over, last] = [0; 3].map(AtomicU32::new);
            let model = Arc::new(Model { sleepers: Sleepers::new(2), work, over, last });
            let theirs = Arc::clone(&model);
            let taker = thread::spawn(move || {
                theirs.sleepers.register(1);
                theirs.take_two(1);
                theirs.sleep_to_the_end(1);
            });
            model.sleepers.register(0);
            for _ in 0..2 {
                model.work.fetch_add(1, Ordering::AcqRel);
                if model.sleepers.idle_after_work() & 2 != 0 {
                    model.sleepers.wake(1);
                }
            }
            model.sleep_to_the_end(0);
            taker.join().expect("the taker ends");
            assert_eq!(model.last.load(Ordering::SeqCst), 1);
        });
    }
}

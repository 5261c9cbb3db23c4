//! The free workers of a home by clock, without a look at all of them each time.

use crate::machine::{Floor, WorkerSet};
use std::collections::VecDeque;

/// Free workers of one type, the smallest `(clock, id)` first.
///
/// A clock in the list may be out of date: then it is too small, because clocks only grow, and is put right when it is met.
pub(super) struct Idle {
    list: VecDeque<(u64, u32)>,
    /// Workers that are not in the list.
    unlisted: WorkerSet,
}

impl Idle {
    /// None of `workers` is known to be free.
    pub fn new(workers: WorkerSet) -> Idle {
        Idle { list: VecDeque::new(), unlisted: workers }
    }

    /// Lists workers that have become free.
    #[inline]
    pub fn refresh(&mut self, floor: &Floor) {
        let mut from = 0;
        while let Some(worker) = self.unlisted.first_common(floor.free_workers(), from) {
            from = worker + 1;
            self.unlisted.remove(worker);
            self.insert((floor.worker(worker).clock, worker));
        }
    }

    /// Takes the worker that [`Idle::first`] has just told.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        let (_, worker) = self.list.pop_front()?;
        self.unlisted.insert(worker);
        Some(worker)
    }

    /// The free worker with the smallest clock, of equals the smallest.
    #[inline]
    pub fn first(&mut self, floor: &Floor) -> Option<(u64, u32)> {
        while let Some(&(clock, id)) = self.list.front() {
            let worker = floor.worker(id);
            if worker.is_free && worker.clock == clock {
                return Some((clock, id));
            }
            self.list.pop_front();
            if worker.is_free {
                self.insert((worker.clock, id));
            } else {
                self.unlisted.insert(id);
            }
        }
        None
    }

    /// Workers become free almost in the order of their clocks, so that most go to the end.
    #[inline]
    fn insert(&mut self, entry: (u64, u32)) {
        if self.list.back().is_none_or(|&last| last < entry) {
            self.list.push_back(entry);
            return;
        }
        let mut place = self.list.len();
        while place > 0 && self.list[place - 1] > entry {
            place -= 1;
        }
        self.list.insert(place, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::Idle;
    use crate::config::Workers;
    use crate::machine::{Floor, WorkerSet};

    #[test]
    fn the_smallest_clock_comes_first_whoever_took_a_worker_in_between() {
        let mut floor = Floor::new(&Workers { any: 4, ..Workers::default() });
        floor.keep_free_workers();
        let mut members = WorkerSet::new(4);
        [1, 2, 3].into_iter().for_each(|worker| members.insert(worker));
        let mut idle = Idle::new(members);
        let take = |floor: &mut Floor, idle: &mut Idle| {
            idle.refresh(floor);
            let first = idle.first(floor)?;
            assert_eq!(idle.take(), Some(first.1));
            floor.take_worker(first.1);
            Some(first)
        };
        let free = |floor: &mut Floor, worker: u32, clock: u64| {
            floor.worker_mut(worker).clock = clock;
            floor.give_back(worker);
        };
        assert_eq!(take(&mut floor, &mut idle), Some((0, 1)), "worker 0 is no member");
        assert_eq!(take(&mut floor, &mut idle), Some((0, 2)));
        free(&mut floor, 2, 5);
        free(&mut floor, 1, 7);
        // Somebody else takes worker 3, which is listed with clock 0, and worker 2 again.
        floor.take_worker(3);
        floor.take_worker(2);
        free(&mut floor, 3, 6);
        assert_eq!(take(&mut floor, &mut idle), Some((6, 3)));
        free(&mut floor, 2, 9);
        assert_eq!(take(&mut floor, &mut idle), Some((7, 1)));
        assert_eq!(take(&mut floor, &mut idle), Some((9, 2)));
        assert_eq!(take(&mut floor, &mut idle), None);
    }
}

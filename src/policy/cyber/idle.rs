//! The free workers of a home by clock, without a look at all of them each time.

use crate::machine::{Floor, WorkerSet};
use std::collections::VecDeque;

/// Free workers of one type, the smallest `(clock, id)` first.
///
/// A clock in the list may be out of date: then it is too small, because clocks only grow, and is put right when it is met.
pub(super) struct Idle {
    list: VecDeque<(u64, u32)>,
    /// Workers that are not in the list, counted from 64 × `offset`, so that a home takes room for its own workers only.
    unlisted: WorkerSet,
    offset: u32,
}

impl Idle {
    /// None of `workers` is known to be free.
    pub fn new(workers: impl Iterator<Item = u32> + Clone) -> Idle {
        let (first, last) = (workers.clone().min().unwrap_or(0), workers.clone().max().unwrap_or(0));
        let offset = first / 64;
        let mut unlisted = WorkerSet::new((last - 64 * offset) as usize + 1);
        workers.for_each(|worker| unlisted.insert(worker - 64 * offset));
        Idle { list: VecDeque::new(), unlisted, offset }
    }

    /// Lists workers that have become free.
    #[inline]
    pub fn refresh(&mut self, floor: &Floor) {
        let mut from = 0;
        while let Some(place) = self.unlisted.first_common_behind(self.offset, floor.free_workers(), from) {
            from = place + 1;
            self.unlisted.remove(place);
            let worker = place + 64 * self.offset;
            self.insert((floor.worker(worker).clock, worker));
        }
    }

    /// Takes the worker that [`Idle::first`] has just told.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        let (_, worker) = self.list.pop_front()?;
        self.unlisted.insert(worker - 64 * self.offset);
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
                self.unlisted.insert(id - 64 * self.offset);
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
    use crate::machine::Floor;

    #[test]
    fn the_smallest_clock_comes_first_whoever_took_a_worker_in_between() {
        for first in [1, 200] {
            three_workers_from(first);
        }
    }

    /// Worker numbers count from the first one.
    fn three_workers_from(first: u32) {
        let mut floor = Floor::new(&Workers { any: first + 3, ..Workers::default() });
        floor.keep_free_workers();
        let mut idle = Idle::new(first..first + 3);
        let take = |floor: &mut Floor, idle: &mut Idle| {
            idle.refresh(floor);
            let next = idle.first(floor)?;
            assert_eq!(idle.take(), Some(next.1));
            floor.take_worker(next.1);
            Some(next)
        };
        let free = |floor: &mut Floor, worker: u32, clock: u64| {
            floor.worker_mut(worker).clock = clock;
            floor.give_back(worker);
        };
        assert_eq!(take(&mut floor, &mut idle), Some((0, first)), "the workers before it are no members");
        assert_eq!(take(&mut floor, &mut idle), Some((0, first + 1)));
        free(&mut floor, first + 1, 5);
        free(&mut floor, first, 7);
        // Somebody else takes the last, which is listed with clock 0, and the second again.
        floor.take_worker(first + 2);
        floor.take_worker(first + 1);
        free(&mut floor, first + 2, 6);
        assert_eq!(take(&mut floor, &mut idle), Some((6, first + 2)));
        free(&mut floor, first + 1, 9);
        assert_eq!(take(&mut floor, &mut idle), Some((7, first)));
        assert_eq!(take(&mut floor, &mut idle), Some((9, first + 1)));
        assert_eq!(take(&mut floor, &mut idle), None);
    }
}

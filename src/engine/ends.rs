//! When running blocks end: by cycle, and within a cycle by ascending worker.
//!
//! Blocks that end at the same cycle share a group, a set of workers, so that many of them cost one step of the queue of
//! groups. A group that is not found among the recent ones is simply opened once more; groups of one cycle are joined when
//! their time comes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Workers in a word of a group: most machines need one.
const WORD: u32 = u128::BITS;

/// How many groups are remembered by their cycle.
const RECENT: usize = 64;

/// Ends to come.
pub(crate) struct Ends {
    /// Cycle of the first group, or the largest number when there is none.
    next: u64,
    /// The first group.
    first: u32,
    /// Cycle and group of the others, packed, because numbers are compared faster than fields.
    later: BinaryHeap<Reverse<u128>>,
    /// The workers of every group, a bit each, in `width` words.
    groups: Vec<u128>,
    width: usize,
    unused: Vec<u32>,
    /// A group by its cycle; the cycle is the largest number where there is none.
    recent: [(u64, u32); RECENT],
    /// Workers whose block ends now and has not been taken: those of the word at hand, and the words of the group behind it.
    due: u128,
    /// The word behind the one at hand. When that is the last, the group is unused again.
    due_word: usize,
    due_group: u32,
    /// Whether a block ends at the largest number, which is never reached.
    has_endless: bool,
}

impl Ends {
    pub(crate) fn new(n_workers: usize) -> Ends {
        let width = n_workers.div_ceil(WORD as usize).max(1);
        Ends {
            next: u64::MAX,
            first: 0,
            later: BinaryHeap::new(),
            groups: Vec::new(),
            width,
            unused: Vec::new(),
            recent: [(u64::MAX, 0); RECENT],
            due: 0,
            due_word: width,
            due_group: 0,
            has_endless: false,
        }
    }

    /// The block that this worker leads ends at a cycle.
    #[inline]
    pub(crate) fn push(&mut self, end: u64, leader: u32) {
        if end == u64::MAX {
            self.has_endless = true;
            return;
        }
        let (cycle, group) = self.recent[place(end)];
        let group = if cycle == end { group } else { self.open(end) };
        self.groups[group as usize * self.width + (leader / WORD) as usize] |= 1 << (leader % WORD);
    }

    /// The next cycle at which a block ends, or the largest number.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Whether a block never ends.
    pub(crate) fn has_endless(&self) -> bool {
        self.has_endless
    }

    /// The next worker whose block ends at `now`, ascending.
    #[inline(always)]
    pub(crate) fn take(&mut self, now: u64) -> Option<u32> {
        if self.due == 0 && (self.due_word == self.width && self.next != now || !self.turn_to_due(now)) {
            return None;
        }
        let worker = (self.due_word as u32 - 1) * WORD + self.due.trailing_zeros();
        self.due &= self.due - 1;
        Some(worker)
    }

    /// Goes on to the next word that has workers whose block ends at `now`; false if there is none.
    #[inline(always)]
    fn turn_to_due(&mut self, now: u64) -> bool {
        while self.due == 0 {
            if self.due_word == self.width {
                if self.next != now {
                    return false;
                }
                self.collect(now);
            }
            self.due = std::mem::take(&mut self.groups[self.due_group as usize * self.width + self.due_word]);
            self.due_word += 1;
            if self.due_word == self.width {
                self.unused.push(self.due_group);
            }
        }
        true
    }

    #[inline]
    fn open(&mut self, end: u64) -> u32 {
        let group = match self.unused.pop() {
            Some(group) => group,
            None => self.grow(),
        };
        self.recent[place(end)] = (end, group);
        if end < self.next {
            if self.next != u64::MAX {
                self.later.push(Reverse(packed(self.next, self.first)));
            }
            (self.next, self.first) = (end, group);
        } else {
            self.later.push(Reverse(packed(end, group)));
        }
        group
    }

    #[cold]
    fn grow(&mut self) -> u32 {
        let group = self.groups.len() / self.width;
        self.groups.resize(self.groups.len() + self.width, 0);
        group as u32
    }

    /// Takes all groups of a cycle out of the queue and joins them.
    #[inline]
    fn collect(&mut self, now: u64) {
        self.recent[place(now)].0 = u64::MAX;
        (self.due_group, self.due_word) = (self.first, 0);
        self.step();
        while self.next == now {
            for word in 0..self.width {
                let workers = std::mem::take(&mut self.groups[self.first as usize * self.width + word]);
                self.groups[self.due_group as usize * self.width + word] |= workers;
            }
            self.unused.push(self.first);
            self.step();
        }
    }

    /// The first group is out; the next one takes its place.
    #[inline]
    fn step(&mut self) {
        (self.next, self.first) = match self.later.pop() {
            Some(Reverse(key)) => ((key >> 64) as u64, key as u32),
            None => (u64::MAX, 0),
        };
    }
}

#[inline]
fn packed(end: u64, group: u32) -> u128 {
    u128::from(end) << 64 | u128::from(group)
}

#[inline]
fn place(end: u64) -> usize {
    (end.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_come_by_cycle_and_worker_however_many_groups_there_are() {
        let mut seed = 7_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for (workers, span) in [(1, 3), (5, 2), (70, 200), (200, 5000)] {
            let mut ends = Ends::new(workers);
            let mut running = vec![None; workers];
            let mut now = 0;
            for _ in 0..2000 {
                for (worker, running) in running.iter_mut().enumerate() {
                    if running.is_none() && random(2) == 0 {
                        let end = now + random(span);
                        *running = Some(end);
                        ends.push(end, worker as u32);
                    }
                }
                let next = running.iter().flatten().min().copied();
                assert_eq!(ends.next(), next.unwrap_or(u64::MAX));
                let Some(next) = next else { continue };
                assert_eq!(ends.take(next.wrapping_sub(1)), None);
                now = next;
                let due: Vec<_> = (0..workers).filter(|&worker| running[worker] == Some(now)).collect();
                for worker in due {
                    assert_eq!(ends.take(now), Some(worker as u32));
                    running[worker] = None;
                }
                assert_eq!(ends.take(now), None);
            }
        }
    }
}

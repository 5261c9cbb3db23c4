//! When blocks end: a wheel of the next cycles, and behind it a heap.
//!
//! Most blocks end soon, so their ends stand on a wheel that turns with the time, a place for each cycle; what ends later than the
//! wheel reaches waits in a heap. A place is the first of a list of workers. Those of one cycle come out in ascending order: a single
//! one at once, several as a set. The wheel is small, so that it stays in the nearest cache.
//!
//! ```text
//! occupied   0 1 0 0 1 …      which places have workers, a bit each; a summary says which words of it are not 0
//! wheel      · 5 · · 7 …      place of a cycle: its last bits
//! behind           7 → 2      the next worker of the same place
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Most places of the wheel.
const PLACES: usize = 4096;

/// Fewest places of the wheel: most kernels take less.
const FEW_PLACES: usize = 1024;

/// Places in a word of `occupied`, and workers in a word of a set.
const WORD: usize = u64::BITS as usize;

/// No worker.
const NOBODY: u32 = u32::MAX;

/// Ends to come.
pub(crate) struct Ends {
    /// The next cycle at which a block ends, or the largest number when none does.
    next: u64,
    /// The wheel begins here: no end is earlier, and none on the wheel lies further away than it has places.
    base: u64,
    /// Number of places less one; a power of two less one.
    mask: u64,
    /// The worker of each place that came last, or [`NOBODY`].
    wheel: Box<[u32]>,
    /// By worker: the one that came before it to the same place.
    behind: Box<[u32]>,
    /// Several workers whose blocks end at the cycle turned to.
    several: Box<[u64]>,
    occupied: [u64; PLACES / WORD],
    summary: u64,
    /// Cycle and worker of ends beyond the wheel, packed, because numbers are compared faster than fields.
    later: BinaryHeap<Reverse<u128>>,
    /// Whether a block beyond the wheel ends at the largest number, which is never reached.
    has_endless: bool,
}

impl Ends {
    /// No end yet. Ends are to be expected `pickup` cycles later than kernels alone would bring them.
    pub(crate) fn new(n_workers: usize, pickup: u64) -> Ends {
        let reach = FEW_PLACES + pickup.min(PLACES as u64) as usize;
        let places = reach.next_power_of_two().min(PLACES);
        Ends {
            next: u64::MAX,
            base: 0,
            mask: places as u64 - 1,
            wheel: vec![NOBODY; places].into(),
            behind: vec![NOBODY; n_workers].into(),
            several: vec![0; n_workers.div_ceil(WORD)].into(),
            occupied: [0; PLACES / WORD],
            summary: 0,
            later: BinaryHeap::new(),
            has_endless: false,
        }
    }

    /// The block that this worker leads ends at a cycle. None ends before `now` any more.
    #[inline(always)]
    pub(crate) fn push(&mut self, now: u64, end: u64, leader: u32) {
        if end - self.base > self.mask {
            self.base = now;
            if end - now > self.mask {
                return self.push_later(end, leader);
            }
        }
        let place = (end & self.mask) as usize;
        self.join(place, leader);
        self.occupied[place / WORD % (PLACES / WORD)] |= 1 << (place % WORD);
        self.summary |= 1 << (place / WORD % (PLACES / WORD));
        self.next = self.next.min(end);
    }

    #[inline(always)]
    fn join(&mut self, place: usize, leader: u32) {
        self.behind[leader as usize] = std::mem::replace(&mut self.wheel[place], leader);
    }

    #[inline(never)]
    fn push_later(&mut self, end: u64, leader: u32) {
        if end == u64::MAX {
            self.has_endless = true;
            return;
        }
        self.later.push(Reverse(u128::from(end) << 64 | u128::from(leader)));
        self.next = self.next.min(end);
    }

    /// The next cycle at which a block ends, or the largest number.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Whether a block never ends. The place of the largest number is the last one.
    pub(crate) fn has_endless(&self) -> bool {
        let last = self.mask as usize;
        let is_on_wheel = self.base > u64::MAX - self.mask && self.occupied[last / WORD] >> (last % WORD) & 1 == 1;
        self.has_endless || is_on_wheel
    }

    /// Turns to the next cycle at which a block ends; returns its workers, to be [taken](Ends::take) one after the other.
    #[inline(always)]
    pub(crate) fn turn(&mut self) -> Due {
        self.base = self.next;
        let place = (self.base & self.mask) as usize;
        if !self.later.is_empty() {
            self.join_later(place);
        }
        let word = place / WORD % (PLACES / WORD);
        self.occupied[word] &= !(1 << (place % WORD));
        self.summary &= !(u64::from(self.occupied[word] == 0) << word);
        self.next = match self.later.peek() {
            Some(&Reverse(key)) => self.next_on_wheel(place).min((key >> 64) as u64),
            None => self.next_on_wheel(place),
        };
        let leader = std::mem::replace(&mut self.wheel[place], NOBODY);
        let first = leader & !(WORD as u32 - 1);
        match self.behind.get(leader as usize) {
            Some(&NOBODY) => Due { bits: 1 << (leader % WORD as u32), first, words: 0..0 },
            _ => Due { bits: 0, first, words: self.spread(leader) },
        }
    }

    /// Makes a set of several workers; returns the words in which they stand.
    fn spread(&mut self, mut leader: u32) -> Range<usize> {
        let (mut least, mut most) = (usize::MAX, 0);
        while let Some(&behind) = self.behind.get(leader as usize) {
            let word = leader as usize / WORD;
            self.several[word] |= 1 << (leader as usize % WORD);
            (least, most) = (least.min(word), most.max(word + 1));
            leader = behind;
        }
        least.min(most)..most
    }

    /// Puts what waited beyond the wheel for the cycle turned to into its place.
    #[inline(never)]
    fn join_later(&mut self, place: usize) {
        while let Some(&Reverse(key)) = self.later.peek()
            && (key >> 64) as u64 == self.base
        {
            self.later.pop();
            self.join(place, key as u32);
        }
    }

    /// The first cycle behind the one turned to whose place is occupied.
    #[inline(always)]
    fn next_on_wheel(&self, place: usize) -> u64 {
        let word = place / WORD % (PLACES / WORD);
        let near = self.occupied[word] & (u64::MAX << (place % WORD));
        let found = if near != 0 {
            word * WORD + near.trailing_zeros() as usize
        } else if self.summary == 0 {
            return u64::MAX;
        } else {
            // The words behind it, and at last what lies before the place in its own word.
            let ahead = self.summary.rotate_right(word as u32 + 1).trailing_zeros() as usize + 1;
            let word = (word + ahead) % (PLACES / WORD);
            word * WORD + self.occupied[word].trailing_zeros() as usize
        };
        self.base + ((found as u64).wrapping_sub(self.base) & self.mask)
    }

    /// Takes the next of the workers of the cycle turned to.
    #[inline(always)]
    pub(crate) fn take(&mut self, due: &mut Due) -> Option<u32> {
        while due.bits == 0 {
            let word = due.words.next()?;
            due.bits = std::mem::take(&mut self.several[word]);
            due.first = (word * WORD) as u32;
        }
        let worker = due.first + due.bits.trailing_zeros();
        due.bits &= due.bits - 1;
        Some(worker)
    }
}

/// Workers whose block ends now, ascending: some that are at hand, a bit each, and where more of them stand.
pub(crate) struct Due {
    bits: u64,
    first: u32,
    words: Range<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::rolls;

    #[test]
    fn ends_come_by_cycle_and_worker_however_far_away_they_are() {
        let mut random = rolls(7);
        for (workers, span) in [(1, 3), (5, 2), (70, 200), (64, 1000), (65, 1025), (200, 5000), (40_000, 70)] {
            let mut ends = Ends::new(workers, if span > 1000 { 700 } else { 0 });
            let mut running = vec![None; workers];
            let mut now = 0;
            for _ in 0..if workers > 1000 { 20 } else { 2000 } {
                for (worker, running) in running.iter_mut().enumerate() {
                    if running.is_none() && random(2) == 0 {
                        let end = now + random(span);
                        *running = Some(end);
                        ends.push(now, end, worker as u32);
                    }
                }
                let next = running.iter().flatten().min().copied();
                assert_eq!(ends.next(), next.unwrap_or(u64::MAX));
                let Some(next) = next else { continue };
                now = next;
                let due: Vec<_> = (0..workers).filter(|&worker| running[worker] == Some(now)).collect();
                let mut found = ends.turn();
                let taken: Vec<_> =
                    std::iter::from_fn(|| ends.take(&mut found)).map(|worker| worker as usize).collect();
                assert_eq!(taken, due);
                due.into_iter().for_each(|worker| running[worker] = None);
            }
        }
    }
}

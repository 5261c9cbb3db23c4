//! What is in use, held back while it grows: of several values in a row at one instant, each as large as the one before, the last one
//! tells as much as all of them.

use super::facts::Occupancy;
use super::words::OCCUPIED;

/// The value that is held back, and the one written before it.
#[derive(Default)]
pub(super) struct Held {
    ring: u32,
    occupancy: Levels,
    is_held: bool,
    /// Whether it is nowhere less than the one written before it, which was of the same ring.
    is_growth: bool,
    written_ring: u32,
    written: Levels,
}

/// Window, heap, dependency entries, tensor-map entries.
type Levels = [u64; 4];

impl Held {
    /// Takes in a value of the present instant; returns the event that is to be written before it.
    #[inline(always)]
    pub(super) fn replace(&mut self, ring: u32, occupancy: &Occupancy) -> Option<[u64; 3]> {
        let new = [occupancy.window, occupancy.heap, occupancy.deps, occupancy.tensors];
        if self.is_held && self.is_growth && self.ring == ring && grows(&self.occupancy, &new) {
            self.occupancy = new;
            return None;
        }
        let before = self.release();
        self.is_growth = self.written_ring == ring && grows(&self.written, &new);
        (self.ring, self.occupancy, self.is_held) = (ring, new, true);
        before
    }

    /// The event that tells what is held back, if anything is.
    #[inline]
    pub(super) fn release(&mut self) -> Option<[u64; 3]> {
        if !self.is_held {
            return None;
        }
        self.is_held = false;
        (self.written_ring, self.written) = (self.ring, self.occupancy);
        let [window, heap, deps, tensors] = self.occupancy;
        // Entries in use are in memory, which holds fewer than 2^32 of them.
        Some([OCCUPIED | u64::from(self.ring) << 4 | window << 32, heap, deps | tensors << 32])
    }
}

/// Whether nothing is less than before.
#[inline(always)]
fn grows(before: &Levels, after: &Levels) -> bool {
    before.iter().zip(after).all(|(before, after)| before <= after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occupancy(window: u64, heap: u64) -> Occupancy {
        Occupancy { window, heap, deps: 0, tensors: 0 }
    }

    #[test]
    fn only_the_last_of_growing_values_is_written_and_every_one_that_shrinks() {
        let mut held = Held::default();
        let mut written = Vec::new();
        for (window, heap) in [(1, 0), (2, 8), (3, 8), (2, 8), (1, 0), (2, 4), (3, 3)] {
            written.extend(held.replace(0, &occupancy(window, heap)));
        }
        written.extend(held.release());
        let values: Vec<_> = written.iter().map(|[head, heap, _]| (head >> 32, *heap)).collect();
        assert_eq!(values, [(3, 8), (2, 8), (1, 0), (2, 4), (3, 3)]);
        assert!(held.release().is_none());
    }

    #[test]
    fn rings_do_not_hold_each_other_back() {
        let mut held = Held::default();
        assert!(held.replace(0, &occupancy(1, 0)).is_none());
        assert!(held.replace(1, &occupancy(5, 0)).is_some_and(|[head, ..]| head >> 32 == 1));
        assert!(held.release().is_some_and(|[head, ..]| head == OCCUPIED | 1 << 4 | 5 << 32));
    }
}

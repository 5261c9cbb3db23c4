//! What is in use, held back until the instant is over: what comes in between lasts no time.

use super::facts::Occupancy;
use super::words::OCCUPIED;

/// The value that is held back, and the one written before it, with their rings.
#[derive(Default)]
pub(super) struct Held {
    ring: u32,
    occupancy: Occupancy,
    is_held: bool,
    written: (u32, Occupancy),
}

impl Held {
    /// Takes in a value of the present instant; returns the event that is to be written before it.
    #[inline(always)]
    pub(super) fn replace(&mut self, ring: u32, occupancy: Occupancy) -> Option<[u64; 3]> {
        let before = if self.ring == ring { None } else { self.release() };
        (self.ring, self.occupancy, self.is_held) = (ring, occupancy, true);
        before
    }

    /// The event that tells what is held back, if it says anything new.
    #[inline]
    pub(super) fn release(&mut self) -> Option<[u64; 3]> {
        let held = (self.ring, self.occupancy);
        let is_news = std::mem::take(&mut self.is_held) && held != self.written;
        is_news.then(|| {
            self.written = held;
            let (ring, Occupancy { window, heap, deps, tensors }) = held;
            // Entries in use are in memory, which holds fewer than 2^32 of them.
            [OCCUPIED | u64::from(ring) << 4 | window << 32, heap, deps | tensors << 32]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occupancy(window: u64, heap: u64) -> Occupancy {
        Occupancy { window, heap, deps: 0, tensors: 0 }
    }

    #[test]
    fn only_the_last_value_of_an_instant_is_written_and_only_if_it_is_another() {
        let (mut held, mut written) = (Held::default(), Vec::new());
        for instant in [&[(1, 0), (2, 8), (3, 8)][..], &[(2, 8), (1, 0), (3, 8)], &[(2, 0)], &[]] {
            for &(window, heap) in instant {
                assert!(held.replace(0, occupancy(window, heap)).is_none());
            }
            written.push(held.release().map(|[head, heap, _]| (head >> 32, heap)));
        }
        assert_eq!(written, [Some((3, 8)), None, Some((2, 0)), None]);
    }

    #[test]
    fn rings_do_not_hold_each_other_back() {
        let mut held = Held::default();
        assert!(held.replace(0, occupancy(1, 0)).is_none());
        assert!(held.replace(1, occupancy(5, 0)).is_some_and(|[head, ..]| head >> 32 == 1));
        assert!(held.release().is_some_and(|[head, ..]| head == OCCUPIED | 1 << 4 | 5 << 32));
    }
}

//! What is in use, told when the instant is over: what comes in between lasts no time.

use super::facts::Occupancy;
use super::words::OCCUPIED;

/// The ring of which something was taken or returned in the present instant, and what was written last.
#[derive(Default)]
pub(super) struct Held {
    ring: u32,
    is_held: bool,
    written: (u32, Occupancy),
}

impl Held {
    /// Whether another ring is to be told of before this one.
    #[inline(always)]
    pub(super) fn holds_other(&self, ring: u32) -> bool {
        self.ring != ring && self.is_held
    }

    /// Something of this ring changed.
    #[inline(always)]
    pub(super) fn hold(&mut self, ring: u32) {
        (self.ring, self.is_held) = (ring, true);
    }

    /// The event that tells what is in use in the ring that changed, if that says anything new.
    #[inline(always)]
    pub(super) fn release(&mut self, look: impl FnOnce(u32) -> Occupancy) -> Option<[u64; 3]> {
        if !std::mem::take(&mut self.is_held) {
            return None;
        }
        let held = (self.ring, look(self.ring));
        (held != self.written).then(|| {
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
    fn the_value_at_the_end_of_an_instant_is_written_and_only_if_it_is_another() {
        let (mut held, mut written) = (Held::default(), Vec::new());
        for (n_changes, (window, heap)) in [(3, (3, 8)), (2, (3, 8)), (1, (2, 0)), (0, (9, 9))] {
            (0..n_changes).for_each(|_| held.hold(0));
            written.push(held.release(|_| occupancy(window, heap)).map(|[head, heap, _]| (head >> 32, heap)));
        }
        assert_eq!(written, [Some((3, 8)), None, Some((2, 0)), None]);
    }

    #[test]
    fn rings_do_not_hold_each_other_back() {
        let mut held = Held::default();
        assert!(!held.holds_other(1));
        held.hold(0);
        assert!(held.holds_other(1) && !held.holds_other(0));
        assert!(held.release(|ring| occupancy(1 + u64::from(ring), 0)).is_some_and(|[head, ..]| head >> 32 == 1));
        held.hold(1);
        assert!(held.release(|_| occupancy(5, 0)).is_some_and(|[head, ..]| head == OCCUPIED | 1 << 4 | 5 << 32));
    }
}

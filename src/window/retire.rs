//! How consumed tasks leave their ring: in order, by whoever holds the advance right.

use super::Window;
use super::slot::SlotRef;
use super::state::State;
use crate::sync::{Sharing, Word};
use std::sync::atomic::Ordering::Relaxed;

impl<S: Sharing> Window<S> {
    /// Whether `slot`, consumed by the caller, holds the oldest task of its ring, so that the ring can be advanced.
    #[inline]
    pub fn is_oldest(&self, slot: SlotRef) -> bool {
        // The caller wrote CONSUMED; whoever advances the ring up to this slot writes the counter, passes its own fence and
        // looks at the state. One of the two sees what the other wrote.
        S::fence();
        let ring = self.ring_of(slot);
        self.at(ring, self.ring(ring).retired()) == slot
    }

    /// Retires consumed tasks in the order in which they entered the ring; returns how many. One caller at a time does it; who
    /// comes second leaves it to the first, who looks again after giving the right back.
    #[inline]
    pub fn advance(&self, ring: u32, mut retired: impl FnMut(SlotRef)) -> u64 {
        if !S::SHARED {
            return self.retire(ring, &mut retired);
        }
        let mut count = 0;
        while self.ring(ring).try_take_right() {
            count += self.retire(ring, &mut retired);
            self.ring(ring).give_right_back();
            // Pairs with the fence in `is_oldest`, for a task consumed while the right was taken.
            S::fence();
            if self.consumed_oldest(ring).is_none() {
                break;
            }
        }
        count
    }

    /// Only for the holder of the advance right.
    #[inline]
    fn retire(&self, ring: u32, retired: &mut impl FnMut(SlotRef)) -> u64 {
        let state = self.ring(ring);
        let mut count = 0;
        while let Some(slot_ref) = self.consumed_oldest(ring) {
            let slot = self.slot(slot_ref);
            // Ordering: Relaxed; written at the reservation, seen through the state.
            state.return_deps(slot.deps_reserved.load(Relaxed));
            let heap_end = slot.heap_end.load(Relaxed);
            if heap_end > 0 {
                state.return_heap(heap_end);
            }
            state.return_tensors(slot.tensors.load(Relaxed));
            retired(slot_ref);
            // The slot may have a new tenant from here on.
            state.return_slot();
            count += 1;
        }
        count
    }

    /// The oldest task of a ring, if it is consumed.
    #[inline]
    fn consumed_oldest(&self, ring: u32) -> Option<SlotRef> {
        let (oldest, submitted) = (self.ring(ring).retired(), self.ring(ring).submitted());
        let slot = self.at(ring, oldest);
        // More in flight than there are slots is nothing but a corrupt file, which must not be followed for ever.
        let is_in_flight = submitted.wrapping_sub(oldest).wrapping_sub(1) < u64::from(self.size);
        (is_in_flight && self.slot(slot).state() == State::Consumed).then_some(slot)
    }
}

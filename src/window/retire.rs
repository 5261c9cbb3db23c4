//! How consumed tasks leave their ring: in order, by whoever holds the advance right.

use super::slot::{Slot, SlotRef, keeps};
use super::{Window, prefetch};
use crate::sync::{Sharing, Word};
use std::sync::atomic::Ordering::Relaxed;

/// While a task retires, the slot of the task so many places behind it is fetched.
const AHEAD: u64 = 4;

impl<S: Sharing> Window<S> {
    /// Whether `slot`, consumed by the caller, holds the oldest task of its ring, so that the ring can be advanced.
    #[inline]
    pub fn is_oldest(&self, slot: SlotRef) -> bool {
        // The caller wrote CONSUMED; whoever advances the ring up to this slot writes the counter, passes its own fence and
        // looks at the state. One of the two sees what the other wrote.
        S::fence();
        self.is_first(self.ring_of(slot), slot)
    }

    /// The same where one thread does everything and the ring is known.
    #[inline]
    pub fn is_first(&self, ring: u32, slot: SlotRef) -> bool {
        self.at(ring, self.ring(ring).retired()) == slot
    }

    /// Retires consumed tasks in the order in which they entered the ring; returns how many. One caller at a time does it; who
    /// comes second leaves it to the first, who looks again after giving the right back.
    #[inline(always)]
    pub fn advance(&self, ring: u32, mut retired: impl FnMut(SlotRef, &Slot<S>)) -> u64 {
        if !S::SHARED {
            return self.retire(ring, &mut retired);
        }
        let mut count = 0;
        while self.ring(ring).try_take_right() {
            count += self.retire(ring, &mut retired);
            self.ring(ring).give_right_back();
            // Pairs with the fence in `is_oldest`, for a task consumed while the right was taken.
            S::fence();
            if !self.can_retire(ring) {
                break;
            }
        }
        count
    }

    /// Only for the holder of the advance right.
    #[inline(always)]
    fn retire(&self, ring: u32, retired: &mut impl FnMut(SlotRef, &Slot<S>)) -> u64 {
        let state = self.ring(ring);
        let (oldest, in_flight) = (state.retired(), self.in_flight(ring));
        let mut count = 0;
        while count < in_flight {
            let slot_ref = self.at(ring, oldest + count);
            let slot = self.slot(slot_ref);
            if !slot.state.is_consumed() {
                break;
            }
            // The ring is long and its oldest tasks have left the near caches.
            prefetch(self.slot(self.at(ring, oldest + count + AHEAD)));
            // Ordering: Relaxed; written at the reservation, seen through the state.
            let kept = slot.kept.load(Relaxed);
            state.return_deps(kept >> keeps::BITS);
            if kept & (keeps::HEAP | keeps::TENSORS) != 0 {
                if kept & keeps::HEAP != 0 {
                    state.return_heap(slot.heap_end.load(Relaxed));
                }
                if kept & keeps::TENSORS != 0 {
                    state.return_tensors(slot.tensors.load(Relaxed));
                }
            }
            retired(slot_ref, slot);
            // The slot may have a new tenant from here on.
            count += 1;
            state.return_slots_to(oldest + count);
        }
        count
    }

    /// Whether the oldest task of a ring is consumed.
    fn can_retire(&self, ring: u32) -> bool {
        let oldest = self.at(ring, self.ring(ring).retired());
        self.in_flight(ring) > 0 && self.slot(oldest).state.is_consumed()
    }

    /// The slots of all tasks in flight, ring by ring, oldest first.
    pub fn tenants(&self) -> impl Iterator<Item = SlotRef> {
        (0..self.n_rings()).flat_map(move |ring| {
            let oldest = self.ring(ring).retired();
            (oldest..oldest + self.in_flight(ring)).map(move |position| self.at(ring, position))
        })
    }

    /// Tasks that entered a ring and did not leave it. More than there are slots is nothing but a corrupt file, which must not be
    /// followed for ever.
    #[inline]
    fn in_flight(&self, ring: u32) -> u64 {
        let in_flight = self.ring(ring).submitted().wrapping_sub(self.ring(ring).retired());
        if in_flight > u64::from(self.size) { 0 } else { in_flight }
    }
}

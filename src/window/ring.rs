//! Counters of one ring: slots, heap bytes and dependency entries in use.
//!
//! Every counter only grows; a place in a ring is its counter modulo the size. What the orchestrator writes and what the
//! holder of the advance right writes stand on different cache lines, so each word has one writer at a time.

use crate::sync::{Sharing, Word};
use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
#[cfg(not(loom))]
use zerocopy::FromZeros;

/// One ring. All zeros is an empty one.
#[cfg_attr(not(loom), derive(FromZeros))]
#[cfg_attr(loom, derive(Default))]
#[repr(C)]
pub struct Ring<S: Sharing> {
    orchestrator: Taken<S>,
    scheduler: Returned<S>,
}

/// Written by the orchestrator, read by the scheduler.
#[cfg_attr(not(loom), derive(FromZeros))]
#[cfg_attr(loom, derive(Default))]
#[repr(C, align(128))]
struct Taken<S: Sharing> {
    slots: S::U64,
    heap_top: S::U64,
    deps: S::U64,
    /// Place of the next dependency entry.
    deps_place: S::U32,
    /// Allocations made.
    allocations: S::U64,
    /// Tensor-map entries taken.
    tensors: S::U64,
}

/// Written by whoever advances the ring, read by the orchestrator.
#[cfg_attr(not(loom), derive(FromZeros))]
#[cfg_attr(loom, derive(Default))]
#[repr(C, align(128))]
struct Returned<S: Sharing> {
    slots: S::U64,
    heap_tail: S::U64,
    deps: S::U64,
    /// Allocations returned.
    allocations: S::U64,
    /// Tensor-map entries returned.
    tensors: S::U64,
    /// 1 while somebody advances the ring.
    right: S::U32,
}

/// A contiguous piece of the heap ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeapPiece {
    /// First byte, as a counter.
    pub base: u64,
    /// Size.
    pub bytes: u64,
}

impl HeapPiece {
    /// The byte behind its last one, as a counter; never 0.
    #[must_use]
    pub fn end(self) -> u64 {
        self.base + self.bytes
    }
}

impl<S: Sharing> Ring<S> {
    /// Tasks that entered the ring (`current_task_index`).
    #[inline]
    pub fn submitted(&self) -> u64 {
        self.orchestrator.slots.load(Acquire) // Ordering: pairs with the Release in `take_slot`.
    }

    /// Tasks that left it (`last_task_alive`).
    #[inline]
    pub fn retired(&self) -> u64 {
        self.scheduler.slots.load(Acquire) // Ordering: pairs with the Release in `return_slots_to`.
    }

    /// End of the newest heap piece.
    pub fn heap_top(&self) -> u64 {
        self.orchestrator.heap_top.load(Relaxed) // Ordering: the orchestrator's own word.
    }

    /// End of the heap piece returned last.
    pub fn heap_tail(&self) -> u64 {
        self.scheduler.heap_tail.load(Acquire) // Ordering: pairs with the Release in `return_heap`.
    }

    /// Bytes between tail and top, gaps included; 0 when nothing is allocated.
    pub fn heap_used(&self) -> u64 {
        if self.no_allocations() { 0 } else { self.heap_top() - self.heap_tail() }
    }

    /// Dependency entries in use.
    #[inline]
    pub fn deps_used(&self) -> u64 {
        // Ordering: Acquire pairs with the Release in `return_deps`; the other word is the orchestrator's own.
        self.orchestrator.deps.load(Relaxed) - self.scheduler.deps.load(Acquire)
    }

    /// Tensor-map entries in use by tasks of this ring.
    #[inline]
    pub fn tensors_used(&self) -> u64 {
        // Ordering: Acquire pairs with the Release in `return_tensors`; the other word is the orchestrator's own.
        self.orchestrator.tensors.load(Relaxed) - self.scheduler.tensors.load(Acquire)
    }

    fn no_allocations(&self) -> bool {
        // Ordering: Acquire pairs with the Release in `return_heap`; the other word is the orchestrator's own.
        self.orchestrator.allocations.load(Relaxed) == self.scheduler.allocations.load(Acquire)
    }

    /// Where a piece would lie, if it fits. A piece never crosses the end of the ring.
    #[inline]
    pub fn heap_piece(&self, bytes: u64, heap: u64) -> Option<HeapPiece> {
        let top = self.heap_top();
        // A division takes as long as everything else here.
        let offset = if heap.is_power_of_two() { top & (heap - 1) } else { top % heap };
        let base = if offset + bytes > heap { top - offset + heap } else { top };
        let fits = self.no_allocations() || base + bytes - self.heap_tail() <= heap;
        fits.then_some(HeapPiece { base, bytes })
    }

    #[inline]
    pub(super) fn take_heap(&self, piece: HeapPiece) {
        if self.no_allocations() {
            // Nothing is allocated, so nobody else writes the tail now.
            self.scheduler.heap_tail.store(piece.base, Release); // Ordering: pairs with the Acquire of `heap_tail`.
        }
        self.orchestrator.heap_top.store(piece.end(), Relaxed);
        add_own(&self.orchestrator.allocations, 1, Relaxed);
    }

    /// Place of the next dependency entry.
    #[inline]
    pub(super) fn next_entry(&self) -> u32 {
        self.orchestrator.deps_place.load(Relaxed) // Ordering: the orchestrator's own word.
    }

    /// Takes dependency entries; returns the place of the first.
    #[inline]
    pub(super) fn take_deps(&self, count: u32, size: u32) -> u32 {
        if count == 0 {
            return 0;
        }
        let first = self.next_entry();
        let next = u64::from(first) + u64::from(count);
        let next = if next >= u64::from(size) { next - u64::from(size) } else { next };
        self.took_deps(count, next as u32);
        first
    }

    /// Dependency entries are taken, and the next one is at this place.
    #[inline]
    pub(super) fn took_deps(&self, count: u32, next: u32) {
        self.orchestrator.deps_place.store(next, Relaxed); // Ordering: the orchestrator's own words.
        add_own(&self.orchestrator.deps, u64::from(count), Relaxed);
    }

    #[inline]
    pub(super) fn take_tensors(&self, count: u64) {
        add_own(&self.orchestrator.tensors, count, Relaxed); // Ordering: the orchestrator's own word.
    }

    #[inline]
    pub(super) fn take_slot(&self) {
        add_own(&self.orchestrator.slots, 1, Release); // Ordering: pairs with the Acquire of `submitted`.
    }

    #[inline]
    pub(super) fn return_heap(&self, end: u64) {
        self.scheduler.heap_tail.store(end, Release); // Ordering: pairs with the Acquire of `heap_tail`.
        add_own(&self.scheduler.allocations, 1, Release); // Ordering: pairs with the Acquire of `no_allocations`.
    }

    #[inline]
    pub(super) fn return_deps(&self, count: u32) {
        if count > 0 {
            add_own(&self.scheduler.deps, u64::from(count), Release); // Ordering: pairs with `deps_used`.
        }
    }

    #[inline]
    pub(super) fn return_slots_to(&self, retired: u64) {
        self.scheduler.slots.store(retired, Release); // Ordering: pairs with the Acquire of `retired`.
    }

    #[inline]
    pub(super) fn return_tensors(&self, count: u32) {
        add_own(&self.scheduler.tensors, u64::from(count), Release); // Ordering: pairs with `tensors_used`.
    }

    /// Takes the right to advance the ring, if nobody has it.
    #[inline]
    pub(super) fn try_take_right(&self) -> bool {
        // Ordering: Acquire pairs with the Release of `give_right_back`: the next holder sees what the last one returned.
        self.scheduler.right.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    /// Gives the right back.
    #[inline]
    pub(super) fn give_right_back(&self) {
        self.scheduler.right.store(0, Release); // Ordering: pairs with the Acquire of `try_take_right`.
    }
}

/// Adds to a word that only the caller writes, which needs no atomic addition.
#[inline]
fn add_own<W: Word<u64>>(word: &W, count: u64, order: Ordering) {
    word.store(word.load(Relaxed) + count, order); // Ordering: Relaxed, its own word.
}

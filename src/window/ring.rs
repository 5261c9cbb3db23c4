//! Counters of one ring: slots, heap bytes and dependency entries in use.
//!
//! Every counter only grows; a place in a ring is its counter modulo the size. What the orchestrator writes and what the
//! scheduler writes stand on different cache lines.

use crate::sync::{Sharing, Word};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use zerocopy::FromZeros;

/// One ring. All zeros is an empty one.
#[derive(FromZeros)]
#[repr(C)]
pub struct Ring<S: Sharing> {
    orchestrator: Taken<S>,
    scheduler: Returned<S>,
}

/// Written by the orchestrator, read by the scheduler.
#[derive(FromZeros)]
#[repr(C, align(128))]
struct Taken<S: Sharing> {
    slots: S::U64,
    heap_top: S::U64,
    deps: S::U64,
    /// Place of the next dependency entry.
    deps_place: S::U32,
    /// Allocations made.
    allocations: S::U64,
}

/// Written by whoever advances the ring, read by the orchestrator.
#[derive(FromZeros)]
#[repr(C, align(128))]
struct Returned<S: Sharing> {
    slots: S::U64,
    heap_tail: S::U64,
    deps: S::U64,
    /// Allocations returned.
    allocations: S::U64,
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
        self.scheduler.slots.load(Acquire) // Ordering: pairs with the Release in `return_slot`.
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

    fn no_allocations(&self) -> bool {
        // Ordering: Acquire pairs with the Release in `return_heap`; the other word is the orchestrator's own.
        self.orchestrator.allocations.load(Relaxed) == self.scheduler.allocations.load(Acquire)
    }

    /// Where a piece would lie, if it fits. A piece never crosses the end of the ring.
    #[inline]
    pub fn heap_piece(&self, bytes: u64, heap: u64) -> Option<HeapPiece> {
        let top = self.heap_top();
        let offset = top % heap;
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
        self.orchestrator.allocations.fetch_add(1, Relaxed);
    }

    /// Takes dependency entries; returns the place of the first.
    #[inline]
    pub(super) fn take_deps(&self, count: u32, size: u32) -> u32 {
        if count == 0 {
            return 0;
        }
        let first = self.orchestrator.deps_place.load(Relaxed);
        let next = u64::from(first) + u64::from(count);
        let next = if next >= u64::from(size) { next - u64::from(size) } else { next };
        self.orchestrator.deps_place.store(next as u32, Relaxed);
        self.orchestrator.deps.fetch_add(u64::from(count), Relaxed);
        first
    }

    #[inline]
    pub(super) fn take_slot(&self) {
        self.orchestrator.slots.fetch_add(1, Release); // Ordering: pairs with the Acquire of `submitted`.
    }

    #[inline]
    pub(super) fn return_heap(&self, end: u64) {
        self.scheduler.heap_tail.store(end, Release); // Ordering: pairs with the Acquire of `heap_tail`.
        self.scheduler.allocations.fetch_add(1, Release); // Ordering: pairs with the Acquire of `no_allocations`.
    }

    #[inline]
    pub(super) fn return_deps(&self, count: u32) {
        if count > 0 {
            self.scheduler.deps.fetch_add(u64::from(count), Release); // Ordering: pairs with `deps_used`.
        }
    }

    #[inline]
    pub(super) fn return_slot(&self) {
        self.scheduler.slots.fetch_add(1, Release); // Ordering: pairs with the Acquire of `retired`.
    }
}

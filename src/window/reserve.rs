//! What a task takes of its ring before it can be described: a slot, a piece of the heap, dependency and tensor-map entries.

use super::Window;
use super::ring::HeapPiece;
use super::slot::{SlotRef, keeps};
use crate::id::TaskId;
use crate::sync::{Sharing, Word};
use std::sync::atomic::Ordering::Relaxed;

/// What a task needs before it can be submitted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// Bytes of the heap ring.
    pub heap: u64,
    /// Dependency entries.
    pub deps: u64,
    /// Tensor-map entries.
    pub tensors: u64,
}

/// What is full, in the order in which it is checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Resource {
    /// Task slots.
    Window,
    /// Heap ring.
    Heap,
    /// Dependency entries.
    Deps,
    /// Tensor-map entries.
    Tensors,
}

impl Resource {
    /// The name used in files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Resource::Window => "window",
            Resource::Heap => "heap",
            Resource::Deps => "deps",
            Resource::Tensors => "tensors",
        }
    }
}

/// Why nothing could be reserved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Not now: this is full.
    Full(Resource),
    /// Never: more than the whole resource.
    TooLarge(Resource),
}

impl<S: Sharing> Window<S> {
    /// Takes what a task needs, in the order window, heap, dependency entries, tensor-map entries. `scopes` hold it.
    ///
    /// # Errors
    /// The first resource that lacks; nothing is taken then.
    pub fn reserve(&self, ring: u32, task: TaskId, needs: &Needs, scopes: u32) -> Result<SlotRef, Refusal> {
        if self.is_full(ring) {
            return Err(Refusal::Full(Resource::Window));
        }
        self.take(ring, task, needs, scopes)
    }

    /// The same where the ring is known to have a slot.
    ///
    /// # Errors
    /// As [`Window::reserve`].
    #[inline(always)]
    pub fn take(&self, ring: u32, task: TaskId, needs: &Needs, scopes: u32) -> Result<SlotRef, Refusal> {
        let piece = self.check(ring, needs)?;
        let state = self.ring(ring);
        let slot_ref = self.at(ring, state.submitted());
        let slot = self.slot(slot_ref);
        slot.move_in(task, 1, 1 + scopes);
        // Ordering: Relaxed; the slot is the orchestrator's own until it is linked or published.
        slot.deps_first.store(state.take_deps(needs.deps as u32, self.deps), Relaxed);
        slot.deps_linked.store(0, Relaxed);
        let mut kept = (needs.deps as u32) << keeps::BITS;
        if let Some(piece) = piece {
            kept |= keeps::HEAP;
            slot.heap_end.store(piece.end(), Relaxed);
            state.take_heap(piece);
        }
        if needs.tensors > 0 {
            kept |= keeps::TENSORS;
            slot.tensors.store(needs.tensors as u32, Relaxed);
            state.take_tensors(needs.tensors);
        }
        slot.kept.store(kept, Relaxed);
        state.take_slot();
        Ok(slot_ref)
    }

    /// Whether a ring has no slot left.
    #[inline]
    pub fn is_full(&self, ring: u32) -> bool {
        let state = self.ring(ring);
        state.submitted() - state.retired() >= self.usable
    }

    /// Whether there is what a task needs beside a slot; where its heap piece would lie.
    ///
    /// # Errors
    /// As [`Window::reserve`].
    #[inline(always)]
    fn check(&self, ring: u32, needs: &Needs) -> Result<Option<HeapPiece>, Refusal> {
        let state = self.ring(ring);
        let piece = match needs.heap {
            0 => None,
            bytes if bytes > self.heap => return Err(Refusal::TooLarge(Resource::Heap)),
            bytes => Some(state.heap_piece(bytes, self.heap).ok_or(Refusal::Full(Resource::Heap))?),
        };
        fits(needs.deps, u64::from(self.deps), Resource::Deps, || state.deps_used())?;
        fits(needs.tensors, self.tensor_limit, Resource::Tensors, || self.tensors())?;
        Ok(piece)
    }
}

/// Whether a limit has room for `wanted` more than what is used.
#[inline]
fn fits(wanted: u64, limit: u64, resource: Resource, used: impl FnOnce() -> u64) -> Result<(), Refusal> {
    match wanted {
        0 => Ok(()),
        _ if wanted > limit => Err(Refusal::TooLarge(resource)),
        _ if wanted > limit - used() => Err(Refusal::Full(resource)),
        _ => Ok(()),
    }
}

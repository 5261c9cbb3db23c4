//! How a task under construction becomes a consumer: every producer that is not consumed gets an edge.

use super::slot::{CLOSED, NONE, Slot, SlotRef, keeps};
use super::state::State;
use super::{Entry, Outcomes, Ring, Window};
use crate::id::TaskId;
use crate::sync::{Sharing, Word};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// What linking found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Linked {
    /// The producer is still to complete: the consumer waits for it.
    Waiting,
    /// The producer is complete and stays alive for the consumer.
    Completed,
    /// The producer is consumed: there is no edge.
    Consumed,
}

/// A task under construction and the dependency entries it has not used.
#[must_use]
pub struct Links<'w, S: Sharing> {
    pub(super) window: &'w Window<S>,
    pub(super) consumer: SlotRef,
    pub(super) to: &'w Slot<S>,
    /// Place of the next entry in the pool of its ring.
    pub(super) place: u32,
    /// The first entry of that pool.
    pub(super) first: u32,
    /// Entries used.
    pub(super) linked: u32,
    /// Producers that it must wait for.
    pub(super) waiting: u32,
    /// Producers that its fanin counts already.
    pub(super) counted: u32,
}

impl<S: Sharing> Links<'_, S> {
    /// Makes the task a consumer of `producer`, which lives in the slot `from`.
    #[inline(always)]
    pub fn link(&mut self, producer: SlotRef, from: &Slot<S>) -> Linked {
        if !from.hold() {
            return Linked::Consumed;
        }
        let index = self.first + self.place;
        self.place = self.window.place_behind(self.place);
        self.linked += 1;
        if !from.hang(&self.window.entries[index as usize], index, self.consumer, producer) {
            return Linked::Completed;
        }
        self.waiting += 1;
        Linked::Waiting
    }

    /// The number of edges of the task.
    #[inline(always)]
    pub fn finish(self) -> u32 {
        // Ordering: the orchestrator's own until published.
        self.to.deps_linked.store(self.linked, Relaxed);
        if self.waiting != self.counted {
            // Ordering: Relaxed; the hold is still there: this cannot make it ready.
            self.to.fanin.fetch_add(self.waiting.wrapping_sub(self.counted), Relaxed);
        }
        self.linked
    }
}

/// The task that enters a ring next, and the producers it is linked to before it has its slot. Only where one thread does
/// everything: it hangs in their lists before its fanin counts them.
#[must_use]
pub struct Newcomer<'w, S: Sharing> {
    window: &'w Window<S>,
    ring: &'w Ring<S>,
    consumer: SlotRef,
    /// The first entry of the pool of its ring.
    first: u32,
    /// Places of its first entry and of the next one.
    first_place: u32,
    place: u32,
    linked: u32,
    waiting: u32,
}

impl<S: Sharing> Window<S> {
    /// The task that enters a ring next, which has a slot for it and as many dependency entries as it will use.
    #[inline(always)]
    pub fn newcomer(&self, ring: u32) -> Newcomer<'_, S> {
        let state = self.ring(ring);
        let (consumer, place) = (self.at(ring, state.submitted()), state.next_entry());
        let first = ring * self.deps;
        Newcomer { window: self, ring: state, consumer, first, first_place: place, place, linked: 0, waiting: 0 }
    }

    /// Whether a ring has as many dependency entries left.
    #[inline(always)]
    pub fn has_entries(&self, ring: u32, count: usize) -> bool {
        self.ring(ring).deps_used() + count as u64 <= u64::from(self.deps)
    }

    /// The place behind one in a pool of dependency entries.
    #[inline(always)]
    pub(super) fn place_behind(&self, place: u32) -> u32 {
        self.wrapped(place + 1)
    }
}

impl<'w, S: Sharing> Newcomer<'w, S> {
    /// Makes the task a consumer of `producer`, which lives in the slot `from` and is not consumed.
    #[inline(always)]
    pub fn link(&mut self, producer: SlotRef, from: &Slot<S>) {
        // Ordering: Relaxed; there is one thread.
        from.refs.store(from.refs.load(Relaxed) + 1, Relaxed);
        let index = self.first + self.place;
        self.place = self.window.place_behind(self.place);
        self.linked += 1;
        let is_waiting = from.hang(&self.window.entries[index as usize], index, self.consumer, producer);
        self.waiting += u32::from(is_waiting);
    }

    /// Takes the slot, held by `scopes`, for a task that needs nothing else; returns it and the number of edges.
    #[inline(always)]
    pub fn take(self, task: TaskId, scopes: u32) -> (SlotRef, &'w Slot<S>, u32) {
        let slot = self.window.slot(self.consumer);
        slot.move_in(task, 1 + self.waiting, 1 + scopes);
        // Ordering: Relaxed; there is one thread.
        slot.deps_first.store(self.first_place, Relaxed);
        slot.deps_linked.store(self.linked, Relaxed);
        slot.kept.store(self.linked << keeps::BITS, Relaxed);
        self.ring.took_deps(self.linked, self.place);
        self.ring.take_slot();
        (self.consumer, slot, self.linked)
    }
}

impl<S: Sharing> Slot<S> {
    /// A task moves in, with this many things to wait for, its admission among them, and references on it.
    #[inline(always)]
    pub(super) fn move_in(&self, task: TaskId, fanin: u32, refs: u32) {
        self.state.reserve(task);
        // Ordering: Relaxed; the slot is the orchestrator's own until it is linked or published.
        self.fanin.store(fanin, Relaxed);
        self.fanout.store(NONE, Relaxed);
        self.refs.store(refs, Relaxed);
        self.mark.store(u64::MAX, Relaxed);
    }

    /// Hangs the entry of a consumer that holds the task into its list; false if the task is complete, so that nobody waits for it.
    #[inline(always)]
    fn hang(&self, entry: &Entry<S>, index: u32, consumer: SlotRef, producer: SlotRef) -> bool {
        // Ordering: Relaxed; the Release of the list head below publishes entry and fanin together.
        entry.consumer.store(consumer, Relaxed);
        entry.producer.store(producer, Relaxed);
        // Ordering: Acquire pairs with the closing swap in `complete`: who sees CLOSED sees the completion.
        let mut head = self.fanout.load(Acquire);
        loop {
            if head == CLOSED {
                return false;
            }
            entry.next.store(head, Relaxed);
            if !S::SHARED {
                self.fanout.store(index, Relaxed); // Ordering: there is one thread.
                return true;
            }
            // Ordering: Release pairs with the Acquire of the closing swap: the closer sees entry and fanin.
            match self.fanout.compare_exchange(head, index, Release, Acquire) {
                Ok(_) => return true,
                Err(found) => head = found,
            }
        }
    }

    /// Gives up one reference on a task, which lives at `home`; the last one makes it CONSUMED.
    #[inline(always)]
    pub(super) fn let_go(&self, home: SlotRef, outcomes: &mut impl Outcomes) {
        // Ordering: AcqRel, every decrement: exactly one caller sees 1, after everything the others did.
        if self.refs.fetch_sub(1, AcqRel) == 1 {
            self.state.become_state(State::Consumed);
            outcomes.consumed(home);
        }
    }

    /// Takes a reference on a task unless it is consumed.
    #[inline(always)]
    fn hold(&self) -> bool {
        let refs = &self.refs;
        // Ordering: Acquire pairs with `let_go`: who finds 0 sees how the task ended.
        let mut count = refs.load(Acquire);
        while count > 0 {
            // Ordering: AcqRel pairs with `let_go`: either this comes before the last release or finds 0.
            match refs.compare_exchange(count, count + 1, AcqRel, Acquire) {
                Ok(_) => return true,
                Err(found) => count = found,
            }
        }
        false
    }
}

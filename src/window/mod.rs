//! The window: rings of task slots with their heap and dependency entries.
//!
//! The orchestrator reserves, links and publishes; the scheduler completes, consumes and retires. The window knows no time,
//! no kernels, no workers and no files. It holds numbers and positions only, never pointers. `README.md` beside this file
//! tells the protocol.

mod links;
#[cfg(all(test, loom))]
mod loom_tests;
mod prefetch;
mod reserve;
mod retire;
mod ring;
mod slot;
mod span;
mod state;

pub use links::{Linked, Links, Newcomer};
pub use reserve::{Needs, Refusal, Resource};
pub use ring::{HeapPiece, Ring};
pub use slot::{Description, NONE, Slot, SlotRef, flag, symbol};
pub use span::{AnyBytes, Span};
pub use state::State;

use crate::config::{FanoutOrder, Limits};
use crate::id::TaskId;
use crate::sync::{Sharing, Word};
pub(crate) use prefetch::{prefetch, prefetch_to_write};
use slot::{CLOSED, keeps};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
#[cfg(not(loom))]
use zerocopy::FromZeros;

/// What a list of consumers that never ends is called; only a corrupt file has one.
const CIRCLE: &str = "a list of consumers is longer than there are entries";
/// As [`CIRCLE`], for the producers of a task.
const TOO_MANY: &str = "a task is linked to more producers than there are entries";

/// All rings of a machine.
pub struct Window<S: Sharing> {
    slots: Span<Slot<S>>,
    entries: Span<Entry<S>>,
    rings: Span<Ring<S>>,
    size: u32,
    /// The size is two to this power.
    shift: u32,
    usable: u64,
    deps: u32,
    heap: u64,
    tensor_limit: u64,
    fanout_order: FanoutOrder,
}

/// Slots, dependency entries and rings.
pub type Arrays<S> = (Span<Slot<S>>, Span<Entry<S>>, Span<Ring<S>>);

/// How many of everything a window has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lengths {
    /// Slots.
    pub slots: usize,
    /// Dependency entries.
    pub entries: usize,
    /// Rings.
    pub rings: usize,
}

impl Lengths {
    /// Those of validated sizes.
    #[must_use]
    pub fn of(limits: &Limits) -> Lengths {
        let rings = limits.rings as usize;
        let slots = limits.window as usize * rings;
        // A task cannot have more producers than there are slots, so more entries than that would never be used.
        let deps = limits.deps.min((slots as u64).saturating_mul(slots as u64));
        let deps = deps.min(u64::from(CLOSED - 1) / u64::from(limits.rings));
        Lengths { slots, entries: deps as usize * rings, rings }
    }
}

/// A dependency: belongs to the consumer, hangs in the producer's list.
#[repr(C)]
#[cfg_attr(not(loom), derive(FromZeros))]
#[cfg_attr(loom, derive(Default))]
pub struct Entry<S: Sharing> {
    consumer: S::U32,
    producer: S::U32,
    /// Next older consumer of the same producer, or [`NONE`].
    next: S::U32,
}

/// Told what a completion leads to.
pub trait Outcomes {
    /// This producer is about to be counted off for this consumer, which therefore cannot be READY yet.
    #[inline]
    fn releasing(&mut self, producer: SlotRef, consumer: SlotRef) {
        let _ = (producer, consumer);
    }
    /// The last thing this task waited for is done: it is READY now.
    fn ready(&mut self, slot: SlotRef);
    /// This task waits for nothing but its admission.
    fn unblocked(&mut self, slot: SlotRef);
    /// Nobody needs this task any more.
    fn consumed(&mut self, slot: SlotRef);
}

impl<S: Sharing> Window<S> {
    /// An empty window of validated sizes.
    ///
    /// # Panics
    /// When there is not so much memory.
    #[must_use]
    pub fn new(limits: &Limits, fanout_order: FanoutOrder) -> Window<S> {
        Window::try_new(limits, fanout_order).expect("memory for a window")
    }

    /// An empty window of validated sizes; `None` if there is not so much memory.
    #[must_use]
    pub fn try_new(limits: &Limits, fanout_order: FanoutOrder) -> Option<Window<S>> {
        let Lengths { slots, entries, rings } = Lengths::of(limits);
        let arrays = (Span::try_zeroed(slots)?, Span::try_zeroed(entries)?, Span::try_zeroed(rings)?);
        Some(Window::over(arrays, limits, fanout_order))
    }

    /// A window over arrays of the [`Lengths`] that belong to `limits`, as its last user left them.
    #[must_use]
    pub fn over(arrays: Arrays<S>, limits: &Limits, fanout_order: FanoutOrder) -> Window<S> {
        let (slots, entries, rings) = arrays;
        Window {
            size: limits.window as u32,
            shift: limits.window.trailing_zeros(),
            usable: limits.window - limits.spare,
            deps: (entries.len() / rings.len()) as u32,
            slots,
            entries,
            rings,
            heap: limits.heap,
            tensor_limit: limits.tensors,
            fanout_order,
        }
    }

    /// A slot.
    #[inline]
    pub fn slot(&self, slot: SlotRef) -> &Slot<S> {
        &self.slots[slot as usize]
    }

    /// A ring.
    #[inline]
    pub fn ring(&self, ring: u32) -> &Ring<S> {
        &self.rings[ring as usize]
    }

    /// Number of rings.
    #[inline]
    pub fn n_rings(&self) -> u32 {
        self.rings.len() as u32
    }

    /// Number of all slots.
    pub fn n_slots(&self) -> usize {
        self.slots.len()
    }

    /// Whether every task that entered it has retired.
    pub fn is_empty(&self) -> bool {
        self.rings.iter().all(|ring| ring.retired() == ring.submitted())
    }

    /// Tensor-map entries in use.
    #[inline]
    pub fn tensors(&self) -> u64 {
        match &*self.rings {
            [ring] => ring.tensors_used(),
            rings => rings.iter().map(Ring::tensors_used).sum(),
        }
    }

    /// The ring of a slot.
    #[inline]
    pub fn ring_of(&self, slot: SlotRef) -> u32 {
        slot >> self.shift
    }

    /// The slot of the `position`-th task of a ring.
    #[inline]
    pub fn at(&self, ring: u32, position: u64) -> SlotRef {
        (ring << self.shift) + (position as u32 & (self.size - 1))
    }

    /// Where `task`, submitted before, lives or lived, if that slot has no other tenant yet.
    #[inline]
    pub fn last_home(&self, task: TaskId) -> Option<SlotRef> {
        if self.rings.len() == 1 {
            return self.only_home(task);
        }
        self.search(task)
    }

    /// The same in a window of one ring, where a task's position is its id.
    #[inline]
    fn only_home(&self, task: TaskId) -> Option<SlotRef> {
        let slot = self.at(0, task.0);
        (self.slot(slot).task() == task).then_some(slot)
    }

    #[inline(never)]
    fn search(&self, task: TaskId) -> Option<SlotRef> {
        (0..self.n_rings()).find_map(|ring| self.search_ring(ring, task))
    }

    /// Ids grow with the position in a ring, so a ring can be searched by halves.
    #[inline]
    fn search_ring(&self, ring: u32, task: TaskId) -> Option<SlotRef> {
        let mut high = self.ring(ring).submitted();
        let mut low = high.saturating_sub(u64::from(self.size));
        if low == high {
            return None;
        }
        // Tasks that follow each other mostly live in the same ring: then this is the place, or else it lies behind it.
        let newest = self.slot(self.at(ring, high - 1)).task().0;
        low = low.max((high - 1).saturating_sub(newest.checked_sub(task.0)?));
        let mut middle = low;
        while low < high {
            let slot = self.at(ring, middle);
            match self.slot(slot).task().cmp(&task) {
                std::cmp::Ordering::Equal => return Some(slot),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
            middle = low + (high - low) / 2;
        }
        None
    }

    /// Whether `task`, met in `slot`, is still there and not consumed.
    #[inline]
    pub fn is_alive(&self, slot: SlotRef, task: TaskId) -> bool {
        let slot = self.slot(slot);
        slot.task() == task && !slot.is_consumed()
    }

    /// First byte, inside the heap of its ring, of the piece of `bytes` bytes that the task in a slot reserved.
    #[must_use]
    pub fn heap_base(&self, slot: SlotRef, bytes: u64) -> u64 {
        let slot = self.slot(slot);
        // Ordering: Relaxed; for the orchestrator, which reserved it.
        let end = if slot.kept.load(Relaxed) & keeps::HEAP == 0 { 0 } else { slot.heap_end.load(Relaxed) };
        end.saturating_sub(bytes).checked_rem(self.heap).unwrap_or(0)
    }

    /// Makes a reserved task a consumer of `producer`, using its next reserved entry.
    pub fn link(&self, consumer: SlotRef, producer: SlotRef) -> Linked {
        let mut links = self.links(consumer, 1);
        let linked = links.link(producer, self.slot(producer));
        links.finish();
        linked
    }

    /// Begins to make a reserved task a consumer of `count` producers, each of which must be linked or missed.
    #[inline(always)]
    pub fn links(&self, consumer: SlotRef, count: u32) -> Links<'_, S> {
        let to = self.slot(consumer);
        let linked = to.deps_linked.load(Relaxed); // Ordering: the orchestrator's own until published.
        // Ordering: Relaxed; the Release of the first list head that leads to the task publishes the count.
        to.fanin.fetch_add(count, Relaxed);
        let (first, place) = (self.ring_of(consumer) * self.deps, self.wrapped(to.deps_first.load(Relaxed) + linked));
        Links { window: self, consumer, to, place, first, linked, waiting: 0, counted: count }
    }

    /// A place in a pool of dependency entries that may lie behind its end.
    #[inline(always)]
    fn wrapped(&self, place: u32) -> u32 {
        if place >= self.deps { place - self.deps } else { place }
    }

    #[inline]
    fn entry_index(&self, slot: SlotRef, first: u32, nth: u32) -> u32 {
        self.ring_of(slot) * self.deps + self.wrapped(first + nth)
    }

    /// Adds one thing to wait for; only before the task is admitted.
    pub fn wait_for_one_more(&self, slot: SlotRef) {
        self.slot(slot).fanin.fetch_add(1, Relaxed); // Ordering: the hold is still there, nobody decides on it.
    }

    /// A task that will never run leaves the lists of the producers that it waits for, so that one thing is left that it waits for. Only
    /// where one thread does everything: nobody else may be in those lists.
    pub fn withdraw(&self, slot_ref: SlotRef) {
        let slot = self.slot(slot_ref);
        // Ordering: Relaxed throughout; there is one thread.
        let first = slot.deps_first.load(Relaxed);
        for nth in 0..slot.deps_linked.load(Relaxed) {
            let own = self.entry_index(slot_ref, first, nth);
            let mut link = &self.slot(self.entries[own as usize].producer.load(Relaxed)).fanout;
            loop {
                match link.load(Relaxed) {
                    index if index == own => break link.store(self.entries[own as usize].next.load(Relaxed), Relaxed),
                    index if index < CLOSED => link = &self.entries[index as usize].next,
                    _ => break,
                }
            }
        }
        slot.fanin.store(1, Relaxed);
    }

    /// One thing less to wait for; true if it was the last, which makes the task READY.
    #[inline]
    pub fn satisfy(&self, slot: SlotRef) -> bool {
        self.slot(slot).count_down() == 0
    }

    /// How many consumers are linked and wait for it.
    #[must_use]
    pub fn count_consumers(&self, slot: SlotRef) -> u64 {
        let mut count = 0;
        self.each_consumer(slot, |_| count += 1);
        count
    }

    /// Visits the consumers that wait for a task that is not complete, newest first.
    pub fn each_consumer(&self, slot: SlotRef, mut visit: impl FnMut(SlotRef)) {
        let mut index = self.slot(slot).fanout.load(Acquire); // Ordering: pairs with the Release in `hang`.
        while index < CLOSED {
            let entry = &self.entries[index as usize];
            // Ordering: Relaxed; what the head leads to was published with it.
            visit(entry.consumer.load(Relaxed));
            index = entry.next.load(Relaxed);
        }
    }

    /// How many producers a task is linked to.
    #[inline]
    pub fn n_producers(&self, task: &Slot<S>) -> u32 {
        task.deps_linked.load(Relaxed) // Ordering: the orchestrator's own.
    }

    /// Visits the producers a task is linked to.
    #[inline]
    pub fn each_producer(&self, slot: SlotRef, mut visit: impl FnMut(SlotRef)) {
        let task = self.slot(slot);
        // Ordering: Relaxed throughout; the orchestrator's own.
        let first = task.deps_first.load(Relaxed);
        for nth in 0..task.deps_linked.load(Relaxed) {
            visit(self.entries[self.entry_index(slot, first, nth) as usize].producer.load(Relaxed));
        }
    }

    /// The task will be completed soon: fetches the consumer that is then looked at first.
    #[inline]
    pub fn foresee_completion(&self, slot: &Slot<S>) {
        let newest = slot.fanout.load(Relaxed); // Ordering: a hint.
        if let Some(entry) = self.entries.get(newest as usize)
            && let Some(consumer) = self.slots.get(entry.consumer.load(Relaxed) as usize)
        {
            prefetch(consumer);
        }
    }

    /// The same for everybody that is looked at then: its consumers, a few at most, which are told to `consumer`, and what it consumes.
    #[inline]
    pub fn foresee_neighbours(&self, slot_ref: SlotRef, slot: &Slot<S>, mut consumer: impl FnMut(SlotRef)) {
        const MOST: usize = 4;
        // Ordering: hints throughout.
        let mut index = slot.fanout.load(Relaxed);
        for _ in 0..MOST {
            let Some(entry) = self.entries.get(index as usize) else { break };
            let found = entry.consumer.load(Relaxed);
            if let Some(slot) = self.slots.get(found as usize) {
                prefetch(slot);
                consumer(found);
            }
            index = entry.next.load(Relaxed);
        }
        let first = self.ring_of(slot_ref) * self.deps + slot.deps_first.load(Relaxed);
        let n_linked = (slot.deps_linked.load(Relaxed) as usize).min(MOST);
        for entry in self.entries.get(first as usize..).unwrap_or_default().iter().take(n_linked) {
            if let Some(producer) = self.slots.get(entry.producer.load(Relaxed) as usize) {
                prefetch(producer);
            }
        }
    }

    /// The task will be looked at soon: fetches it.
    #[inline]
    pub fn foresee(&self, slot: SlotRef) {
        prefetch(self.slot(slot));
    }

    /// The task is done: releases its consumers, its producers and itself.
    #[inline(always)]
    pub fn complete(&self, slot_ref: SlotRef, outcomes: &mut impl Outcomes) {
        self.complete_in(slot_ref, self.slot(slot_ref), outcomes);
    }

    /// The same for a caller who has the slot at hand.
    #[inline(always)]
    pub fn complete_in(&self, slot_ref: SlotRef, slot: &Slot<S>, outcomes: &mut impl Outcomes) {
        slot.state.become_state(State::Completed);
        // Ordering: AcqRel pairs with the exchange in `hang`: a consumer either hangs in the list taken here or finds CLOSED.
        let head = slot.fanout.swap(CLOSED, AcqRel);
        let mut index = match self.fanout_order {
            FanoutOrder::Lifo => head,
            FanoutOrder::Fifo => self.reversed(head),
        };
        let mut left = self.entries.len();
        while index < CLOSED {
            if S::SHARED {
                left = left.checked_sub(1).expect(CIRCLE);
            }
            let entry = &self.entries[index as usize];
            // Ordering: Relaxed; the swap has made visible what the head leads to.
            let consumer = entry.consumer.load(Relaxed);
            // Read before the consumer is released: it may run, retire and give the entry away at once.
            index = entry.next.load(Relaxed);
            outcomes.releasing(slot_ref, consumer);
            match self.slot(consumer).count_down() {
                0 => outcomes.ready(consumer),
                1 => outcomes.unblocked(consumer),
                _ => {}
            }
        }
        // Ordering: Relaxed; the entries of the task itself were written before it was published.
        let mut left = slot.deps_linked.load(Relaxed);
        if left > 0 {
            assert!(!S::SHARED || left <= self.deps, "{TOO_MANY}");
            let (first, mut place) = (self.ring_of(slot_ref) * self.deps, slot.deps_first.load(Relaxed));
            while left > 0 {
                self.release(self.entries[(first + place) as usize].producer.load(Relaxed), outcomes);
                place = self.place_behind(place);
                left -= 1;
            }
        }
        slot.let_go(slot_ref, outcomes);
    }

    /// Turns a closed list round.
    fn reversed(&self, mut index: u32) -> u32 {
        let (mut head, mut left) = (NONE, self.entries.len());
        while index < CLOSED {
            left = left.checked_sub(1).expect(CIRCLE);
            let entry = &self.entries[index as usize];
            let next = entry.next.load(Relaxed); // Ordering: the list is closed, the completer owns it.
            entry.next.store(head, Relaxed);
            head = index;
            index = next;
        }
        head
    }

    /// Gives up one reference on a task; the last one makes it CONSUMED.
    #[inline(always)]
    pub fn release(&self, slot_ref: SlotRef, outcomes: &mut impl Outcomes) {
        self.slot(slot_ref).let_go(slot_ref, outcomes);
    }

    /// Chains a task to the list of its scope.
    #[inline]
    pub fn set_next_in_scope(&self, slot: SlotRef, next: SlotRef) {
        self.slot(slot).next_in_scope.store(next, Relaxed); // Ordering: the orchestrator's own word.
    }

    /// The next task of the same scope.
    #[inline]
    pub fn next_in_scope(&self, slot: SlotRef) -> SlotRef {
        self.slot(slot).next_in_scope.load(Relaxed) // Ordering: the orchestrator's own word.
    }
}

#[cfg(loom)]
pub(crate) fn zeroed<T: Default>(count: usize) -> Box<[T]> {
    (0..count).map(|_| T::default()).collect()
}

/// Zeroed memory that the system hands out page by page as it is touched.
#[cfg(not(loom))]
pub(crate) fn zeroed<T: FromZeros>(count: usize) -> Box<[T]> {
    <[T]>::new_box_zeroed_with_elems(count).expect("memory for a window of validated size")
}

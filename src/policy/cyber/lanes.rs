//! Runnable routines, the first of the scan on top.

use super::routine::{Key, Routines};
use crate::id::{TaskType, WorkerType};
use crate::policy::mostly_sorted::MostlySorted;

/// The first lane of activations that are placed on any workers; before it come the worker types.
pub(super) const WIDE: usize = 4;

/// The lane of a task of a type.
pub(super) fn lane_of(kind: TaskType, wide: bool) -> u8 {
    // Task types are MIX and then the types of workers in their order.
    if wide || kind == TaskType::Mix { WIDE as u8 + kind as u8 } else { kind as u8 - 1 }
}

/// Lanes that a worker looks at, a bit each.
pub(super) fn lanes_of(kind: WorkerType) -> u8 {
    match kind {
        WorkerType::Any => (1 << WIDE) - 1,
        own => 1 << own as u8,
    }
}

/// Routines by their place in the scan, in which they mostly come. Those that are gone are dropped when they come up.
#[derive(Default)]
pub(super) struct Heap(MostlySorted<Key>);

impl Heap {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub fn push(&mut self, key: Key) {
        self.0.push(key);
    }

    #[inline]
    pub fn pop(&mut self) {
        self.0.pop();
    }

    /// The first routine that still waits here.
    #[inline]
    pub fn head(&mut self, routines: &Routines) -> Option<Key> {
        while let Some(&key) = self.0.first() {
            if routines.is_waiting(key) {
                return Some(key);
            }
            self.0.pop();
        }
        None
    }
}

/// The runnable routines of a home by the worker type of their next activation.
#[derive(Default)]
pub(super) struct Lanes {
    heaps: [Heap; WIDE],
    /// A bit for every lane that is not empty.
    filled: u8,
}

impl Lanes {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Whether one of these lanes is not empty.
    #[inline]
    pub fn has_any(&self, lanes: u8) -> bool {
        self.filled & lanes != 0
    }

    #[inline]
    pub fn push(&mut self, lane: usize, key: Key) {
        self.heaps[lane].push(key);
        self.filled |= 1 << lane;
    }

    /// A routine that probably comes so many places behind the first of a lane.
    #[inline]
    pub fn likely(&self, lane: usize, place: usize) -> Option<u32> {
        self.heaps[lane].0.likely(place).map(|key| key.routine())
    }

    /// Takes out the first routine of a lane.
    #[inline]
    pub fn pop(&mut self, lane: usize) {
        self.heaps[lane].pop();
        if self.heaps[lane].is_empty() {
            self.filled &= !(1 << lane);
        }
    }

    /// The first routine of a lane.
    #[inline]
    pub fn head(&mut self, lane: usize, routines: &Routines) -> Option<Key> {
        let head = self.heaps[lane].head(routines);
        if head.is_none() {
            self.filled &= !(1 << lane);
        }
        head
    }

    /// The first routine of the lanes that are `served`, and its lane.
    #[inline]
    pub fn first(&mut self, routines: &Routines, served: impl Fn(usize) -> bool) -> Option<(Key, usize)> {
        let (mut left, mut first) = (self.filled, None);
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            if !served(lane) {
                continue;
            }
            match self.head(lane, routines) {
                Some(key) if first.is_none_or(|(other, _)| key < other) => first = Some((key, lane)),
                _ => {}
            }
        }
        first
    }
}

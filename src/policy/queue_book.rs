//! Lengths of the ready queues, held against their limit.

use super::{Dropped, QueueLimit};
use crate::config::{Machine, OnReadyFull};
use crate::id::TaskType;

/// How many READY tasks of each type wait to be handed out.
#[derive(Debug)]
pub struct QueueBook {
    limit: QueueLimit,
    lengths: [u64; 5],
    /// The sum of the lengths.
    waiting: u64,
    full_events: u64,
}

impl QueueBook {
    /// Empty queues of a machine.
    #[must_use]
    pub fn new(machine: &Machine) -> QueueBook {
        QueueBook { limit: QueueLimit::of(machine), lengths: [0; 5], waiting: 0, full_events: 0 }
    }

    /// A READY task comes in. One that finds its queue full waits outside and goes in first, or is dropped.
    ///
    /// # Errors
    /// When it is dropped.
    #[inline]
    pub fn enter(&mut self, kind: TaskType) -> Result<(), Dropped> {
        let length = &mut self.lengths[kind as usize];
        if *length >= self.limit.entries {
            self.full_events += 1;
            if self.limit.when_full == OnReadyFull::Drop {
                return Err(Dropped);
            }
        }
        *length += 1;
        self.waiting += 1;
        Ok(())
    }

    /// The last block of a task was handed out.
    #[inline]
    pub fn leave(&mut self, kind: TaskType) {
        self.lengths[kind as usize] -= 1;
        self.waiting -= 1;
    }

    /// Whether no READY task waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// READY tasks of a type that wait.
    #[inline]
    pub fn waiting(&self, kind: TaskType) -> u64 {
        self.lengths[kind as usize]
    }

    /// How often a task found its queue full.
    #[must_use]
    pub fn full_events(&self) -> u64 {
        self.full_events
    }
}

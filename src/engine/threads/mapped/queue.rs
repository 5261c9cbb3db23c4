//! The queue of READY tasks from the submitter to the device: one thread at each end, in memory that nobody can trust.

use super::{Mapped, Places, span};
use crate::engine::threads::ring::{ENDS, ReadyRing, size_for};
use crate::error::RunError;
use crate::sync::Shared;
use crate::window::SlotRef;
use std::path::Path;

/// The queue; every use finds out when the bytes in the file cannot be right.
pub(super) struct Queue<'m> {
    ring: ReadyRing<Shared>,
    n_slots: usize,
    path: &'m Path,
}

impl Queue<'_> {
    pub(super) fn of(mapped: &Mapped) -> Result<Queue<'_>, RunError> {
        let Places { ends, cells, lengths, .. } = mapped.places;
        let ends = span(&mapped.path, &mapped.mapping, ends, ENDS)?;
        let cells = span(&mapped.path, &mapped.mapping, cells, size_for(lengths.slots))?;
        Ok(Queue { ring: ReadyRing::over(ends, cells), n_slots: lengths.slots, path: &mapped.path })
    }

    /// Empties a queue that nobody else uses yet.
    pub(super) fn clear(&self) {
        self.ring.clear();
    }

    /// About how many tasks wait.
    pub(super) fn len(&self) -> u64 {
        self.ring.len()
    }

    /// Whether there is nothing to take; a queue that is not sound has something, so that its reader finds out.
    pub(super) fn is_empty(&self) -> bool {
        self.ring.is_front_sound() && self.ring.is_empty()
    }

    /// Puts a task in.
    pub(super) fn push(&self, slot: SlotRef) -> Result<(), RunError> {
        let is_in = self.ring.is_back_sound() && self.ring.push(slot, &mut 0).is_ok();
        if is_in { Ok(()) } else { Err(Mapped::error(self.path, "corrupt: the queue of READY tasks has no room")) }
    }

    /// Takes a task out.
    pub(super) fn pop(&self) -> Result<Option<SlotRef>, RunError> {
        if !self.ring.is_front_sound() {
            return Err(Mapped::error(self.path, "corrupt: the queue of READY tasks is not as it was left"));
        }
        let slot = self.ring.pop(&mut 0);
        match slot.filter(|&slot| slot as usize >= self.n_slots) {
            None => Ok(slot),
            Some(slot) => Err(Mapped::error(self.path, format!("corrupt: slot {slot} in the queue"))),
        }
    }
}

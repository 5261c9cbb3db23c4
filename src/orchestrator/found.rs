//! Collects the producers of a task, each once, dead or alive.

use super::Orchestrator;
use super::segments::Access;
use crate::id::TaskId;
use crate::sync::Sharing;
use crate::window::{NONE, SlotRef, Window};
use std::collections::BTreeSet;

/// A task that another one depends on, and where it lived when that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Producer {
    pub(super) task: TaskId,
    pub(super) slot: SlotRef,
}

/// Producers found so far.
pub(super) struct Found<'a, S: Sharing> {
    pub(super) window: &'a Window<S>,
    pub(super) producers: &'a mut Vec<Producer>,
    /// Those that are consumed, and perhaps their slots' tenants no more. One thread knows when they ended, others must ask.
    pub(super) gone: &'a mut Vec<Producer>,
    pub(super) consumer: TaskId,
    pub(super) path: u64,
    pub(super) bad: &'a BTreeSet<TaskId>,
    pub(super) poisoned: bool,
}

impl<S: Sharing> Found<'_, S> {
    /// A producer named by id. Its path is known as long as its slot has no other tenant.
    #[inline(always)]
    pub(super) fn explicit(&mut self, task: TaskId, paths: &[u64]) {
        if let Some(slot) = self.window.last_home(task) {
            self.add(Producer { task, slot }, paths[slot as usize]);
            return;
        }
        self.poisoned |= self.bad.contains(&task);
        if S::SHARED {
            self.gone.push(Producer { task, slot: NONE });
        }
    }

    /// A producer by an access of its own, if there is one.
    #[inline]
    pub(super) fn access(&mut self, access: &Access) {
        if access.slot != NONE {
            self.add(Producer { task: access.task, slot: access.slot }, access.path);
        }
    }

    /// A producer, dead or alive.
    #[inline(always)]
    fn add(&mut self, producer: Producer, path: u64) {
        self.path = self.path.max(path);
        if self.window.is_alive(producer.slot, producer.task) {
            if self.window.mark(producer.slot, self.consumer) {
                self.producers.push(producer);
            }
        } else if S::SHARED {
            self.gone.push(producer);
        }
        if !self.bad.is_empty() && self.bad.contains(&producer.task) {
            self.poisoned = true;
        }
    }
}

impl Orchestrator {
    /// Some producer that ended badly and is not in the window any more.
    pub(super) fn bad_producer(&self) -> Option<TaskId> {
        let explicit = self.task.deps.iter().copied().find(|dep| self.bad.contains(dep));
        explicit.or_else(|| self.bad.last().copied())
    }

    /// Remembers that a task ended badly, for consumers submitted after it is gone.
    pub fn remember_bad(&mut self, task: TaskId) {
        self.bad.insert(task);
    }

    /// Whether a task is known to have ended badly.
    pub fn is_bad(&self, task: TaskId) -> bool {
        self.bad.contains(&task)
    }
}

//! Collects the producers of a task, each once, dead or alive.

use super::segments::Access;
use crate::id::TaskId;
use crate::sync::Sharing;
use crate::window::{NONE, Window};
use std::collections::BTreeSet;

/// Producers found so far.
pub(super) struct Found<'a, S: Sharing> {
    pub(super) window: &'a Window<S>,
    pub(super) producers: &'a mut Vec<Access>,
    pub(super) consumer: TaskId,
    pub(super) path: u64,
    pub(super) bad: &'a BTreeSet<TaskId>,
    pub(super) poisoned: bool,
}

impl<S: Sharing> Found<'_, S> {
    /// A producer named by id.
    #[inline]
    pub(super) fn explicit(&mut self, task: TaskId, paths: &[u64]) {
        let Some(slot) = self.window.find(task) else { return self.retired(task, paths) };
        self.add(&Access { task, slot, path: paths[slot as usize] });
    }

    /// A retired task is remembered until its slot has a new tenant.
    fn retired(&mut self, task: TaskId, paths: &[u64]) {
        let slot = self.window.at(0, task.0);
        let path = if self.window.slot(slot).task() == task { paths[slot as usize] } else { 0 };
        self.add(&Access { task, slot, path });
    }

    /// A producer, dead or alive.
    #[inline]
    pub(super) fn add(&mut self, access: &Access) {
        if access.slot == NONE {
            return;
        }
        self.path = self.path.max(access.path);
        if !self.bad.is_empty() && self.bad.contains(&access.task) {
            self.poisoned = true;
        }
        if self.window.is_alive(access.slot, access.task) && self.window.mark(access.slot, self.consumer) {
            self.producers.push(*access);
        }
    }
}

//! An observer of any type behind one type, so that a run under a policy is compiled once and not for every observer.

use super::{BlockRow, Cause, Observer, Retired};
use crate::id::TaskId;
use crate::sync::Local;
use crate::window::{SlotRef, Window};
use crate::workload::Symbols;

/// What every observer can be told.
pub(super) trait Listener {
    fn hear_block(&mut self, row: &BlockRow, names: &Symbols);
    fn hear_submitted(&mut self, task: TaskId, slot: SlotRef, window: &Window<Local>, now: u64);
    fn hear_consumed(&mut self, task: TaskId, now: u64);
    fn hear_retired(&mut self, retired: &Retired, now: u64);
    fn hear_cancelled(&mut self, task: TaskId, cause: &Cause<'_>, now: u64);
}

impl<O: Observer> Listener for O {
    fn hear_block(&mut self, row: &BlockRow, names: &Symbols) {
        self.block(row, names);
    }

    fn hear_submitted(&mut self, task: TaskId, slot: SlotRef, window: &Window<Local>, now: u64) {
        self.submitted(task, slot, window, now);
    }

    fn hear_consumed(&mut self, task: TaskId, now: u64) {
        self.consumed(task, now);
    }

    fn hear_retired(&mut self, retired: &Retired, now: u64) {
        self.retired(retired, now);
    }

    fn hear_cancelled(&mut self, task: TaskId, cause: &Cause<'_>, now: u64) {
        self.cancelled(task, cause, now);
    }
}

/// An observer of any type.
pub(super) struct Anyone<'a>(pub(super) &'a mut dyn Listener);

impl Observer for Anyone<'_> {
    fn block(&mut self, row: &BlockRow, names: &Symbols) {
        self.0.hear_block(row, names);
    }

    fn submitted(&mut self, task: TaskId, slot: SlotRef, window: &Window<Local>, now: u64) {
        self.0.hear_submitted(task, slot, window, now);
    }

    fn consumed(&mut self, task: TaskId, now: u64) {
        self.0.hear_consumed(task, now);
    }

    fn retired(&mut self, retired: &Retired, now: u64) {
        self.0.hear_retired(retired, now);
    }

    fn cancelled(&mut self, task: TaskId, cause: &Cause<'_>, now: u64) {
        self.0.hear_cancelled(task, cause, now);
    }
}

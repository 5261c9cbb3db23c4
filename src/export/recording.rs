//! What ran when, kept in memory for exports.

use crate::engine::{BlockRow, Observer};
use crate::id::TaskId;
use crate::sync::Local;
use crate::window::{SlotRef, Window};
use crate::workload::Symbols;

/// All blocks of a run in the order in which they started.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// One row for each block and worker.
    pub rows: Vec<BlockRow>,
    /// When each task was published, by its id.
    pub submitted: Vec<u64>,
}

impl Recording {
    /// One in which nothing ran.
    pub const EMPTY: Recording = Recording { rows: Vec::new(), submitted: Vec::new() };

    /// When a task was published.
    #[must_use]
    pub fn submitted(&self, task: TaskId) -> u64 {
        self.submitted.get(task.0 as usize).copied().unwrap_or(0)
    }
}

impl Observer for Recording {
    fn block(&mut self, row: &BlockRow, _names: &Symbols) {
        self.rows.push(*row);
    }

    fn submitted(&mut self, task: TaskId, _slot: SlotRef, _window: &Window<Local>, now: u64) {
        let place = task.0 as usize;
        self.submitted.resize(self.submitted.len().max(place + 1), 0);
        self.submitted[place] = now;
    }
}

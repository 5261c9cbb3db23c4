//! What a journal copies from the window for its readers.

use crate::engine::{BlockRow, JobKind, SchedulerJob};
use crate::id::{Symbol, TaskId, TaskType, WorkerId};
use crate::window::SlotRef;
use std::sync::Arc;

/// A task at its publication.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Submitted<'a> {
    /// The task.
    pub task: TaskId,
    /// Where it lives.
    pub slot: SlotRef,
    /// What it runs on.
    pub kind: TaskType,
    /// Its label, if it has one of its own.
    pub name: Option<Symbol>,
    /// Its kernel.
    pub kernel: Option<Symbol>,
    /// Number of blocks.
    pub blocks: u32,
    /// Ids of the producers it was linked to.
    pub producers: &'a [u64],
}

/// A block that was placed on one worker and started there at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Started {
    /// The slot of its task.
    pub slot: SlotRef,
    /// Whether it is the last block of its task.
    pub is_last: bool,
    /// Whether the job that dispatches it is told.
    pub is_dispatched: bool,
    /// Its row of the schedule.
    pub row: BlockRow,
}

/// A job of the scheduler that was queued, begun and done at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DoneJob {
    /// What it did.
    pub kind: JobKind,
    /// The slot it was about.
    pub slot: SlotRef,
    /// Leader of the block it was about, if it was about one.
    pub worker: Option<WorkerId>,
}

impl From<&SchedulerJob> for DoneJob {
    fn from(job: &SchedulerJob) -> DoneJob {
        DoneJob { kind: job.kind, slot: job.slot, worker: job.worker }
    }
}

/// What is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Occupancy {
    /// Slots of the ring.
    pub window: u64,
    /// Heap bytes of the ring.
    pub heap: u64,
    /// Dependency entries of the ring.
    pub deps: u64,
    /// Tensor-map entries of all rings.
    pub tensors: u64,
}

/// The names told so far, by symbol. Readers share the texts.
#[derive(Clone, Default, Debug)]
pub struct Names(pub(super) Vec<Arc<str>>);

impl Names {
    /// The text of a symbol.
    ///
    /// # Panics
    /// When no event has used it.
    #[must_use]
    #[inline]
    pub fn name(&self, symbol: Symbol) -> &str {
        &self.0[symbol.0 as usize]
    }

    /// All texts in the order of their symbols.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|name| &**name)
    }
}

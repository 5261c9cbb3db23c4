//! What a journal tells its readers.

use crate::engine::{BlockRow, JobStep, Phase, Placed, SchedulerJob};
use crate::id::{Symbol, TaskId, TaskType};
use crate::window::SlotRef;
use std::sync::Arc;

/// Something that happened; see [`crate::engine::Observer`] for what each means.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A block started on a worker.
    Block(BlockRow),
    /// A task was published.
    Submitted(Submitted<'a>),
    /// A task became READY, or is to be run once more.
    Ready {
        /// The task.
        task: TaskId,
        /// Where it lives.
        slot: SlotRef,
        /// What it runs on.
        kind: TaskType,
    },
    /// A READY task of this type was dropped or removed.
    Withdrawn(TaskType),
    /// A block was given to workers.
    Placed(Placed<'a>),
    /// A job of the scheduler was queued, begun or done.
    Job(SchedulerJob, JobStep),
    /// A job was queued, begun and done without cost, one right after the other.
    JobAtOnce(SchedulerJob),
    /// The orchestrator did this from a cycle to now.
    Orchestrator(Phase, u64),
    /// Something of this ring was taken or returned.
    Occupied(u32, Occupancy),
    /// A task is CONSUMED.
    Consumed,
    /// The policy acts by itself.
    PolicyActs,
    /// The start of its parent no longer holds the task in this slot back.
    ChildReleased(SlotRef),
    /// The run is over.
    Finished,
}

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

/// What is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    pub fn name(&self, symbol: Symbol) -> &str {
        &self.0[symbol.0 as usize]
    }

    /// All texts in the order of their symbols.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|name| &**name)
    }
}

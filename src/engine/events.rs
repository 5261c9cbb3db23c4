//! What an [`Observer`](super::Observer) is told about, beside the rows of the schedule.

use crate::id::{TaskId, TaskType, WorkerId};
use crate::window::{Resource, SlotRef};

/// A job of the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchedulerJob {
    /// What is done.
    pub kind: JobKind,
    /// Where the task lives.
    pub slot: SlotRef,
    /// The task.
    pub task: TaskId,
    /// The worker that leads the block; `None` when there is none.
    pub worker: Option<WorkerId>,
}

/// Kinds of scheduler jobs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum JobKind {
    /// Looks at a published task.
    Admit,
    /// Processes the end of a block, or completes a task that takes no worker.
    Complete,
    /// Starts a block.
    Dispatch,
}

impl JobKind {
    /// All kinds, in the order of their values.
    pub const ALL: [JobKind; 3] = [JobKind::Admit, JobKind::Complete, JobKind::Dispatch];

    /// The name used in files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            JobKind::Admit => "admit",
            JobKind::Complete => "complete",
            JobKind::Dispatch => "dispatch",
        }
    }
}

/// How far a job is. Jobs begin strictly in the order in which they were queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobStep {
    /// It waits for a thread.
    Queued,
    /// A thread took it, for this many cycles.
    Begun(u64),
    /// The thread that took the job before it does it too, in the same cycles.
    Joined(u64),
    /// It takes effect: what is told next is what it leads to.
    Done,
}

/// A block that was given to workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed<'a> {
    /// Where the task lives.
    pub slot: SlotRef,
    /// The task.
    pub task: TaskId,
    /// What it runs on.
    pub kind: TaskType,
    /// Whether no block of the task is left to place.
    pub is_last: bool,
    /// Its workers, ascending; the first leads.
    pub crew: &'a [u32],
}

/// What the orchestrator spent time on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Paying for an operation.
    Working,
    /// Waiting for a `submit_at`.
    Waiting,
    /// Something was full.
    Blocked(Resource),
}

impl Phase {
    /// Its place in the order of this list, resource by resource.
    #[inline]
    pub(crate) fn number(self) -> u32 {
        match self {
            Phase::Working => 0,
            Phase::Waiting => 1,
            Phase::Blocked(on) => 2 + on as u32,
        }
    }
}

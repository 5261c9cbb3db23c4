//! Drives orchestrator, window, scheduler, policy and machine through a workload.

use crate::config::{ConfigError, Machine};
use crate::id::{Symbol, TaskId, TaskType, WorkerId};
use crate::report::Report;
use crate::workload::{Symbols, Workload, WorkloadError};

/// Runs `workload` on `machine` in virtual time under the default policy; `observer` is told what happens.
///
/// # Errors
/// When the workload cannot be read, or asks for something the machine can never give. A deadlock is not an error but a
/// [`crate::report::Outcome`].
pub fn run<O: Observer>(_workload: &dyn Workload, _machine: &Machine, _observer: &mut O) -> Result<Report, RunError> {
    unreachable!()
}

/// Why a run did not come to a report.
#[derive(thiserror::Error, Debug)]
pub enum RunError {
    /// The workload cannot be read.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The settings cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A task asks for something the machine can never give; the message names task, line, value and remedy.
    #[error("{0}")]
    Task(String),
}

/// Told what happens in a run, in the order in which it happens. Every method does nothing by default.
pub trait Observer {
    /// A block started on a worker. A MIX block gives one row for each of its workers.
    fn block(&mut self, row: &BlockRow, names: &Symbols) {
        let _ = (row, names);
    }
}

/// One block on one worker: a row of the schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockRow {
    /// The task.
    pub task: TaskId,
    /// Its block, from 0 in the order of placement.
    pub block: u32,
    /// Where.
    pub worker: WorkerId,
    /// When the task was published.
    pub submit: u64,
    /// When it became READY.
    pub ready: u64,
    /// When the block started.
    pub start: u64,
    /// When it ended on this worker.
    pub end: u64,
    /// Label of the task, if it has one of its own.
    pub name: Option<Symbol>,
    /// Kernel of the task.
    pub kernel: Option<Symbol>,
    /// Type of the task.
    pub kind: TaskType,
}

/// The observer that does not look.
impl Observer for () {}

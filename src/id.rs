//! Words everybody shares: identities of tasks, workers, symbols and buffers, and the kinds of workers.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A task, numbered from 0 in the order of submission; never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub u64);

/// A simulated worker, numbered from 0: cubes, vectors, AI CPUs, accelerators, then the ones that run any type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(pub u32);

/// An interned name of a kernel or task; looked up in [`crate::workload::Symbols`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Symbol(pub u32);

/// A buffer name of a workload, numbered from 0 in order of first appearance. Binding the name again keeps the number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BufferId(pub u32);

/// What a worker is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WorkerType {
    /// Matrix unit.
    Cube,
    /// Vector unit.
    Vector,
    /// Scalar processor on the device.
    AiCpu,
    /// Any other engine of the device, such as a copy or communication engine.
    Accelerator,
    /// Runs tasks of every type but MIX.
    Any,
}

impl WorkerType {
    /// All worker types in the order in which workers are numbered.
    pub const ALL: [WorkerType; 5] =
        [WorkerType::Cube, WorkerType::Vector, WorkerType::AiCpu, WorkerType::Accelerator, WorkerType::Any];

    /// The name used in files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            WorkerType::Cube => "CUBE",
            WorkerType::Vector => "VECTOR",
            WorkerType::AiCpu => "AI_CPU",
            WorkerType::Accelerator => "ACCELERATOR",
            WorkerType::Any => "ANY",
        }
    }
}

/// What a task needs to run on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TaskType {
    /// Units of one cluster at the same time.
    Mix,
    /// One cube worker a block.
    Cube,
    /// One vector worker a block.
    Vector,
    /// One AI CPU a block.
    AiCpu,
    /// One accelerator a block.
    Accelerator,
    /// No worker at all: a joint in the graph.
    None,
}

impl TaskType {
    /// All task types, those with a ready queue first and in the order in which the queues are served.
    pub const ALL: [TaskType; 6] =
        [TaskType::Mix, TaskType::Cube, TaskType::Vector, TaskType::AiCpu, TaskType::Accelerator, TaskType::None];

    /// The task type of this number, which is its place in [`TaskType::ALL`]; larger numbers stand for none. Only the lowest three bits
    /// count, so that it is one look into a table.
    #[must_use]
    #[inline(always)]
    pub fn of_number(number: u64) -> TaskType {
        const NUMBERED: [TaskType; 8] = {
            let mut numbered = [TaskType::None; 8];
            let mut number = 0;
            while number < TaskType::ALL.len() {
                numbered[number] = TaskType::ALL[number];
                number += 1;
            }
            numbered
        };
        NUMBERED[number as usize & 7]
    }

    /// The name used in files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TaskType::Mix => "MIX",
            TaskType::Cube => "CUBE",
            TaskType::Vector => "VECTOR",
            TaskType::AiCpu => "AI_CPU",
            TaskType::Accelerator => "ACCELERATOR",
            TaskType::None => "NONE",
        }
    }

    /// The type with this name, in any letter case.
    #[must_use]
    pub fn parse(name: &str) -> Option<TaskType> {
        TaskType::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for WorkerType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for TaskType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

//! Who is to blame for the makespan: every cycle of the observed critical path under one name.

use crate::engine::journal::Names;
use crate::id::{Symbol, TaskId, WorkerId};
use crate::window::Resource;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Kernels listed in a [`PathReport`].
const TOP_KERNELS: usize = 10;

/// What the makespan was spent on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Blame {
    /// Kernels whose result the next step of the path needs.
    Compute,
    /// Kernels that kept a worker busy which a ready task waited for.
    Worker,
    /// Tasks that kept something full which the orchestrator waited for.
    Full(Resource),
    /// A ready task that nothing but the policy or a partner of its block kept back.
    Policy,
    /// The orchestrator paying for operations.
    Submit,
    /// The orchestrator waiting for a `submit_at`.
    SubmitAt,
    /// Scheduler jobs that admit tasks.
    Admit,
    /// Scheduler jobs that complete blocks.
    Complete,
    /// Scheduler jobs that dispatch blocks.
    Dispatch,
    /// Jobs waiting for a free scheduler thread.
    Queue,
    /// Workers picking up their blocks.
    Pickup,
}

impl Blame {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Blame; 14] = [
        Blame::Compute,
        Blame::Worker,
        Blame::Full(Resource::Window),
        Blame::Full(Resource::Heap),
        Blame::Full(Resource::Deps),
        Blame::Full(Resource::Tensors),
        Blame::Policy,
        Blame::Submit,
        Blame::SubmitAt,
        Blame::Admit,
        Blame::Complete,
        Blame::Dispatch,
        Blame::Queue,
        Blame::Pickup,
    ];

    /// The name used in files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Blame::Compute => "compute",
            Blame::Worker => "worker",
            Blame::Full(resource) => resource.name(),
            Blame::Policy => "policy",
            Blame::Submit => "submit",
            Blame::SubmitAt => "submit_at",
            Blame::Admit => "admit",
            Blame::Complete => "complete",
            Blame::Dispatch => "dispatch",
            Blame::Queue => "scheduler_queue",
            Blame::Pickup => "pickup",
        }
    }

    /// What it means, for people.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Blame::Compute => "kernels whose results the path needs",
            Blame::Worker => "waiting for a worker busy with another kernel",
            Blame::Full(Resource::Window) => "waiting for tasks that kept the window full",
            Blame::Full(Resource::Heap) => "waiting for tasks that kept the heap full",
            Blame::Full(Resource::Deps) => "waiting for tasks that kept the dependency entries",
            Blame::Full(Resource::Tensors) => "waiting for tasks that kept the tensor-map entries",
            Blame::Policy => "ready, but kept back by the policy or a partner",
            Blame::Submit => "the orchestrator submitting",
            Blame::SubmitAt => "the program waiting for a submit_at",
            Blame::Admit => "the scheduler admitting tasks",
            Blame::Complete => "the scheduler completing blocks",
            Blame::Dispatch => "the scheduler dispatching blocks",
            Blame::Queue => "jobs waiting for a scheduler thread",
            Blame::Pickup => "workers picking up blocks",
        }
    }

    /// Its place in [`Blame::ALL`].
    #[inline]
    pub(super) fn index(self) -> usize {
        match self {
            Blame::Compute => 0,
            Blame::Worker => 1,
            Blame::Full(Resource::Window) => 2,
            Blame::Full(Resource::Heap) => 3,
            Blame::Full(Resource::Deps) => 4,
            Blame::Full(Resource::Tensors) => 5,
            Blame::Policy => 6,
            Blame::Submit => 7,
            Blame::SubmitAt => 8,
            Blame::Admit => 9,
            Blame::Complete => 10,
            Blame::Dispatch => 11,
            Blame::Queue => 12,
            Blame::Pickup => 13,
        }
    }
}

/// One step of the observed critical path; it begins where the step before it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathStep {
    /// First cycle.
    pub from: u64,
    /// End.
    pub to: u64,
    /// What its cycles are booked under.
    pub blame: Blame,
    /// Whether a kernel runs.
    pub is_kernel: bool,
    /// The task it is about.
    pub task: Option<TaskId>,
    /// The worker it happens on.
    pub worker: Option<WorkerId>,
    /// Label of the task, where it has one and a kernel runs.
    pub name: Option<Symbol>,
    /// Kernel of the task, where it runs.
    pub kernel: Option<Symbol>,
}

/// The observed critical path in numbers.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PathReport {
    /// Steps.
    pub steps: u64,
    /// Blocks on it.
    pub blocks: u64,
    /// Cycles by cause; the sum is the makespan.
    pub blame: BTreeMap<String, u64>,
    /// The kernels with most cycles on it, descending; then by name.
    pub kernels: Vec<PathKernel>,
}

/// A kernel on the critical path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PathKernel {
    /// Name.
    pub name: String,
    /// Blocks of it on the path.
    pub blocks: u64,
    /// Their cycles.
    pub cycles: u64,
}

/// The numbers of a path in the making.
#[derive(Clone, Debug, Default)]
pub struct PathSums {
    steps: u64,
    blame: [u64; Blame::ALL.len()],
    /// Blocks and cycles, by the symbol of the kernel + 1; those without one come first.
    kernels: Vec<(u64, u64)>,
}

impl PathSums {
    /// Adds a step.
    #[inline]
    pub fn add(&mut self, step: &PathStep) {
        let cycles = step.to - step.from;
        self.steps += 1;
        self.blame[step.blame.index()] += cycles;
        if step.is_kernel {
            let index = step.kernel.map_or(0, |kernel| kernel.0 as usize + 1);
            if index >= self.kernels.len() {
                self.kernels.resize(index + 1, (0, 0));
            }
            let sum = &mut self.kernels[index];
            *sum = (sum.0 + 1, sum.1 + cycles);
        }
    }

    /// The sums with their names.
    #[must_use]
    pub fn report(&self, names: &Names) -> PathReport {
        let name = |index: usize| match index.checked_sub(1) {
            Some(symbol) => names.name(Symbol(symbol as u32)).to_owned(),
            None => "(unnamed)".to_owned(),
        };
        let used = self.kernels.iter().enumerate().filter(|(_, (blocks, _))| *blocks > 0);
        let mut kernels: Vec<_> =
            used.map(|(index, &(blocks, cycles))| PathKernel { name: name(index), blocks, cycles }).collect();
        let blocks = kernels.iter().map(|kernel| kernel.blocks).sum();
        kernels.sort_by(|a, b| b.cycles.cmp(&a.cycles).then_with(|| a.name.cmp(&b.name)));
        kernels.truncate(TOP_KERNELS);
        let blame = Blame::ALL.iter().zip(self.blame).filter(|(_, cycles)| *cycles > 0);
        let blame = blame.map(|(blame, cycles)| (blame.name().to_owned(), cycles)).collect();
        PathReport { steps: self.steps, blocks, blame, kernels }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_listed_in_its_place() {
        assert!(Blame::ALL.iter().enumerate().all(|(place, blame)| blame.index() == place));
    }
}

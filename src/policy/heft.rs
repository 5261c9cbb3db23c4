//! `heft`: highest upward rank first. A rank counts what the machine does to a task: its cycles averaged over the worker
//! types that take part, in as many rounds as its blocks need, and what the runtime puts between a task and its consumer.

use super::Ranked;
use crate::config::Machine;
use crate::error::RunError;
use crate::graph::{Producers, Task, n_expected};
use crate::id::TaskType;
use crate::large;
use crate::machine::capacity;
use crate::workload::{Cost, Workload};

/// The order of the policy `heft`.
pub type Heft = Ranked<true>;

impl Heft {
    /// The order of a program, which is read for it: upward ranks in hundredths of a cycle.
    ///
    /// # Errors
    /// When the program cannot be read.
    pub fn read(workload: &dyn Workload, machine: &Machine) -> Result<Heft, RunError> {
        let mut spans = Vec::new();
        let (producers, _) = Producers::load(workload, machine, |orchestrator, _| {
            let own = span(&Task::at_hand(orchestrator, 0), machine);
            large::push_expecting(&mut spans, own, || n_expected(orchestrator));
        })?;
        let costs = &machine.scheduler;
        let hop = 100 * (costs.complete + costs.edge + costs.dispatch + machine.worker.pickup);
        Ok(Ranked::new(producers.upward_ranks(hop, |task| spans[task])))
    }
}

/// Cycles of a task in hundredths: mean over its workers, times the rounds in which its blocks fit on the machine.
fn span(task: &Task, machine: &Machine) -> u64 {
    let mean = match (task.kind, task.cost) {
        (TaskType::None, _) => return 0,
        (_, Cost::Cycles(cycles)) => cycles.saturating_mul(100),
        (_, Cost::PerKind { cube, vector }) => {
            let (cubes, vectors) = (u64::from(task.units.cube), u64::from(task.units.vector));
            (cubes.saturating_mul(cube)).saturating_add(vectors.saturating_mul(vector)).saturating_mul(100)
                / (cubes + vectors).max(1)
        }
    };
    let at_once = capacity(&machine.workers, task.kind, task.units).max(1);
    mean.saturating_mul(task.blocks.div_ceil(at_once).into())
}

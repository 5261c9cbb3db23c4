//! `heft`: highest upward rank first. A rank counts what the machine does to a task: its cycles averaged over the worker
//! types that take part, in as many rounds as its blocks need, and what the runtime puts between a task and its consumer.

use super::Ranked;
use crate::config::Machine;
use crate::graph::{Graph, Task};
use crate::id::TaskType;
use crate::machine::capacity;
use crate::workload::Cost;

/// The order of the policy `heft`.
pub type Heft = Ranked<true>;

/// The upward rank of every task, in hundredths of a cycle.
#[must_use]
pub fn ranks(graph: &Graph, machine: &Machine) -> Vec<u64> {
    let costs = &machine.scheduler;
    let hop = 100 * (costs.complete + costs.edge + costs.dispatch + machine.worker.pickup);
    graph.upward_ranks(hop, |task| span(task, machine))
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

//! What a workload looks like as a graph, before anything runs.

use super::table::columns;
use super::words::{group, plain};
use crate::config::Machine;
use crate::engine::RunError;
use crate::graph::{Graph, Task};
use crate::id::{TaskId, TaskType};
use crate::workload::{Operation, Submit, Workload};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Numbers about a workload.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Statistics {
    /// Name of the workload.
    pub workload: String,
    /// Number of tasks.
    pub tasks: u64,
    /// Number of dependencies, each pair of tasks once.
    pub edges: u64,
    /// Number of blocks of all tasks.
    pub blocks: u64,
    /// Producers of a task.
    pub fan_in: Fan,
    /// Consumers of a task.
    pub fan_out: Fan,
    /// Tasks on the longest chain.
    pub levels: u64,
    /// The most tasks on one level, where a task is one level above its highest producer.
    pub width: u64,
    /// Cycles of the longest chain.
    pub critical_path: u64,
    /// Cycles of all workers together.
    pub work: u64,
    /// Work divided by the critical path: the most workers that can be busy all the time.
    pub parallelism: f64,
    /// Tasks, blocks and work by type.
    pub types: BTreeMap<&'static str, TypeWork>,
    /// What it asks of memory.
    pub footprint: Footprint,
    /// How the file was read.
    pub notes: Vec<String>,
}

/// Neighbours of tasks in one direction.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Fan {
    /// On average.
    pub mean: f64,
    /// At most.
    pub max: u64,
    /// Tasks that have none.
    pub none: u64,
}

/// What there is of one type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct TypeWork {
    /// Tasks.
    pub tasks: u64,
    /// Blocks.
    pub blocks: u64,
    /// Cycles of all workers together.
    pub work: u64,
}

/// What a workload asks of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Footprint {
    /// Declared buffers and their bytes.
    pub buffers: u64,
    /// Bytes of declared buffers.
    pub buffer_bytes: u64,
    /// Tasks that allocate.
    pub allocating_tasks: u64,
    /// Heap bytes of all allocations.
    pub heap_bytes: u64,
    /// The largest allocation of one task.
    pub largest_allocation: u64,
    /// Regions read or written.
    pub regions: u64,
    /// Scopes.
    pub scopes: u64,
    /// The most scopes open at once.
    pub scope_depth: u64,
}

impl Statistics {
    /// Reads a whole workload and counts; dependencies are found by the hazards of `machine`.
    ///
    /// # Errors
    /// When the workload cannot be read or asks for what the machine can never give.
    pub fn of(workload: &dyn Workload, machine: &Machine) -> Result<Statistics, RunError> {
        let footprint = Footprint::of(workload)?;
        let graph = Graph::survey(workload, machine)?;
        let ids = || (0..graph.tasks.len() as u64).map(TaskId);
        let (levels, width) = levels(&graph);
        let critical_path = graph.longest_paths().into_iter().max().unwrap_or(0);
        let mut types: BTreeMap<&'static str, TypeWork> = BTreeMap::new();
        for task in &graph.tasks {
            let sum = types.entry(task.kind.name()).or_default();
            sum.tasks += 1;
            sum.blocks += u64::from(task.blocks);
            sum.work = sum.work.saturating_add(work(task));
        }
        let work = types.values().fold(0_u64, |work, sum| work.saturating_add(sum.work));
        Ok(Statistics {
            workload: workload.name(),
            tasks: graph.tasks.len() as u64,
            edges: graph.n_edges() as u64,
            blocks: types.values().map(|sum| sum.blocks).sum(),
            fan_in: Fan::of(ids().map(|id| graph.producers(id).len())),
            fan_out: Fan::of(ids().map(|id| graph.consumers(id).len())),
            levels,
            width,
            critical_path,
            work,
            parallelism: if critical_path == 0 { 0.0 } else { work as f64 / critical_path as f64 },
            types,
            footprint,
            notes: workload.notes().into_iter().chain(at_least(critical_path, work)).collect(),
        })
    }

    /// The numbers as JSON.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and texts can be written") + "\n"
    }
}

impl Fan {
    fn of(counts: impl Iterator<Item = usize> + Clone) -> Fan {
        let n_tasks = counts.clone().count().max(1);
        Fan {
            mean: counts.clone().sum::<usize>() as f64 / n_tasks as f64,
            max: counts.clone().max().unwrap_or(0) as u64,
            none: counts.filter(|&count| count == 0).count() as u64,
        }
    }
}

impl Footprint {
    fn of(workload: &dyn Workload) -> Result<Footprint, RunError> {
        let (mut source, mut task, mut sum) = (workload.open()?, Submit::default(), Footprint::default());
        let mut depth = 0;
        while let Some(operation) = source.next(&mut task)? {
            match operation {
                Operation::Buffer { bytes, .. } => {
                    sum.buffers += 1;
                    sum.buffer_bytes = sum.buffer_bytes.saturating_add(bytes);
                }
                Operation::ScopeBegin => {
                    sum.scopes += 1;
                    depth += 1;
                    sum.scope_depth = sum.scope_depth.max(depth);
                }
                Operation::ScopeEnd => depth -= 1,
                Operation::Submit => {
                    let bytes = task.heap_bytes();
                    sum.allocating_tasks += u64::from(bytes > 0);
                    sum.heap_bytes = sum.heap_bytes.saturating_add(bytes);
                    sum.largest_allocation = sum.largest_allocation.max(bytes);
                    sum.regions += (task.reads.len() + task.writes.len() + task.updates.len()) as u64;
                }
            }
        }
        Ok(sum)
    }
}

/// Number of levels and the most tasks on one.
fn levels(graph: &Graph) -> (u64, u64) {
    let mut of_task = vec![0_usize; graph.tasks.len()];
    let mut counts: Vec<u64> = Vec::new();
    for index in 0..graph.tasks.len() {
        let below = graph.producers(TaskId(index as u64)).iter().map(|producer| of_task[producer.0 as usize] + 1).max();
        let level = below.unwrap_or(0);
        of_task[index] = level;
        counts.resize(counts.len().max(level + 1), 0);
        counts[level] += 1;
    }
    (counts.len() as u64, counts.into_iter().max().unwrap_or(0))
}

/// What to say of sums that are too large for a number; they stop at the largest.
fn at_least(critical_path: u64, work: u64) -> Option<String> {
    match (critical_path, work) {
        (u64::MAX, _) => {
            Some("critical path and work are at least 2^64 - 1 cycles, so that the parallelism is unknown".into())
        }
        (_, u64::MAX) => {
            Some("the work is at least 2^64 - 1 cycles, and the parallelism at least what is shown".into())
        }
        _ => None,
    }
}

/// Cycles of all workers that a task takes.
fn work(task: &Task) -> u64 {
    use crate::workload::Cost;
    let (cube, vector) = (u64::from(task.units.cube), u64::from(task.units.vector));
    let block = match (task.kind, task.cost) {
        (TaskType::None, _) => 0,
        (TaskType::Mix, Cost::Cycles(cycles)) => cycles.saturating_mul(cube + vector),
        (TaskType::Mix, Cost::PerKind { cube: on_cube, vector: on_vector }) => {
            on_cube.saturating_mul(cube).saturating_add(on_vector.saturating_mul(vector))
        }
        (_, _) => task.cycles(),
    };
    block.saturating_mul(u64::from(task.blocks))
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fan = |fan: &Fan| format!("mean {:.2}, max {}, none {}", fan.mean, group(fan.max), group(fan.none));
        let memory = &self.footprint;
        let rows = [
            ("tasks", group(self.tasks)),
            ("dependencies", group(self.edges)),
            ("blocks", group(self.blocks)),
            ("fan-in", fan(&self.fan_in)),
            ("fan-out", fan(&self.fan_out)),
            ("levels", group(self.levels)),
            ("width", group(self.width)),
            ("critical path", format!("{} cycles", group(self.critical_path))),
            ("work", format!("{} cycles", group(self.work))),
            ("parallelism", format!("{:.2}", self.parallelism)),
            ("buffers", format!("{}, {} bytes", group(memory.buffers), group(memory.buffer_bytes))),
            ("heap", format!("{} bytes in {} tasks", group(memory.heap_bytes), group(memory.allocating_tasks))),
            ("largest allocation", format!("{} bytes", group(memory.largest_allocation))),
            ("regions", group(memory.regions)),
            ("scopes", format!("{}, at most {} open", group(memory.scopes), group(memory.scope_depth))),
        ];
        writeln!(f, "{}\n", plain(&self.workload))?;
        for (name, value) in rows {
            writeln!(f, "{name:<20}{value}")?;
        }
        let types: Vec<Vec<String>> = self
            .types
            .iter()
            .map(|(name, sum)| vec![(*name).to_owned(), group(sum.tasks), group(sum.blocks), group(sum.work)])
            .collect();
        writeln!(f, "\n{}", columns(&["type", "tasks", "blocks", "work"], &types))?;
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))
    }
}

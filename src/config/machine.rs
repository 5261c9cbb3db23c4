//! The machine a workload runs on: workers, limits, costs and rules.

use super::places::Places;
use crate::id::WorkerType;
use serde::{Deserialize, Serialize};

/// Everything that decides what a run computes, apart from the workload and the policy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Machine {
    /// For reports.
    pub name: String,
    /// Cycles per microsecond; converts times of other clocks.
    pub clock_mhz: u64,
    /// Kernel table: the name of a built-in one or a path.
    pub kernels: String,
    /// How many workers of each type.
    pub workers: Workers,
    /// Sizes of rings and pools.
    pub limits: Limits,
    /// Costs of the orchestrator.
    pub orchestrator: OrchestratorCosts,
    /// Costs of the scheduler.
    pub scheduler: SchedulerCosts,
    /// Costs of a worker.
    pub worker: WorkerCosts,
    /// Choices that the description of the machine leaves to the user.
    pub rules: Rules,
    /// Where all this was written, for messages.
    #[serde(skip)]
    pub places: Places,
}

/// How many workers of each type there are.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Workers {
    /// Groups of one cube and two vectors. If not 0, `cube` and `vector` are 0 here and follow from it.
    pub clusters: u32,
    /// Cube workers outside clusters; ask [`Workers::count`] for the effective number.
    pub cube: u32,
    /// Vector workers outside clusters; ask [`Workers::count`] for the effective number.
    pub vector: u32,
    /// AI CPUs.
    pub ai_cpu: u32,
    /// Accelerators.
    pub accelerator: u32,
    /// Workers that run every type but MIX.
    pub any: u32,
}

impl Workers {
    /// Number of workers of a type, clusters included.
    #[must_use]
    pub fn count(&self, kind: WorkerType) -> u32 {
        match kind {
            WorkerType::Cube => self.cube + self.clusters,
            WorkerType::Vector => self.vector + 2 * self.clusters,
            WorkerType::AiCpu => self.ai_cpu,
            WorkerType::Accelerator => self.accelerator,
            WorkerType::Any => self.any,
        }
    }

    /// The type of every worker, by id.
    pub fn kinds(&self) -> impl Iterator<Item = WorkerType> {
        WorkerType::ALL.into_iter().flat_map(|kind| std::iter::repeat_n(kind, self.count(kind) as usize))
    }

    /// Number of all workers.
    #[must_use]
    pub fn total(&self) -> u32 {
        WorkerType::ALL.into_iter().map(|kind| self.count(kind)).sum()
    }
}

/// Sizes. `window`, `heap`, `deps` and `spare` are those of each ring.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Task slots; a power of two.
    pub window: u64,
    /// Bytes of the heap ring; files may say `"64MiB"`.
    #[serde(deserialize_with = "super::bytes::deserialize")]
    pub heap: u64,
    /// Dependency entries.
    pub deps: u64,
    /// Tensor-map entries, shared by all rings.
    pub tensors: u64,
    /// Entries of each ready queue.
    pub ready: u64,
    /// How many windows, heaps and dependency pools there are.
    pub rings: u32,
    /// Slots of each window that stay unused.
    pub spare: u64,
}

/// Cycles the orchestrator pays.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OrchestratorCosts {
    /// Per task.
    pub submit: u64,
    /// Per reserved dependency entry.
    pub per_edge: u64,
    /// Per opening and per closing of a scope.
    pub scope: u64,
}

/// Threads of the scheduler and the cycles their jobs take.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SchedulerCosts {
    /// Scheduler threads; at least 1 in virtual time.
    pub threads: u32,
    /// Per task published.
    pub admit: u64,
    /// Per block ended.
    pub complete: u64,
    /// Per consumer linked when the task's last block is taken.
    pub edge: u64,
    /// Per block placed.
    pub dispatch: u64,
}

/// Cycles a worker pays.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkerCosts {
    /// From the end of the dispatch job to the start of the block.
    pub pickup: u64,
}

/// Choices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// Which hazards between regions make a dependency.
    pub hazards: Hazards,
    /// Which scopes hold a task.
    pub scope_hold: ScopeHold,
    /// In which order consumers are released.
    pub fanout_order: FanoutOrder,
    /// What happens to a task that finds its ready queue full.
    pub on_ready_queue_full: OnReadyFull,
    /// So many completions that wait one behind the other are one job and pay `scheduler.complete` once; 0 and 1 are the
    /// same.
    pub completion_batch: u32,
    /// Whom a READY task wakes on host threads; in virtual time there is nobody to wake.
    pub wake: Wake,
    /// With how many slots of each ring the run begins when the window adapts itself; 0 when it does not.
    pub adaptive_window: u64,
}

/// Which hazards between regions make a dependency.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hazards {
    /// Reads wait for the last writers.
    Raw,
    /// Writes wait for the last writers too.
    #[default]
    RawWaw,
    /// Writes also wait for the readers since.
    Full,
}

/// Which scopes hold a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScopeHold {
    /// The innermost scope open at submission.
    #[default]
    Innermost,
    /// Every scope open at submission.
    Enclosing,
}

/// In which order a completed task releases its consumers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FanoutOrder {
    /// Newest first.
    #[default]
    Lifo,
    /// Oldest first.
    Fifo,
}

/// What happens to a task that finds its ready queue full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnReadyFull {
    /// It waits outside and goes in first.
    #[default]
    Defer,
    /// It is dropped, its dependents are cancelled.
    Drop,
}

/// Whom a READY task wakes on host threads. Who takes it is decided by the clocks of the workers either way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wake {
    /// The sleeping executor whose workers have the smallest clock.
    #[default]
    MinClock,
    /// All sleeping executors.
    Broadcast,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine {
            name: "ideal".into(),
            clock_mhz: 1850,
            kernels: "reference".into(),
            workers: Workers { cube: 24, vector: 48, ..Workers::default() },
            limits: Limits::default(),
            orchestrator: OrchestratorCosts::default(),
            scheduler: SchedulerCosts::default(),
            worker: WorkerCosts::default(),
            rules: Rules::default(),
            places: Places::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { window: 16384, heap: 64 << 20, deps: 65536, tensors: 65536, ready: 65536, rings: 1, spare: 0 }
    }
}

impl Default for SchedulerCosts {
    fn default() -> SchedulerCosts {
        SchedulerCosts { threads: 1, admit: 0, complete: 0, edge: 0, dispatch: 0 }
    }
}

/// Why settings cannot be used. The message names the value and the remedy.
#[derive(thiserror::Error, Debug)]
pub enum ConfigError {
    /// The file system said no.
    #[error("{path}: {source}")]
    Io {
        /// File.
        path: String,
        /// Its answer.
        source: std::io::Error,
    },
    /// A setting is wrong.
    #[error("{0}")]
    Setting(String),
}

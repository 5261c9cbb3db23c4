//! The numbers of a run, as values; the other files of this folder turn them into text, JSON and CSV.
//!
//! The engine fills a [`Report`]; [`verdict()`] reads it and says in words what it means; [`render`] and [`write_json`] give
//! it its two forms. Others read along in the journal of the run: [`ScheduleWriter`], [`Export`], [`Timeline`], [`PathRecorder`].

mod arrows;
mod behind;
mod blame;
mod by_type;
mod causes;
mod chrome;
mod compare;
mod compare_html;
mod counters;
mod critical_path;
mod csv;
mod deadlock;
mod diff;
mod dot;
mod export;
mod host;
mod html;
mod json;
mod line;
mod memory;
mod mould;
mod operations;
mod output;
mod pack;
pub(crate) mod page;
mod path_csv;
mod path_writer;
mod pen;
mod perfetto;
#[cfg(test)]
mod sample;
mod spread;
mod stamp;
mod statistics;
mod table;
mod text;
mod timeline;
mod tracks;
mod varint;
mod verdict;
mod what_if;
mod words;

pub use arrows::Arrows;
pub use blame::{Blame, PathKernel, PathReport, PathStep, PathSums};
pub use by_type::TypeReport;
pub use chrome::Chrome;
pub use compare::{Comparison, Figures, Row, TypeFigures};
pub use compare_html::write_comparison;
pub use critical_path::{PathRecorder, Steps};
pub use csv::ScheduleWriter;
pub use diff::Diff;
pub use dot::{MOST_TASKS, write_dot};
pub use export::{Export, Sheet};
pub use html::{Recording, write_html};
pub use json::{write_json, write_pretty};
pub use memory::{Memory, MemoryPart};
pub use operations::Operations;
pub use output::{Output, OutputError};
pub use pack::PackedPath;
pub use path_csv::{PathRows, StaticRows, path_rows};
pub use path_writer::PathWriter;
pub use perfetto::Perfetto;
pub use statistics::{Fan, Footprint, Statistics, TypeWork};
pub use table::columns;
pub use text::render;
pub use timeline::Timeline;
pub use verdict::verdict;
pub use what_if::{WhatIf, what_if};
pub use words::{count, group, plain, wrap};

use crate::config::Machine;
use crate::id::{TaskId, WorkerId, WorkerType};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything a run has to tell. Serialises to the `--json` form.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Always `ptosim-result`.
    pub format: String,
    /// Version of this form.
    pub version: u32,
    /// Name of the workload.
    pub workload: String,
    /// The machine, with everything that was set.
    pub machine: Machine,
    /// Name of the policy.
    pub policy: String,
    /// Name of the engine.
    pub engine: String,
    /// How it ended.
    pub outcome: Outcome,
    /// End of the last block.
    pub makespan: u64,
    /// The last instant.
    pub finish: u64,
    /// Tasks submitted.
    pub tasks: u64,
    /// Edges linked.
    pub edges: u64,
    /// Blocks run.
    pub blocks: u64,
    /// Tasks by how they ended.
    pub ended: Ended,
    /// One entry a worker, in order of id.
    pub workers: Vec<WorkerReport>,
    /// Where the orchestrator's cycles went.
    pub orchestrator: OrchestratorReport,
    /// Where the scheduler threads' cycles went.
    pub scheduler: SchedulerReport,
    /// How good the makespan can be at best.
    pub bounds: Bounds,
    /// The most that was ever in use.
    pub high_water: HighWater,
    /// Waiting times of tasks, in cycles.
    pub latency: BTreeMap<String, Latency>,
    /// One entry a kernel, by total cycles, descending; then by name.
    pub kernels: Vec<KernelReport>,
    /// What stopped the run, if it got stuck.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub deadlock: Option<Deadlock>,
    /// What the reader of the report should know, such as types that were run elsewhere.
    pub notes: Vec<String>,
    /// The observed critical path, when it was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<PathReport>,
    /// What other settings would change, when it was asked for; the largest gain first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub what_if: Vec<WhatIf>,
    /// Counters of the policy.
    pub policy_report: serde_json::Value,
    /// What holds this run back and what to try, in plain words.
    pub verdict: String,
    /// Figures of the host, if it ran on host threads; never cycles.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub threads: Option<ThreadsReport>,
}

/// A run on host threads, in nanoseconds of the host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ThreadsReport {
    /// `free` or `deterministic`.
    pub mode: String,
    /// CPUs of the host.
    pub host_cpus: u64,
    /// Threads that complete tasks; with 0 whoever ends a task does.
    pub schedulers: u64,
    /// Threads that run the blocks of all workers.
    pub executors: u64,
    /// From the first operation to the end of the last thread.
    pub wall_ns: u64,
    /// Of one task, on average.
    pub ns_per_task: f64,
    /// Throughput.
    pub tasks_per_second: f64,
    /// In nanoseconds, of one task in 64.
    pub latency: BTreeMap<String, Latency>,
    /// Sleeping threads woken.
    pub wake_ups: u64,
    /// Times a thread went to sleep.
    pub parks: u64,
    /// Attempts on a queue that had to be repeated because of another thread.
    pub contention: u64,
    /// Tasks run by the thread that made them READY, without a queue.
    pub handed_on: u64,
    /// Times the orchestrator had to wait for room.
    pub orchestrator_waits: u64,
    /// Seed of the faults made on purpose, if any were.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub inject_seed: Option<u64>,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every task was consumed.
    Completed,
    /// Nothing can happen and work is left.
    Deadlock,
    /// A task failed, was dropped or cancelled, or the policy halted.
    Failed,
    /// A time-out of the policy ended the run.
    Timeout,
}

impl Outcome {
    /// The name used in files and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Deadlock => "deadlock",
            Outcome::Failed => "failed",
            Outcome::Timeout => "timeout",
        }
    }
}

/// Tasks by how they ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Ended {
    /// Ran to a good end.
    pub completed: u64,
    /// Ran and failed.
    pub failed: u64,
    /// Refused by a full queue or an unknown owner.
    pub dropped: u64,
    /// Not run because of something that happened to another task, or removed.
    pub cancelled: u64,
    /// Tasks CONSUMED.
    pub consumed: u64,
}

/// One worker.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerReport {
    /// Number.
    pub id: WorkerId,
    /// Type.
    #[serde(rename = "type")]
    pub kind: WorkerType,
    /// Blocks it ran.
    pub blocks: u64,
    /// Cycles it ran them.
    pub busy: u64,
    /// Every cycle from 0 to the makespan, by cause.
    pub accounts: Accounts,
}

/// Cycles by cause; the sum is the makespan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Accounts {
    /// It runs a block.
    pub busy: u64,
    /// A task it could run is ready but waits for the scheduler.
    pub overhead: u64,
    /// Ready tasks exist, but the policy or a cluster partner keeps them back.
    pub held: u64,
    /// Submitted tasks wait for others.
    pub dependency: u64,
    /// The orchestrator waits for a slot.
    pub window: u64,
    /// The orchestrator waits for heap.
    pub heap: u64,
    /// The orchestrator waits for dependency entries.
    pub deps: u64,
    /// The orchestrator waits for tensor-map entries.
    pub tensors: u64,
    /// The orchestrator is still submitting.
    pub orchestrator: u64,
    /// Nothing of its type is left.
    pub drained: u64,
}

impl Accounts {
    /// Names and values, in the order of the table in the documentation.
    #[must_use]
    pub fn entries(&self) -> [(&'static str, u64); 10] {
        [
            ("busy", self.busy),
            ("overhead", self.overhead),
            ("held", self.held),
            ("dependency", self.dependency),
            ("window", self.window),
            ("heap", self.heap),
            ("deps", self.deps),
            ("tensors", self.tensors),
            ("orchestrator", self.orchestrator),
            ("drained", self.drained),
        ]
    }

    /// The sum of all accounts.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.entries().iter().map(|(_, cycles)| cycles).sum()
    }
}

/// Where the orchestrator's cycles went; the parts add up to `finish`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct OrchestratorReport {
    /// Paying costs.
    pub working: u64,
    /// Waiting for a `submit_at`.
    pub waiting: u64,
    /// Waiting for something that was full, until it was not.
    pub blocked: Blocked,
    /// Waiting for something that stayed full until the end of the run.
    pub stuck: u64,
    /// After its last operation.
    pub done: u64,
}

/// Cycles the orchestrator was blocked, by what was full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Blocked {
    /// Task slots.
    pub window: u64,
    /// Heap ring.
    pub heap: u64,
    /// Dependency entries.
    pub deps: u64,
    /// Tensor-map entries.
    pub tensors: u64,
}

/// Cycles of all scheduler threads by job; the cycles add up to threads × `finish`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SchedulerReport {
    /// Threads.
    pub threads: u32,
    /// Cycles of admit jobs.
    pub admit: u64,
    /// Cycles of complete jobs.
    pub complete: u64,
    /// Cycles of dispatch jobs.
    pub dispatch: u64,
    /// Cycles without a job.
    pub idle: u64,
    /// Jobs done.
    pub jobs: u64,
}

/// Bounds of the makespan.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Bounds {
    /// Longest chain of dependent tasks, costs included.
    pub critical_path: u64,
    /// Largest quotient, rounded up, of a type's cycles and its workers.
    pub work: u64,
    /// The larger of the two.
    pub lower_bound: u64,
    /// Lower bound divided by makespan; 1 when both are 0.
    pub efficiency: f64,
}

/// The most that was ever in use.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HighWater {
    /// Per ring.
    pub rings: Vec<RingHighWater>,
    /// Tensor-map entries.
    pub tensors: u64,
    /// Entries of each ready queue, by task type.
    pub ready: BTreeMap<String, u64>,
    /// How often a task found its ready queue full.
    pub ready_queue_full_events: u64,
}

/// The most that was ever in use in one ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RingHighWater {
    /// Slots.
    pub window: u64,
    /// Bytes from the tail to the top of the heap ring.
    pub heap: u64,
    /// Dependency entries.
    pub deps: u64,
}

/// A distribution of cycles.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Latency {
    /// How many were measured.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Half are at most this.
    pub p50: u64,
    /// 90 in 100 are at most this.
    pub p90: u64,
    /// 99 in 100 are at most this.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

/// One kernel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct KernelReport {
    /// Name.
    pub name: String,
    /// Blocks run.
    pub count: u64,
    /// Busy cycles of all workers on it.
    pub total: u64,
    /// Part of all busy cycles.
    pub share: f64,
    /// Mean cycles of a block on a worker.
    pub mean: f64,
    /// Largest cycles of a block on a worker.
    pub max: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Why a run got stuck, as facts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Deadlock {
    /// `window`, `heap`, `deps`, `tensors`, or `policy` when the policy keeps tasks back for ever.
    pub resource: String,
    /// Ring that is full.
    pub ring: u32,
    /// The task that cannot be submitted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub task: Option<TaskId>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Its line in the trace.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u64>,
    /// The instant.
    pub at: u64,
    /// Tasks that entered this ring.
    pub current: u64,
    /// Tasks of this ring that are retired.
    pub last_task_alive: u64,
    /// Size of the resource.
    pub size: u64,
    /// How much of it always stays unused.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub spare: u64,
    /// How much of it is in use.
    pub used: u64,
    /// How much the blocked task asks for.
    pub wanted: u64,
    /// The oldest task alive in this ring; the tensor map is shared, so with that it is the oldest that keeps entries in any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub oldest: Option<OldestTask>,
    /// Sizes with which this run finishes, by dotted key (`limits.window`); one step less of any of them does not do.
    pub needed: BTreeMap<String, u64>,
    /// Nothing smaller of any of them does, however many steps: each size was run or is ruled out.
    #[serde(default)]
    pub is_smallest: bool,
}

/// The oldest task alive and why it is not CONSUMED.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OldestTask {
    /// The task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// Its line in the trace.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u64>,
    /// Its state.
    pub state: String,
    /// Lines of the open scopes that hold it (empty for programs without lines), innermost last.
    pub held_by_scopes: Vec<ScopeFact>,
    /// Consumers that have not completed.
    pub waits_for_consumers: Vec<TaskId>,
    /// Producers that have not completed.
    pub waits_for_producers: Vec<TaskId>,
}

/// An open scope.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScopeFact {
    /// 1 for the outermost.
    pub depth: u32,
    /// Line of its `scope_begin`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u64>,
    /// Tasks it holds.
    pub tasks: u64,
}

//! One task as a program submits it.

use crate::id::{BufferId, Symbol, TaskId, TaskType};
use serde::{Deserialize, Deserializer, Serialize};

/// The data of a `submit` operation. One value is filled again and again, so that reading a program allocates nothing.
#[derive(Clone, PartialEq, Debug)]
pub struct Submit {
    /// Its label; `None` means `task<id>`.
    pub name: Option<Symbol>,
    /// The kernel whose cost applies; `None` when neither kernel nor name is given.
    pub kernel: Option<Symbol>,
    /// What it runs on; `None` takes the kernel table's type, or VECTOR.
    pub kind: Option<TaskType>,
    /// Its cost; `None` takes the kernel table's.
    pub cost: Option<Cost>,
    /// Producers named explicitly; duplicates allowed.
    pub deps: Vec<TaskId>,
    /// Regions read (`in`).
    pub reads: Vec<Region>,
    /// Regions written (`out`).
    pub writes: Vec<Region>,
    /// Regions read and written (`inout`).
    pub updates: Vec<Region>,
    /// Buffers allocated and written (`new`).
    pub allocates: Vec<NewBuffer>,
    /// Anonymous allocation in bytes.
    pub out_bytes: u64,
    /// How many equal blocks it has; at least 1.
    pub blocks: u32,
    /// Whether all blocks are placed at the same instant.
    pub sync_start: bool,
    /// What one MIX block takes of one cluster.
    pub units: Units,
    /// The orchestrator does not start this operation earlier.
    pub submit_at: u64,
    /// Whether the task fails at its end.
    pub fault: bool,
    /// The task during whose run this one is created, and how long after its start.
    pub parent: Option<(TaskId, u64)>,
    /// Numbers that kernel cost expressions may use, such as `m`.
    pub params: Vec<(Symbol, f64)>,
    /// What only policies other than `pto` read.
    pub policy: Option<Box<PolicyFields>>,
}

/// One block on one worker and nothing else said.
impl Default for Submit {
    fn default() -> Submit {
        Submit {
            name: None,
            kernel: None,
            kind: None,
            cost: None,
            deps: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            updates: Vec::new(),
            allocates: Vec::new(),
            out_bytes: 0,
            blocks: 1,
            sync_start: false,
            units: Units::default(),
            submit_at: 0,
            fault: false,
            parent: None,
            params: Vec::new(),
            policy: None,
        }
    }
}

impl Submit {
    /// Empties it for the next task, keeping its memory.
    pub fn clear(&mut self) {
        self.name = None;
        self.kernel = None;
        self.kind = None;
        self.cost = None;
        self.deps.clear();
        self.reads.clear();
        self.writes.clear();
        self.updates.clear();
        self.allocates.clear();
        self.out_bytes = 0;
        self.blocks = 1;
        self.sync_start = false;
        self.units = Units::default();
        self.submit_at = 0;
        self.fault = false;
        self.parent = None;
        self.params.clear();
        self.policy = None;
    }

    /// Makes it a copy of `other`, keeping its memory.
    pub fn copy_from(&mut self, other: &Submit) {
        let Submit { deps, reads, writes, updates, allocates, params, policy, .. } = other;
        self.deps.clone_from(deps);
        self.reads.clone_from(reads);
        self.writes.clone_from(writes);
        self.updates.clone_from(updates);
        self.allocates.clone_from(allocates);
        self.params.clone_from(params);
        self.policy.clone_from(policy);
        self.name = other.name;
        self.kernel = other.kernel;
        self.kind = other.kind;
        self.cost = other.cost;
        self.out_bytes = other.out_bytes;
        self.blocks = other.blocks;
        self.sync_start = other.sync_start;
        self.units = other.units;
        self.submit_at = other.submit_at;
        self.fault = other.fault;
        self.parent = other.parent;
    }

    /// Whether it neither reads, writes nor allocates anything.
    #[inline]
    #[must_use]
    pub fn is_simple(&self) -> bool {
        let regions = self.reads.len() | self.writes.len() | self.updates.len() | self.allocates.len();
        regions as u64 | self.out_bytes == 0
    }

    /// Bytes it takes of the heap ring: every allocation rounded up to 64. Saturates instead of overflowing.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        let round = |bytes: u64| bytes.checked_next_multiple_of(64).unwrap_or(u64::MAX);
        let new = self.allocates.iter().map(|new| round(new.bytes));
        new.fold(round(self.out_bytes), u64::saturating_add)
    }
}

/// Cycles of one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    /// The same on every worker of the block.
    Cycles(u64),
    /// MIX only: each kind ends on its own.
    PerKind {
        /// On the cube.
        cube: u64,
        /// On the vectors.
        vector: u64,
    },
}

/// Workers of one cluster that a MIX block takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Units {
    /// 0 or 1.
    pub cube: u8,
    /// 0 to 2.
    pub vector: u8,
}

impl Default for Units {
    fn default() -> Units {
        Units { cube: 1, vector: 2 }
    }
}

/// Bytes of a buffer: `rows` pieces of `row_bytes`, `stride` apart. A plain range has one row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// The buffer.
    pub buffer: BufferId,
    /// First byte.
    pub offset: u64,
    /// Bytes of one row.
    pub row_bytes: u64,
    /// Number of rows; sources turn rows that touch into one row.
    pub rows: u64,
    /// Distance between the beginnings of two rows; at least `row_bytes` when there are several.
    pub stride: u64,
}

impl Region {
    /// One contiguous range.
    #[must_use]
    pub fn range(buffer: BufferId, offset: u64, bytes: u64) -> Region {
        Region { buffer, offset, row_bytes: bytes, rows: 1, stride: bytes }
    }

    /// The byte behind its last one.
    #[must_use]
    pub fn end(&self) -> u64 {
        if self.rows == 0 || self.row_bytes == 0 {
            return self.offset;
        }
        self.offset.saturating_add((self.rows - 1).saturating_mul(self.stride)).saturating_add(self.row_bytes)
    }
}

/// A buffer made by a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewBuffer {
    /// The name it is bound to.
    pub buffer: BufferId,
    /// Its size.
    pub bytes: u64,
}

/// Fields that only policies read; every one has a default.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PolicyFields {
    /// Cyber: the coroutine this task activates.
    pub routine: Option<String>,
    /// Cyber: priority of the routine, higher first.
    pub prio: Option<u32>,
    /// Cyber: group that runs it.
    pub group: Option<String>,
    /// Cyber choreography: processor it is pinned to; -1 is the pool.
    pub processor: Option<i32>,
    /// Orleans: scheduling context. `Some(None)` is an explicit null.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "explicit_null")]
    pub activation: Option<Option<String>>,
    /// Orleans: kind of work item.
    pub work_item: Option<WorkItem>,
    /// Orleans: who asked for it.
    pub caller: Option<String>,
    /// Orleans: cycles of the turn after the task itself.
    pub post_cycles: u64,
    /// BMF: node of the stream graph.
    pub node: Option<i32>,
    /// BMF: timestamp of its packet.
    pub timestamp: Option<i64>,
    /// Ray: who produces and consumes it.
    pub source: Option<String>,
    /// Ray: not fired earlier.
    pub schedule_at: Option<ScheduleAt>,
    /// Ray: identity in logs.
    pub uuid: Option<String>,
    /// Ray: opaque arguments.
    pub args: Option<serde_json::Value>,
}

/// A field that is there and null differs from one that is not there.
fn explicit_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Ray: when a task is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ScheduleAt {
    /// A cycle of the run.
    Cycle(u64),
    /// Microseconds since 1970-01-01T00:00:00Z, from an RFC 3339 text with an offset.
    UtcMicros(i64),
}

impl Default for ScheduleAt {
    /// At the beginning.
    fn default() -> ScheduleAt {
        ScheduleAt::Cycle(0)
    }
}

/// Orleans: kinds of work items.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum WorkItem {
    /// Application request.
    #[default]
    Invoke,
    /// Request to a system target.
    Request,
    /// Response from a system target.
    Response,
    /// Arbitrary closure on a system context.
    Closure,
    /// Continuation of an activation.
    Resume,
    /// A bare task; only the top scheduler makes these.
    Task,
}

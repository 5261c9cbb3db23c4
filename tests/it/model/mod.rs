//! The reference model: the semantics of a run, computed as plainly as they are written.
//!
//! It shares no code with the engine. Nothing is indexed or cached for speed: every question is answered by looking at all
//! tasks, blocks and jobs again. Where the page leaves a choice, the comment at that place begins with `Choice:`.
//!
//! ```text
//! mod.rs       what the model tells; the check before the run; the loop over instants
//! steps.rs     what happens inside an instant: blocks, jobs, placement
//! submit.rs    the orchestrator and its resources
//! memory.rs    who wrote and read each byte
//! ```

mod memory;
mod steps;
mod submit;

pub use memory::Memory;

use crate::program::Program;
use ptosim::config::Machine;
use ptosim::id::{TaskType, WorkerType};
use ptosim::report::{HighWater, OrchestratorReport, RingHighWater, SchedulerReport};
use ptosim::workload::Submit;
use std::collections::{BTreeMap, VecDeque};
use steps::{Block, Job, RunningJob};
use submit::{Orchestrator, Ring};

/// Everything the model knows about a finished run.
#[derive(Debug)]
pub struct Told {
    /// How it ended.
    pub ending: Ending,
    /// One row a block and worker, in the order of the dispatch jobs.
    pub rows: Vec<Row>,
    /// End of the last block.
    pub makespan: u64,
    /// The last instant.
    pub finish: u64,
    /// Tasks published.
    pub tasks: u64,
    /// Edges linked.
    pub edges: u64,
    /// Tasks COMPLETED.
    pub completed: u64,
    /// `(cycle, task)` in the order in which tasks became CONSUMED.
    pub consumed_at: Vec<(u64, usize)>,
    /// One entry for each task passed by a `last_task_alive`.
    pub history: Vec<Retired>,
    /// Per worker, Σ(start − clock before).
    pub stall: Vec<u64>,
    /// Where the orchestrator's cycles went.
    pub orchestrator: OrchestratorReport,
    /// Where the scheduler's cycles went.
    pub scheduler: SchedulerReport,
    /// The most that was ever in use; ready queues are left out.
    pub high_water: HighWater,
}

/// How a run ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Every task was CONSUMED.
    Completed,
    /// Nothing can happen and work is left.
    Deadlock(Stuck),
    /// This task asks for something the machine can never give.
    Error(usize),
}

/// The facts of a deadlock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stuck {
    /// What is full.
    pub resource: Resource,
    /// Ring of the blocked task. Choice: also when the tensor map, which all rings share, is what lacks.
    pub ring: u32,
    /// The blocked task.
    pub task: u64,
    /// The instant. Choice: the last one at which something happened, which is also `finish`.
    pub at: u64,
    /// Tasks that entered the ring.
    pub current: u64,
    /// Tasks of the ring that are retired.
    pub last_task_alive: u64,
    /// Size of the resource. Choice: of the window with its spare slots.
    pub size: u64,
    /// How much of it is in use.
    pub used: u64,
    /// How much the task asks for.
    pub wanted: u64,
    /// Oldest task alive in the ring. Choice: when the tensor map lacks, the oldest of those of all rings with entries.
    pub oldest: Option<u64>,
    /// How many tasks each scope holds that holds the oldest one, outermost first.
    pub holders: Vec<u64>,
}

/// What an orchestrator can wait for, in the order in which it asks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Resource {
    /// Task slots.
    Window,
    /// Heap bytes.
    Heap,
    /// Dependency entries.
    Deps,
    /// Tensor-map entries.
    Tensors,
}

impl Resource {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Window => "window",
            Resource::Heap => "heap",
            Resource::Deps => "deps",
            Resource::Tensors => "tensors",
        }
    }
}

/// One block on one worker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Row {
    /// When the block started.
    pub start: u64,
    /// The task.
    pub task: u64,
    /// Its block, in the order of placement.
    pub block: u32,
    /// Where.
    pub worker: u32,
    /// When the task was published.
    pub submit: u64,
    /// When it became READY.
    pub ready: u64,
    /// When this worker ended.
    pub end: u64,
}

/// One step of a `last_task_alive`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retired {
    /// When.
    pub at: u64,
    /// In which ring.
    pub ring: usize,
    /// The pointer behind the task.
    pub last_task_alive: u64,
    /// The heap tail then.
    pub heap_tail: u64,
}

/// A task from the moment its operation starts.
struct Task {
    submit: Submit,
    kind: TaskType,
    blocks: u32,
    heap_end: Option<u64>,
    dep_entries: u64,
    map_entries: u64,
    /// All it depends on, CONSUMED or not.
    depends_on: Vec<usize>,
    /// Producers and consumers linked, in the order of linking.
    producers: Vec<usize>,
    consumers: Vec<usize>,
    /// Open scopes that hold it.
    held_by: Vec<usize>,
    published: Option<u64>,
    admitted: bool,
    ready: Option<u64>,
    /// Blocks placed, taken by a scheduler thread as `complete` job, and ended.
    placed: u32,
    taken: u32,
    ended: u32,
    completed: bool,
    consumed: bool,
}

struct Worker {
    kind: WorkerType,
    free: bool,
    clock: u64,
}

/// The state of a run.
struct Model<'a> {
    program: &'a Program,
    machine: &'a Machine,
    now: u64,
    tasks: Vec<Task>,
    workers: Vec<Worker>,
    rings: Vec<Ring>,
    memory: Memory,
    orchestrator: Orchestrator,
    /// Ready tasks by type.
    ready: BTreeMap<TaskType, VecDeque<usize>>,
    /// Blocks that have started or will after `pickup`.
    running: Vec<Block>,
    /// Scheduler jobs that wait, and those in progress in the order in which they started.
    jobs: VecDeque<Job>,
    working: Vec<RunningJob>,
    told: Told,
}

/// Runs `program` on `machine`.
pub fn run(program: &Program, machine: &Machine) -> Told {
    let mut model = Model::new(program, machine);
    // Choice: the first task that can never be placed is named, before anything else that is wrong shows up in the run.
    match program.submits().position(|submit| !can_ever_be_placed(submit, machine)) {
        Some(task) => model.told.ending = Ending::Error(task),
        None => model.run(),
    }
    model.told
}

/// The queue a task waits in: `AI_CPU` and ACCELERATOR fall back to VECTOR on a machine with neither them nor ANY.
fn queue(submit: &Submit, machine: &Machine) -> TaskType {
    let kind = submit.kind.expect("programs of the tests name the type of every task");
    let missing = |worker| machine.workers.count(worker) == 0 && machine.workers.any == 0;
    match kind {
        TaskType::AiCpu if missing(WorkerType::AiCpu) => TaskType::Vector,
        TaskType::Accelerator if missing(WorkerType::Accelerator) => TaskType::Vector,
        _ => kind,
    }
}

/// The worker type that serves a queue, besides ANY; MIX and NONE have none.
fn served_by(kind: TaskType) -> Option<WorkerType> {
    match kind {
        TaskType::Cube => Some(WorkerType::Cube),
        TaskType::Vector => Some(WorkerType::Vector),
        TaskType::AiCpu => Some(WorkerType::AiCpu),
        TaskType::Accelerator => Some(WorkerType::Accelerator),
        TaskType::Mix | TaskType::None => None,
    }
}

/// Choice: a task that falls back to VECTOR on a machine without vectors is an error like a VECTOR task there.
/// Choice: `blocks` and `sync_start` of a NONE task mean nothing.
fn can_ever_be_placed(submit: &Submit, machine: &Machine) -> bool {
    let kind = queue(submit, machine);
    let at_once = match kind {
        TaskType::None => return true,
        TaskType::Mix if submit.units.cube > 1 || submit.units.vector > 2 => return false,
        TaskType::Mix => {
            let by_cube = 1u32.checked_div(submit.units.cube.into());
            let by_vector = 2u32.checked_div(submit.units.vector.into());
            let in_one = by_cube.into_iter().chain(by_vector).min().expect("a MIX block takes at least one worker");
            machine.workers.clusters * in_one
        }
        TaskType::Cube | TaskType::Vector | TaskType::AiCpu | TaskType::Accelerator => {
            let own = served_by(kind).expect("plain types have workers");
            machine.workers.count(own) + machine.workers.any
        }
    };
    at_once > 0 && (!submit.sync_start || submit.blocks <= at_once)
}

impl<'a> Model<'a> {
    fn new(program: &'a Program, machine: &'a Machine) -> Model<'a> {
        let rings = machine.limits.rings as usize;
        let types = WorkerType::ALL.into_iter();
        let kinds = types.flat_map(|kind| (0..machine.workers.count(kind)).map(move |_| kind));
        let workers: Vec<_> = kinds.map(|kind| Worker { kind, free: true, clock: 0 }).collect();
        let told = Told {
            ending: Ending::Completed,
            rows: Vec::new(),
            makespan: 0,
            finish: 0,
            tasks: 0,
            edges: 0,
            completed: 0,
            consumed_at: Vec::new(),
            history: Vec::new(),
            stall: vec![0; workers.len()],
            orchestrator: OrchestratorReport::default(),
            scheduler: SchedulerReport { threads: machine.scheduler.threads, ..SchedulerReport::default() },
            high_water: HighWater { rings: vec![RingHighWater::default(); rings], ..HighWater::default() },
        };
        Model {
            program,
            machine,
            now: 0,
            tasks: Vec::new(),
            workers,
            rings: (0..rings).map(|_| Ring::default()).collect(),
            memory: Memory::default(),
            orchestrator: Orchestrator::default(),
            ready: BTreeMap::new(),
            running: Vec::new(),
            jobs: VecDeque::new(),
            working: Vec::new(),
            told,
        }
    }

    fn run(&mut self) {
        loop {
            if let Err(task) = self.instant() {
                self.told.ending = Ending::Error(task);
                return;
            }
            let Some(next) = self.next_instant() else { break };
            assert!(next > self.now, "cycle {next} comes after cycle {}", self.now);
            self.spend(next - self.now);
            self.now = next;
        }
        self.tell();
    }

    /// Steps 1 to 6 until nothing changes. The default policy has neither controls nor timers.
    ///
    /// Choice: one round is steps 2 to 5 once each, in order; step 6 happens only in a round that changed nothing.
    fn instant(&mut self) -> Result<(), usize> {
        loop {
            let mut changed = self.end_blocks();
            changed |= self.end_jobs();
            changed |= self.take_jobs();
            changed |= self.orchestrate()?;
            if !changed && !self.place_blocks() {
                return Ok(());
            }
        }
    }

    fn next_instant(&self) -> Option<u64> {
        let blocks = self.running.iter().map(|block| block.end);
        let jobs = self.working.iter().map(|running| running.end);
        blocks.chain(jobs).chain(self.orchestrator_wakes()).min()
    }

    fn tell(&mut self) {
        self.told.finish = self.now;
        self.told.makespan = self.told.rows.iter().map(|row| row.end).max().unwrap_or(0);
        self.told.completed = self.tasks.iter().filter(|task| task.completed).count() as u64;
        let scheduler = &mut self.told.scheduler;
        let busy = scheduler.admit + scheduler.complete + scheduler.dispatch;
        scheduler.idle = u64::from(scheduler.threads) * self.now - busy;
        if let Some(stuck) = self.stuck() {
            self.told.ending = Ending::Deadlock(stuck);
        } else {
            assert!(
                self.tasks.iter().all(|task| task.consumed),
                "under the default policy only the orchestrator can stick"
            );
        }
    }
}

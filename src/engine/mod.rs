//! Drives orchestrator, window, scheduler, policy and machine through a workload.

use crate::config::{ConfigError, Machine};
use crate::id::{Symbol, TaskId, TaskType, WorkerId, WorkerType};
use crate::kernel::{Costs, Table};
use crate::orchestrator::Orchestrator;
use crate::policy::{Policy, Pto, QueueLimit};
use crate::report::{Deadlock, Outcome, Report, WorkerReport};
use crate::sync::Local;
use crate::window::{Resource, SlotRef, Window};
use crate::workload::{Symbols, Workload, WorkloadError};
use virtual_time::Sim;

mod deadlock;
pub mod execute;
mod family;
mod jobs;
mod tally;
pub mod threads;
mod virtual_time;

/// Runs `workload` on `machine` in virtual time under the default policy; `observer` is told what happens.
///
/// # Errors
/// When the workload cannot be read, or asks for something the machine can never give. A deadlock is not an error but an
/// [`Outcome`].
pub fn run<O: Observer>(workload: &dyn Workload, machine: &Machine, observer: &mut O) -> Result<Report, RunError> {
    let mut report = simulate(workload, machine, observer)?;
    if let Some(deadlock) = &mut report.deadlock {
        deadlock.needed = deadlock::needed(workload, machine)?;
    }
    Ok(report)
}

/// As [`run`], without looking for the sizes that would have been enough.
///
/// # Errors
/// As [`run`].
pub fn simulate<O: Observer>(workload: &dyn Workload, machine: &Machine, observer: &mut O) -> Result<Report, RunError> {
    let limit = QueueLimit { entries: machine.limits.ready, when_full: machine.rules.on_ready_queue_full };
    simulate_under(workload, machine, Pto::new(limit), observer)
}

/// As [`simulate`], under any policy.
///
/// # Errors
/// As [`run`].
pub fn simulate_under<P: Policy, O: Observer>(
    workload: &dyn Workload,
    machine: &Machine,
    policy: P,
    observer: &mut O,
) -> Result<Report, RunError> {
    if machine.scheduler.threads == 0 {
        let message = "scheduler.threads = 0: virtual time needs at least one scheduler thread; try 1";
        return Err(ConfigError::Setting(message.into()).into());
    }
    let table = Table::load(&machine.kernels)?;
    let orchestrator = Orchestrator::new(workload.open()?, Costs::new(&table), machine);
    let mut sim = Sim::new(machine, orchestrator, policy, observer).with_controls(workload.controls()?);
    if let Err(error) = sim.run() {
        if let RunError::TooLarge { .. } = error {
            // What could be seen before the run comes first.
            sim.orchestrator.validate_rest()?;
        }
        return Err(error);
    }
    let deadlock = if sim.is_complete() || sim.halt.is_some() { None } else { Some(sim.explain()) };
    let n_tasks = sim.orchestrator.next_task().0;
    if deadlock.is_some() {
        sim.orchestrator.validate_rest()?;
    }
    let mut report = report(sim, workload.name(), deadlock);
    report.tasks = n_tasks;
    Ok(report)
}

/// Puts the numbers of a finished run together.
fn report<P: Policy, O: Observer>(mut sim: Sim<'_, P, O>, workload: String, deadlock: Option<Deadlock>) -> Report {
    let (machine, makespan) = (sim.machine, sim.ledger.makespan());
    let kinds = WorkerType::ALL.into_iter().flat_map(|kind| (0..machine.workers.count(kind)).map(move |_| kind));
    let workers = kinds.zip(sim.ledger.close()).enumerate().map(|(id, (kind, (accounts, blocks)))| WorkerReport {
        id: WorkerId(id as u32),
        kind,
        blocks,
        busy: accounts.busy,
        accounts,
    });
    let ended = sim.tally.ended;
    let outcome = match deadlock {
        Some(_) => Outcome::Deadlock,
        None if sim.halt.as_ref().is_some_and(|(_, halt)| halt.timeout) => Outcome::Timeout,
        None if sim.halt.is_some() => Outcome::Failed,
        None if ended.failed + ended.dropped + ended.cancelled > 0 => Outcome::Failed,
        None => Outcome::Completed,
    };
    let mut scheduler = sim.jobs.report;
    let all = u64::from(scheduler.threads).saturating_mul(sim.now);
    scheduler.idle = all.saturating_sub(scheduler.admit + scheduler.complete + scheduler.dispatch);
    let moved = sim.orchestrator.moved().iter();
    let mut notes: Vec<_> =
        moved.map(|kind| format!("the machine has no {kind} workers: {kind} tasks ran on VECTOR")).collect();
    notes.append(&mut sim.notes);
    let halt = sim.halt.as_ref().map(|(at, halt)| format!("the policy stopped the run at {at}: {}", halt.reason));
    notes.extend(halt);
    let mut high_water = sim.tally.high_water();
    let queues = sim.policy.queues();
    high_water.ready_queue_full_events = queues.full_events;
    high_water.ready =
        TaskType::ALL.iter().zip(queues.high_water).map(|(kind, high)| (kind.name().to_string(), high)).collect();
    Report {
        format: "ptosim-result".into(),
        version: 1,
        workload,
        machine: machine.clone(),
        policy: sim.policy.name().into(),
        engine: "virtual".into(),
        outcome,
        makespan,
        finish: sim.now,
        tasks: sim.orchestrator.next_task().0,
        edges: sim.tally.edges,
        blocks: sim.tally.blocks,
        ended,
        workers: workers.collect(),
        orchestrator: sim.clerk.report,
        scheduler,
        bounds: sim.work.bounds(machine, sim.tally.critical_path, makespan),
        high_water,
        latency: sim.tally.latencies(),
        kernels: sim.tally.kernels(sim.orchestrator.source().symbols()),
        deadlock,
        notes,
        policy_report: sim.policy.report(),
        verdict: String::new(),
        threads: None,
    }
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
    /// A task asks for more than the whole of a resource.
    #[error("{message}")]
    TooLarge {
        /// What is too small.
        resource: Resource,
        /// Task, line, value and remedy.
        message: String,
    },
    /// A kernel failed or panicked; the message names task and kernel.
    #[error("{0}")]
    Kernel(String),
    /// Something stays full for ever.
    #[error("{0}")]
    Stuck(String),
    /// The host's threads do not do as they should.
    #[error("{0}")]
    Threads(String),
}

/// Told what happens in a run, in the order in which it happens. Every method does nothing by default.
pub trait Observer {
    /// Whether it looks at all; what is only computed for observers is left out otherwise.
    const WATCHES: bool = true;

    /// A block started on a worker. A MIX block gives one row for each of its workers.
    #[inline]
    fn block(&mut self, row: &BlockRow, names: &Symbols) {
        let _ = (row, names);
    }

    /// The block that this worker leads ends now.
    #[inline]
    fn block_ends(&mut self, leader: WorkerId, now: u64) {
        let _ = (leader, now);
    }

    /// A task was published; its producers are linked in the window.
    #[inline]
    fn submitted(&mut self, task: TaskId, slot: SlotRef, window: &Window<Local>, now: u64) {
        let _ = (task, slot, window, now);
    }

    /// A task is CONSUMED.
    #[inline]
    fn consumed(&mut self, task: TaskId, now: u64) {
        let _ = (task, now);
    }

    /// `last_task_alive` of a ring passed a task.
    #[inline]
    fn retired(&mut self, retired: &Retired, now: u64) {
        let _ = (retired, now);
    }

    /// A task will never run.
    fn cancelled(&mut self, task: TaskId, cause: &Cause<'_>, now: u64) {
        let _ = (task, cause, now);
    }
}

/// Why a task never runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause<'a> {
    /// A task it depends on ended badly.
    Upstream(TaskId),
    /// It was dropped or removed, for this reason.
    Dropped(&'a str),
}

/// A task that `last_task_alive` passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retired {
    /// The task.
    pub task: TaskId,
    /// Its ring.
    pub ring: u32,
    /// The ring's `heap_tail` now.
    pub heap_tail: u64,
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
impl Observer for () {
    const WATCHES: bool = false;
}

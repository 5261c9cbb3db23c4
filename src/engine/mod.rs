//! Drives orchestrator, window, scheduler, policy and machine through a workload.

pub use crate::error::RunError;

use crate::config::Machine;
use crate::id::{Symbol, TaskId, TaskType, WorkerId, WorkerType};
use crate::kernel::{Costs, Table};
use crate::orchestrator::Orchestrator;
use crate::policy::{Choice, Policy};
use crate::report::{Deadlock, HighWater, Outcome, Report, WorkerReport};
use crate::sync::{Local, Sharing};
use crate::window::{Lengths, SlotRef, Window};
use crate::workload::{Symbols, Workload};
use mode::{General, Mode, Plain, Usual};
use virtual_time::Sim;

pub use events::{JobKind, JobStep, Phase, Placed, SchedulerJob};
pub use journal::{Journal, read_along};

mod adaptive;
mod blocks;
mod choose;
mod clerk;
mod deadlock;
pub(crate) mod ends;
mod events;
pub mod execute;
mod failures;
mod family;
mod follow_up;
mod jobs;
pub mod journal;
mod mode;
mod submission;
mod tally;
mod tell;
pub mod threads;
mod virtual_time;
mod watch;

pub use choose::simulate_with;
pub use watch::Watch;

/// Runs `workload` on `machine` in virtual time under the default policy; `observer` is told what happens.
///
/// # Errors
/// When the workload cannot be read, or asks for something the machine can never give. A deadlock is not an error but an
/// [`Outcome`].
pub fn run(workload: &dyn Workload, machine: &Machine, observer: &mut dyn Observer) -> Result<Report, RunError> {
    run_with(workload, machine, &Choice::default(), observer)
}

/// As [`run`], under the policy chosen.
///
/// # Errors
/// As [`run`], and when the policy cannot be configured as asked for this workload and machine.
pub fn run_with(
    workload: &dyn Workload,
    machine: &Machine,
    choice: &Choice,
    observer: &mut dyn Observer,
) -> Result<Report, RunError> {
    let mut report = simulate_with(workload, machine, choice, observer)?;
    if let Some(deadlock) = &mut report.deadlock {
        crate::size::fill_needed(deadlock, workload, machine, choice)?;
    }
    Ok(report)
}

/// As [`run`], without looking for the sizes that would have been enough.
///
/// # Errors
/// As [`run`].
pub fn simulate(workload: &dyn Workload, machine: &Machine, observer: &mut dyn Observer) -> Result<Report, RunError> {
    simulate_with(workload, machine, &Choice::default(), observer)
}

/// As [`simulate`], under any policy.
///
/// # Errors
/// As [`run`].
pub fn simulate_under<P: Policy>(
    workload: &dyn Workload,
    machine: &Machine,
    policy: P,
    mut observer: &mut dyn Observer,
) -> Result<Report, RunError> {
    if !observer.watches() {
        return drive_alone(workload, machine, policy);
    }
    let (window, mut watch) = (window_of(machine)?, Watch(std::slice::from_mut(&mut observer)));
    let mut sim = set_up(workload, machine, policy, &window, &mut watch)?;
    run_on(&mut sim)?;
    finish(sim, workload)
}

/// Drives a run to its end, in the narrowest mode as long as that goes. Compiled for every pair of policy and observer.
fn drive<P: Policy, O: Observer>(
    workload: &dyn Workload,
    machine: &Machine,
    policy: P,
    observer: &mut O,
) -> Result<Report, RunError> {
    let window = window_of(machine)?;
    let mut sim = set_up(workload, machine, policy, &window, observer)?;
    let mut is_over = false;
    if sim.is_plain() {
        let mut plain = sim.turn_into::<Plain, O>(|observer| observer);
        is_over = run_on(&mut plain)?;
        sim = plain.turn_into(|observer| observer);
    } else if sim.is_usual() {
        let mut usual = sim.turn_into::<Usual, O>(|observer| observer);
        is_over = run_on(&mut usual)?;
        sim = usual.turn_into(|observer| observer);
    }
    if !is_over {
        run_on(&mut sim)?;
    }
    finish(sim, workload)
}

/// The same with nobody to tell. What leaves the narrowest mode goes on in the engine that is compiled for any observer, so that it
/// is not compiled once more.
fn drive_alone<P: Policy>(workload: &dyn Workload, machine: &Machine, policy: P) -> Result<Report, RunError> {
    let (window, mut nobody, mut none) = (window_of(machine)?, (), Watch(&mut []));
    let sim = set_up(workload, machine, policy, &window, &mut nobody)?;
    let mut is_over = false;
    let mut sim: Sim<'_, P, Watch<'_, '_>, General> = if sim.is_plain() {
        let mut plain = sim.turn_into::<Plain, ()>(|observer| observer);
        is_over = run_on(&mut plain)?;
        plain.turn_into(|()| &mut none)
    } else {
        sim.turn_into(|()| &mut none)
    };
    if !is_over {
        run_on(&mut sim)?;
    }
    finish(sim, workload)
}

/// The window of a machine that virtual time can run.
fn window_of(machine: &Machine) -> Result<Window<Local>, RunError> {
    if machine.scheduler.threads == 0 {
        let message = "scheduler.threads = 0: virtual time needs at least one scheduler thread; try 1";
        return Err(machine.refuse(&["scheduler.threads"], message).into());
    }
    make_window(machine)
}

/// The window of a machine, if there is memory for it.
fn make_window<S: Sharing>(machine: &Machine) -> Result<Window<S>, RunError> {
    let Lengths { slots, entries, .. } = Lengths::of(&machine.limits);
    Window::try_new(&machine.limits, machine.rules.fanout_order).ok_or_else(|| {
        let message = format!(
            "a window of {slots} slots and {entries} dependency entries in all takes more memory than this host gives; lower \
             limits.window, limits.deps or limits.rings"
        );
        machine.refuse(&["limits.window", "limits.deps", "limits.rings"], message).into()
    })
}

/// A run before its first instant.
fn set_up<'a, P: Policy, O: Observer>(
    workload: &dyn Workload,
    machine: &'a Machine,
    policy: P,
    window: &'a Window<Local>,
    observer: &'a mut O,
) -> Result<Sim<'a, P, O, General>, RunError> {
    let table = Table::load(&machine.kernels)?;
    let orchestrator = Orchestrator::new(workload.open()?, Costs::new(&table), machine);
    Ok(Sim::new(machine, window, orchestrator, policy, observer).with_controls(workload.controls()?))
}

/// Closes the books of a run and puts its report together.
fn finish<P: Policy, O: Observer>(
    mut sim: Sim<'_, P, O, General>,
    workload: &dyn Workload,
) -> Result<Report, RunError> {
    sim.close()?;
    let deadlock = if sim.is_complete() || sim.halt.is_some() { None } else { Some(sim.explain()) };
    let tasks = sim.orchestrator.next_task().0;
    if deadlock.is_some() {
        sim.orchestrator.validate_rest()?;
    }
    Ok(report(sim, workload.name(), tasks, deadlock))
}

/// Runs in one mode as far as that goes; true if nothing is left to happen.
fn run_on<P: Policy, O: Observer, M: Mode>(sim: &mut Sim<'_, P, O, M>) -> Result<bool, RunError> {
    if let Err(error) = sim.run() {
        return Err(sim.orchestrator.first_wrong(error));
    }
    sim.move_notes();
    Ok(!sim.leaves_mode)
}

/// The most that was in use of everything.
fn high_water<P: Policy, O: Observer>(sim: &Sim<'_, P, O, General>) -> HighWater {
    let full_events = sim.policy.full_events();
    // What a full queue defers waits outside.
    let most = if full_events.is_some() { sim.machine.limits.ready } else { u64::MAX };
    let ready = TaskType::ALL.iter().zip(sim.ledger.most_ready());
    HighWater {
        ready: ready.map(|(kind, &high)| (kind.name().to_string(), high.min(most))).collect(),
        ready_queue_full_events: full_events.unwrap_or(0),
        ..sim.tally.high_water()
    }
}

/// Puts the numbers of a finished run, which submitted so many tasks, together.
fn report<P: Policy, O: Observer>(
    mut sim: Sim<'_, P, O, General>,
    workload: String,
    tasks: u64,
    deadlock: Option<Deadlock>,
) -> Report {
    let (machine, makespan) = (sim.machine, sim.ledger.makespan());
    let booked = machine.workers.kinds().zip(sim.ledger.close()).enumerate();
    let workers = booked.map(|(id, (kind, (accounts, blocks)))| WorkerReport {
        id: WorkerId(id as u32),
        kind,
        blocks,
        busy: accounts.busy,
        accounts,
    });
    let workers: Vec<_> = workers.collect();
    let typed = workers.iter().filter(|worker| worker.kind != WorkerType::Any);
    typed.for_each(|worker| sim.work.add(worker.kind, worker.busy));
    sim.tally.close(sim.has_costs);
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
    let notes = notes(&mut sim);
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
        tasks,
        edges: sim.tally.edges,
        blocks: sim.tally.blocks,
        ended,
        workers,
        orchestrator: sim.clerk.report(),
        scheduler,
        bounds: sim.work.bounds(machine, sim.critical_path(), makespan),
        high_water: high_water(&sim),
        latency: sim.tally.latencies(),
        kernels: sim.tally.kernels(sim.orchestrator.source().symbols()),
        deadlock,
        notes,
        path: None,
        what_if: Vec::new(),
        policy_report: sim.policy.report(),
        verdict: String::new(),
        threads: None,
    }
}

/// What the reader of a report should know.
fn notes<P: Policy, O: Observer>(sim: &mut Sim<'_, P, O, General>) -> Vec<String> {
    let mut notes: Vec<_> = sim.orchestrator.notes().collect();
    notes.append(&mut sim.notes);
    notes.extend(sim.family.note());
    notes.extend(sim.adaptive.as_ref().map(adaptive::Adaptive::note));
    let halt = sim.halt.as_ref().map(|(at, halt)| format!("the policy stopped the run at {at}: {}", halt.reason));
    notes.extend(halt);
    notes
}

/// Told what happens in a run, in the order in which it happens. Every method does nothing by default.
pub trait Observer {
    /// Whether it looks at all; what is only computed for observers is left out otherwise.
    #[inline]
    fn watches(&self) -> bool {
        true
    }

    /// Whether it looks at this step of scheduler jobs.
    #[inline]
    fn heeds(&self, step: JobStep) -> bool {
        let _ = step;
        self.watches()
    }

    /// Whether it looks at completions and retirements.
    #[inline]
    fn heeds_ends(&self) -> bool {
        self.watches()
    }

    /// The journal, if this is one.
    #[inline]
    fn journal(&mut self) -> Option<&mut Journal> {
        None
    }

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

    /// A task is COMPLETED, whether it ended well or badly.
    #[inline]
    fn completed(&mut self, task: TaskId, now: u64) {
        let _ = (task, now);
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

    /// A task became READY, or is to be run once more.
    #[inline]
    fn ready(&mut self, task: TaskId, slot: SlotRef, kind: TaskType, now: u64) {
        let _ = (task, slot, kind, now);
    }

    /// A READY task was dropped or removed before all its blocks were placed.
    fn withdrawn(&mut self, kind: TaskType, now: u64) {
        let _ = (kind, now);
    }

    /// A block was given to workers.
    #[inline]
    fn placed(&mut self, placed: &Placed<'_>, now: u64) {
        let _ = (placed, now);
    }

    /// A job of the scheduler was queued, begun or done.
    #[inline]
    fn job(&mut self, job: &SchedulerJob, step: JobStep, now: u64) {
        let _ = (job, step, now);
    }

    /// A job of the scheduler was queued, begun without cost and done, one right after the other.
    #[inline]
    fn job_at_once(&mut self, job: &SchedulerJob, now: u64) {
        self.job(job, JobStep::Queued, now);
        self.job(job, JobStep::Begun(0), now);
        self.job(job, JobStep::Done, now);
    }

    /// The only block of a task was placed on one worker and started there at once.
    #[inline]
    fn started(&mut self, slot: SlotRef, row: &BlockRow, names: &Symbols) {
        tell::step_by_step(self, slot, row, names);
    }

    /// The orchestrator did this from a cycle to now; spans without length are not told.
    #[inline]
    fn orchestrator(&mut self, phase: Phase, from: u64, now: u64) {
        let _ = (phase, from, now);
    }

    /// Something of a ring was taken or returned.
    #[inline]
    fn occupied(&mut self, ring: u32, window: &Window<Local>, now: u64) {
        let _ = (ring, window, now);
    }

    /// Nothing more happens at this cycle.
    #[inline]
    fn instant_over(&mut self, window: &Window<Local>, now: u64) {
        let _ = (window, now);
    }

    /// The policy acts by itself: what is told next, up to the next job, is not the effect of a job.
    #[inline]
    fn policy_acts(&mut self, now: u64) {
        let _ = now;
    }

    /// The start of its parent no longer holds a task back: what is told next is the effect of that.
    fn child_released(&mut self, slot: SlotRef, now: u64) {
        let _ = (slot, now);
    }

    /// The run is over.
    fn finished(&mut self, names: &Symbols, now: u64) {
        let _ = (names, now);
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
    #[inline]
    fn watches(&self) -> bool {
        false
    }
}

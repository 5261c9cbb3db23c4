//! What a run on threads has to tell: its report, or the error that ended it.

use super::core::Failure;
use super::stats::Stats;
use super::submit::Submitter;
use super::{Kernels, host_cpus};
use crate::config::{Machine, OnReadyFull};
use crate::engine::deadlock::{Scene, explain};
use crate::engine::tally::kernel_list;
use crate::engine::{Observer, RunError};
use crate::id::{WorkerId, WorkerType};
use crate::policy::Choice;
use crate::report::{
    Accounts, Deadlock, OrchestratorReport, Outcome, Report, SchedulerReport, ThreadsReport, WorkerReport,
};
use crate::workload::Workload;
use std::collections::BTreeMap;

/// Puts a finished run together.
pub(super) fn conclude<K: Kernels, O: Observer>(
    mut submitter: Submitter<'_, '_, K>,
    result: Result<(), RunError>,
    wall: u64,
    workload: &dyn Workload,
    observer: &mut O,
) -> Result<Report, RunError> {
    if let Err(error) = result {
        return Err(submitter.orchestrator.first_wrong(error));
    }
    if let Some(failure) = failure(&submitter) {
        return Err(failure);
    }
    let n_tasks = submitter.orchestrator.next_task().0;
    let is_complete = submitter.stuck_on.is_none() && submitter.core.window.is_empty();
    let deadlock = if is_complete { None } else { Some(stuck(&mut submitter, workload)?) };
    let mut rows = std::mem::take(&mut submitter.hands.stats.rows);
    rows.sort_by_key(|row| (row.start, row.task, row.block, row.worker));
    for row in &rows {
        observer.block(row, submitter.orchestrator.source().symbols());
    }
    let mut report = report(&submitter, n_tasks, wall, workload.name(), deadlock);
    report.notes.extend(without_effect(workload, submitter.core.machine)?);
    Ok(report)
}

/// What program and machine ask for and only virtual time can do.
fn without_effect(workload: &dyn Workload, machine: &Machine) -> Result<Vec<String>, RunError> {
    let n_controls = workload.controls()?.len();
    let commands = if n_controls == 1 { "the timed command".into() } else { format!("{n_controls} timed commands") };
    let rules = &machine.rules;
    let drops = rules.on_ready_queue_full == OnReadyFull::Drop;
    let without = [
        (n_controls > 0, format!("{commands} of the program")),
        (drops, "rules.on_ready_queue_full = \"drop\"".into()),
        (rules.adaptive_window > 0, "rules.adaptive_window".into()),
    ];
    let without = without.into_iter().filter(|(is_asked, _)| *is_asked);
    Ok(without
        .map(|(_, what)| format!("{what} had no effect: threads follow it with --mode deterministic only"))
        .collect())
}

/// The first kernel that failed, as an error.
pub(super) fn failure<K: Kernels>(submitter: &Submitter<'_, '_, K>) -> Option<RunError> {
    let failure = submitter.core.failure.lock().expect("nobody panics with it");
    failure.as_ref().map(|failure| RunError::Kernel(blame(failure, submitter)))
}

fn blame<K: Kernels>(failure: &Failure, submitter: &Submitter<'_, '_, K>) -> String {
    let symbols = submitter.orchestrator.source().symbols();
    let Failure { slot, task, name, kernel, message } = failure;
    let place = submitter.orchestrator.place_of(submitter.lines[*slot as usize]);
    let name = name.map_or_else(|| format!("task{task}"), |name| symbols.name(name).to_string());
    let kernel = kernel.map_or_else(|| "(unnamed)".to_string(), |kernel| symbols.name(kernel).to_string());
    format!("{place}task {task} `{name}`, kernel `{kernel}`: {message}")
}

fn stuck<K: Kernels>(submitter: &mut Submitter<'_, '_, K>, workload: &dyn Workload) -> Result<Deadlock, RunError> {
    let core = submitter.core;
    let mut deadlock = explain(&Scene {
        window: &core.window,
        orchestrator: &submitter.orchestrator,
        machine: core.machine,
        blocked: submitter.stuck_on,
        at: submitter.hands.stats.makespan,
        line: &|slot| submitter.lines[slot as usize],
    });
    submitter.orchestrator.validate_rest()?;
    let mut machine = core.machine.clone();
    machine.scheduler.threads = machine.scheduler.threads.max(1);
    crate::size::fill_needed(&mut deadlock, workload, &machine, &Choice::default())?;
    Ok(deadlock)
}

fn report<K: Kernels>(
    submitter: &Submitter<'_, '_, K>,
    tasks: u64,
    wall: u64,
    workload: String,
    deadlock: Option<Deadlock>,
) -> Report {
    let (machine, stats) = (submitter.core.machine, &submitter.hands.stats);
    let ended = stats.ended;
    let outcome = match deadlock {
        Some(_) => Outcome::Deadlock,
        None if ended.failed + ended.dropped + ended.cancelled > 0 => Outcome::Failed,
        None => Outcome::Completed,
    };
    let makespan = stats.makespan;
    Report {
        format: "ptosim-result".into(),
        version: 1,
        workload,
        machine: machine.clone(),
        policy: "pto".into(),
        engine: "threads".into(),
        outcome,
        makespan,
        finish: makespan,
        tasks,
        edges: submitter.tally.edges,
        blocks: stats.blocks,
        ended,
        workers: workers(machine, stats),
        orchestrator: OrchestratorReport::default(),
        scheduler: SchedulerReport { threads: machine.scheduler.threads, ..SchedulerReport::default() },
        bounds: submitter.work.bounds(machine, submitter.tally.critical_path, makespan),
        high_water: submitter.tally.high_water(),
        latency: BTreeMap::new(),
        kernels: kernel_list(&stats.kernels, submitter.orchestrator.source().symbols()),
        deadlock,
        notes: submitter.orchestrator.notes().collect(),
        policy_report: serde_json::Value::Object(serde_json::Map::new()),
        verdict: String::new(),
        path: None,
        what_if: Vec::new(),
        threads: Some(threads(submitter, tasks, wall)),
    }
}

/// Busy cycles are exact; what an idle worker waited for is not known where the host decides.
fn workers(machine: &Machine, stats: &Stats) -> Vec<WorkerReport> {
    let report = |(id, (kind, &(blocks, busy))): (usize, (WorkerType, &(u64, u64)))| WorkerReport {
        id: WorkerId(id as u32),
        kind,
        blocks,
        busy,
        accounts: Accounts { busy, ..Accounts::default() },
    };
    machine.workers.kinds().zip(&stats.workers).enumerate().map(report).collect()
}

fn threads<K: Kernels>(submitter: &Submitter<'_, '_, K>, tasks: u64, wall_ns: u64) -> ThreadsReport {
    let (core, stats) = (submitter.core, &submitter.hands.stats);
    ThreadsReport {
        mode: "free".into(),
        host_cpus: host_cpus() as u64,
        schedulers: core.setup.schedulers as u64,
        executors: core.setup.executors as u64,
        wall_ns,
        ns_per_task: wall_ns as f64 / tasks.max(1) as f64,
        tasks_per_second: tasks as f64 * 1e9 / wall_ns.max(1) as f64,
        latency: stats.latencies(),
        wake_ups: stats.wake_ups,
        parks: stats.parks,
        contention: stats.contention,
        handed_on: stats.handed_on,
        orchestrator_waits: submitter.waits,
        inject_seed: core.faults.seed(),
    }
}

//! What holds for the policies `bmf` and `ray` on every program: random programs with small windows, MIX and blocks.

use crate::invariants;
use crate::model::Row;
use crate::policies::seeds;
use crate::policy_run::simulate;
use crate::program::{Op, Program};
use crate::programs;
use ptosim::config::{Limits, Machine, Workers};
use ptosim::engine::{BlockRow, Observer, Retired, RunError};
use ptosim::id::TaskType;
use ptosim::report::{Outcome, Report};
use ptosim::workload::{PolicyFields, ScheduleAt, Submit, Symbols};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const SEEDS: u64 = 2_000;

#[derive(Default)]
struct Seen {
    rows: Vec<Row>,
    retired: u64,
}

impl Observer for Seen {
    fn block(&mut self, row: &BlockRow, _names: &Symbols) {
        let BlockRow { task, block, worker, submit, ready, start, end, .. } = *row;
        self.rows.push(Row { start, task: task.0, block, worker: worker.0, submit, ready, end });
    }

    fn retired(&mut self, _retired: &Retired, _now: u64) {
        self.retired += 1;
    }
}

/// Runs it twice, so that a report that is not the same to the byte shows.
fn run(policy: &Value, program: &Program, machine: &Machine) -> Result<(Report, Seen), RunError> {
    let (mut seen, mut again) = (Seen::default(), Seen::default());
    let report = simulate(policy, program, machine, &mut seen)?;
    let text = |report: &Report| serde_json::to_string(report).expect("a report is plain data");
    assert_eq!(text(&report), text(&simulate(policy, program, machine, &mut again)?), "two runs differ");
    Ok((report, seen))
}

/// What every schedule and every book must fulfil; a run of a program without failures ends well or for lack of room.
fn check(program: &Program, machine: &Machine, report: &Report, seen: &Seen) -> Result<(), String> {
    let is_complete = report.outcome == Outcome::Completed;
    invariants::check(program, machine, &seen.rows, is_complete)?;
    for (worker, busy) in report.workers.iter().zip(invariants::busy(machine, &seen.rows)) {
        if (worker.busy, worker.accounts.total()) != (busy, report.makespan) {
            return Err(format!("worker {} does not balance: {worker:?}", worker.id.0));
        }
    }
    if !is_complete {
        let lack = report.deadlock.as_ref().map(|deadlock| deadlock.resource.clone());
        return match lack.as_deref() {
            Some("window" | "heap" | "deps" | "tensors") => Ok(()),
            other => Err(format!("ended as {:?}, stuck on {other:?}", report.outcome)),
        };
    }
    if (report.ended.consumed, seen.retired) != (report.tasks, report.tasks) {
        return Err(format!("{} of {} tasks consumed, {} retired", report.ended.consumed, report.tasks, seen.retired));
    }
    if report.bounds.lower_bound > report.makespan {
        return Err(format!("makespan {} below the bound {}", report.makespan, report.bounds.lower_bound));
    }
    Ok(())
}

/// Runs random programs, each as it is and with room for everything; with room they must complete.
fn on_random_programs(policy: &Value) {
    let completed: usize = (0..seeds(SEEDS))
        .into_par_iter()
        .map(|seed| {
            let (program, machine) = programs::random(seed);
            let roomy =
                Machine { limits: Limits { rings: machine.limits.rings, ..Limits::default() }, ..machine.clone() };
            let mut completed = 0;
            for (machine, must_complete) in [(&machine, false), (&roomy, true)] {
                let Ok((report, seen)) = run(policy, &program, machine) else { continue };
                let wrong = check(&program, machine, &report, &seen).err();
                assert_eq!(wrong, None, "seed {seed}\n{}", program.trace());
                assert!(!must_complete || report.outcome == Outcome::Completed, "seed {seed}: {:?}", report.outcome);
                completed += usize::from(report.outcome == Outcome::Completed);
            }
            completed
        })
        .sum();
    assert!(completed > 2 * seeds(SEEDS) as usize * 3 / 4, "{completed} runs completed");
}

#[test]
fn derived_nodes_of_bmf_keep_the_rules_on_random_programs_and_always_finish() {
    on_random_programs(&json!({"policy": "bmf"}));
}

#[test]
fn ray_keeps_the_rules_on_random_programs() {
    on_random_programs(&json!({"policy": "ray"}));
}

/// A number from seed and place.
fn hash(seed: u64, place: usize) -> u64 {
    let mixed = (seed ^ (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33
}

/// Gives every task policy fields, and tells them by task.
fn with_fields(program: &mut Program, fields: impl Fn(usize, &Submit) -> PolicyFields) {
    let submits = program.ops.iter_mut().filter_map(|op| match op {
        Op::Submit(submit) => Some(submit),
        Op::Buffer { .. } | Op::ScopeBegin | Op::ScopeEnd => None,
    });
    for (task, submit) in submits.enumerate() {
        submit.policy = Some(Box::new(fields(task, submit)));
    }
}

/// The same program on workers of every type, without what needs a cluster.
fn on_any_workers(program: &mut Program, machine: &mut Machine, n_workers: u32) {
    machine.workers = Workers { any: n_workers, ..Workers::default() };
    for op in &mut program.ops {
        if let Op::Submit(submit) = op {
            if submit.kind == Some(TaskType::Mix) {
                submit.kind = Some(TaskType::Cube);
                submit.cost = submit.cost.map(|_| ptosim::workload::Cost::Cycles(9));
            }
            submit.sync_start = false;
        }
    }
}

#[test]
fn declared_nodes_of_bmf_run_on_their_own_queue_one_task_at_a_time() {
    (0..seeds(SEEDS)).into_par_iter().for_each(|seed| {
        let (mut program, mut machine) = programs::random(seed);
        let (n_workers, n_nodes) = (1 + hash(seed, 0) as u32 % 4, 1 + hash(seed, 1) % 6);
        on_any_workers(&mut program, &mut machine, n_workers);
        with_fields(&mut program, |task, _| PolicyFields {
            node: Some((hash(seed, task + 10) % n_nodes) as i32),
            timestamp: Some((hash(seed, task + 500) % 30).cast_signed()),
            ..PolicyFields::default()
        });
        let queue = |node: u64| hash(seed, node as usize + 2000) as u32 % n_workers;
        let nodes: BTreeMap<_, _> = (0..n_nodes)
            .map(|node| (node.to_string(), json!({"scheduler": queue(node), "queue_length_limit": 1 + node % 3})))
            .collect();
        let config = json!({"policy": "bmf", "nodes": nodes, "scheduler_count": n_workers, "backpressure": "relaxed"});
        let Ok((report, seen)) = run(&config, &program, &machine) else { return };
        assert_eq!(check(&program, &machine, &report, &seen).err(), None, "seed {seed}");
        for row in &seen.rows {
            let node = hash(seed, row.task as usize + 10) % n_nodes;
            assert_eq!(row.worker, queue(node), "seed {seed}: task {} of node {node}", row.task);
        }
        one_task_at_a_time(&seen.rows, n_workers);
    });
}

/// On each worker the blocks of a task follow each other without another task between.
fn one_task_at_a_time(rows: &[Row], n_workers: u32) {
    for worker in 0..n_workers {
        let mut tasks: Vec<_> = rows.iter().filter(|row| row.worker == worker).map(|row| row.task).collect();
        tasks.dedup();
        let count = tasks.len();
        tasks.sort_unstable();
        tasks.dedup();
        assert_eq!(tasks.len(), count, "worker {worker} goes back to a task it had left");
    }
}

#[test]
fn sources_of_ray_never_run_more_tasks_than_they_have_tokens() {
    (0..seeds(SEEDS)).into_par_iter().for_each(|seed| {
        let (mut program, machine) = programs::random(seed);
        let n_sources = 1 + hash(seed, 0) % 4;
        let source = |task: usize| hash(seed, task + 10) % n_sources;
        let due = |task: usize| hash(seed, task + 900) % 300;
        with_fields(&mut program, |task, _| PolicyFields {
            source: Some(source(task).to_string()),
            schedule_at: Some(ScheduleAt::Cycle(due(task))),
            ..PolicyFields::default()
        });
        let tokens = |source: u64| 1 + hash(seed, source as usize + 50) % 3;
        let sources: BTreeMap<_, _> =
            (0..n_sources).map(|source| (source.to_string(), json!({"concurrent_count": tokens(source)}))).collect();
        let (global, batch) = (hash(seed, 2) % 4, hash(seed, 3) % 3);
        let config = json!({"policy": "ray", "sources": sources, "global_concurrency": global, "fire_batch": batch});
        let Ok((report, seen)) = run(&config, &program, &machine) else { return };
        assert_eq!(check(&program, &machine, &report, &seen).err(), None, "seed {seed}");
        let spans = spans(&seen.rows);
        for (&task, &(start, _)) in &spans {
            assert!(start >= due(task), "seed {seed}: task {task} starts at {start}, before {}", due(task));
        }
        for number in 0..n_sources {
            let own = spans.iter().filter(|(task, _)| source(**task) == number).map(|(_, span)| *span);
            assert!(most_at_once(own) <= tokens(number), "seed {seed}: source {number}");
        }
        assert!(global == 0 || most_at_once(spans.values().copied()) <= global, "seed {seed}: all sources");
    });
}

/// First start and last end of every task.
fn spans(rows: &[Row]) -> BTreeMap<usize, (u64, u64)> {
    let mut spans = BTreeMap::new();
    for row in rows {
        let span = spans.entry(row.task as usize).or_insert((row.start, row.end));
        *span = (span.0.min(row.start), span.1.max(row.end));
    }
    spans
}

fn most_at_once(spans: impl Iterator<Item = (u64, u64)>) -> u64 {
    let mut moments: Vec<_> =
        spans.filter(|(start, end)| start < end).flat_map(|(start, end)| [(start, 1), (end, -1)]).collect();
    moments.sort_unstable();
    let mut running = 0_i64;
    moments
        .iter()
        .map(|(_, change)| {
            running += change;
            running
        })
        .max()
        .unwrap_or(0)
        .try_into()
        .expect("not negative")
}

#[test]
fn a_single_worker_is_never_idle_without_a_reason() {
    (0..seeds(SEEDS)).into_par_iter().for_each(|seed| {
        let (mut program, _) = programs::random(seed);
        let mut machine = Machine::default();
        on_any_workers(&mut program, &mut machine, 1);
        for op in &mut program.ops {
            if let Op::Submit(submit) = op {
                submit.submit_at = 0;
            }
        }
        let work: u64 = program.submits().map(cycles).sum();
        for policy in ["bmf", "ray"] {
            let Ok((report, _)) = run(&json!({"policy": policy}), &program, &machine) else { continue };
            assert_eq!((report.outcome, report.makespan), (Outcome::Completed, work), "seed {seed} under {policy}");
        }
    });
}

fn cycles(submit: &Submit) -> u64 {
    match (submit.kind, submit.cost) {
        (Some(TaskType::None), _) => 0,
        (_, Some(ptosim::workload::Cost::Cycles(cycles))) => cycles * u64::from(submit.blocks),
        other => panic!("a plain cost, not {other:?}"),
    }
}

#[test]
fn the_order_of_tables_in_a_policy_file_changes_nothing() {
    let mut machine = Machine::default();
    let (mut program, _) = programs::random(7);
    on_any_workers(&mut program, &mut machine, 2);
    with_fields(&mut program, |task, _| PolicyFields {
        node: Some(i32::from(task % 2 == 1)),
        source: Some(["a", "b"][task % 2].into()),
        ..PolicyFields::default()
    });
    let read = |text: &str| toml::from_str::<Value>(text).expect("a table");
    let pairs = [
        (
            "policy = 'bmf'\n[nodes.0]\nscheduler = 0\n[nodes.1]\nscheduler = 1",
            "policy = 'bmf'\n[nodes.1]\nscheduler = 1\n[nodes.0]\nscheduler = 0",
        ),
        (
            "policy = 'ray'\n[sources.a]\n[sources.b]\nconcurrent_count = 2",
            "policy = 'ray'\n[sources.b]\nconcurrent_count = 2\n[sources.a]",
        ),
    ];
    for (one, other) in pairs {
        let report =
            |text: &str| serde_json::to_string(&run(&read(text), &program, &machine).expect("it runs").0).unwrap();
        assert_eq!(report(one), report(other));
    }
}

/// Failures cancel what depends on them, everything else runs, and the ring always advances.
#[test]
fn failing_tasks_under_ray_cancel_their_dependents_and_nothing_else() {
    (0..seeds(SEEDS)).into_par_iter().for_each(|seed| {
        let (mut program, mut machine) = programs::random(seed);
        machine.limits = Limits::default();
        for (place, op) in program.ops.iter_mut().enumerate() {
            if let Op::Submit(submit) = op {
                submit.fault = hash(seed, place).is_multiple_of(8);
            }
        }
        let config = json!({"policy": "ray", "retry": {"max_attempts": 1 + seed % 3, "delay": seed % 7}});
        let mut seen = Seen::default();
        let Ok(report) = simulate(&config, &program, &machine, &mut seen) else { return };
        let ended = report.ended;
        assert_eq!(ended.completed + ended.failed + ended.cancelled, report.tasks, "seed {seed}");
        assert_eq!((ended.consumed, seen.retired), (report.tasks, report.tasks), "seed {seed}");
    });
}

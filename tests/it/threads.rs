//! The threaded engine: every task exactly once, after its producers, all consumed; deadlocks found exactly; the schedule of
//! deterministic mode that of virtual time.
//!
//! `PTOSIM_THREAD_SEEDS` sets how many random programs run, `PTOSIM_TRACES` names a folder of traces (`scripts/stress.sh`).

use crate::programs;
use crate::witness::{Witness, machine};
use ptosim::config::Machine;
use ptosim::engine::threads::{Call, Inject, KernelError, Kernels, Noop, Options, run, run_deterministic};
use ptosim::engine::{BlockRow, Observer, RunError, simulate};
use ptosim::graph::Graph;
use ptosim::id::TaskId;
use ptosim::policy::Choice;
use ptosim::report::Outcome;
use ptosim::workload::{self, Symbols, Workload};
use std::collections::BTreeMap;

/// Runs with checking kernels and expects a complete run.
fn check(workload: &dyn Workload, machine: &Machine, options: &Options) {
    let mut witness = Witness::new(Graph::load(workload, machine).expect("the workload of the test"));
    witness.check_free(workload, machine, options, &workload.name());
}

#[test]
fn windows_of_one_and_two_slots_are_enough_where_nothing_holds_a_task() {
    for window in ["limits.window=1", "limits.window=2"] {
        for threads in ["scheduler.threads=0", "scheduler.threads=1"] {
            let workload = workload::open("chain:n=300").expect("a generator");
            check(workload.as_ref(), &machine(&[window, threads]), &Options::default());
        }
    }
}

#[test]
fn random_programs_end_as_in_virtual_time() {
    let seeds: u64 = std::env::var("PTOSIM_THREAD_SEEDS").map_or(400, |text| text.parse().expect("a number of seeds"));
    for seed in 0..seeds {
        let (program, mut machine) = programs::random(seed);
        let expected = simulate(&program, &machine, &mut ());
        machine.scheduler.threads = (seed % 4) as u32;
        let options = Options { executors: Some(1 + seed as usize % 3), ..Options::default() };
        match (expected, run(&program, &machine, &Noop, &options, &mut ())) {
            (Ok(expected), Ok(found)) => {
                // Which resource fills up first depends on who is quick, so only window-bound deadlocks must agree.
                if expected.outcome == Outcome::Completed && found.outcome == Outcome::Completed {
                    assert_eq!(found.tasks, expected.tasks, "seed {seed}");
                    assert_eq!(found.blocks, expected.blocks, "seed {seed}");
                    assert_eq!(found.ended, expected.ended, "seed {seed}");
                }
            }
            (Err(RunError::Task(expected)), Err(RunError::Task(found))) => assert_eq!(found, expected, "seed {seed}"),
            (Err(_), Err(_)) => {}
            (expected, found) => {
                let found = found.map(|report| report.outcome);
                panic!("seed {seed}: virtual {:?}, threads {found:?}", expected.map(|report| report.outcome));
            }
        }
    }
}

#[test]
fn random_programs_run_every_block_once_and_in_order() {
    for seed in 0..300 {
        let (program, mut machine) = programs::random(seed);
        machine.scheduler.threads = (seed % 3) as u32;
        let Ok(graph) = Graph::load(&program, &machine) else { continue };
        let witness = Witness::new(Graph::load(&program, &machine).expect("loaded before"));
        let options = Options { executors: Some(1 + seed as usize % 3), rows: true, ..Options::default() };
        let mut rows = Rows::default();
        match run(&program, &machine, &witness, &options, &mut rows) {
            Ok(report) if report.outcome == Outcome::Completed => {
                witness.check_all_ran();
                check_clocks(&rows, &graph, &format!("seed {seed}"));
            }
            Ok(_) | Err(RunError::TooLarge { .. }) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
}

/// No block starts before its producers' ends, also those that were long gone, and no worker does two things at once.
fn check_clocks(rows: &Rows, graph: &Graph, label: &str) {
    let mut ends = vec![0; graph.tasks.len()];
    for row in &rows.0 {
        ends[row.task.0 as usize] = row.end.max(ends[row.task.0 as usize]);
    }
    let mut clocks = BTreeMap::new();
    let mut rows = rows.0.clone();
    rows.sort_by_key(|row| (row.start, row.end));
    for row in &rows {
        for producer in graph.producers(row.task) {
            let end = ends[producer.0 as usize];
            assert!(row.start >= end, "{label}: task {} starts at {}, {producer} ends at {end}", row.task, row.start);
        }
        let clock = clocks.entry(row.worker).or_insert(0);
        assert!(row.start >= *clock, "{label}: worker {} is busy at {}", row.worker.0, row.start);
        *clock = row.end;
    }
}

#[test]
fn edges_are_those_of_virtual_time_where_scopes_keep_all_producers() {
    for spec in ["bgemm:batch=2,m=4,n=4,k=8,scope=batch", "bgemm:batch=4,m=2,n=2,k=16,scope=tile"] {
        let workload = workload::open(spec).expect("a generator");
        for threads in ["scheduler.threads=1", "scheduler.threads=2"] {
            let machine = machine(&[threads]);
            let expected = simulate(workload.as_ref(), &machine, &mut ()).expect("a report");
            let found = run(workload.as_ref(), &machine, &Noop, &Options::default(), &mut ()).expect("a report");
            assert_eq!(found.edges, expected.edges, "{spec}, {threads}");
        }
    }
}

#[test]
fn a_scope_larger_than_the_window_is_a_deadlock_found_without_waiting() {
    let workload = workload::open("bgemm:batch=1,m=1,n=1,k=16,scope=tile").expect("a generator");
    let machine = machine(&["limits.window=8", "scheduler.threads=0"]);
    let report = run(workload.as_ref(), &machine, &Noop, &Options::default(), &mut ()).expect("a report");
    let deadlock = report.deadlock.expect("the scope holds more tasks than there are slots");
    assert_eq!((deadlock.resource.as_str(), deadlock.current, deadlock.last_task_alive), ("window", 8, 0));
    assert_eq!(deadlock.needed.get("limits.window"), Some(&32));
}

#[test]
fn a_kernel_that_panics_ends_the_run_with_its_name() {
    struct Panics;
    impl Kernels for Panics {
        fn run(&self, call: &Call) -> Result<(), KernelError> {
            assert!(call.task != TaskId(7), "seven is too much");
            Ok(())
        }
    }
    for threads in ["scheduler.threads=0", "scheduler.threads=2"] {
        let workload = workload::open("bgemm").expect("a generator");
        let error = run(workload.as_ref(), &machine(&[threads]), &Panics, &Options::default(), &mut ());
        let message = error.expect_err("the kernel of task 7 panics").to_string();
        assert!(message.contains("task 7 ") && message.contains("tile_add") && message.contains("seven"), "{message}");
    }
}

#[test]
fn faults_on_purpose_end_right_or_with_an_error() {
    for seed in 0..6 {
        let inject: Inject = format!("lost_wakeup,delayed_completion,paused_scheduler,slow_worker,seed={seed}")
            .parse()
            .expect("names of faults");
        let options = Options { inject, executors: Some(2), ..Options::default() };
        let workload = workload::open("bgemm:batch=1,m=2,n=2,k=32").expect("a generator");
        for threads in ["scheduler.threads=0", "scheduler.threads=1"] {
            check(workload.as_ref(), &machine(&[threads, "limits.window=64"]), &options);
        }
    }
    let inject: Inject = "stopped_worker,seed=1".parse().expect("names of faults");
    let options = Options { inject, ..Options::default() };
    let workload = workload::open("bgemm").expect("a generator");
    let error = run(workload.as_ref(), &machine(&[]), &Noop, &options, &mut ()).expect_err("a worker stops");
    assert!(error.to_string().contains("stopped"), "{error}");
}

/// Rows of a schedule.
#[derive(Default, PartialEq, Debug)]
struct Rows(Vec<BlockRow>);

impl Observer for Rows {
    fn block(&mut self, row: &BlockRow, _: &Symbols) {
        self.0.push(*row);
    }
}

/// Runs in virtual time and on threads with virtual clocks, and compares everything.
fn same_schedule(workload: &dyn Workload, machine: &Machine, executors: usize, label: &str) {
    let (mut expected, mut found) = (Rows::default(), Rows::default());
    let options = Options { executors: Some(executors), ..Options::default() };
    let virtual_time = ptosim::engine::run(workload, machine, &mut expected);
    let on_threads = run_deterministic(workload, machine, &Choice::default(), (&Noop, &options), &mut found);
    assert_eq!(found, expected, "{label}");
    match (virtual_time, on_threads) {
        (Ok(expected), Ok(mut found)) => {
            assert_eq!(found.threads.take().map(|threads| threads.mode).as_deref(), Some("deterministic"));
            found.engine.clone_from(&expected.engine);
            assert_eq!(found, expected, "{label}");
        }
        (Err(expected), Err(found)) => assert_eq!(found.to_string(), expected.to_string(), "{label}"),
        (expected, found) => panic!("{label}: virtual {:?}, threads {:?}", expected.is_ok(), found.is_ok()),
    }
}

#[test]
fn deterministic_mode_has_the_schedule_of_virtual_time_on_random_programs() {
    for seed in 0..2_000 {
        let (program, machine) = programs::random(seed);
        same_schedule(&program, &machine, 1 + seed as usize % 3, &format!("seed {seed}"));
    }
}

#[test]
fn deterministic_mode_has_the_schedule_of_virtual_time_on_traces() {
    let folder = std::env::var("PTOSIM_TRACES").unwrap_or_else(|_| "workloads".into());
    let mut paths: Vec<_> =
        std::fs::read_dir(&folder).expect("the folder of traces").collect::<Result<_, _>>().expect("its entries");
    paths.sort_by_key(std::fs::DirEntry::path);
    let mut n_traces = 0;
    for path in paths.iter().map(std::fs::DirEntry::path).filter(|path| path.to_string_lossy().contains(".jsonl")) {
        let workload = workload::open(&path.to_string_lossy()).expect("a trace");
        for name in ["ideal", "a2a3"] {
            let mut machine = Machine::load(name).expect("a built-in machine");
            let clusters = ["workers.cube=0", "workers.vector=0", "workers.clusters=24"];
            machine.apply(&clusters.map(String::from)).expect("settings of the test");
            for executors in 1..=3 {
                same_schedule(workload.as_ref(), &machine, executors, &format!("{} on {name}", path.display()));
            }
        }
        n_traces += 1;
    }
    assert!(n_traces > 0, "{folder} has no traces");
    println!("{n_traces} traces in {folder} on ideal and a2a3: the same schedule");
}

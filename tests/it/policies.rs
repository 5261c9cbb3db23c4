//! What holds under every policy, on random programs and on programs worked out by hand.
//!
//! `PTOSIM_POLICY_SEEDS` sets how many random programs, here and in the properties of single policies.

use crate::invariants;
use crate::model::Row;
use crate::program::{Op, Program};
use crate::programs;
use ptosim::config::{Limits, Machine, Workers};
use ptosim::engine::{BlockRow, Observer, RunError, run_with, simulate_with};
use ptosim::id::{TaskId, TaskType, WorkerType};
use ptosim::policy::{Choice, Name};
use ptosim::report::{Outcome, Report};
use ptosim::workload::{Cost, Submit, Symbols, Units};
use rayon::prelude::*;

const SEEDS: u64 = 1_500;

/// Rows of the schedule in the order in which they were told.
#[derive(Default)]
struct Rows(Vec<Row>);

impl Observer for Rows {
    fn block(&mut self, row: &BlockRow, _names: &Symbols) {
        let BlockRow { task, block, worker, submit, ready, start, end, .. } = *row;
        self.0.push(Row { start, task: task.0, block, worker: worker.0, submit, ready, end });
    }
}

/// How many random programs: so many, or what `PTOSIM_POLICY_SEEDS` says.
pub fn seeds(by_default: u64) -> u64 {
    std::env::var("PTOSIM_POLICY_SEEDS").map_or(by_default, |text| text.parse().expect("a number of seeds"))
}

fn for_every_policy(check: impl Fn(Name, &Program, &Machine) -> Result<(), String> + Sync) {
    let failure = (0..seeds(SEEDS)).into_par_iter().find_map_first(|seed| {
        let (program, machine) = programs::random(seed);
        Name::ALL.into_iter().find_map(|name| {
            let wrong = check(name, &program, &machine).err()?;
            let settings = toml::to_string(&machine).expect("a machine is a table");
            Some(format!("{name}, seed {seed}: {wrong}\n--- machine\n{settings}\n--- trace\n{}", program.trace()))
        })
    });
    if let Some(failure) = failure {
        panic!("{failure}");
    }
}

#[test]
fn every_policy_runs_each_task_once_after_its_producers_on_a_worker_that_suits() {
    for_every_policy(|name, program, machine| {
        let mut rows = Rows::default();
        let report = match simulate_with(program, machine, &Choice::of(name), &mut rows) {
            Ok(report) => report,
            Err(RunError::Task(_) | RunError::TooLarge { .. }) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let completed = report.outcome == Outcome::Completed;
        invariants::check(program, machine, &rows.0, completed)?;
        accounts_balance(&report, &invariants::busy(machine, &rows.0))?;
        if let Some(deadlock) = report.deadlock.as_ref().filter(|deadlock| deadlock.resource == "policy") {
            return Err(format!("the policy keeps tasks back for ever: {deadlock:?}"));
        }
        if completed && (report.ended.consumed != report.tasks || report.makespan < report.bounds.lower_bound) {
            return Err(format!("{:?} of {} tasks, {:?}", report.ended, report.tasks, report.bounds));
        }
        Ok(())
    });
}

fn accounts_balance(report: &Report, busy: &[u64]) -> Result<(), String> {
    for (worker, &busy) in report.workers.iter().zip(busy) {
        if worker.accounts.total() != report.makespan || worker.busy != busy || worker.accounts.busy != busy {
            return Err(format!("the accounts of {worker:?} do not add up to {} with {busy} busy", report.makespan));
        }
    }
    Ok(())
}

#[test]
fn every_policy_completes_what_pto_completes() {
    for_every_policy(|name, program, machine| {
        let pto = simulate_with(program, machine, &Choice::of(Name::Pto), &mut ());
        let other = simulate_with(program, machine, &Choice::of(name), &mut ());
        let by_chance = |report: &Report| {
            report.deadlock.as_ref().is_some_and(|stuck| ["heap", "deps"].contains(&stuck.resource.as_str()))
        };
        match (pto, other) {
            (Ok(pto), Ok(other)) if pto.outcome == other.outcome => Ok(()),
            // Where a heap piece wraps, and how many producers are still alive, depends on what ran when.
            (Ok(pto), Ok(other)) if by_chance(&pto) || by_chance(&other) => Ok(()),
            (Err(pto), Err(other)) if pto.to_string() == other.to_string() => Ok(()),
            (pto, other) => Err(format!("pto: {:?}\nother: {:?}", outcome(&pto), outcome(&other))),
        }
    });
}

fn outcome(run: &Result<Report, RunError>) -> String {
    run.as_ref().map_or_else(ToString::to_string, |report| format!("{:?} {:?}", report.outcome, report.deadlock))
}

#[test]
fn the_same_run_gives_the_same_bytes_under_every_policy() {
    for seed in 0..100 {
        let (program, machine) = programs::random(seed);
        for name in Name::ALL {
            let told = || {
                let report = run_with(&program, &machine, &Choice::of(name), &mut ());
                report.map_or_else(|error| error.to_string(), |report| format!("{report:?}"))
            };
            assert_eq!(told(), told(), "seed {seed} under {name}");
        }
    }
}

/// `name:cycles(producers)` of VECTOR tasks.
fn vectors(tasks: &[(u64, &[u64])]) -> Program {
    let ops = tasks.iter().map(|&(cycles, deps)| Op::Submit(Box::new(task(TaskType::Vector, cycles, deps))));
    Program { ops: ops.collect() }
}

fn task(kind: TaskType, cycles: u64, deps: &[u64]) -> Submit {
    let mut submit = Submit::default();
    submit.clear();
    submit.kind = Some(kind);
    submit.cost = Some(Cost::Cycles(cycles));
    submit.deps = deps.iter().map(|&task| TaskId(task)).collect();
    submit
}

fn machine(vector: u32) -> Machine {
    Machine { workers: Workers { vector, ..Workers::default() }, ..Machine::default() }
}

/// `(task, worker, start)` in the order of starts.
fn starts(program: &Program, machine: &Machine, name: Name) -> Vec<(u64, u32, u64)> {
    let mut rows = Rows::default();
    let report = simulate_with(program, machine, &Choice::of(name), &mut rows).expect("the program runs");
    assert_eq!(report.outcome, Outcome::Completed);
    rows.0.iter().map(|row| (row.task, row.worker, row.start)).collect()
}

#[test]
fn with_one_worker_every_policy_needs_the_sum_of_all_cycles() {
    for window in [1, 2, 4, 8, 16384] {
        let program = vectors(&[(5, &[]), (7, &[]), (3, &[0]), (9, &[0, 1]), (2, &[]), (4, &[3])]);
        let limits = Limits { window, ..Limits::default() };
        let machine = Machine { limits, ..machine(1) };
        for name in Name::ALL {
            let report = run_with(&program, &machine, &Choice::of(name), &mut ()).expect("the program runs");
            assert_eq!((report.outcome, report.makespan), (Outcome::Completed, 30), "{name} in a window of {window}");
            assert_eq!(report.ended.consumed, 6, "{name} in a window of {window}");
        }
    }
}

#[test]
fn the_order_of_ready_tasks_is_that_of_the_policy() {
    // Four tasks are READY at 0; the third has a long path behind it.
    let program = vectors(&[(4, &[]), (1, &[]), (2, &[]), (3, &[]), (50, &[2])]);
    let order = |name| starts(&program, &machine(1), name).into_iter().map(|(task, ..)| task).collect::<Vec<_>>();
    assert_eq!(order(Name::Pto), [0, 1, 2, 3, 4]);
    assert_eq!(order(Name::Lifo), [3, 2, 4, 1, 0]);
    assert_eq!(order(Name::Shortest), [1, 2, 3, 0, 4]);
    assert_eq!(order(Name::Predictive), [2, 4, 0, 3, 1]);
    assert_eq!(order(Name::Heft), [2, 4, 0, 3, 1]);
    assert_eq!(order(Name::Static), [2, 4, 0, 3, 1]);
}

#[test]
fn random_takes_another_order_with_another_seed_and_prints_the_seed() {
    let none: &[u64] = &[];
    let program = vectors(&[(1, none); 20]);
    let run = |seed| {
        let mut choice = Choice::of(Name::Random);
        choice.config.policy.seed = seed;
        let mut rows = Rows::default();
        let report = simulate_with(&program, &machine(1), &choice, &mut rows).expect("the program runs");
        assert_eq!(report.policy_report["seed"], seed);
        rows.0.iter().map(|row| row.task).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    assert_ne!(run(1), (0..20).collect::<Vec<_>>());
}

#[test]
fn a_block_joins_the_queue_that_is_done_first_and_stays_there() {
    // 0 and 1 go to workers 0 and 1; 2 and 3 queue behind 1, which is done at 3 and then at 8; 4 queues behind 0.
    let program = vectors(&[(10, &[]), (3, &[]), (5, &[]), (9, &[]), (1, &[])]);
    let told = starts(&program, &machine(2), Name::PerWorker);
    assert_eq!(told, [(0, 0, 0), (1, 1, 0), (2, 1, 3), (3, 1, 8), (4, 0, 10)]);
}

#[test]
fn an_idle_worker_steals_the_oldest_block_of_the_longest_queue() {
    // When 0 has ended, the MIX block of 4 takes worker 1, and 2, which is queued there, is late.
    let workers = Workers { clusters: 1, ..Workers::default() };
    let machine = Machine { workers, ..Machine::default() };
    let mut submits: Vec<Submit> = (0..4).map(|_| task(TaskType::Vector, 10, &[])).collect();
    let mut mix = task(TaskType::Mix, 100, &[0]);
    mix.units = Units { cube: 1, vector: 1 };
    submits.push(mix);
    let program = Program { ops: submits.into_iter().map(|submit| Op::Submit(Box::new(submit))).collect() };
    let start = |name, task| starts(&program, &machine, name).into_iter().find(|row| row.0 == task).expect("it ran");
    assert_eq!((start(Name::PerWorker, 2), start(Name::PerWorker, 3)), ((2, 1, 110), (3, 2, 10)));
    assert_eq!((start(Name::Steal, 2), start(Name::Steal, 3)), ((2, 2, 20), (3, 2, 10)));
    let report = simulate_with(&program, &machine, &Choice::of(Name::Steal), &mut ()).expect("the program runs");
    assert_eq!((&report.policy_report["stolen"], report.makespan), (&1.into(), 110));
}

#[test]
fn a_static_plan_is_kept_to_the_cycle_when_nothing_is_full() {
    let mut checked = 0;
    for seed in 0..1_000 {
        let (program, mut machine) = programs::random(seed);
        machine.limits = Limits::default();
        // While a gang comes together, the plan leaves workers free for tasks that the replay does not know of yet.
        let is_gang = |submit: &Submit| submit.kind == Some(TaskType::Mix) || submit.sync_start && submit.blocks > 1;
        if program.submits().any(is_gang) {
            continue;
        }
        let run = |name| simulate_with(&program, &machine, &Choice::of(name), &mut ());
        let (Ok(planned), Ok(replayed)) = (run(Name::Predictive), run(Name::Static)) else { continue };
        assert_eq!(replayed.policy_report["planned_makespan"], planned.makespan, "seed {seed}");
        assert_eq!(replayed.makespan, planned.makespan, "seed {seed}");
        checked += 1;
    }
    assert!(checked > 250, "most programs run with enough room: {checked}");
}

#[test]
fn a_gang_is_not_overtaken_for_ever_by_blocks_in_own_queues() {
    let mut ops: Vec<Submit> = (0..4).map(|index| task(TaskType::Vector, 10 + index, &[])).collect();
    let mut gang = task(TaskType::Vector, 10, &[]);
    (gang.blocks, gang.sync_start) = (2, true);
    ops.push(gang);
    ops.extend((0..20).map(|_| task(TaskType::Vector, 10, &[])));
    let program = Program { ops: ops.into_iter().map(|submit| Op::Submit(Box::new(submit))).collect() };
    for name in [Name::PerWorker, Name::Steal] {
        let told = starts(&program, &machine(2), name);
        let gang: Vec<u64> = told.iter().filter(|row| row.0 == 4).map(|row| row.2).collect();
        assert_eq!(gang, [24, 24], "{name}: right after the four tasks that were READY before it");
    }
}

#[test]
fn heft_counts_the_mean_of_a_mixed_block_and_the_rounds_of_many_blocks() {
    // Two rounds of blocks make the second task the longer one, whatever the cycles of one block say.
    let mut many = task(TaskType::Vector, 6, &[]);
    many.blocks = 4;
    let ops = [task(TaskType::Vector, 10, &[]), many].map(|submit| Op::Submit(Box::new(submit)));
    let program = Program { ops: ops.into() };
    assert_eq!(starts(&program, &machine(2), Name::Predictive)[0].0, 0);
    assert_eq!(starts(&program, &machine(2), Name::Heft)[0].0, 1);
    let mut mix = task(TaskType::Mix, 0, &[]);
    (mix.units, mix.cost) = (Units { cube: 1, vector: 1 }, Some(Cost::PerKind { cube: 20, vector: 0 }));
    let ops = [mix, task(TaskType::Mix, 12, &[])].map(|submit| Op::Submit(Box::new(submit)));
    let machine = Machine { workers: Workers { clusters: 1, ..Workers::default() }, ..Machine::default() };
    let program = Program { ops: ops.into() };
    assert_eq!(machine.workers.count(WorkerType::Vector), 2);
    assert_eq!(starts(&program, &machine, Name::Predictive)[0].0, 0);
    assert_eq!(starts(&program, &machine, Name::Heft)[0].0, 1);
}

#[test]
fn the_sizes_that_are_needed_are_found_under_the_same_policy() {
    let mut ops = vec![Op::ScopeBegin];
    ops.extend((0..5).map(|_| Op::Submit(Box::new(task(TaskType::Vector, 10, &[])))));
    ops.push(Op::ScopeEnd);
    let limits = Limits { window: 4, ..Limits::default() };
    let machine = Machine { limits, ..machine(1) };
    for name in Name::ALL {
        let report = run_with(&Program { ops: ops.clone() }, &machine, &Choice::of(name), &mut ()).expect("it runs");
        let stuck = report.deadlock.expect("five tasks do not fit");
        assert_eq!((stuck.resource.as_str(), stuck.needed["limits.window"]), ("window", 8), "{name}");
    }
}

#[test]
fn the_most_ready_tasks_are_counted_under_every_policy() {
    let task = |kind: TaskType, blocks: u32| {
        Op::Submit(Box::new(Submit { kind: Some(kind), cost: Some(Cost::Cycles(10)), blocks, ..Submit::default() }))
    };
    let mut ops: Vec<Op> = (0..20).map(|_| task(TaskType::Vector, 1)).collect();
    ops.extend((0..3).map(|_| task(TaskType::Mix, 2)));
    let workers = Workers { clusters: 1, ..Workers::default() };
    let machine = Machine { workers, ..Machine::default() };
    for name in Name::ALL {
        let report = run_with(&Program { ops: ops.clone() }, &machine, &Choice::of(name), &mut ()).expect("it runs");
        let most = |kind: TaskType| report.high_water.ready[kind.name()];
        assert_eq!((most(TaskType::Vector), most(TaskType::Mix), most(TaskType::Cube)), (20, 3, 0), "{name}");
    }
}

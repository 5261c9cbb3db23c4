//! The engine against the model, row by row, on random programs.
//!
//! `PTOSIM_SEEDS` sets how many; `PTOSIM_SEED` runs a single one.

use crate::invariants;
use crate::model::{self, Ending, Resource, Row, Stuck, Told};
use crate::program::Program;
use crate::programs;
use ptosim::config::Machine;
use ptosim::engine::journal::{Names, Needs, Reader};
use ptosim::engine::{BlockRow, Observer, RunError, read_along};
use ptosim::report::{Deadlock, Outcome, Report};
use ptosim::workload::Symbols;
use rayon::prelude::*;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

const SEEDS: u64 = 10_000;

/// Rows in the order in which the engine told them.
#[derive(Default)]
pub struct Rows(pub Vec<Row>);

impl Rows {
    fn add(&mut self, row: &BlockRow) {
        let BlockRow { task, block, worker, submit, ready, start, end, .. } = *row;
        self.0.push(Row { start, task: task.0, block, worker: worker.0, submit, ready, end });
    }
}

impl Observer for Rows {
    fn block(&mut self, row: &BlockRow, _names: &Symbols) {
        self.add(row);
    }
}

impl Reader for Rows {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn block(&mut self, row: &BlockRow, _names: &Names) {
        self.add(row);
    }
}

fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number of seeds or a seed"));
    match number("PTOSIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PTOSIM_SEEDS").unwrap_or(SEEDS),
    }
}

#[test]
fn the_engine_agrees_with_the_model_on_random_programs() {
    let failure = seeds().into_par_iter().find_map_first(|seed| {
        let (program, machine) = programs::random(seed);
        let wrong = compare(&program, &machine).err()?;
        let settings = toml::to_string(&machine).expect("a machine is a table");
        Some(format!("seed {seed}: {wrong}\n--- machine\n{settings}\n--- trace\n{}", program.trace()))
    });
    if let Some(failure) = failure {
        panic!("{failure}");
    }
}

#[test]
fn the_model_keeps_its_own_rules_and_random_programs_end_in_every_way() {
    let endings: Vec<_> = (0..2_000u64)
        .into_par_iter()
        .map(|seed| {
            let (program, machine) = programs::random(seed);
            let told = model::run(&program, &machine);
            let wrong = match told.ending {
                Ending::Completed => invariants::check(&program, &machine, &told.rows, true),
                Ending::Deadlock(_) => invariants::check(&program, &machine, &told.rows, false),
                Ending::Error(_) => Ok(()),
            };
            assert_eq!(wrong, Ok(()), "seed {seed}");
            told.ending
        })
        .collect();
    let stuck_on =
        |resource| move |ending: &Ending| matches!(ending, Ending::Deadlock(stuck) if stuck.resource == resource);
    let count = |is: &dyn Fn(&Ending) -> bool| endings.iter().filter(|&ending| is(ending)).count();
    assert!(count(&|ending| *ending == Ending::Completed) > 1_000, "most programs complete");
    assert!(count(&|ending| matches!(ending, Ending::Error(_))) > 50, "some ask for the impossible");
    for resource in [Resource::Window, Resource::Heap, Resource::Deps, Resource::Tensors] {
        assert!(count(&stuck_on(resource)) > 10, "some get stuck on {resource:?}");
    }
}

fn compare(program: &Program, machine: &Machine) -> Result<(), String> {
    let told = model::run(program, machine);
    let mut rows = Rows::default();
    let run = catch_unwind(AssertUnwindSafe(|| ptosim::engine::run(program, machine, &mut rows)));
    let result = run.map_err(|_| "the engine panicked".to_string())?;
    match (&told.ending, result) {
        (Ending::Error(task), Err(RunError::Task(message) | RunError::TooLarge { message, .. }))
            if names(&message, *task) =>
        {
            Ok(())
        }
        (Ending::Error(task), result) => {
            let answer = result.map(|report| report.outcome);
            Err(format!("the model refuses task {task}, the engine says {answer:?}"))
        }
        (ending, Err(error)) => Err(format!("the model says {ending:?}, the engine says {error}")),
        (_, Ok(report)) => {
            same_rows(told.rows.clone(), rows.0.clone())?;
            same_report(&told, &report)?;
            same_whoever_watches(program, machine, (&rows, &report))?;
            balanced(machine, &rows.0, &report)?;
            invariants::check(program, machine, &rows.0, told.ending == Ending::Completed)?;
            needed_is_enough(program, machine, &report)
        }
    }
}

/// Whether a message speaks of this task, as `task 5` or by its default name `task5`.
fn names(message: &str, task: usize) -> bool {
    let words: Vec<_> = message.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let (joined, number) = (format!("task{task}"), task.to_string());
    words.iter().any(|&word| word == joined) || words.windows(2).any(|pair| pair[0] == "task" && pair[1] == number)
}

fn same_rows(mut expected: Vec<Row>, mut found: Vec<Row>) -> Result<(), String> {
    if !found.is_sorted_by_key(|row| row.start) {
        return Err("rows are not told in the order in which blocks start".into());
    }
    expected.sort_unstable();
    found.sort_unstable();
    let longest = expected.len().max(found.len());
    match (0..longest).find(|&index| expected.get(index) != found.get(index)) {
        Some(first) => {
            let (expected, found) = (expected.get(first), found.get(first));
            Err(format!("row {first} by start and task differs\n  model  {expected:?}\n  engine {found:?}"))
        }
        None => Ok(()),
    }
}

fn same<T: PartialEq + Debug>(what: &str, expected: &T, found: &T) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    Err(format!("{what} differs\n  model  {expected:?}\n  engine {found:?}"))
}

/// Who is told everything sees the engine in its widest mode; with a journal or nobody to tell it begins in the narrowest.
fn same_whoever_watches(program: &Program, machine: &Machine, (rows, report): (&Rows, &Report)) -> Result<(), String> {
    let alone = ptosim::engine::run(program, machine, &mut ()).map_err(|error| format!("alone: {error}"))?;
    same("the report without anybody to tell", report, &alone)?;
    let (told, read, _) = read_along(Rows::default(), |journal| ptosim::engine::run(program, machine, journal));
    let told = told.map_err(|error| format!("with a journal: {error}"))?;
    same("the report with a journal", report, &told)?;
    same_rows(rows.0.clone(), read.0).map_err(|wrong| format!("with a journal: {wrong}"))
}

fn same_report(told: &Told, report: &Report) -> Result<(), String> {
    same("makespan", &told.makespan, &report.makespan)?;
    same("finish", &told.finish, &report.finish)?;
    same("tasks", &told.tasks, &report.tasks)?;
    same("edges", &told.edges, &report.edges)?;
    same("completed", &told.completed, &report.ended.completed)?;
    same("consumed", &(told.consumed_at.len() as u64), &report.ended.consumed)?;
    same("orchestrator", &told.orchestrator, &report.orchestrator)?;
    same("scheduler", &told.scheduler, &report.scheduler)?;
    same("high water of the rings", &told.high_water.rings, &report.high_water.rings)?;
    same("high water of the tensor map", &told.high_water.tensors, &report.high_water.tensors)?;
    match (&told.ending, &report.deadlock) {
        (Ending::Deadlock(stuck), Some(deadlock)) => {
            same("outcome", &Outcome::Deadlock, &report.outcome)?;
            same_deadlock(stuck, deadlock)
        }
        (ending, deadlock) => {
            same("outcome", &Outcome::Completed, &report.outcome)?;
            same("deadlock", &(*ending != Ending::Completed), &deadlock.is_some())
        }
    }
}

fn same_deadlock(stuck: &Stuck, deadlock: &Deadlock) -> Result<(), String> {
    same("resource", &stuck.resource.name(), &deadlock.resource.as_str())?;
    same("ring", &stuck.ring, &deadlock.ring)?;
    same("blocked task", &Some(stuck.task), &deadlock.task.map(|task| task.0))?;
    same("instant of the deadlock", &stuck.at, &deadlock.at)?;
    same("current", &stuck.current, &deadlock.current)?;
    same("last_task_alive", &stuck.last_task_alive, &deadlock.last_task_alive)?;
    same("size", &stuck.size, &deadlock.size)?;
    same("used", &stuck.used, &deadlock.used)?;
    same("wanted", &stuck.wanted, &deadlock.wanted)?;
    same("oldest task", &stuck.oldest, &deadlock.oldest.as_ref().map(|oldest| oldest.task.0))?;
    let scopes = deadlock.oldest.iter().flat_map(|oldest| &oldest.held_by_scopes);
    same("tasks of the scopes that hold it", &stuck.holders, &scopes.map(|scope| scope.tasks).collect())
}

/// The books of the engine agree with each other and with its rows.
pub fn balanced(machine: &Machine, rows: &[Row], report: &Report) -> Result<(), String> {
    same("number of workers", &(machine.workers.total() as usize), &report.workers.len())?;
    for (worker, busy) in report.workers.iter().zip(invariants::busy(machine, rows)) {
        let blocks = rows.iter().filter(|row| row.worker == worker.id.0).count() as u64;
        same(&format!("blocks of worker {}", worker.id.0), &blocks, &worker.blocks)?;
        same(&format!("busy cycles of worker {}", worker.id.0), &busy, &worker.busy)?;
        same(&format!("busy account of worker {}", worker.id.0), &busy, &worker.accounts.busy)?;
        same(&format!("accounts of worker {}", worker.id.0), &report.makespan, &worker.accounts.total())?;
    }
    if report.outcome == Outcome::Completed && report.bounds.lower_bound > report.makespan {
        return Err(format!("lower bound {} above makespan {}", report.bounds.lower_bound, report.makespan));
    }
    Ok(())
}

/// With the sizes a deadlock report asks for the model completes; with any one of them smaller it does not.
fn needed_is_enough(program: &Program, machine: &Machine, report: &Report) -> Result<(), String> {
    let Some(deadlock) = &report.deadlock else { return Ok(()) };
    let mut enough = machine.clone();
    for (key, &size) in &deadlock.needed {
        *limit(&mut enough, key)? = size;
    }
    same("ending with the needed sizes", &Ending::Completed, &model::run(program, &enough).ending)?;
    same("every smaller size is known not to do", &!deadlock.needed.is_empty(), &deadlock.is_smallest)?;
    for (key, &size) in &deadlock.needed {
        let mut less = enough.clone();
        let mut smaller = size;
        loop {
            smaller = match key.as_str() {
                "limits.window" => smaller / 2,
                "limits.heap" => smaller.saturating_sub(64),
                _ => smaller - 1,
            };
            *limit(&mut less, key)? = smaller;
            if smaller == 0 || less.limits.window <= less.limits.spare {
                break;
            }
            if model::run(program, &less).ending == Ending::Completed {
                return Err(format!("{key} = {size} is said to be needed, but {smaller} is enough"));
            }
        }
    }
    Ok(())
}

fn limit<'a>(machine: &'a mut Machine, key: &str) -> Result<&'a mut u64, String> {
    match key {
        "limits.window" => Ok(&mut machine.limits.window),
        "limits.heap" => Ok(&mut machine.limits.heap),
        "limits.deps" => Ok(&mut machine.limits.deps),
        "limits.tensors" => Ok(&mut machine.limits.tensors),
        _ => Err(format!("unknown key {key} among the needed sizes")),
    }
}

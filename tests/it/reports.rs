//! The observed critical path: every cycle of the makespan in exactly one step, whatever the program.

use crate::programs;
use ptosim::engine::{BlockRow, Journal, Observer, RunError, read_along, simulate, simulate_with};
use ptosim::policy::{Choice, Name};
use ptosim::report::{Blame, PathRecorder, PathReport, PathStep, PathSums, Report};
use ptosim::workload::Symbols;
use rayon::prelude::*;

const SEEDS: u64 = 2_000;

/// Where the blocks ran: `(task, worker, start, end)`.
#[derive(Default)]
struct Rows(Vec<(u64, u32, u64, u64)>);

impl Observer for Rows {
    fn block(&mut self, row: &BlockRow, _names: &Symbols) {
        self.0.push((row.task.0, row.worker.0, row.start, row.end));
    }
}

/// A run with its critical path, step by step and in numbers.
fn with_path(
    run: impl FnOnce(&mut Journal) -> Result<Report, RunError>,
) -> Option<(Report, Vec<PathStep>, PathReport)> {
    let (report, path, names) = read_along(PathRecorder::new(Vec::new()), run);
    let (report, steps) = (report.ok()?, path.finish(&names));
    let mut sums = PathSums::default();
    steps.iter().for_each(|step| sums.add(step));
    Some((report, steps, sums.report(&names)))
}

#[test]
fn blame_adds_up_to_the_makespan_on_random_programs() {
    let blamed: Vec<Option<Vec<PathStep>>> = (0..SEEDS)
        .into_par_iter()
        .map(|seed| {
            let (program, machine) = programs::random(seed);
            let (report, steps, path) = with_path(|journal| simulate(&program, &machine, journal))?;
            let mut clock = 0;
            for step in &steps {
                assert!(step.from == clock && step.to >= step.from, "seed {seed}: {step:?} begins at {clock}");
                clock = step.to;
            }
            assert_eq!(clock, report.makespan, "seed {seed}");
            let blame = path.blame;
            assert_eq!(blame.values().sum::<u64>(), report.makespan, "seed {seed}: {blame:?}");
            let mut rows = Rows::default();
            simulate(&program, &machine, &mut rows).expect("it ran before");
            for step in steps.iter().filter(|step| step.is_kernel) {
                let is_step = |row: &&(u64, u32, u64, u64)| {
                    (Some(row.0), Some(row.1)) == (step.task.map(|task| task.0), step.worker.map(|worker| worker.0))
                        && (row.2, row.3) == (step.from, step.to)
                };
                assert!(rows.0.iter().any(|row| is_step(&row)), "seed {seed}: {step:?} is no row of the schedule");
            }
            Some(steps)
        })
        .collect();
    let ran = blamed.iter().flatten().count();
    assert!(ran > 1_000, "{ran} programs ran");
    for blame in Blame::ALL {
        let found = blamed.iter().flatten().flatten().any(|step| step.blame == blame && step.to > step.from);
        assert!(found, "no program is held up by {blame:?}");
    }
}

#[test]
fn blame_adds_up_under_other_policies_too() {
    let names = [Name::PerWorker, Name::Steal, Name::Predictive, Name::Heft, Name::Lifo, Name::Random, Name::Shortest];
    let ran: usize = (0..300)
        .into_par_iter()
        .map(|seed| {
            let (program, machine) = programs::random(seed);
            let choice = Choice::of(names[seed as usize % names.len()]);
            let run = |journal: &mut Journal| simulate_with(&program, &machine, &choice, journal);
            let Some((report, steps, path)) = with_path(run) else { return 0 };
            let is_gapless = steps.windows(2).all(|pair| pair[0].to == pair[1].from);
            assert!(is_gapless && steps.first().is_none_or(|step| step.from == 0), "seed {seed}");
            assert_eq!(path.blame.values().sum::<u64>(), report.makespan, "seed {seed}");
            1
        })
        .sum();
    assert!(ran > 150, "{ran} programs ran");
}

#[test]
fn blame_adds_up_when_completions_are_taken_together() {
    let ran: usize = (0..300)
        .into_par_iter()
        .map(|seed| {
            let (program, mut machine) = programs::random(seed);
            machine.rules.completion_batch = 1 + seed as u32 % 5;
            let Some((report, steps, path)) = with_path(|journal| simulate(&program, &machine, journal)) else {
                return 0;
            };
            assert!(steps.windows(2).all(|pair| pair[0].to == pair[1].from), "seed {seed}");
            assert_eq!(path.blame.values().sum::<u64>(), report.makespan, "seed {seed}");
            1
        })
        .sum();
    assert!(ran > 150, "{ran} programs ran");
}

#[test]
fn a_path_that_is_told_on_the_way_has_every_step() {
    // So long that most of it is handed on before the end of the run.
    let program = ptosim::workload::open("chain:n=300000").expect("a generator");
    let machine = ptosim::config::Machine::default();
    let (report, steps, path) = with_path(|journal| simulate(program.as_ref(), &machine, journal)).expect("it runs");
    assert_eq!((path.steps, path.blocks), (300_000, 300_000));
    assert_eq!(path.blame.get("compute"), Some(&report.makespan));
    let tasks = steps.iter().map(|step| step.task.map(|task| task.0));
    assert!(tasks.eq((0..300_000).map(Some)));
}

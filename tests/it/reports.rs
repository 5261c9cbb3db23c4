//! The observed critical path: every cycle of the makespan in exactly one step, whatever the program.

use crate::programs;
use ptosim::engine::{BlockRow, Observer, simulate_with};
use ptosim::policy::{Choice, Name};
use ptosim::report::{Blame, PathRecorder, PathStep};
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

#[test]
fn blame_adds_up_to_the_makespan_on_random_programs() {
    let blamed: Vec<Option<Vec<PathStep>>> = (0..SEEDS)
        .into_par_iter()
        .map(|seed| {
            let (program, machine) = programs::random(seed);
            let mut path = PathRecorder::new();
            let report = ptosim::engine::simulate(&program, &machine, &mut path).ok()?;
            let steps = path.steps();
            let mut clock = 0;
            for step in &steps {
                assert!(step.from == clock && step.to >= step.from, "seed {seed}: {step:?} begins at {clock}");
                clock = step.to;
            }
            assert_eq!(clock, report.makespan, "seed {seed}");
            let blame = path.report().blame;
            assert_eq!(blame.values().sum::<u64>(), report.makespan, "seed {seed}: {blame:?}");
            let mut rows = Rows::default();
            ptosim::engine::simulate(&program, &machine, &mut rows).expect("it ran before");
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
            let mut path = PathRecorder::new();
            let Ok(report) = simulate_with(&program, &machine, &choice, &mut path) else { return 0 };
            let steps = path.steps();
            let is_gapless = steps.windows(2).all(|pair| pair[0].to == pair[1].from);
            assert!(is_gapless && steps.first().is_none_or(|step| step.from == 0), "seed {seed}");
            assert_eq!(path.report().blame.values().sum::<u64>(), report.makespan, "seed {seed}");
            1
        })
        .sum();
    assert!(ran > 150, "{ran} programs ran");
}

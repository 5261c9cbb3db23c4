//! `size` against the naive model: the answers complete, one step below does not, and nothing smaller does.

use crate::model::{self, Ending};
use crate::program::Program;
use crate::programs;
use ptosim::config::{Limits, Machine};
use ptosim::engine::{RunError, simulate, simulate_with};
use ptosim::policy::{Choice, Name};
use ptosim::report::Outcome;
use ptosim::size::{Kind, Proven, Request, Sizes, Sizing, size};
use ptosim::workload::{self, Builder, Workload};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const SEEDS: u64 = 1_000;

fn find(program: &dyn Workload, machine: &Machine, choice: &Choice) -> Result<Sizing, RunError> {
    let request = Request { choice, within: 0.01, stop: &AtomicBool::new(false), progress: &|_, _| () };
    size(program, machine, &request)
}

fn with(machine: &Machine, limits: &Sizes) -> Machine {
    let Sizes { window, heap, deps, tensors } = *limits;
    Machine { limits: Limits { window, heap, deps, tensors, ..machine.limits.clone() }, ..machine.clone() }
}

fn changed(machine: &Machine, kind: Kind, size: u64) -> Machine {
    Machine { limits: kind.with(&machine.limits, size), ..machine.clone() }
}

fn completes(program: &Program, machine: &Machine) -> bool {
    model::run(program, machine).ending == Ending::Completed
}

/// The next smaller size that makes a difference at all.
fn below(kind: Kind, size: u64, spare: u64) -> Option<u64> {
    match kind {
        Kind::Window => Some(size / 2).filter(|&size| size > spare),
        Kind::Heap => size.checked_sub(64),
        Kind::Deps | Kind::Tensors => size.checked_sub(1),
    }
}

fn verify(program: &Program, machine: &Machine) -> Result<usize, String> {
    let Ok(sizing) = find(program, machine, &Choice::default()) else { return Ok(0) };
    let unlimited = with(machine, &sizing.unlimited.limits);
    let spare = machine.limits.spare;
    for answer in &sizing.answers {
        let Some(Proven { size, is_proven: true, .. }) = answer.smallest else {
            return Err(format!("no proven answer: {answer:?}"));
        };
        if !completes(program, &changed(&unlimited, answer.kind, size)) {
            return Err(format!("{:?} of {size} does not complete", answer.kind));
        }
        let mut less = below(answer.kind, size, spare);
        while let Some(smaller) = less.filter(|&smaller| smaller > 0 || answer.kind != Kind::Heap) {
            if completes(program, &changed(&unlimited, answer.kind, smaller)) {
                return Err(format!("{:?} of {smaller} completes, but {size} is the answer", answer.kind));
            }
            less = below(answer.kind, smaller, spare);
        }
        let fast = answer.fast.as_ref().ok_or("no fast size")?;
        let told = model::run(program, &changed(&unlimited, answer.kind, fast.size));
        let most = (sizing.unlimited.makespan as f64 * 1.01).floor() as u64;
        if told.makespan != fast.makespan || told.makespan > most || fast.below.is_some_and(|below| below <= most) {
            return Err(format!("{fast:?} of {:?}: the model takes {} of {most}", answer.kind, told.makespan));
        }
    }
    together(program, machine, &sizing)?;
    Ok(sizing.answers.iter().filter(|answer| !answer.slower_when_larger.is_empty()).count())
}

/// All sizes at once complete, and none can be a step smaller with the others in place.
fn together(program: &Program, machine: &Machine, sizing: &Sizing) -> Result<(), String> {
    let smallest = with(machine, &sizing.smallest.as_ref().ok_or("no sizes together")?.limits);
    if !completes(program, &smallest) {
        return Err(format!("{:?} do not complete together", smallest.limits));
    }
    for kind in Kind::ALL {
        let Some(less) = below(kind, kind.value(&smallest.limits), machine.limits.spare) else { continue };
        if (less > 0 || kind != Kind::Heap) && completes(program, &changed(&smallest, kind, less)) {
            return Err(format!("{kind:?} of {less} is enough beside the others of {:?}", smallest.limits));
        }
    }
    let fast = sizing.fast.as_ref().ok_or("no fast sizes together")?;
    let makespan = model::run(program, &with(machine, &fast.limits)).makespan;
    let most = (sizing.unlimited.makespan as f64 * 1.01).floor() as u64;
    if makespan == fast.makespan && makespan <= most { Ok(()) } else { Err(format!("{fast:?} takes {makespan}")) }
}

#[test]
fn answers_are_the_smallest_on_random_programs() {
    let results: Vec<_> = (0..SEEDS)
        .into_par_iter()
        .map(|seed| {
            let (program, machine) = programs::random(seed);
            verify(&program, &machine).map_err(|wrong| format!("seed {seed}: {wrong}\n{}", program.trace()))
        })
        .collect();
    let bent: usize = results.into_iter().map(|result| result.unwrap_or_else(|wrong| panic!("{wrong}"))).sum();
    assert!(bent > 0, "some programs are slower with larger sizes");
}

/// Every answer completes under a policy, and one step less does not; whether there is an answer at all.
fn verify_under(program: &Program, machine: &Machine, choice: &Choice) -> Result<bool, String> {
    let Ok(sizing) = find(program, machine, choice) else { return Ok(false) };
    let completes = |machine: &Machine| {
        simulate_with(program, machine, choice, &mut ()).is_ok_and(|report| report.outcome == Outcome::Completed)
    };
    let expect = |machine: &Machine, kind: Kind, size: u64| {
        if !completes(&changed(machine, kind, size)) {
            return Err(format!("{kind:?} of {size} does not complete"));
        }
        let less = below(kind, size, machine.limits.spare).filter(|&less| less > 0 || kind != Kind::Heap);
        match less.filter(|&less| completes(&changed(machine, kind, less))) {
            Some(less) => Err(format!("{kind:?} of {less} completes, but {size} is the answer")),
            None => Ok(()),
        }
    };
    let unlimited = with(machine, &sizing.unlimited.limits);
    for answer in &sizing.answers {
        expect(&unlimited, answer.kind, answer.smallest.as_ref().ok_or("no answer")?.size)?;
    }
    let smallest = with(machine, &sizing.smallest.as_ref().ok_or("no sizes together")?.limits);
    Kind::ALL.into_iter().try_for_each(|kind| expect(&smallest, kind, kind.value(&smallest.limits)))?;
    Ok(true)
}

#[test]
fn answers_complete_and_one_step_less_does_not_under_every_policy() {
    let answered: Vec<(Name, bool)> = (0..SEEDS)
        .into_par_iter()
        .map(|seed| {
            let (program, machine) = programs::random(seed);
            let name = Name::ALL[seed as usize % Name::ALL.len()];
            let result = verify_under(&program, &machine, &Choice::of(name));
            (name, result.unwrap_or_else(|wrong| panic!("seed {seed} under {name:?}: {wrong}\n{}", program.trace())))
        })
        .collect();
    for name in Name::ALL {
        let answers = answered.iter().filter(|(of, is_answered)| *of == name && *is_answered).count();
        assert!(answers >= 20, "{answers} programs can be sized under {name:?}");
    }
}

/// The smallest pool is the one behind the last that is tried in order, where the search begins to leap.
#[test]
fn a_search_that_leaps_misses_no_size_at_its_start() {
    const TRIED: u64 = 2001;
    for needed in TRIED..=TRIED + 1 {
        let mut builder = Builder::new("join");
        let parts: Vec<_> = (0..needed).map(|_| builder.task("part").vector().cycles(1000).submit()).collect();
        let mut join = builder.task("join").vector().cycles(1);
        for part in parts {
            join = join.after(part);
        }
        join.submit();
        let sizing = find(&builder.build().expect("a program"), &Machine::default(), &Choice::default());
        let sizing = sizing.expect("it can be sized");
        let deps = sizing.answers.iter().find(|answer| answer.kind == Kind::Deps).expect("all are answered");
        assert_eq!(deps.smallest.as_ref().expect("an answer").size, needed);
    }
}

#[test]
fn a_workload_that_never_completes_has_no_sizes() {
    let mut builder = Builder::new("faulty");
    let bad = builder.task("bad").vector().cycles(10).fault().submit();
    builder.task("after").vector().cycles(10).after(bad).submit();
    let error = find(&builder.build().expect("a program"), &Machine::default(), &Choice::default());
    let told = error.expect_err("no size helps").to_string();
    assert!(told.contains("no size helps") && told.contains("1 fail"), "{told}");
}

#[test]
fn a_scope_of_a_tile_needs_a_window_of_its_tasks_and_a_heap_of_its_product() {
    let bgemm = workload::open("bgemm:batch=2,m=4,n=4,k=4").expect("a generator");
    let machine = Machine::default();
    let sizing = find(bgemm.as_ref(), &machine, &Choice::default()).expect("it can be sized");
    let smallest = &sizing.smallest.as_ref().expect("an answer").limits;
    assert_eq!(smallest.window, 8, "one scope holds four products and four sums");
    let enough = with(&machine, smallest);
    assert!(simulate(bgemm.as_ref(), &enough, &mut ()).expect("it runs").deadlock.is_none());
    let window = &sizing.answers[0];
    assert!(window.curve.windows(2).all(|pair| pair[0].size < pair[1].size));
    assert!(window.fast.as_ref().expect("an answer").size > smallest.window, "a tight window is slower");
}

#[test]
fn a_search_that_is_stopped_gives_what_it_has() {
    let bgemm = workload::open("bgemm:batch=2,m=4,n=4,k=4").expect("a generator");
    let (stop, runs) = (AtomicBool::new(false), AtomicU64::new(0));
    let progress = |_, _| {
        if runs.fetch_add(1, Ordering::Relaxed) == 3 {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let choice = Choice::default();
    let request = Request { choice: &choice, within: 0.01, stop: &stop, progress: &progress };
    let sizing = size(bgemm.as_ref(), &Machine::default(), &request).expect("it can be sized");
    assert!(sizing.is_interrupted && sizing.fast.is_none());
    assert!(sizing.answers[0].smallest.is_some(), "the first answer was found before");
    assert!(ptosim::size::render(&sizing).contains("stopped before the end"));
}

//! Timelines of runs, as `run --chrome` writes them, are read as the programs that ran, as far as they show them.

use super::open;
use crate::programs;
use ptosim::config::{Machine, Workers};
use ptosim::engine::{read_along, simulate};
use ptosim::graph::{Graph, Task};
use ptosim::id::{TaskId, TaskType};
use ptosim::report::{Arrows, Chrome, Export, Sheet};
use ptosim::workload::import::Options;
use ptosim::workload::{Cost, Program, Units, Workload, generate};
use std::collections::BTreeSet;

/// The timeline of a run with or without arrows; `None` when the run does not complete.
pub fn timeline(workload: &dyn Workload, machine: &Machine, arrows: Option<Arrows>) -> Option<Vec<u8>> {
    let export = Export::new(Sheet::new(Chrome::default(), Vec::new(), "run", machine), machine, arrows);
    let (run, export, _) = read_along(export, |journal| simulate(workload, machine, journal));
    let bytes = export.finish().finish().expect("memory does not fail");
    run.ok().filter(|report| report.deadlock.is_none()).map(|_| bytes)
}

/// What was read from a timeline.
fn read(bytes: Vec<u8>) -> Program {
    Program::load(open(bytes, &Options::default()).expect("a timeline").as_ref()).expect("a program")
}

/// The same with what is read of its arrows; `None` also when nothing runs on workers.
fn through(workload: &dyn Workload, machine: &Machine) -> Option<Program> {
    let arrows = Arrows::load(workload, machine).ok()?;
    timeline(workload, machine, Some(arrows)).filter(|_| !tasks(workload, machine).is_empty()).map(read)
}

/// Type, units and cycles of a task as its slices show them.
fn shown(task: &Task, workers: &Workers) -> String {
    let Units { cube, vector } = task.units;
    let (on_cube, on_vector) = match task.cost {
        Cost::Cycles(cycles) => (cycles, cycles),
        Cost::PerKind { cube, vector } => (cube, vector),
    };
    match (task.kind, cube, vector) {
        (TaskType::Mix, 1, 0) => format!("CUBE {on_cube}"),
        (TaskType::Mix, 0, 1) => format!("VECTOR {on_vector}"),
        (TaskType::Mix, 0, _) => format!("MIX of 0 and {vector} {on_vector}"),
        (TaskType::Mix, ..) => format!("MIX of {cube} and {vector} {on_cube} {on_vector}"),
        (TaskType::AiCpu, ..) if workers.ai_cpu == 0 => format!("VECTOR {on_cube}"),
        (TaskType::Accelerator, ..) if workers.accelerator == 0 => format!("VECTOR {on_cube}"),
        (kind, ..) => format!("{kind} {on_cube}"),
    }
}

/// A line for each task that runs on workers; they are numbered without the others.
fn tasks(workload: &dyn Workload, machine: &Machine) -> Vec<String> {
    let graph = Graph::survey(workload, machine).expect("a graph");
    let mut places: Vec<Option<usize>> = Vec::new();
    let mut lines = Vec::new();
    for (index, task) in graph.tasks.iter().enumerate() {
        places.push((task.kind != TaskType::None).then_some(lines.len()));
        if task.kind == TaskType::None {
            continue;
        }
        let producers = graph.producers(TaskId(index as u64));
        let producers: BTreeSet<usize> = producers.iter().filter_map(|producer| places[producer.0 as usize]).collect();
        let kernel = task.kernel.map_or("task", |kernel| graph.symbols.name(kernel));
        let (blocks, what) = (task.blocks, shown(task, &machine.workers));
        lines.push(format!("{} {kernel} {what} x{blocks} < {producers:?}", graph.name(TaskId(index as u64))));
    }
    lines
}

#[test]
fn generated_programs_are_read_as_they_ran() {
    let built_in = ["ideal", "a2a3"].map(|name| Machine::load(name).expect("a built-in machine"));
    for spec in
        ["random:n=300", "bgemm:batch=1,m=2,n=2,k=3", "cholesky:tiles=5", "moe", "flash_attention", "fft:width=16"]
    {
        let workload = generate::generator(spec).expect("a generator");
        for machine in &built_in {
            let again = through(workload.as_ref(), machine).expect("it runs");
            assert_eq!(tasks(&again, machine), tasks(workload.as_ref(), machine), "{spec} on {}", machine.name);
            let bare = read(timeline(workload.as_ref(), machine, None).expect("it runs"));
            assert_eq!(bare.tasks().len(), again.tasks().len());
            assert!(bare.tasks().iter().all(|task| task.deps.is_empty()), "{spec}");
            assert!(
                bare.notes()[0].contains("no dependencies, because there are no flow events"),
                "{:?}",
                bare.notes()
            );
        }
    }
}

#[test]
fn random_programs_are_read_as_they_ran() {
    const SEEDS: u64 = 400;
    let mut compared = 0;
    for seed in 0..SEEDS {
        let (program, machine) = programs::random(seed);
        // Any worker takes any type, and several tasks without cycles end at once: neither is told.
        let Some(again) = through(&program, &machine).filter(|_| machine.workers.any == 0) else { continue };
        if again.notes().iter().any(|note| note.contains("several tasks ended at once")) {
            continue;
        }
        // Without a name of its own a task is called by its number, which another has when some are missing.
        let unnamed = |lines: Vec<String>| -> Vec<String> {
            lines.iter().map(|line| line.split_once(' ').map_or("", |(_, rest)| rest).to_owned()).collect()
        };
        assert_eq!(unnamed(tasks(&again, &machine)), unnamed(tasks(&program, &machine)), "seed {seed}");
        let left_out = again.notes().iter().any(|note| note.contains("connect no two tasks"));
        assert!(!left_out, "seed {seed}: {:?}", again.notes());
        compared += 1;
    }
    assert!(compared > SEEDS / 8, "{compared}");
}

#[test]
fn what_a_timeline_does_not_show_is_told() {
    let workers = Workers { clusters: 0, cube: 0, vector: 0, ai_cpu: 0, accelerator: 0, any: 1 };
    let machine = Machine { workers, ..Machine::default() };
    let trace = r#"{"op":"header","format":"ptosim-trace","version":1,"name":"s"}
{"op":"submit","name":"a","kernel":"gemm","cycles":0}
{"op":"submit","kernel":"add","cycles":0,"deps":["a"]}
{"op":"submit","worker_type":"NONE","deps":[1]}
{"op":"submit","cycles":5,"deps":[2]}
"#;
    let workload = open(trace, &Options::default()).expect("a trace");
    let workload = Program::load(workload.as_ref()).expect("a trace");
    let again = through(&workload, &machine).expect("it runs");
    let expected = ["a gemm CUBE 0 x1 < {}", "task1 add VECTOR 0 x1 < {0}", "task3 task VECTOR 5 x1 < {}"];
    assert_eq!(tasks(&again, &machine), expected);
    let told = |words: &str| assert!(again.notes().iter().any(|note| note.contains(words)), "{:?}", again.notes());
    told("1 tasks ran on no worker");
    told("3 tasks ran on ANY workers");
}

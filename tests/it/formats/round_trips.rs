//! What is written and read again is the same program; what a format cannot hold is told.

use super::samples::{machine, samples, target, written};
use super::{open, open_as};
use crate::programs;
use ptosim::export::losses;
use ptosim::graph::Graph;
use ptosim::id::{TaskId, TaskType};
use ptosim::workload::binary::write_binary;
use ptosim::workload::import::{Options, open_file};
use ptosim::workload::{Builder, Program, Workload, generate, write_trace};
use std::fmt::Write as _;

const SEEDS: u64 = 120;

/// Formats that are both read and written, besides our own two.
const FOREIGN: [&str; 4] = ["dot", "wfformat", "chrome", "simpler"];
/// All formats that are both read and written.
const BOTH_WAYS: [&str; 6] = ["native", "ptob", "dot", "wfformat", "chrome", "simpler"];

fn text(workload: &dyn Workload) -> String {
    let mut bytes = Vec::new();
    write_trace(workload, &mut bytes).expect("memory does not fail");
    let text = String::from_utf8(bytes).expect("a text");
    // The first line holds the name, which is that of a file.
    text.split_once('\n').map_or(String::new(), |(_, rest)| rest.to_owned())
}

/// Type, kernel, blocks, cycles and producers of every task.
fn graph(workload: &dyn Workload) -> String {
    let graph = Graph::survey(workload, &machine()).expect("a graph");
    let mut text = String::new();
    for (index, task) in graph.tasks.iter().enumerate() {
        let mut producers: Vec<u64> = graph.producers(TaskId(index as u64)).iter().map(|producer| producer.0).collect();
        producers.sort_unstable();
        // What takes no worker has no kernel that matters; some formats give it a name of their own.
        let kernel = task.kernel.filter(|_| task.kind != TaskType::None);
        let kernel = kernel.map_or("task", |kernel| graph.symbols.name(kernel));
        let _ = writeln!(text, "{index} {} {kernel} x{} {} < {producers:?}", task.kind, task.blocks, task.cycles());
    }
    text
}

/// A workload written in a format and read again; `None` when it cannot run.
fn through(workload: &dyn Workload, format: &str) -> Option<Box<dyn Workload>> {
    let mut own = Vec::new();
    match format {
        "native" => write_trace(workload, &mut own).expect("memory does not fail"),
        "ptob" => write_binary(workload, &mut own).expect("memory does not fail"),
        _ => 0,
    };
    if !own.is_empty() {
        // A stream can be read once, and what was read can be opened again and again.
        let again = Program::load(open_as(format, own).expect("our own").as_ref());
        return Some(Box::new(again.unwrap_or_else(|error| panic!("{format}: {error}"))));
    }
    let files = written(workload, target(format))?;
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in &files {
        std::fs::write(folder.path().join(if name.is_empty() { "file" } else { name }), bytes).expect("a file");
    }
    let first = if files[0].0.is_empty() { "file" } else { files[0].0 };
    let options = Options { clock_mhz: machine().clock_mhz as f64, ..Options::default() };
    Some(open_file(&folder.path().join(first), &options).unwrap_or_else(|error| panic!("{format}: {error}")))
}

#[test]
fn our_own_formats_hold_everything() {
    let mut held = 0;
    for seed in 0..SEEDS {
        let (program, _) = programs::random(seed);
        let expected = text(&program);
        let (mut native, mut binary) = (Vec::new(), Vec::new());
        write_trace(&program, &mut native).expect("memory does not fail");
        write_binary(&program, &mut binary).expect("memory does not fail");
        let native = open_as("native", native).expect("our own");
        let native = match Program::load(native.as_ref()) {
            Ok(native) => native,
            // Programs made in code may ask for what no file may.
            Err(error) if error.to_string().contains("more than a cluster has") => continue,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        held += 1;
        let binary = open(binary, &Options::default()).expect("our own");
        assert_eq!(text(&native), expected, "seed {seed}");
        assert_eq!(text(binary.as_ref()), expected, "seed {seed}");
    }
    assert!(held > SEEDS / 4, "{held}");
}

#[test]
fn graphs_survive_every_pair_of_formats() {
    let mut survived = 0;
    for seed in 0..SEEDS {
        let (program, _) = programs::random(seed);
        let Some(first) = through(&program, "dot") else { continue };
        let expected = graph(&program);
        assert_eq!(graph(first.as_ref()), expected, "seed {seed}: dot");
        for from in BOTH_WAYS.into_iter().filter(|from| holds(from, &expected)) {
            let Some(once) = through(&program, from) else { continue };
            for to in BOTH_WAYS.into_iter().filter(|to| holds(to, &expected)) {
                let Some(twice) = through(once.as_ref(), to) else { continue };
                assert_eq!(graph(twice.as_ref()), expected, "seed {seed}: {from}, then {to}");
                survived += 1;
            }
        }
    }
    assert!(survived > 700, "{survived}");
}

/// Whether a format can hold a graph. The runtime of simpler lacks two types, and a MIX task of one kind of unit is a task of
/// that kind there.
fn holds(format: &str, graph: &str) -> bool {
    format != "simpler" || !["AI_CPU", "ACCEL", "MIX"].iter().any(|kind| graph.contains(kind))
}

#[test]
fn what_any_reader_reads_survives_every_writer() {
    let mut survived = 0;
    for (format, bytes) in samples() {
        let read = Program::load(open_as(format, bytes).expect("a sample").as_ref()).expect("a sample");
        let expected = graph(&read);
        for to in BOTH_WAYS.into_iter().filter(|to| holds(to, &expected)) {
            let again = through(&read, to).expect("it runs");
            assert_eq!(graph(again.as_ref()), expected, "{format}, then {to}");
            survived += 1;
        }
    }
    assert!(survived >= 12 * 5, "{survived}");
}

#[test]
fn odd_and_equal_names_survive_where_names_are_held() {
    let names = ["a\"b\\c", "é→\n", "<&>'", "x;y -> {}", "", "-", "7", "twice", "twice", "task3"];
    let mut builder = Builder::new("names");
    for (index, name) in names.iter().enumerate() {
        let task = builder.task(names[names.len() - 1 - index]).named(name).cycles(5);
        if index > 0 {
            task.after(TaskId(index as u64 - 1)).submit()
        } else {
            task.submit()
        };
    }
    let program = builder.build().expect("valid");
    for format in ["native", "ptob", "dot", "chrome", "wfformat"] {
        let again = through(&program, format).expect("it runs");
        assert_eq!(graph(again.as_ref()), graph(&program), "{format}");
        let again = Program::load(again.as_ref()).expect("valid");
        let found: Vec<&str> =
            again.tasks().iter().map(|task| again.symbols().name(task.name.expect("a name"))).collect();
        // Ids of WfFormat are all different.
        let expected = names.to_vec();
        let unique = [&expected[..8], &["task8"], &expected[9..]].concat();
        assert_eq!(found, if format == "wfformat" { unique } else { expected }, "{format}");
    }
    let told = losses(&program, target("wfformat")).expect("valid");
    assert!(told.iter().any(|line| line.starts_with("1 tasks' names")), "{told:?}");
}

#[test]
fn writing_what_was_read_changes_nothing() {
    for spec in ["random:n=60", "bgemm:batch=1,m=2,n=2,k=3", "wavefront:n=49", "moe", "flash_attention"] {
        let workload = generate::generator(spec).expect("a generator");
        for format in FOREIGN {
            let once = through(workload.as_ref(), format).expect("it runs");
            let twice = through(once.as_ref(), format).expect("it runs");
            assert_eq!(text(twice.as_ref()), text(once.as_ref()), "{spec}: {format}");
        }
    }
}

#[test]
fn what_is_lost_is_told() {
    let workload = generate::generator("bgemm:batch=1,m=1,n=1,k=1").expect("a generator");
    let program = Program::load(workload.as_ref()).expect("valid");
    let dot = losses(&program, target("dot")).expect("valid");
    let told = |word: &str| dot.iter().any(|line| line.contains(word));
    assert!(told("scopes") && told("regions") && told("heap") && told("parameters"), "{dot:?}");
    let simpler = losses(&program, target("simpler")).expect("valid");
    assert!(!simpler.iter().any(|line| line.contains("scopes") || line.contains("heap")), "{simpler:?}");
}

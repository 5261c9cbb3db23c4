//! Stress of the threaded engine: every generator on 24 + 48 workers with a window of 16, in both modes.
//!
//! Small in a normal test run. `scripts/stress.sh` makes it large: `PTOSIM_STRESS` tasks of each generator, `PTOSIM_STRESS_SEEDS` seeds
//! (or as many numbers of threads, where a generator has no seed), and with `PTOSIM_STRESS_ONLY` one generator alone. With
//! `PTOSIM_STRESS_ROTATE` a seed runs with one number of scheduler threads instead of with all.

use crate::witness::{Witness, machine};
use ptosim::engine::threads::Options;
use ptosim::graph::Graph;
use ptosim::workload::{self, generate};
use std::fmt::Write as _;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}: a number")))
}

/// The parameters with which a generator makes about this many tasks, with scopes that fit into 16 slots.
fn parameters(name: &str, size: u64) -> String {
    let root = |divisor: u64| ((size * divisor) as f64).cbrt().ceil() as u64;
    match name {
        "bgemm" => format!("batch=1,m=4,n=4,k={},scope=step", (size / 32).max(1)),
        "chain" | "fanout" | "random" | "stencil" | "wavefront" => format!("n={size}"),
        "tree" => format!("leaves={}", size / 2),
        "fft" => format!("width={}", (size / 16).next_power_of_two()),
        "cholesky" => format!("tiles={},tile=8", root(6)),
        "lu" => format!("tiles={},tile=8", root(3)),
        "flash_attention" => format!("batch=1,heads=2,queries={},keys=16,tile=8,dim=8", (size / 128).max(1)),
        "paged_attention" => format!("heads=1,group=1,dim=8,batch={}", (size / 28).max(1)),
        "transformer" => format!("dim=8,layers={}", (size / 2386).max(1)),
        "moe" => format!("hidden=8,wide=8,tile=8,tiles={}", (size / 22).max(1)),
        "all_to_all" => format!("width=16,steps={}", (size / 16).max(1)),
        _ => format!("width=64,steps={}", (size / 64).max(1)),
    }
}

/// Every task exactly once, after its producers, all consumed: with 0 to 3 scheduler threads, in free and in deterministic mode.
fn stress(witness: &mut Witness, workload: &dyn workload::Workload, seed: u64, label: &str) {
    let executors = 1 + (seed as usize / 4 + seed as usize) % 4;
    let only = std::env::var_os("PTOSIM_STRESS_ROTATE").map(|_| seed % 4);
    for schedulers in (0..=3).filter(|&schedulers| only.is_none_or(|only| schedulers == only)) {
        let threads = format!("scheduler.threads={schedulers}");
        let machine = machine(&["limits.window=16", "workers.cube=24", "workers.vector=48", &threads]);
        let options = Options { executors: Some(executors), ..Options::default() };
        let label = format!("{label}, {schedulers} scheduler threads, {executors} executors");
        witness.check_free(workload, &machine, &options, &label);
        if schedulers > 0 {
            witness.check_deterministic(workload, &machine, &options, &label);
        }
    }
}

#[test]
fn every_task_of_every_generator_runs_once_after_its_producers() {
    let (size, seeds) = (number("PTOSIM_STRESS", 500), number("PTOSIM_STRESS_SEEDS", 1));
    let only = std::env::var("PTOSIM_STRESS_ONLY").ok();
    let mut n_generators = 0;
    for generator in generate::catalogue().iter().filter(|found| only.as_ref().is_none_or(|only| found.name == only)) {
        n_generators += 1;
        let has_seed = generator.parameters.iter().any(|parameter| parameter.name == "seed");
        let mut witness = None;
        for seed in 1..=seeds {
            let mut spec = format!("{}:{}", generator.name, parameters(generator.name, size));
            if has_seed {
                let _ = write!(spec, ",seed={seed}");
                witness = None;
            }
            let workload = workload::open(&spec).unwrap_or_else(|error| panic!("{spec}: {error}"));
            let graph =
                || Graph::load(workload.as_ref(), &machine(&[])).unwrap_or_else(|error| panic!("{spec}: {error}"));
            let witness = witness.get_or_insert_with(|| Witness::new(graph()));
            stress(witness, workload.as_ref(), seed, &spec);
        }
        let tasks = witness.map_or(0, |witness| witness.n_tasks());
        println!("{}: {tasks} tasks, {seeds} seeds", generator.name);
    }
    assert!(n_generators > 0, "no generator is called {only:?}");
}

//! Policies on host threads: deterministic mode runs every one of them with the schedule of virtual time.

use crate::programs;
use ptosim::config::Machine;
use ptosim::engine::threads::{Noop, Options, run, run_deterministic};
use ptosim::engine::{BlockRow, Observer, run_with};
use ptosim::policy::{Choice, Config, Name};
use ptosim::workload::{self, Symbols, Workload};

/// Task, block, worker, start and end of every block.
#[derive(Default, PartialEq, Debug)]
struct Rows(Vec<(u64, u32, u32, u64, u64)>);

impl Observer for Rows {
    fn block(&mut self, row: &BlockRow, _names: &Symbols) {
        self.0.push((row.task.0, row.block, row.worker.0, row.start, row.end));
    }
}

/// The makespan, or why there is none, in virtual time; deterministic threads must say the same.
fn makespan(workload: &dyn Workload, machine: &Machine, choice: &Choice, label: &str) -> Result<u64, String> {
    let (mut expected, mut found) = (Rows::default(), Rows::default());
    let options = Options { executors: Some(2), ..Options::default() };
    let virtual_time = run_with(workload, machine, choice, &mut expected);
    let on_threads = run_deterministic(workload, machine, choice, (&Noop, &options), &mut found);
    assert_eq!(found, expected, "{label}");
    let told = |run: Result<ptosim::report::Report, ptosim::engine::RunError>| match run {
        Ok(report) => Ok((report.makespan, report.outcome, report.policy_report)),
        Err(error) => Err(error.to_string()),
    };
    let (virtual_time, on_threads) = (told(virtual_time), told(on_threads));
    assert_eq!(on_threads, virtual_time, "{label}");
    virtual_time.map(|(makespan, ..)| makespan)
}

/// Two vectors, as in the cases of the X trace.
fn two_vectors() -> Machine {
    let mut machine = Machine::default();
    (machine.workers.cube, machine.workers.vector) = (0, 2);
    machine
}

const PINNED: &str = "[scheduler_conf.choreography_conf]\nchoreography_processor_num = 1\n\
                      tasks = [{ name = \"A\", processor = 0, prio = 1 }]\n";
const DRAINED: &str = "[orleans]\nactivation_scheduling_quantum = 0\n";
const QUANTUM: &str = "[orleans]\nactivation_scheduling_quantum = 15\n";
const NODES: &str = "[bmf.nodes.0]\nscheduler = 0\n[bmf.nodes.1]\nscheduler = 1\n[bmf.nodes.2]\nscheduler = 1\n\
                     [bmf.nodes.3]\nscheduler = 0\n[bmf.nodes.4]\nscheduler = 1\n";
const TOKENS: &str = "[ray.sources.one]\n[ray.sources.two]\n[ray.sources.bg]\n";

#[test]
fn the_x_trace_has_the_same_makespan_in_virtual_time_and_on_threads_under_every_policy() {
    let workload = workload::open("workloads/x_policies.jsonl").expect("the trace");
    let known = [
        (Name::Pto, "", 70),
        (Name::CyberClassic, "", 65),
        (Name::CyberChoreography, PINNED, 75),
        (Name::Orleans, DRAINED, 60),
        (Name::Orleans, QUANTUM, 70),
        (Name::Bmf, NODES, 75),
        (Name::Ray, TOKENS, 70),
        (Name::Ray, "", 70),
    ];
    for (name, config, expected) in known {
        let choice = Choice { name, config: Config::parse(config, "x.toml").expect("it is right") };
        let label = format!("{name} with {config:?}");
        assert_eq!(makespan(workload.as_ref(), &two_vectors(), &choice, &label), Ok(expected), "{label}");
    }
    for name in Name::ALL {
        let found = makespan(workload.as_ref(), &two_vectors(), &Choice::of(name), name.name());
        assert!(found.as_ref().is_ok_and(|&cycles| cycles >= 60), "{name}: {found:?}");
    }
}

#[test]
fn pu_12_every_task_of_a_tiled_product_is_consumed_in_every_one_of_100_runs() {
    let workload = workload::open("bgemm:batch=4,m=8,n=8,k=8").expect("a generator");
    let mut machine = Machine::default();
    (machine.workers.cube, machine.workers.vector) = (4, 4);
    for round in 0..100 {
        machine.limits.window = if round % 2 == 0 { 4096 } else { 16384 };
        let report = run(workload.as_ref(), &machine, &Noop, &Options::default(), &mut ()).expect("it runs");
        assert_eq!((report.tasks, report.ended.consumed), (4096, 4096), "run {round}");
    }
}

#[test]
fn deterministic_mode_has_the_schedule_of_virtual_time_under_every_policy() {
    for seed in 0..150 {
        let (program, machine) = programs::random(seed);
        for name in Name::ALL {
            let _ = makespan(&program, &machine, &Choice::of(name), &format!("{name}, seed {seed}"));
        }
    }
}

//! Instructions of the hot paths, counted by gungraun under valgrind: the window by itself and whole runs per shape. Run by
//! `scripts/bench.sh --hot`, which holds the counts against the baseline.

#[path = "../../window/mod.rs"]
mod window;

use gungraun::{library_benchmark, library_benchmark_group, main};
use ptosim::config::Machine;
use ptosim::sync::{Local, Shared};
use ptosim::window::Window;
use ptosim::workload::{self, Workload};
use ptosim::{engine, report::Report};
use std::hint::black_box;

#[library_benchmark]
#[bench::local(window::window::<Local>(1 << 20))]
fn submit(window: Window<Local>) -> u64 {
    black_box(window::chain(&window, 0, 0).consumed)
}

#[library_benchmark]
#[bench::shared(window::window::<Shared>(1 << 20))]
fn submit_shared(window: Window<Shared>) -> u64 {
    black_box(window::chain(&window, 0, 0).consumed)
}

#[library_benchmark]
#[bench::local(window::window::<Local>(1 << 20))]
fn heap_ring(window: Window<Local>) -> u64 {
    black_box(window::chain(&window, 0, 4096).consumed)
}

#[library_benchmark]
#[bench::none(window::window::<Local>(0), 0)]
#[bench::one(window::window::<Local>(0), 1)]
#[bench::eight(window::window::<Local>(0), 8)]
#[bench::many(window::window::<Local>(0), 64)]
#[bench::very_many(window::window::<Local>(0), 512)]
fn complete_fanout(window: Window<Local>, fanout: u64) -> u64 {
    black_box(window::fan_out(&window, 0, fanout).ready)
}

/// A workload of about 20 000 tasks and a machine.
fn whole(spec: &str, machine: &str) -> (Box<dyn Workload>, Machine) {
    (workload::open(spec).expect("a known generator"), Machine::load(machine).expect("a built-in machine"))
}

#[library_benchmark]
#[bench::chain(whole("chain:n=20000", "ideal"))]
#[bench::stencil(whole("stencil:n=20000", "ideal"))]
#[bench::random(whole("random:n=20000,fanin=3", "ideal"))]
#[bench::bgemm(whole("bgemm:batch=1,m=10,n=10,k=100", "ideal"))]
#[bench::bgemm_a2a3(whole("bgemm:batch=1,m=10,n=10,k=100", "a2a3"))]
fn virtual_engine((workload, machine): (Box<dyn Workload>, Machine)) -> Report {
    engine::run(&*workload, &machine, &mut ()).expect("the run completes")
}

library_benchmark_group!(name = hot_paths, benchmarks = [submit, submit_shared, heap_ring, complete_fanout, virtual_engine]);
main!(library_benchmark_groups = hot_paths);

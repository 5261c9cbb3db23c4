//! Guards what a policy costs: the same workload under each of them, throughput in tasks.
//!
//! Policies that look ahead read the whole program first; that is part of what they cost and is measured too. The engine cannot do
//! without any policy; `bare` is the least that one can be.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ptosim::config::Machine;
use ptosim::policy::{Choice, Dropped, Name, Placement, Policy, Ready, Stage};
use ptosim::window::SlotRef;
use ptosim::{engine, workload};
use std::collections::VecDeque;

/// A queue for each task type without limit, counters or looking ahead: the schedule of `pto`.
#[derive(Default)]
struct Bare {
    queues: [VecDeque<SlotRef>; 5],
}

impl Policy for Bare {
    const READS_SUBMISSIONS: bool = false;
    const INTERFERES: bool = false;

    fn name(&self) -> &'static str {
        "bare"
    }

    #[inline]
    fn is_steady(&self) -> bool {
        true
    }

    #[inline]
    fn on_ready(&mut self, ready: Ready, _now: u64) -> Result<(), Dropped> {
        self.queues[ready.kind as usize].push_back(ready.slot);
        Ok(())
    }

    #[inline]
    fn dispatch(&mut self, stage: &mut Stage<'_>) {
        for queue in &mut self.queues {
            while let Some(&slot) = queue.front() {
                match stage.place(slot) {
                    Placement::Nothing => break,
                    Placement::Some => {}
                    Placement::All => drop(queue.pop_front()),
                }
            }
        }
    }
}

fn policies(criterion: &mut Criterion) {
    let machine = Machine::load("ideal").expect("a built-in machine");
    let mut group = criterion.benchmark_group("policies");
    group.sample_size(10);
    for (shape, spec, tasks) in [
        ("chain", "chain:n=100000", 100_000),
        ("stencil", "stencil:n=100000", 100_000),
        ("random", "random:n=100000,fanin=3", 100_000),
        ("bgemm", "bgemm:batch=48,m=8,n=8,k=16", 98_304),
    ] {
        let workload = workload::open(spec).expect("a generator");
        group.throughput(Throughput::Elements(tasks));
        group.bench_function(BenchmarkId::new(shape, "bare"), |bencher| {
            let run = || engine::simulate_under(workload.as_ref(), &machine, Bare::default(), &mut ());
            bencher.iter(|| run().expect("the run completes"));
        });
        for name in Name::ALL {
            let choice = Choice::of(name);
            group.bench_function(BenchmarkId::new(shape, name), |bencher| {
                let run = || engine::run_with(workload.as_ref(), &machine, &choice, &mut ());
                bencher.iter(|| run().expect("the run completes"));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, policies);
criterion_main!(benches);

//! Guards what a policy costs: the same workload under each of them, throughput in tasks.
//!
//! Policies that look ahead read the whole program first; that is part of what they cost and is measured too.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ptosim::config::Machine;
use ptosim::policy::{Choice, Name};
use ptosim::{engine, workload};

fn policies(criterion: &mut Criterion) {
    let machine = Machine::load("ideal").expect("a built-in machine");
    let mut group = criterion.benchmark_group("policies");
    group.sample_size(10);
    for (shape, spec, tasks) in
        [("random", "random:n=100000,fanin=3", 100_000), ("bgemm", "bgemm:batch=48,m=8,n=8,k=16", 98_304)]
    {
        let workload = workload::open(spec).expect("a generator");
        group.throughput(Throughput::Elements(tasks));
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

//! Guards the speed of the virtual engine, generator, accounts and report included: one shape a line, throughput in tasks.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ptosim::config::Machine;
use ptosim::{engine, workload};

fn shapes(criterion: &mut Criterion) {
    let ideal = Machine::load("ideal").expect("a built-in machine");
    let costly = Machine::load("a2a3").expect("a built-in machine");
    let mut group = criterion.benchmark_group("virtual_engine");
    group.sample_size(10);
    for n in [10_000_u64, 100_000, 1_000_000] {
        let specs = [
            ("chain", format!("chain:n={n}")),
            ("stencil", format!("stencil:n={n}")),
            ("random", format!("random:n={n},fanin=3")),
            ("bgemm", format!("bgemm:batch={},m=8,n=8,k=16", n / 2048)),
        ];
        for (name, spec) in specs {
            let workload = workload::open(&spec).expect("a generator");
            group.throughput(Throughput::Elements(n));
            for (machine, label) in [(&ideal, "ideal"), (&costly, "a2a3")] {
                group.bench_function(BenchmarkId::new(format!("{name}/{label}"), n), |bencher| {
                    bencher.iter(|| engine::run(workload.as_ref(), machine, &mut ()).expect("the run completes"));
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, shapes);
criterion_main!(benches);

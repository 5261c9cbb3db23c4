//! Guards the cost of a task on the threaded runtime: empty kernels, 24 + 48 workers, submission included, in wall time. A busy
//! host shows in the figures.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ptosim::config::Machine;
use ptosim::engine::threads::{Noop, Options, run};
use ptosim::workload;

fn shapes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("threads");
    group.sample_size(10);
    for n in [131_072_u64, 1_048_576] {
        let specs = [
            ("chain", format!("chain:n={n}")),
            ("stencil", format!("stencil:n={n}")),
            ("random", format!("random:n={n},fanin=3")),
            ("bgemm", format!("bgemm:batch={},m=8,n=8,k=16", n / 2048)),
        ];
        for (name, spec) in specs {
            let workload = workload::open(&spec).expect("a generator");
            group.throughput(Throughput::Elements(n));
            for threads in [0, 1] {
                let mut machine = Machine::load("ideal").expect("a built-in machine");
                machine.scheduler.threads = threads;
                let id = BenchmarkId::new(format!("{name}/schedulers={threads}"), n);
                group.bench_function(id, |bencher| {
                    let options = Options::default();
                    bencher.iter(|| {
                        run(workload.as_ref(), &machine, &Noop, &options, &mut ()).expect("the run completes")
                    });
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, shapes);
criterion_main!(benches);

//! Guards completion: a task with 0, 1, 8, 64 or 512 consumers, submitted and completed with them. Throughput in tasks; `local` is the virtual engine's window, `shared` the one with atomics.

#[expect(dead_code, reason = "a bench uses a part of it")]
mod window;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ptosim::sync::{Local, Shared, Sharing};
use std::hint::black_box;
use window::TASKS;

fn of<S: Sharing>(criterion: &mut Criterion, kind: &str) {
    let mut group = criterion.benchmark_group("complete_fanout");
    group.throughput(Throughput::Elements(TASKS));
    for fanout in [0, 1, 8, 64, 512] {
        let window = window::window::<S>(0);
        let mut next = 0;
        group.bench_function(BenchmarkId::new(kind, fanout), |bencher| {
            bencher.iter(|| {
                black_box(window::fan_out(&window, next, fanout).ready);
                next += 2 * TASKS;
            });
        });
    }
    group.finish();
}

fn both(criterion: &mut Criterion) {
    of::<Local>(criterion, "local");
    of::<Shared>(criterion, "shared");
}

criterion_group!(benches, both);
criterion_main!(benches);

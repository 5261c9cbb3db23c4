//! Guards submitting: a task is reserved, linked to the one before it, published, completed and retired. Throughput in tasks; `local` is the virtual engine's window, `shared` the one with atomics.

#[expect(dead_code, reason = "a bench uses a part of it")]
mod window;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ptosim::sync::{Local, Shared, Sharing};
use std::hint::black_box;
use window::TASKS;

fn of<S: Sharing>(criterion: &mut Criterion, kind: &str) {
    let mut group = criterion.benchmark_group("submit");
    group.throughput(Throughput::Elements(TASKS));
    let window = window::window::<S>(1 << 20);
    let mut next = 0;
    group.bench_function(kind, |bencher| {
        bencher.iter(|| {
            black_box(window::chain(&window, next, 0).consumed);
            next += TASKS;
        });
    });
    group.finish();
}

fn both(criterion: &mut Criterion) {
    of::<Local>(criterion, "local");
    of::<Shared>(criterion, "shared");
}

criterion_group!(benches, both);
criterion_main!(benches);

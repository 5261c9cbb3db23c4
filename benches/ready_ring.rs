//! Guards the lock-free ready queue by itself: pushed and popped by one thread, passed from one thread to another, and contended
//! by several. Throughput in entries.

#[expect(dead_code, clippy::wildcard_imports, reason = "the bench uses a part of the queue, and none of its tests")]
#[path = "../src/engine/threads/ring.rs"]
mod ring;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ptosim::{sync, window};
use ring::ReadyRing;
use std::thread;
use sync::{Local, Shared, Sharing};

const ENTRIES: u32 = 10_000;

/// Fills a queue and empties it, many times more entries than it has places.
fn alone<S: Sharing>(queue: &ReadyRing<S>, places: u32) -> u64 {
    let (mut retries, mut sum) = (0, 0);
    for first in (0..ENTRIES).step_by(places as usize) {
        for slot in first..(first + places).min(ENTRIES) {
            assert!(queue.push(slot, &mut retries).is_ok(), "an empty queue has room");
        }
        while let Some(slot) = queue.pop(&mut retries) {
            sum += u64::from(slot);
        }
    }
    sum
}

/// Half of the threads push, the other half pop, until every entry went through.
fn crossing(places: usize, threads: u32) {
    let queue = &ReadyRing::<Shared>::new(places);
    let share = ENTRIES / (threads / 2);
    thread::scope(|scope| {
        for _ in 0..threads / 2 {
            scope.spawn(move || {
                let mut retries = 0;
                for slot in 0..share {
                    while queue.push(slot, &mut retries).is_err() {
                        thread::yield_now();
                    }
                }
            });
            scope.spawn(move || {
                let (mut retries, mut left) = (0, share);
                while left > 0 {
                    match queue.pop(&mut retries) {
                        Some(_) => left -= 1,
                        None => thread::yield_now(),
                    }
                }
            });
        }
    });
}

fn ready_ring(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ready_ring");
    group.throughput(Throughput::Elements(u64::from(ENTRIES)));
    for places in [16_u32, 1024] {
        let queue = ReadyRing::<Local>::new(places as usize);
        group.bench_function(BenchmarkId::new("local", places), |bencher| bencher.iter(|| alone(&queue, places)));
        let queue = ReadyRing::<Shared>::new(places as usize);
        group.bench_function(BenchmarkId::new("shared", places), |bencher| bencher.iter(|| alone(&queue, places)));
    }
    for threads in [2, 4] {
        group.bench_function(BenchmarkId::new("crossing", threads), |bencher| bencher.iter(|| crossing(1024, threads)));
    }
    group.finish();
}

criterion_group!(benches, ready_ring);
criterion_main!(benches);

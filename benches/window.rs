//! Guards the protocol of the window by itself, without engine, workers and time: submitting, fan-out on completion, and the
//! heap ring. Throughput in tasks; `local` is the virtual engine's window, `shared` the one with atomics.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ptosim::config::{FanoutOrder, Limits};
use ptosim::id::TaskId;
use ptosim::sync::{Local, Shared, Sharing};
use ptosim::window::{Linked, Needs, Outcomes, SlotRef, Window};
use std::hint::black_box;

const TASKS: u64 = 10_000;

/// Counts what becomes ready and what is consumed.
#[derive(Default)]
struct Count {
    ready: u64,
    consumed: u64,
}

impl Outcomes for Count {
    fn ready(&mut self, _slot: SlotRef) {
        self.ready += 1;
    }
    fn unblocked(&mut self, _slot: SlotRef) {}
    fn consumed(&mut self, _slot: SlotRef) {
        self.consumed += 1;
    }
}

fn window<S: Sharing>(heap: u64) -> Window<S> {
    Window::new(&Limits { window: 1024, heap, ..Limits::default() }, FanoutOrder::Lifo)
}

/// Reserves and publishes a task that waits for `producers`; returns where it is.
fn submit<S: Sharing>(window: &Window<S>, task: u64, heap: u64, producers: &[SlotRef]) -> SlotRef {
    let needs = Needs { heap, deps: producers.len() as u64, tensors: 0 };
    let slot = window.reserve(0, TaskId(task), &needs, 0).expect("the window has room");
    for &producer in producers {
        assert_eq!(window.link(slot, producer), Linked::Waiting);
    }
    window.satisfy(slot);
    slot
}

/// A chain that is submitted, completed and retired, never more than two tasks in flight.
fn chain<S: Sharing>(window: &Window<S>, from: u64, heap: u64) -> Count {
    let mut count = Count::default();
    let mut last = submit(window, from, heap, &[]);
    for task in from + 1..from + TASKS {
        let next = submit(window, task, heap, &[last]);
        window.complete(last, &mut count);
        window.advance(0, |_| {});
        last = next;
    }
    window.complete(last, &mut count);
    window.advance(0, |_| {});
    count
}

/// One task with `fanout` consumers, submitted and completed until there were [`TASKS`].
fn fan_out<S: Sharing>(window: &Window<S>, from: u64, fanout: u64) -> Count {
    let mut count = Count::default();
    for root in (from..from + TASKS).step_by(fanout as usize + 1) {
        let producer = submit(window, root, 0, &[]);
        let consumers = root + 1..=root + fanout;
        let consumers = consumers.map(|task| submit(window, task, 0, &[producer])).collect::<Vec<_>>();
        window.complete(producer, &mut count);
        consumers.into_iter().for_each(|consumer| window.complete(consumer, &mut count));
        window.advance(0, |_| {});
    }
    count
}

fn of<S: Sharing>(criterion: &mut Criterion, kind: &str) {
    let mut group = criterion.benchmark_group("window");
    group.throughput(Throughput::Elements(TASKS));
    let mut next = 0;
    for (name, heap) in [("submit", 0), ("heap_ring", 4096)] {
        let window = window::<S>(1 << 20);
        next = 0;
        group.bench_function(BenchmarkId::new(name, kind), |bencher| {
            bencher.iter(|| {
                black_box(chain(&window, next, heap).consumed);
                next += TASKS;
            });
        });
    }
    for fanout in [0, 1, 8, 64, 512] {
        let window = window::<S>(0);
        next = 0;
        group.bench_function(BenchmarkId::new(format!("complete_fanout/{fanout}"), kind), |bencher| {
            bencher.iter(|| {
                black_box(fan_out(&window, next, fanout).ready);
                next += 2 * TASKS;
            });
        });
    }
    black_box(next);
    group.finish();
}

fn both(criterion: &mut Criterion) {
    of::<Local>(criterion, "local");
    of::<Shared>(criterion, "shared");
}

criterion_group!(benches, both);
criterion_main!(benches);

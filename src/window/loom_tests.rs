//! Models of the window's protocol: every interleaving of two or three threads on windows of two to four slots.
//!
//! `scripts/loom.sh` runs them. A mutation that must be found, which `scripts/loom.sh --mutate` makes: the exchange in `Slot::hang`
//! `Relaxed` instead of `Release`; `linking_meets_closing` then finds an entry whose consumer was never written.

use super::{Linked, Needs, Outcomes, SlotRef, State, Window};
use crate::config::{FanoutOrder, Limits};
use crate::id::TaskId;
use crate::sync::Shared;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::SeqCst};
use loom::thread;

const ONE_DEP: Needs = Needs { heap: 0, deps: 1, tensors: 1 };
const TWO_DEPS: Needs = Needs { heap: 0, deps: 2, tensors: 1 };

/// A window and how often each slot became READY and CONSUMED.
struct Model {
    window: Window<Shared>,
    ready: Vec<AtomicU32>,
    consumed: Vec<AtomicU32>,
}

impl Model {
    fn new(slots: u64) -> Arc<Model> {
        let limits = Limits { window: slots, deps: 4, heap: 256, ..Limits::default() };
        let counts = || (0..slots).map(|_| AtomicU32::new(0)).collect();
        let window = Window::new(&limits, FanoutOrder::Lifo);
        Arc::new(Model { window, ready: counts(), consumed: counts() })
    }

    fn reserve(&self, task: u64, needs: &Needs) -> SlotRef {
        self.window.reserve(0, TaskId(task), needs, 0).expect("the window has room")
    }

    /// Gives up the hold of the orchestrator.
    fn publish(&self, slot: SlotRef) {
        if self.window.satisfy(slot) {
            Told(self).ready(slot);
        }
    }

    fn complete(&self, slot: SlotRef) {
        self.window.slot(slot).start();
        self.window.complete(slot, &mut Told(self));
    }

    fn ready(&self, slot: SlotRef) -> u32 {
        self.ready[slot as usize].load(SeqCst)
    }

    fn all_retired(&self) -> bool {
        self.window.is_empty() && self.window.ring(0).deps_used() == 0 && self.window.tensors() == 0
    }
}

struct Told<'a>(&'a Model);

impl Outcomes for Told<'_> {
    fn ready(&mut self, slot: SlotRef) {
        assert_eq!(self.0.window.slot(slot).state(), State::Ready);
        self.0.ready[slot as usize].fetch_add(1, SeqCst);
    }

    fn unblocked(&mut self, _: SlotRef) {}

    fn consumed(&mut self, slot: SlotRef) {
        self.0.consumed[slot as usize].fetch_add(1, SeqCst);
        if self.0.window.is_oldest(slot) {
            self.0.window.advance(0, |_, _| {});
        }
    }
}

#[test]
fn linking_meets_closing() {
    loom::model(|| {
        let model = Model::new(2);
        let producer = model.reserve(0, &Needs::default());
        model.publish(producer);
        let other = Arc::clone(&model);
        let completer = thread::spawn(move || other.complete(producer));
        let consumer = model.reserve(1, &ONE_DEP);
        let linked = model.window.link(consumer, producer);
        model.publish(consumer);
        completer.join().expect("the completer ends");
        assert_eq!(model.ready(consumer), 1, "linked as {linked:?}");
        let kept = u32::from(linked == Linked::Consumed);
        assert_eq!(model.consumed[producer as usize].load(SeqCst), kept, "an edge keeps the producer alive");
        model.complete(consumer);
        assert!(model.all_retired());
    });
}

#[test]
fn two_producers_complete_while_their_consumer_is_built() {
    loom::model(|| {
        let model = Model::new(4);
        let producers = [0, 1].map(|task| model.reserve(task, &Needs::default()));
        for producer in producers {
            model.publish(producer);
        }
        let threads = producers.map(|producer| {
            let model = Arc::clone(&model);
            thread::spawn(move || model.complete(producer))
        });
        let consumer = model.reserve(2, &TWO_DEPS);
        let mut links = model.window.links(consumer, 2);
        for producer in producers {
            let _ = links.link(producer, model.window.slot(producer));
        }
        links.finish();
        assert_eq!(model.ready(consumer), 0, "the hold keeps an unpublished task from being ready");
        model.publish(consumer);
        for thread in threads {
            thread.join().expect("completers end");
        }
        assert_eq!(model.ready(consumer), 1, "exactly one of three makes it ready");
        model.complete(consumer);
        for slot in [producers[0], producers[1], consumer] {
            assert_eq!(model.consumed[slot as usize].load(SeqCst), 1);
        }
        assert!(model.all_retired());
    });
}

#[test]
fn two_consumers_release_their_producer_once() {
    loom::model(|| {
        let model = Model::new(4);
        let producer = model.reserve(0, &Needs::default());
        model.publish(producer);
        let consumers = [1, 2].map(|task| {
            let consumer = model.reserve(task, &ONE_DEP);
            assert_eq!(model.window.link(consumer, producer), Linked::Waiting);
            model.publish(consumer);
            consumer
        });
        model.complete(producer);
        let threads = consumers.map(|consumer| {
            let model = Arc::clone(&model);
            thread::spawn(move || model.complete(consumer))
        });
        for thread in threads {
            thread.join().expect("completers end");
        }
        assert_eq!(model.consumed[producer as usize].load(SeqCst), 1);
        assert!(model.all_retired());
    });
}

#[test]
fn two_threads_advance_one_ring_and_leave_nothing_behind() {
    loom::model(|| {
        let model = Model::new(2);
        let tasks = [0, 1].map(|task| model.reserve(task, &ONE_DEP));
        for task in tasks {
            model.publish(task);
        }
        let threads = tasks.map(|task| {
            let model = Arc::clone(&model);
            thread::spawn(move || model.complete(task))
        });
        for thread in threads {
            thread.join().expect("completers end");
        }
        assert!(model.all_retired(), "somebody sees the last consumed task");
    });
}

#[test]
fn slots_are_used_again_over_three_laps() {
    /// The last one is the third tenant of the first of two slots.
    const TASKS: u64 = 5;
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(1);
    builder.check(|| {
        let model = Model::new(2);
        let other = Arc::clone(&model);
        let completer = thread::spawn(move || {
            for task in 0..TASKS {
                let slot = other.window.at(0, task);
                let is_ready = || {
                    other.window.slot(slot).task() == TaskId(task) && other.window.slot(slot).state() == State::Ready
                };
                while !is_ready() {
                    thread::yield_now();
                }
                other.complete(slot);
            }
        });
        let mut before = None;
        for task in 0..TASKS {
            let needs = if before.is_some() { ONE_DEP } else { Needs::default() };
            let slot = loop {
                match model.window.reserve(0, TaskId(task), &needs, 0) {
                    Ok(slot) => break slot,
                    Err(_) => thread::yield_now(),
                }
            };
            if let Some((producer, id)) = before
                && model.window.slot(producer).task() == id
            {
                let _ = model.window.link(slot, producer);
            }
            model.publish(slot);
            before = Some((slot, TaskId(task)));
        }
        completer.join().expect("the completer ends");
        assert!(model.all_retired());
        assert_eq!(model.window.ring(0).retired(), TASKS);
    });
}

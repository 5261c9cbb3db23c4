//! The protocol of the window by itself, without engine, workers and time, for the benches and counts of its parts.

use ptosim::config::{FanoutOrder, Limits};
use ptosim::id::TaskId;
use ptosim::sync::Sharing;
use ptosim::window::{Linked, Needs, Outcomes, SlotRef, Window};

/// Tasks of one round.
pub const TASKS: u64 = 10_000;

/// Counts what becomes ready and what is consumed.
#[derive(Default)]
pub struct Count {
    /// Tasks that waited for nothing any more.
    pub ready: u64,
    /// Tasks that nobody needed any more.
    pub consumed: u64,
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

/// An empty window with 1024 slots and a heap of so many bytes.
pub fn window<S: Sharing>(heap: u64) -> Window<S> {
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
pub fn chain<S: Sharing>(window: &Window<S>, from: u64, heap: u64) -> Count {
    let mut count = Count::default();
    let mut last = submit(window, from, heap, &[]);
    for task in from + 1..from + TASKS {
        let next = submit(window, task, heap, &[last]);
        window.complete(last, &mut count);
        window.advance(0, |_, _| {});
        last = next;
    }
    window.complete(last, &mut count);
    window.advance(0, |_, _| {});
    count
}

/// One task with `fanout` consumers, submitted and completed until there were [`TASKS`].
pub fn fan_out<S: Sharing>(window: &Window<S>, from: u64, fanout: u64) -> Count {
    let mut count = Count::default();
    for root in (from..from + TASKS).step_by(fanout as usize + 1) {
        let producer = submit(window, root, 0, &[]);
        let consumers = root + 1..=root + fanout;
        let consumers = consumers.map(|task| submit(window, task, 0, &[producer])).collect::<Vec<_>>();
        window.complete(producer, &mut count);
        consumers.into_iter().for_each(|consumer| window.complete(consumer, &mut count));
        window.advance(0, |_, _| {});
    }
    count
}

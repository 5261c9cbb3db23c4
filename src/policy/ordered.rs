//! Ready queues in another order than first in, first out: one queue per task type, served by the smallest key.
//!
//! What a rule has to say is its [`Order`]: a key for every READY task. Placement is that of `pto`.

use super::mostly_sorted::MostlySorted;
use super::{Dropped, Placement, Policy, QueueBook, Ready, Stage};
use crate::config::Machine;
use crate::id::{TaskId, TaskType};
use crate::sync::Local;
use crate::window::{SlotRef, Window};

/// In which order READY tasks are handed out.
pub trait Order {
    /// The name of the policy.
    const NAME: &'static str;

    /// The key of a task that has become READY; the smallest goes first, of equals the one that was READY first.
    fn key(&mut self, candidate: &Candidate<'_>) -> u64;

    /// What the report should say.
    fn report(&self) -> serde_json::Value {
        serde_json::Value::Object(serde_json::Map::new())
    }
}

/// A READY task about to be given a key.
pub struct Candidate<'a> {
    /// Its id.
    pub task: TaskId,
    /// Where it lives.
    pub slot: SlotRef,
    /// How many tasks were READY before it.
    pub arrival: u64,
    /// Tasks in flight.
    pub window: &'a Window<Local>,
}

/// A policy that differs from `pto` in the order of its queues only.
pub struct Ordered<O> {
    order: O,
    /// READY since the last dispatch, in this order.
    arrivals: Vec<Ready>,
    n_arrived: u64,
    queues: [Queue; 5],
    /// Bit k is set when queue k has a task.
    filled: u32,
    /// How many bits a slot takes.
    slot_bits: u32,
    book: QueueBook,
}

/// Key, arrival and slot packed, because numbers are compared faster than fields; the smallest first.
type Queue = MostlySorted<u128>;

impl<O: Order> Ordered<O> {
    /// Empty queues of a machine.
    #[must_use]
    pub fn new(order: O, machine: &Machine) -> Ordered<O> {
        let n_slots = machine.limits.window * u64::from(machine.limits.rings);
        Ordered {
            order,
            arrivals: Vec::new(),
            n_arrived: 0,
            queues: Default::default(),
            filled: 0,
            slot_bits: u64::BITS - n_slots.leading_zeros(),
            book: QueueBook::new(machine),
        }
    }

    fn sort_in(&mut self, window: &Window<Local>) {
        for ready in self.arrivals.drain(..) {
            let candidate = Candidate { task: ready.task, slot: ready.slot, arrival: self.n_arrived, window };
            let key = self.order.key(&candidate);
            // Slots fill memory long before the bits that are left for arrivals are used up.
            let arrival = self.n_arrived << self.slot_bits | u64::from(ready.slot);
            self.queues[ready.kind as usize].push(u128::from(key) << 64 | u128::from(arrival));
            self.filled |= 1 << ready.kind as u32;
            self.n_arrived += 1;
        }
    }
}

impl<O: Order> Policy for Ordered<O> {
    const READS_SUBMISSIONS: bool = false;
    const INTERFERES: bool = false;
    const ASKS_WHO_IS_FREE: bool = false;

    fn name(&self) -> &'static str {
        O::NAME
    }

    #[inline]
    fn is_steady(&self) -> bool {
        true
    }

    #[inline]
    fn on_ready(&mut self, ready: Ready, _now: u64) -> Result<(), Dropped> {
        self.book.enter(ready.kind)?;
        self.arrivals.push(ready);
        Ok(())
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.book.is_empty()
    }

    #[inline]
    fn dispatch(&mut self, stage: &mut Stage<'_>) {
        self.sort_in(stage.window);
        let (slots, mut filled) = ((1 << self.slot_bits) - 1, self.filled);
        while filled != 0 {
            let index = filled.trailing_zeros() as usize;
            filled &= filled - 1;
            let (kind, queue) = (TaskType::ALL[index], &mut self.queues[index]);
            while let Some(&first) = queue.first() {
                match stage.place_of((first as u64 & slots) as SlotRef, kind) {
                    Placement::Nothing => break,
                    Placement::Some => {}
                    Placement::All => {
                        queue.pop();
                        self.book.leave(kind);
                        if let Some(&next) = queue.first() {
                            // It has waited for long and is in no near cache any more.
                            stage.window.foresee((next as u64 & slots) as SlotRef);
                        }
                    }
                }
            }
            if queue.is_empty() {
                self.filled &= !(1 << index);
            }
        }
    }

    fn report(&self) -> serde_json::Value {
        self.order.report()
    }

    fn full_events(&self) -> Option<u64> {
        Some(self.book.full_events())
    }
}

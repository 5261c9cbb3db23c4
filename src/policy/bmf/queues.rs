//! The queues: one for each worker, popped by timestamp, then node, then order of scheduling.

use crate::machine::WorkerSet;
use crate::policy::mostly_sorted::MostlySorted;
use crate::policy::{Placement, Stage};
use crate::window::SlotRef;
use std::cmp::Ordering;

/// A task in a queue, in the order in which it is popped.
#[derive(Clone, Copy, Default)]
pub(super) struct Item {
    /// Timestamp, node and order of scheduling, as numbers without a sign, the last two in one. No two are equal.
    timestamp: u64,
    node_and_order: u64,
    /// In one, because what was just written in pieces is not to be read in one.
    task_and_slot: u64,
}

impl Ord for Item {
    #[inline]
    fn cmp(&self, other: &Item) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl PartialOrd for Item {
    #[inline]
    fn partial_cmp(&self, other: &Item) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    #[inline]
    fn le(&self, other: &Item) -> bool {
        self.place() <= other.place()
    }

    #[inline]
    fn lt(&self, other: &Item) -> bool {
        self.place() < other.place()
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Item) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Item {}

impl Item {
    /// The `order`-th scheduled task; there are never more than 2^32, because all tasks are in memory.
    #[inline]
    pub fn new(timestamp: i64, node: i32, order: u32, task: u32, slot: SlotRef) -> Item {
        // With the sign turned round, numbers without a sign are in the same order.
        let timestamp = timestamp.cast_unsigned() ^ 1 << 63;
        let node = node.cast_unsigned() ^ 1 << 31;
        let node_and_order = u64::from(node) << 32 | u64::from(order);
        Item { timestamp, node_and_order, task_and_slot: u64::from(task) << 32 | u64::from(slot) }
    }

    #[inline]
    pub fn task(&self) -> u32 {
        (self.task_and_slot >> 32) as u32
    }

    #[inline]
    pub fn slot(&self) -> SlotRef {
        self.task_and_slot as SlotRef
    }

    /// All of its place as one number, because numbers are compared faster than fields.
    #[inline]
    fn place(&self) -> u128 {
        u128::from(self.timestamp) << 64 | u128::from(self.node_and_order)
    }

    fn node(&self) -> i32 {
        ((self.node_and_order >> 32) as u32 ^ 1 << 31).cast_signed()
    }
}

/// All queues; the last one has no worker of its own and takes tasks that need several workers.
pub(super) struct Queues {
    queues: Vec<Queue>,
    /// Tasks that need several workers and have blocks not placed.
    waiting_together: usize,
    /// Queues of workers that have a task with blocks not placed.
    filled: WorkerSet,
    /// Tasks with blocks not placed.
    waiting: usize,
}

#[derive(Default)]
struct Queue {
    /// The first task, if there is any.
    top: Item,
    rest: MostlySorted<Item>,
    /// How many tasks there are.
    len: usize,
    /// The task being handed out, block by block.
    current: Option<SlotRef>,
    is_paused: bool,
    high: usize,
}

impl Queues {
    pub fn new(n_workers: u32) -> Queues {
        let n_queues = n_workers as usize + 1;
        Queues {
            queues: (0..n_queues).map(|_| Queue::default()).collect(),
            waiting_together: 0,
            filled: WorkerSet::new(n_workers as usize),
            waiting: 0,
        }
    }

    #[inline(always)]
    pub fn push(&mut self, queue: u32, item: Item) {
        if (queue as usize) < self.queues.len() - 1 {
            self.filled.insert(queue);
        } else {
            self.waiting_together += 1;
        }
        self.queues[queue as usize].push(item);
        self.waiting += 1;
    }

    /// Number of workers that have a queue of their own.
    pub fn n_workers(&self) -> u32 {
        self.queues.len() as u32 - 1
    }

    /// Whether no task waits for a worker.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Pauses or resumes a queue, or all of them; false if there is no such queue.
    pub fn pause(&mut self, queue: Option<u64>, is_paused: bool) -> bool {
        match queue {
            None => self.queues.iter_mut().for_each(|queue| queue.is_paused = is_paused),
            Some(index) => match self.queues.get_mut(usize::try_from(index).unwrap_or(usize::MAX)) {
                Some(queue) => queue.is_paused = is_paused,
                None => return false,
            },
        }
        true
    }

    /// Takes out the tasks of a node that have not begun, of one queue or of all, in the order in which they would run.
    pub fn remove(&mut self, node: i32, queue: Option<u64>) -> Vec<Item> {
        let (mut removed, mut kept) = (Vec::new(), Vec::new());
        let together = self.queues.len() - 1;
        for (index, place) in self.queues.iter_mut().enumerate() {
            if index == together {
                let is_meant = |item: &&Item| item.node() == node && queue.is_none_or(|queue| queue == index as u64);
                self.waiting_together -= place.iter().filter(is_meant).count();
            }
            if queue.is_none_or(|queue| queue == index as u64) {
                for item in place.take_all() {
                    let to = if item.node() == node { &mut removed } else { &mut kept };
                    to.push(item);
                }
                kept.drain(..).for_each(|item| place.put_back(item));
            }
        }
        self.waiting -= removed.len();
        removed.sort_unstable();
        removed
    }

    /// Gives every free worker the first task of its own queue.
    pub fn hand_out(&mut self, stage: &mut Stage<'_>) {
        if self.waiting == 0 {
            return;
        }
        if self.waiting_together > 0 {
            self.hand_out_together(stage);
        }
        for word in 0..self.filled.n_words() {
            // Handing out to one changes nothing about the others.
            let mut workers = self.filled.common_word(stage.floor().free_workers(), word);
            while workers != 0 {
                let worker = word as u32 * u64::BITS + workers.trailing_zeros();
                workers &= workers - 1;
                let queue = &mut self.queues[worker as usize];
                self.waiting -= queue.hand_out(stage, worker);
                if !queue.has_any() {
                    self.filled.remove(worker);
                }
            }
        }
    }

    #[inline(never)]
    fn hand_out_together(&mut self, stage: &mut Stage<'_>) {
        if let Some(queue) = self.queues.last_mut() {
            let n_done = queue.hand_out_together(stage);
            self.waiting_together -= n_done;
            self.waiting -= n_done;
        }
    }

    /// The most tasks each queue held.
    pub fn high_water(&self) -> Vec<usize> {
        self.queues.iter().map(|queue| queue.high).collect()
    }
}

impl Queue {
    #[inline]
    fn has_any(&self) -> bool {
        self.current.is_some() || self.len > 0
    }

    #[inline(always)]
    fn push(&mut self, item: Item) {
        self.put_back(item);
        self.high = self.high.max(self.len);
    }

    #[inline(always)]
    fn put_back(&mut self, item: Item) {
        self.len += 1;
        if self.len == 1 {
            self.top = item;
        } else {
            let other = if item < self.top { std::mem::replace(&mut self.top, item) } else { item };
            self.rest.push(other);
        }
    }

    /// The first task.
    #[inline]
    fn first(&self) -> Option<&Item> {
        (self.len > 0).then_some(&self.top)
    }

    /// The first task is gone.
    #[inline(always)]
    fn drop_first(&mut self) {
        self.len -= 1;
        if let Some(next) = self.rest.pop() {
            self.top = next;
        }
    }

    /// Takes all tasks out, in their order.
    fn take_all(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        while let Some(&first) = self.first() {
            items.push(first);
            self.drop_first();
        }
        items
    }

    /// All tasks, in no order.
    fn iter(&self) -> impl Iterator<Item = &Item> {
        self.first().into_iter().chain(self.rest.iter())
    }

    /// Places one block on the queue's own worker; gives the number of tasks that have no block left.
    #[inline]
    fn hand_out(&mut self, stage: &mut Stage<'_>, worker: u32) -> usize {
        let Some(slot) = self.current.or_else(|| self.begin()) else { return 0 };
        if let Some(next) = self.first() {
            // It has waited for long and is in no near cache any more.
            stage.window.foresee(next.slot());
        }
        let is_all = stage.place_on(slot, worker) == Placement::All;
        self.current = if is_all { None } else { Some(slot) };
        usize::from(is_all)
    }

    /// Takes out the first task. A paused queue begins no other, but finishes the one it has begun.
    #[inline]
    fn begin(&mut self) -> Option<SlotRef> {
        let slot = self.first().filter(|_| !self.is_paused)?.slot();
        self.drop_first();
        Some(slot)
    }

    /// Places blocks of tasks that take several workers wherever there is room.
    fn hand_out_together(&mut self, stage: &mut Stage<'_>) -> usize {
        let mut done = 0;
        loop {
            let next = self.first().filter(|_| !self.is_paused).map(Item::slot);
            let Some(slot) = self.current.or(next) else { break };
            let placement = stage.place(slot);
            if placement == Placement::Nothing {
                break;
            }
            if self.current.is_none() {
                self.drop_first();
            }
            let is_all = placement == Placement::All;
            self.current = if is_all { None } else { Some(slot) };
            done += usize::from(is_all);
        }
        done
    }
}

//! A ready queue for every worker. A READY block joins the queue of the worker that would be done with everything queued
//! there first: the smallest `(clock with what is queued, id)`.
//!
//! MIX tasks and tasks whose blocks start together need several workers at once. They wait in a queue that all share, and
//! no worker starts a block that became READY after a `sync_start` task it could run, so that the gang comes together.

use super::mostly_sorted::MostlySorted;
use super::{Placement, QueueBook, Ready, Stage};
use crate::config::Machine;
use crate::id::{TaskType, WorkerType};
use crate::machine::{WorkerSet, own_type};
use crate::sync::{Local, Word};
use crate::window::{SlotRef, Window, flag};
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

/// One block in a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// How many tasks were READY before its own.
    arrival: u64,
    slot: SlotRef,
    kind: TaskType,
    /// Cycles on the worker, and what handing it out costs.
    cycles: u64,
}

/// All queues.
pub(super) struct OwnQueues {
    pub(super) book: QueueBook,
    arrivals: Vec<Ready>,
    n_arrived: u64,
    queues: Vec<VecDeque<Entry>>,
    /// Workers whose queue is not empty.
    filled: WorkerSet,
    clocks: Clocks,
    /// Tasks that need several workers at once, by type.
    gangs: [VecDeque<Entry>; 5],
    /// Entries in the queues of workers, by task type.
    queued: [u64; 5],
    longest: usize,
    /// Cycles that handing out adds to a block.
    overhead: u64,
}

/// When each worker will be done with what it runs and what is queued for it.
struct Clocks {
    kinds: Vec<WorkerType>,
    /// By worker type.
    rows: [Row; 5],
}

/// The workers of one type, whose ids follow each other.
struct Row {
    /// Id of the first worker.
    first: u32,
    /// When each is done.
    done: Vec<u64>,
    /// What was entered in `done`: the time above [`WORKER_BITS`] bits that hold the worker. Times that were changed again are dropped
    /// when they come up.
    order: MostlySorted<u128>,
}

/// Bits that hold a worker.
const WORKER_BITS: u32 = u32::BITS;

impl OwnQueues {
    pub(super) fn new(machine: &Machine) -> OwnQueues {
        let n_workers = machine.workers.total() as usize;
        OwnQueues {
            book: QueueBook::new(machine),
            arrivals: Vec::new(),
            n_arrived: 0,
            queues: vec![VecDeque::new(); n_workers],
            filled: WorkerSet::new(n_workers),
            clocks: Clocks::new(machine),
            gangs: Default::default(),
            queued: [0; 5],
            longest: 0,
            overhead: machine.scheduler.dispatch + machine.worker.pickup,
        }
    }

    #[inline]
    pub(super) fn arrive(&mut self, ready: Ready) {
        self.arrivals.push(ready);
    }

    /// Entries of the queue that was longest.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Gives every new block its queue, then hands out: MIX blocks, then what every free worker has at the head of its own
    /// queue, gangs when nothing older is left for a free worker, and what they held back. True if there were gangs, and what
    /// was handed out may let more follow.
    #[inline]
    pub(super) fn dispatch(&mut self, stage: &mut Stage<'_>) -> bool {
        for index in 0..self.arrivals.len() {
            self.assign(self.arrivals[index], stage.window, stage.now);
        }
        self.arrivals.clear();
        if self.gangs.iter().all(VecDeque::is_empty) {
            self.serve_all(stage);
            return false;
        }
        let before = stage.placed.len();
        self.place_gangs(TaskType::Mix, stage);
        self.serve(stage);
        let gangs = [TaskType::Cube, TaskType::Vector, TaskType::AiCpu, TaskType::Accelerator];
        let placed = gangs.map(|kind| self.place_gangs(kind, stage));
        if placed.contains(&true) {
            self.serve(stage);
        }
        stage.placed.len() > before
    }

    /// Every free worker takes the head of its own queue.
    #[inline]
    fn serve_all(&mut self, stage: &mut Stage<'_>) {
        let mut from = 0;
        while let Some(worker) = self.filled.first_common(stage.floor().free_workers(), from) {
            from = worker + 1;
            let entry = self.remove_first(worker);
            self.place(entry, worker, stage);
        }
    }

    /// Every free worker takes the head of its own queue, unless that came after a gang it may belong to.
    #[inline]
    fn serve(&mut self, stage: &mut Stage<'_>) {
        let mut from = 0;
        while let Some(worker) = self.filled.first_common(stage.floor().free_workers(), from) {
            from = worker + 1;
            let entry = *self.queues[worker as usize].front().expect("a filled queue has a head");
            if entry.arrival < self.barrier(worker) {
                self.remove_first(worker);
                self.place(entry, worker, stage);
            }
        }
    }

    /// Every free worker with an empty queue takes the oldest block it can run from the longest queue of its own type, or
    /// of workers that run any type; of equal ones from the smallest worker. Returns how many did.
    pub(super) fn steal(&mut self, stage: &mut Stage<'_>) -> u64 {
        let (mut from, mut stolen) = (0, 0);
        if self.queued == [0; 5] {
            return 0;
        }
        while let Some(thief) = stage.floor().free_workers().first_without(&self.filled, from) {
            from = thief + 1;
            let kind = self.clocks.kinds[thief as usize];
            if !served_by(kind).iter().any(|&kind| self.queued[kind as usize] > 0) {
                continue;
            }
            if let Some((victim, index)) = self.loot(thief) {
                let entry = self.remove(victim, index);
                self.clocks.shift(victim, |done| done.saturating_sub(entry.cycles));
                self.clocks.shift(thief, |done| done.max(stage.now).saturating_add(entry.cycles));
                self.place(entry, thief, stage);
                stolen += 1;
            }
        }
        stolen
    }

    /// Queue and position of what a worker would steal.
    fn loot(&self, thief: u32) -> Option<(u32, usize)> {
        let kinds = served_by(self.clocks.kinds[thief as usize]);
        let barrier = self.barrier(thief);
        let mut best: Option<(usize, u32, usize)> = None;
        let (mut from, all) = (0, &self.filled);
        while let Some(victim) = all.first_common(all, from) {
            from = victim + 1;
            let queue = &self.queues[victim as usize];
            if best.is_some_and(|(length, ..)| queue.len() <= length) {
                continue;
            }
            let suits = |entry: &Entry| kinds.contains(&entry.kind) && entry.arrival < barrier;
            if let Some(index) = queue.iter().position(suits) {
                best = Some((queue.len(), victim, index));
            }
        }
        best.map(|(_, victim, index)| (victim, index))
    }

    fn assign(&mut self, ready: Ready, window: &Window<Local>, now: u64) {
        let job = &window.slot(ready.slot).job;
        let longer = job.cycles.load(Relaxed).max(job.vector_cycles());
        let cycles = longer.saturating_add(self.overhead);
        let entry = Entry { arrival: self.n_arrived, slot: ready.slot, kind: ready.kind, cycles };
        self.n_arrived += 1;
        if ready.kind == TaskType::Mix || job.has(flag::SYNC_START) {
            self.gangs[ready.kind as usize].push_back(entry);
            return;
        }
        for _ in 0..job.left_to_place() {
            let worker = self.clocks.first(ready.kind);
            self.clocks.shift(worker, |done| done.max(now).saturating_add(cycles));
            let queue = &mut self.queues[worker as usize];
            queue.push_back(entry);
            self.longest = self.longest.max(queue.len());
            self.filled.insert(worker);
            self.queued[ready.kind as usize] += 1;
        }
    }

    /// Places the tasks of a type that need several workers at once, in their order; true if any was.
    fn place_gangs(&mut self, kind: TaskType, stage: &mut Stage<'_>) -> bool {
        let (queue, before) = (&mut self.gangs[kind as usize], stage.placed.len());
        while let Some(&entry) = queue.front() {
            let first = stage.placed.len();
            let placement = stage.place(entry.slot);
            for index in first..stage.placed.len() {
                let crew = stage.floor().worker(stage.placed[index]).block.crew;
                for &worker in crew.ids() {
                    self.clocks.shift(worker, |done| done.max(stage.now).saturating_add(entry.cycles));
                }
            }
            match placement {
                Placement::Nothing => break,
                Placement::Some => {}
                Placement::All => {
                    queue.pop_front();
                    self.book.leave(entry.kind);
                }
            }
        }
        stage.placed.len() > before
    }

    /// Arrival of the first gang this worker could belong to; MIX blocks take what is free and hold nobody back.
    #[inline]
    fn barrier(&self, worker: u32) -> u64 {
        let kinds = served_by(self.clocks.kinds[worker as usize]);
        let first = |&kind: &TaskType| self.gangs[kind as usize].front().map_or(u64::MAX, |entry| entry.arrival);
        kinds.iter().map(first).min().unwrap_or(u64::MAX)
    }

    fn remove(&mut self, worker: u32, index: usize) -> Entry {
        let entry = self.queues[worker as usize].remove(index).expect("the position was just found");
        self.removed(entry, worker)
    }

    /// The same for the head of a queue.
    #[inline]
    fn remove_first(&mut self, worker: u32) -> Entry {
        let entry = self.queues[worker as usize].pop_front().expect("a filled queue has a head");
        self.removed(entry, worker)
    }

    #[inline]
    fn removed(&mut self, entry: Entry, worker: u32) -> Entry {
        self.queued[entry.kind as usize] -= 1;
        if self.queues[worker as usize].is_empty() {
            self.filled.remove(worker);
        }
        entry
    }

    #[inline]
    fn place(&mut self, entry: Entry, worker: u32, stage: &mut Stage<'_>) {
        if stage.place_on(entry.slot, worker) == Placement::All {
            self.book.leave(entry.kind);
        }
    }
}

impl Clocks {
    fn new(machine: &Machine) -> Clocks {
        let mut next = 0;
        let rows = WorkerType::ALL.map(|kind| {
            let first = next;
            next += machine.workers.count(kind);
            Row::new(first, machine.workers.count(kind))
        });
        Clocks { kinds: machine.workers.kinds().collect(), rows }
    }

    /// The worker that runs this type and will be done first.
    #[inline]
    fn first(&mut self, kind: TaskType) -> u32 {
        let own = own_type(kind).expect("gangs and joints have no queue of a worker");
        let mut of = |kind: WorkerType| self.rows[kind as usize].first();
        let first = match (of(own), of(WorkerType::Any)) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b).expect("a task without workers is refused before the run"),
        };
        first.1
    }

    #[inline]
    fn shift(&mut self, worker: u32, change: impl FnOnce(u64) -> u64) {
        self.rows[self.kinds[worker as usize] as usize].shift(worker, change);
    }
}

impl Row {
    fn new(first: u32, n_workers: u32) -> Row {
        let order = (first..first + n_workers).map(u128::from).collect();
        Row { first, done: vec![0; n_workers as usize], order: MostlySorted::of_sorted(order) }
    }

    /// Time and id of the worker that is done first, of equals the smallest.
    #[inline]
    fn first(&mut self) -> Option<(u64, u32)> {
        while let Some(&first) = self.order.first() {
            let (done, worker) = ((first >> WORKER_BITS) as u64, first as u32);
            if self.done[(worker - self.first) as usize] == done {
                return Some((done, worker));
            }
            self.order.pop();
        }
        None
    }

    #[inline]
    fn shift(&mut self, worker: u32, change: impl FnOnce(u64) -> u64) {
        let done = &mut self.done[(worker - self.first) as usize];
        let new = change(*done);
        if new != *done {
            *done = new;
            self.order.push(u128::from(new) << WORKER_BITS | u128::from(worker));
        }
    }
}

/// Types of the blocks that a worker takes from queues.
fn served_by(kind: WorkerType) -> &'static [TaskType] {
    match kind {
        WorkerType::Cube => &[TaskType::Cube],
        WorkerType::Vector => &[TaskType::Vector],
        WorkerType::AiCpu => &[TaskType::AiCpu],
        WorkerType::Accelerator => &[TaskType::Accelerator],
        WorkerType::Any => &[TaskType::Cube, TaskType::Vector, TaskType::AiCpu, TaskType::Accelerator],
    }
}

//! `static`: a list schedule is computed before the run and replayed: every worker runs its blocks in the planned order.
//!
//! A worker waits for the first planned block whose task is submitted, whatever else is READY. Tasks that the window keeps
//! out are passed over until they are in, so that a small window delays the plan but never blocks it: the earliest planned
//! task of those submitted has everything it needs.

use super::number_set::NumberSet;
use super::{Dropped, Placement, Policy, Pto, QueueBook, QueueLimit, QueueStats, Ready, Stage, Submission};
use crate::config::Machine;
use crate::id::TaskId;
use crate::machine::{Crew, WorkerSet};
use crate::window::{NONE, SlotRef, flag};
use serde_json::json;

/// Who runs which block, and in which order.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Every block, in the order in which the blocks start.
    blocks: Vec<Planned>,
    /// Where the blocks of a task begin in `orders`; one more than there are tasks.
    first: Vec<u32>,
    /// Places in `blocks`, task by task.
    orders: Vec<u32>,
    /// When the last block ends if everything goes as planned.
    makespan: u64,
}

/// A planned block.
#[derive(Clone, Copy, Debug, Default)]
struct Planned {
    crew: Crew,
    /// Its place among the blocks of each worker of the crew.
    places: [u32; 3],
}

impl Planned {
    /// The workers of the crew, each with the block's place among its own.
    fn parts(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.crew.ids().iter().copied().zip(self.places)
    }
}

impl Plan {
    /// A plan from the task and the crew of every block in the order in which the blocks start.
    #[must_use]
    pub fn new(blocks: &[(TaskId, Crew)], n_tasks: usize, makespan: u64) -> Plan {
        let mut first = vec![0; n_tasks + 1];
        for (task, _) in blocks {
            first[task.0 as usize + 1] += 1;
        }
        for index in 0..n_tasks {
            first[index + 1] += first[index];
        }
        let (mut next, mut orders) = (first.clone(), vec![0; blocks.len()]);
        let mut lengths: Vec<u32> = Vec::new();
        let mut planned = Vec::with_capacity(blocks.len());
        for (order, &(task, crew)) in blocks.iter().enumerate() {
            let place = &mut next[task.0 as usize];
            orders[*place as usize] = order as u32;
            *place += 1;
            let mut block = Planned { crew, places: [0; 3] };
            for (place, &worker) in block.places.iter_mut().zip(crew.ids()) {
                if worker as usize >= lengths.len() {
                    lengths.resize(worker as usize + 1, 0);
                }
                *place = lengths[worker as usize];
                lengths[worker as usize] += 1;
            }
            planned.push(block);
        }
        Plan { blocks: planned, first, orders, makespan }
    }

    /// The blocks of a task.
    #[inline]
    fn of(&self, task: TaskId) -> &[u32] {
        let index = task.0 as usize;
        match (self.first.get(index), self.first.get(index + 1)) {
            (Some(&from), Some(&to)) => &self.orders[from as usize..to as usize],
            _ => &[],
        }
    }

    /// Every worker of every block of a task, with the block's place among those of the worker.
    #[inline]
    fn parts(&self, task: TaskId) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.of(task).iter().flat_map(|&order| self.blocks[order as usize].parts())
    }

    /// The planned blocks of each worker.
    fn lanes(&self, n_workers: usize) -> Vec<Lane> {
        let mut blocks: Vec<Vec<(u32, SlotRef)>> = vec![Vec::new(); n_workers];
        for (order, block) in self.blocks.iter().enumerate() {
            for &worker in block.crew.ids() {
                blocks[worker as usize].push((order as u32, NONE));
            }
        }
        let lane = |blocks: Vec<_>| Lane { waiting: NumberSet::new(blocks.len()), blocks, top: NONE };
        blocks.into_iter().map(lane).collect()
    }
}

/// The planned blocks of one worker.
struct Lane {
    /// By place: the block, and the slot of its task once that is submitted.
    blocks: Vec<(u32, SlotRef)>,
    /// Places of the blocks of submitted tasks that are not handed out.
    waiting: NumberSet,
    /// The first of them, or [`NONE`].
    top: u32,
}

impl Lane {
    /// The first block that waits, and the slot of its task.
    #[inline]
    fn first(&self) -> Option<(u32, SlotRef)> {
        self.blocks.get(self.top as usize).copied()
    }
}

/// The plan as far as it is carried out.
struct Progress {
    lanes: Vec<Lane>,
    /// Whether the task in a slot is READY.
    is_ready: Vec<bool>,
    /// Workers whose first block belongs to a READY task.
    due: WorkerSet,
}

impl Progress {
    /// The task of a block is submitted.
    #[inline]
    fn submitted(&mut self, (worker, place): (u32, u32), slot: SlotRef) {
        let lane = &mut self.lanes[worker as usize];
        lane.blocks[place as usize].1 = slot;
        lane.waiting.insert(place);
        if place < lane.top {
            lane.top = place;
            self.due.remove(worker);
        }
    }

    /// The task of a block is READY.
    #[inline]
    fn ready(&mut self, (worker, place): (u32, u32)) {
        if self.lanes[worker as usize].top == place {
            self.due.insert(worker);
        }
    }

    /// A block is handed out or will never be.
    #[inline]
    fn leave(&mut self, (worker, place): (u32, u32)) {
        let lane = &mut self.lanes[worker as usize];
        if !lane.waiting.contains(place) {
            return;
        }
        lane.waiting.remove(place);
        if lane.top == place {
            lane.top = lane.waiting.first().unwrap_or(NONE);
            match lane.first() {
                Some((_, slot)) if self.is_ready[slot as usize] => self.due.insert(worker),
                _ => self.due.remove(worker),
            }
        }
    }
}

/// The replay of a plan.
pub struct StaticList {
    plan: Plan,
    progress: Progress,
    /// Tasks the plan does not know, because they were cancelled when it was made.
    unplanned: Pto,
    n_unplanned: u64,
    book: QueueBook,
    /// Blocks that could start and the slots of their tasks, packed, while they are handed out.
    scratch: Vec<u64>,
}

impl StaticList {
    /// Nothing submitted yet.
    #[must_use]
    pub fn new(plan: Plan, machine: &Machine) -> StaticList {
        let n_workers = machine.workers.total() as usize;
        StaticList {
            progress: Progress {
                lanes: plan.lanes(n_workers),
                is_ready: vec![false; (machine.limits.window * u64::from(machine.limits.rings)) as usize],
                due: WorkerSet::new(n_workers),
            },
            plan,
            unplanned: Pto::new(QueueLimit::of(machine)),
            n_unplanned: 0,
            book: QueueBook::new(machine),
            scratch: Vec::new(),
        }
    }

    /// Whether all of a crew are free and have this block on top.
    fn is_assembled(&self, order: u32, free: &WorkerSet) -> bool {
        let on_top = |worker: u32| self.progress.lanes[worker as usize].first().is_some_and(|(top, _)| top == order);
        self.plan.blocks[order as usize].crew.ids().iter().all(|&worker| free.contains(worker) && on_top(worker))
    }

    /// Places a block whose crew is there, or all blocks of its task if they start together and all crews are there.
    #[inline]
    fn place_if_assembled(&mut self, order: u32, slot: SlotRef, stage: &mut Stage<'_>) {
        let free = stage.floor().free_workers();
        if !stage.window.slot(slot).job.has(flag::SYNC_START) {
            if self.is_assembled(order, free) {
                self.place(order, slot, stage);
            }
            return;
        }
        let task = stage.window.slot(slot).task();
        if self.plan.of(task).iter().all(|&order| self.is_assembled(order, free)) {
            for index in 0..self.plan.of(task).len() {
                self.place(self.plan.of(task)[index], slot, stage);
            }
        }
    }

    fn place(&mut self, order: u32, slot: SlotRef, stage: &mut Stage<'_>) {
        let block = self.plan.blocks[order as usize];
        if stage.place_crew(slot, block.crew) == Placement::All {
            self.book.leave(stage.window.slot(slot).job.kind());
        }
        block.parts().for_each(|part| self.progress.leave(part));
    }
}

impl Policy for StaticList {
    const STEADY: bool = true;

    fn name(&self) -> &'static str {
        "static"
    }

    #[inline]
    fn on_submit(&mut self, submission: &Submission<'_>, _now: u64) -> Result<(), String> {
        let Submission { slot, task, .. } = *submission;
        self.progress.is_ready[slot as usize] = false;
        self.plan.parts(task).for_each(|part| self.progress.submitted(part, slot));
        Ok(())
    }

    #[inline]
    fn on_ready(&mut self, ready: Ready, now: u64) -> Result<(), Dropped> {
        if self.plan.of(ready.task).is_empty() {
            self.n_unplanned += 1;
            return self.unplanned.on_ready(ready, now);
        }
        if let Err(dropped) = self.book.enter(ready.kind) {
            self.on_cancel(ready.slot, ready.task, now);
            return Err(dropped);
        }
        self.progress.is_ready[ready.slot as usize] = true;
        self.plan.parts(ready.task).for_each(|part| self.progress.ready(part));
        Ok(())
    }

    fn on_cancel(&mut self, _slot: SlotRef, task: TaskId, _now: u64) {
        self.plan.parts(task).for_each(|part| self.progress.leave(part));
    }

    fn dispatch(&mut self, stage: &mut Stage<'_>) {
        let (mut from, mut due) = (0, std::mem::take(&mut self.scratch));
        while let Some(worker) = self.progress.due.first_common(stage.floor().free_workers(), from) {
            from = worker + 1;
            let first = self.progress.lanes[worker as usize].first();
            due.extend(first.map(|(order, slot)| u64::from(order) << 32 | u64::from(slot)));
        }
        if due.len() > 1 {
            due.sort_unstable();
            due.dedup();
        }
        for block in due.drain(..) {
            self.place_if_assembled((block >> 32) as u32, block as SlotRef, stage);
        }
        self.scratch = due;
        self.unplanned.dispatch(stage);
    }

    fn report(&self) -> serde_json::Value {
        json!({ "planned_makespan": self.plan.makespan, "unplanned_tasks": self.n_unplanned })
    }

    fn queues(&self) -> QueueStats {
        self.book.stats()
    }
}

//! `static`: a list schedule is computed before the run and replayed: every worker runs its blocks in the planned order.
//!
//! A worker waits for the first planned block whose task is submitted, whatever else is READY. Tasks that the window keeps
//! out are passed over until they are in, so that a small window delays the plan but never blocks it: the earliest planned
//! task of those submitted has everything it needs.

use super::{Dropped, Placement, Policy, Pto, QueueBook, QueueLimit, QueueStats, Ready, Stage, Submission};
use crate::config::Machine;
use crate::id::TaskId;
use crate::machine::{Crew, WorkerSet};
use crate::window::{SlotRef, flag};
use serde_json::json;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Who runs which block, and in which order.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The crew of every block, in the order in which the blocks start.
    crews: Vec<Crew>,
    /// Where the blocks of a task begin in `orders`; one more than there are tasks.
    first: Vec<u32>,
    /// Places in `crews`, task by task.
    orders: Vec<u32>,
    /// When the last block ends if everything goes as planned.
    makespan: u64,
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
        for (order, (task, _)) in blocks.iter().enumerate() {
            let place = &mut next[task.0 as usize];
            orders[*place as usize] = order as u32;
            *place += 1;
        }
        Plan { crews: blocks.iter().map(|&(_, crew)| crew).collect(), first, orders, makespan }
    }

    /// The blocks of a task.
    fn of(&self, task: TaskId) -> &[u32] {
        let index = task.0 as usize;
        match (self.first.get(index), self.first.get(index + 1)) {
            (Some(&from), Some(&to)) => &self.orders[from as usize..to as usize],
            _ => &[],
        }
    }

    fn crew(&self, order: u32) -> Crew {
        self.crews[order as usize]
    }
}

/// The replay of a plan.
pub struct StaticList {
    plan: Plan,
    /// Planned blocks of submitted tasks by worker, the first one on top: `(order, slot)`.
    queues: Vec<BinaryHeap<Reverse<(u32, SlotRef)>>>,
    /// Whether the task in a slot is READY.
    is_ready: Vec<bool>,
    /// Workers whose first block belongs to a READY task.
    due: WorkerSet,
    /// Tasks the plan does not know, because they were cancelled when it was made.
    unplanned: Pto,
    n_unplanned: u64,
    book: QueueBook,
    /// Blocks that could start, while they are handed out.
    scratch: Vec<(u32, SlotRef)>,
}

impl StaticList {
    /// Nothing submitted yet.
    #[must_use]
    pub fn new(plan: Plan, machine: &Machine) -> StaticList {
        let n_workers = machine.workers.total() as usize;
        StaticList {
            plan,
            queues: vec![BinaryHeap::new(); n_workers],
            is_ready: vec![false; (machine.limits.window * u64::from(machine.limits.rings)) as usize],
            due: WorkerSet::new(n_workers),
            unplanned: Pto::new(QueueLimit::of(machine)),
            n_unplanned: 0,
            book: QueueBook::new(machine),
            scratch: Vec::new(),
        }
    }

    /// Looks again whether the first block of a worker is due.
    fn refresh(&mut self, worker: u32) {
        match self.queues[worker as usize].peek() {
            Some(&Reverse((_, slot))) if self.is_ready[slot as usize] => self.due.insert(worker),
            _ => self.due.remove(worker),
        }
    }

    /// Whether all of a crew are free and have this block on top.
    fn is_assembled(&self, order: u32, free: &WorkerSet) -> bool {
        let on_top = |worker: u32| self.queues[worker as usize].peek().is_some_and(|&Reverse((top, _))| top == order);
        self.plan.crew(order).ids().iter().all(|&worker| free.contains(worker) && on_top(worker))
    }

    /// Places a block whose crew is there, or all blocks of its task if they start together and all crews are there.
    fn place_if_assembled(&mut self, order: u32, slot: SlotRef, stage: &mut Stage<'_>) {
        let (task, free) = (stage.window.slot(slot).task(), stage.floor().free_workers());
        if !stage.window.slot(slot).job.has(flag::SYNC_START) {
            if self.is_assembled(order, free) {
                self.place(order, slot, stage);
            }
        } else if self.plan.of(task).iter().all(|&order| self.is_assembled(order, free)) {
            for index in 0..self.plan.of(task).len() {
                self.place(self.plan.of(task)[index], slot, stage);
            }
        }
    }

    fn place(&mut self, order: u32, slot: SlotRef, stage: &mut Stage<'_>) {
        let crew = self.plan.crew(order);
        if stage.place_crew(slot, crew) == Placement::All {
            self.book.leave(stage.window.slot(slot).job.kind());
        }
        for &worker in crew.ids() {
            self.queues[worker as usize].pop();
            self.refresh(worker);
        }
    }
}

impl Policy for StaticList {
    const STEADY: bool = true;

    fn name(&self) -> &'static str {
        "static"
    }

    fn on_submit(&mut self, submission: &Submission<'_>, _now: u64) -> Result<(), String> {
        let Submission { slot, task, .. } = *submission;
        self.is_ready[slot as usize] = false;
        for index in 0..self.plan.of(task).len() {
            let order = self.plan.of(task)[index];
            for &worker in self.plan.crew(order).ids() {
                self.queues[worker as usize].push(Reverse((order, slot)));
                self.refresh(worker);
            }
        }
        Ok(())
    }

    fn on_ready(&mut self, ready: Ready, now: u64) -> Result<(), Dropped> {
        if self.plan.of(ready.task).is_empty() {
            self.n_unplanned += 1;
            return self.unplanned.on_ready(ready, now);
        }
        if let Err(dropped) = self.book.enter(ready.kind) {
            self.on_cancel(ready.slot, ready.task, now);
            return Err(dropped);
        }
        self.is_ready[ready.slot as usize] = true;
        for index in 0..self.plan.of(ready.task).len() {
            let order = self.plan.of(ready.task)[index];
            for &worker in self.plan.crew(order).ids() {
                self.refresh(worker);
            }
        }
        Ok(())
    }

    fn on_cancel(&mut self, _slot: SlotRef, task: TaskId, _now: u64) {
        for index in 0..self.plan.of(task).len() {
            let order = self.plan.of(task)[index];
            for &worker in self.plan.crew(order).ids() {
                self.queues[worker as usize].retain(|&Reverse((other, _))| other != order);
                self.refresh(worker);
            }
        }
    }

    fn dispatch(&mut self, stage: &mut Stage<'_>) {
        let (mut from, mut due) = (0, std::mem::take(&mut self.scratch));
        while let Some(worker) = self.due.first_common(stage.floor().free_workers(), from) {
            from = worker + 1;
            due.extend(self.queues[worker as usize].peek().map(|&Reverse(top)| top));
        }
        due.sort_unstable();
        due.dedup();
        for (order, slot) in due.drain(..) {
            self.place_if_assembled(order, slot, stage);
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

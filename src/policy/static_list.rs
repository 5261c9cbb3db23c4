//! `static`: a list schedule is computed before the run and replayed: every worker runs its blocks in the planned order.
//!
//! A worker waits for the first planned block whose task is submitted, whatever else is READY. Tasks that the window keeps
//! out are passed over until they are in, so that a small window delays the plan but never blocks it: the earliest planned
//! task of those submitted has everything it needs.

use super::mostly_sorted::MostlySorted;
use super::{Dropped, Placement, Policy, Pto, QueueBook, QueueLimit, Ready, Stage, Submission};
use crate::config::Machine;
use crate::id::TaskId;
use crate::machine::{Crew, WorkerSet};
use crate::window::{SlotRef, flag, prefetch};
use serde_json::json;
use std::slice::from_ref;
use zerocopy::FromZeros;

/// How many tasks later the one is that is fetched when a task becomes READY.
const AHEAD: usize = 256;

/// Who runs which block, and in which order.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Where the parts of a task begin in `parts`, one more than there are tasks; nothing if every task has exactly one entry.
    first: Vec<u32>,
    /// For every worker of every block, task by task.
    parts: Vec<Part>,
    /// The blocks that several workers run, in the order in which they start.
    crews: Vec<(u32, Crew)>,
    n_blocks: u32,
    /// When the last block ends if everything goes as planned.
    pub(super) makespan: u64,
}

/// A worker of a block, and the block's place in the order in which all blocks start, from 1, packed; 0 if it is not planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromZeros)]
struct Part(u64);

impl Part {
    /// Not planned.
    const NONE: Part = Part(0);

    #[inline]
    fn new(worker: u32, order: u32) -> Part {
        Part(u64::from(worker) << 32 | u64::from(order + 1))
    }

    #[inline]
    fn worker(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    fn order(self) -> u32 {
        self.0 as u32 - 1
    }
}

impl Plan {
    /// A plan from the task and the crew of every block in the order in which the blocks start.
    #[must_use]
    pub fn new(blocks: &[(TaskId, Crew)], n_tasks: usize, makespan: u64) -> Plan {
        let mut first = vec![0; n_tasks + 1];
        for (task, crew) in blocks {
            first[task.0 as usize + 1] += crew.ids().len() as u32;
        }
        for index in 0..n_tasks {
            first[index + 1] += first[index];
        }
        let (mut next, mut parts) = (first.clone(), vec![Part::NONE; first[n_tasks] as usize]);
        let mut crews = Vec::new();
        for (order, (task, crew)) in (0..).zip(blocks) {
            for &worker in crew.ids() {
                let part = &mut next[task.0 as usize];
                parts[*part as usize] = Part::new(worker, order);
                *part += 1;
            }
            if !crew.is_one() {
                crews.push((order, *crew));
            }
        }
        Plan { first, parts, crews, n_blocks: blocks.len() as u32, makespan }
    }

    /// The beginning of a plan in which every task is one block of one worker. It takes the place of a number that is kept for
    /// every task until that is added.
    pub(super) fn instead_of(numbers: Vec<u64>) -> Plan {
        Plan { parts: numbers.into_iter().map(Part).collect(), ..Plan::default() }
    }

    /// How many blocks were added.
    pub(super) fn n_blocks(&self) -> usize {
        self.n_blocks as usize
    }

    /// Tasks that will not be added.
    pub(super) fn leave_out(&mut self, tasks: &[u32]) {
        tasks.iter().for_each(|&task| self.parts[task as usize] = Part::NONE);
    }

    /// The number that is kept for a task that is not added yet.
    #[inline]
    pub(super) fn number(&self, task: u32) -> u64 {
        self.parts[task as usize].0
    }

    /// The next block to start, the only one of its task.
    #[inline]
    pub(super) fn add(&mut self, task: u32, worker: u32) {
        self.parts[task as usize] = Part::new(worker, self.n_blocks);
        self.n_blocks += 1;
    }

    /// Fetches what is known of a task, if every task is at most one block of one worker.
    #[inline]
    pub(super) fn foresee(&self, task: usize) {
        if let Some(part) = self.parts.get(task) {
            prefetch(part);
        }
    }

    /// Whether every task is at most one block of one worker.
    #[inline]
    fn is_single(&self) -> bool {
        self.first.is_empty()
    }

    /// The worker of the block of a task, if every task is at most one block of one worker and this one is planned.
    #[inline]
    fn single(&self, task: TaskId) -> Option<Part> {
        self.parts.get(task.0 as usize).copied().filter(|&part| part != Part::NONE)
    }

    /// Every worker of every block of a task.
    #[inline]
    fn of(&self, task: TaskId) -> &[Part] {
        let index = task.0 as usize;
        if self.is_single() {
            return match self.parts.get(index) {
                Some(part) if *part != Part::NONE => from_ref(part),
                _ => &[],
            };
        }
        match self.first.get(index..index + 2) {
            Some(&[from, to]) => &self.parts[from as usize..to as usize],
            _ => &[],
        }
    }

    /// Who runs a block of a worker.
    #[inline]
    fn crew(&self, order: u32, worker: u32) -> Crew {
        let shared = self.crews.binary_search_by_key(&order, |&(order, _)| order);
        shared.map_or(Crew::one(worker), |index| self.crews[index].1)
    }
}

/// A block that waits: its place in the order in which blocks start and the slot of its task, packed, because numbers are compared
/// faster than fields.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Waiting(u64);

impl Waiting {
    /// Behind all others.
    const NOTHING: Waiting = Waiting(u64::MAX);

    #[inline]
    fn new(order: u32, slot: SlotRef) -> Waiting {
        Waiting(u64::from(order) << 32 | u64::from(slot))
    }

    #[inline]
    fn order(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    fn slot(self) -> SlotRef {
        self.0 as SlotRef
    }
}

/// The planned blocks of one worker whose tasks are submitted and that are not handed out.
struct Lane {
    /// The first of them, or [`Waiting::NOTHING`].
    top: Waiting,
    rest: MostlySorted<Waiting>,
}

impl Lane {
    fn new() -> Lane {
        Lane { top: Waiting::NOTHING, rest: MostlySorted::default() }
    }

    #[inline]
    fn is_first(&self, order: u32) -> bool {
        self.top.order() == order && self.top != Waiting::NOTHING
    }

    /// Puts a block in; whether it is the first now.
    #[inline(always)]
    fn push(&mut self, block: Waiting) -> bool {
        let is_first = block < self.top;
        let other = if is_first { std::mem::replace(&mut self.top, block) } else { block };
        if other != Waiting::NOTHING {
            self.rest.push(other);
        }
        is_first
    }

    /// The first block is gone.
    #[inline]
    fn pop(&mut self) {
        self.top = self.rest.pop().unwrap_or(Waiting::NOTHING);
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
    #[inline(always)]
    fn submitted(&mut self, part: Part, slot: SlotRef) {
        if self.lanes[part.worker() as usize].push(Waiting::new(part.order(), slot)) {
            self.due.remove(part.worker());
        }
    }

    /// The task of a block is READY.
    #[inline]
    fn ready(&mut self, part: Part) {
        if self.lanes[part.worker() as usize].is_first(part.order()) {
            self.due.insert(part.worker());
        }
    }

    /// A block will never be handed out.
    fn leave(&mut self, part: Part, slot: SlotRef) {
        let lane = &mut self.lanes[part.worker() as usize];
        if lane.is_first(part.order()) {
            self.leave_first(part.worker());
        } else {
            lane.rest.remove(&Waiting::new(part.order(), slot));
        }
    }

    /// The first block of a worker is handed out or will never be.
    #[inline(always)]
    fn leave_first(&mut self, worker: u32) {
        let lane = &mut self.lanes[worker as usize];
        lane.pop();
        if lane.top != Waiting::NOTHING && self.is_ready[lane.top.slot() as usize] {
            self.due.insert(worker);
        } else {
            self.due.remove(worker);
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
    /// Blocks that could start and a worker of each, packed, while they are handed out.
    scratch: Vec<u64>,
}

impl StaticList {
    /// Nothing submitted yet.
    #[must_use]
    pub fn new(plan: Plan, machine: &Machine) -> StaticList {
        let n_workers = machine.workers.total() as usize;
        StaticList {
            progress: Progress {
                lanes: (0..n_workers).map(|_| Lane::new()).collect(),
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

    /// A task that may have several blocks, or blocks of several workers, is submitted.
    #[inline(never)]
    fn submit_all(&mut self, task: TaskId, slot: SlotRef) {
        self.plan.of(task).iter().for_each(|&part| self.progress.submitted(part, slot));
    }

    /// A task that the plan does not know is READY.
    #[cold]
    fn take_unplanned(&mut self, ready: Ready, now: u64) -> Result<(), Dropped> {
        self.n_unplanned += 1;
        self.unplanned.on_ready(ready, now)
    }

    /// Whether all of a crew are free and have this block on top.
    fn is_assembled(&self, order: u32, crew: Crew, free: &WorkerSet) -> bool {
        let on_top = |worker: u32| self.progress.lanes[worker as usize].is_first(order);
        crew.ids().iter().all(|&worker| free.contains(worker) && on_top(worker))
    }

    /// Places what the free workers who are due have on top, in the order in which it is to start.
    #[inline]
    fn place_due(&mut self, stage: &mut Stage<'_>) {
        let (due, free) = (&self.progress.due, stage.floor().free_workers());
        let (mut first, mut is_only) = (None, true);
        for word in 0..due.n_words() {
            let workers = due.common_word(free, word);
            if workers != 0 {
                is_only = first.is_none() && workers.is_power_of_two();
                first = Some(word as u32 * u64::BITS + workers.trailing_zeros());
            }
        }
        match first {
            None => {}
            Some(only) if is_only => self.place_top(self.progress.lanes[only as usize].top.order(), only, stage),
            Some(_) => self.place_in_order(stage),
        }
    }

    /// The same where there are several of these workers.
    fn place_in_order(&mut self, stage: &mut Stage<'_>) {
        let mut blocks = std::mem::take(&mut self.scratch);
        let (due, free) = (&self.progress.due, stage.floor().free_workers());
        for word in 0..due.n_words() {
            let mut workers = due.common_word(free, word);
            while workers != 0 {
                let worker = word as u32 * u64::BITS + workers.trailing_zeros();
                workers &= workers - 1;
                let order = self.progress.lanes[worker as usize].top.order();
                blocks.push(u64::from(order) << 32 | u64::from(worker));
            }
        }
        blocks.sort_unstable();
        blocks.drain(..).for_each(|block| self.place_top((block >> 32) as u32, block as u32, stage));
        self.scratch = blocks;
    }

    /// Places what a worker who is due had on top.
    #[inline]
    fn place_top(&mut self, order: u32, worker: u32, stage: &mut Stage<'_>) {
        if self.plan.is_single() {
            self.place_alone(worker, stage);
        } else if self.progress.lanes[worker as usize].is_first(order) {
            // Otherwise it is gone, handed out with others of its crew or its task.
            self.place_first(order, worker, stage);
        }
    }

    /// Places what a worker who is due has on top, if all that it takes are there.
    #[inline(never)]
    fn place_first(&mut self, order: u32, worker: u32, stage: &mut Stage<'_>) {
        let slot = self.progress.lanes[worker as usize].top.slot();
        let crew = self.plan.crew(order, worker);
        if crew.is_one() && !stage.window.slot(slot).job.has(flag::SYNC_START) {
            self.place_alone(worker, stage);
        } else {
            self.place_if_assembled(order, crew, slot, stage);
        }
    }

    /// Places a block of one worker, who has it on top.
    #[inline(always)]
    fn place_alone(&mut self, worker: u32, stage: &mut Stage<'_>) {
        let slot = self.progress.lanes[worker as usize].top.slot();
        if stage.place_on(slot, worker) == Placement::All {
            self.book.leave(stage.window.slot(slot).job.kind());
        }
        self.progress.leave_first(worker);
        let next = self.progress.lanes[worker as usize].top;
        if next != Waiting::NOTHING {
            // It has waited for long and is in no near cache any more.
            stage.window.foresee(next.slot());
        }
    }

    /// Places a block whose crew is there, or all blocks of its task if they start together and all crews are there.
    fn place_if_assembled(&mut self, order: u32, crew: Crew, slot: SlotRef, stage: &mut Stage<'_>) {
        let free = stage.floor().free_workers();
        if !stage.window.slot(slot).job.has(flag::SYNC_START) {
            if self.is_assembled(order, crew, free) {
                self.place(crew, slot, stage);
            }
            return;
        }
        let parts = self.plan.of(stage.window.slot(slot).task()).iter();
        let mut blocks: Vec<(u32, Crew)> =
            parts.map(|&part| (part.order(), self.plan.crew(part.order(), part.worker()))).collect();
        blocks.dedup_by_key(|&mut (order, _)| order);
        if blocks.iter().all(|&(order, crew)| self.is_assembled(order, crew, free)) {
            blocks.iter().for_each(|&(_, crew)| self.place(crew, slot, stage));
        }
    }

    /// Places a block that all of its crew have on top.
    fn place(&mut self, crew: Crew, slot: SlotRef, stage: &mut Stage<'_>) {
        if stage.place_crew(slot, crew) == Placement::All {
            self.book.leave(stage.window.slot(slot).job.kind());
        }
        crew.ids().iter().for_each(|&worker| self.progress.leave_first(worker));
    }
}

impl Policy for StaticList {
    const INTERFERES: bool = false;
    const KEEPS_ORDER: bool = true;
    const TAKES_CERTAIN_WORKERS: bool = true;

    fn name(&self) -> &'static str {
        "static"
    }

    #[inline]
    fn is_steady(&self) -> bool {
        true
    }

    #[inline]
    fn on_submit(&mut self, submission: &Submission<'_>, _now: u64) -> Result<(), String> {
        let Submission { slot, task, .. } = *submission;
        self.progress.is_ready[slot as usize] = false;
        if !self.plan.is_single() {
            self.submit_all(task, slot);
        } else if let Some(part) = self.plan.single(task) {
            self.progress.submitted(part, slot);
        }
        Ok(())
    }

    #[inline]
    fn on_ready(&mut self, ready: Ready, now: u64) -> Result<(), Dropped> {
        // Most tasks become READY about in their order.
        self.plan.foresee(ready.task.0 as usize + AHEAD);
        let single = if self.plan.is_single() { self.plan.single(ready.task) } else { None };
        if single.is_none() && self.plan.of(ready.task).is_empty() {
            return self.take_unplanned(ready, now);
        }
        if let Err(dropped) = self.book.enter(ready.kind) {
            self.on_cancel(ready.slot, ready.task, now);
            return Err(dropped);
        }
        self.progress.is_ready[ready.slot as usize] = true;
        match single {
            Some(part) => self.progress.ready(part),
            None => self.plan.of(ready.task).iter().for_each(|&part| self.progress.ready(part)),
        }
        Ok(())
    }

    fn on_cancel(&mut self, slot: SlotRef, task: TaskId, _now: u64) {
        self.plan.of(task).iter().for_each(|&part| self.progress.leave(part, slot));
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.book.is_empty() && self.unplanned.is_idle()
    }

    #[inline]
    fn dispatch(&mut self, stage: &mut Stage<'_>) {
        self.place_due(stage);
        if !self.unplanned.is_idle() {
            self.unplanned.dispatch(stage);
        }
    }

    fn report(&self) -> serde_json::Value {
        json!({ "planned_makespan": self.plan.makespan, "unplanned_tasks": self.n_unplanned })
    }

    fn full_events(&self) -> Option<u64> {
        Some(self.book.full_events())
    }
}

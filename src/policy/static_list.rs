//! `static`: a list schedule is computed before the run and replayed: every worker runs its blocks in the planned order.
//!
//! A worker waits for the first planned block whose task is submitted, whatever else is READY. Tasks that the window keeps
//! out are passed over until they are in, so that a small window delays the plan but never blocks it: the earliest planned
//! task of those submitted has everything it needs.

use super::number_set::NumberSet;
use super::{Dropped, Placement, Policy, Pto, QueueBook, QueueLimit, QueueStats, Ready, Stage, Submission};
use crate::config::Machine;
use crate::id::TaskId;
use crate::large;
use crate::machine::{Crew, WorkerSet};
use crate::window::{NONE, SlotRef, flag, prefetch};
use serde_json::json;
use zerocopy::FromZeros;

/// Who runs which block, and in which order.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The blocks of each worker.
    of_workers: Vec<Vec<PlannedBlock>>,
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

/// The place of a block in the order in which all blocks start, and the slot of its task once that is submitted.
type PlannedBlock = (u32, SlotRef);

/// A worker of a block and the block's place among its blocks, from 1, packed; 0 if it is not planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromZeros)]
struct Part(u64);

impl Part {
    /// Not planned.
    const NONE: Part = Part(0);

    #[inline]
    fn new(worker: u32, place: u32) -> Part {
        Part(u64::from(worker) << 32 | u64::from(place + 1))
    }

    #[inline]
    fn worker(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    fn place(self) -> u32 {
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
        let (mut of_workers, mut crews): (Vec<Vec<PlannedBlock>>, _) = (Vec::new(), Vec::new());
        for (order, (task, crew)) in (0..).zip(blocks) {
            for &worker in crew.ids() {
                if worker as usize >= of_workers.len() {
                    of_workers.resize(worker as usize + 1, Vec::new());
                }
                let own = &mut of_workers[worker as usize];
                let part = &mut next[task.0 as usize];
                parts[*part as usize] = Part::new(worker, own.len() as u32);
                *part += 1;
                own.push((order, NONE));
            }
            if !crew.is_one() {
                crews.push((order, *crew));
            }
        }
        Plan { of_workers, first, parts, crews, n_blocks: blocks.len() as u32, makespan }
    }

    /// The beginning of a plan in which every task is at most one block of one worker.
    pub(super) fn of_single_blocks(n_tasks: usize, n_workers: usize) -> Plan {
        let fair_share = n_tasks / n_workers.max(1);
        let of_workers = (0..n_workers).map(|_| Vec::with_capacity(fair_share)).collect();
        Plan { of_workers, parts: large::zeroed(n_tasks), ..Plan::default() }
    }

    /// The next block to start, the only one of its task.
    #[inline]
    pub(super) fn add(&mut self, task: u32, worker: u32) {
        let own = &mut self.of_workers[worker as usize];
        self.parts[task as usize] = Part::new(worker, own.len() as u32);
        own.push((self.n_blocks, NONE));
        self.n_blocks += 1;
    }

    /// Every worker of every block of a task, with the block's place among those of the worker.
    #[inline]
    fn of(&self, task: TaskId) -> &[Part] {
        let index = task.0 as usize;
        if self.first.is_empty() {
            return self.parts.get(index..=index).filter(|part| part[0] != Part::NONE).unwrap_or_default();
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

    /// The planned blocks of each worker, none of them submitted.
    fn take_lanes(&mut self, n_workers: usize) -> Vec<Lane> {
        self.of_workers.resize(n_workers, Vec::new());
        let lane = |blocks: Vec<PlannedBlock>| Lane { top: NOTHING, waiting: NumberSet::new(blocks.len()), blocks };
        std::mem::take(&mut self.of_workers).into_iter().map(lane).collect()
    }
}

/// The planned blocks of one worker.
struct Lane {
    /// The first of those that wait, or [`NOTHING`].
    top: PlannedBlock,
    /// In the order in which they start.
    blocks: Vec<PlannedBlock>,
    /// Places of the blocks of submitted tasks that are not handed out.
    waiting: NumberSet,
}

/// No block.
const NOTHING: PlannedBlock = (NONE, NONE);

impl Lane {
    /// The first block that waits, and the slot of its task.
    #[inline]
    fn first(&self) -> Option<PlannedBlock> {
        (self.top.0 != NONE).then_some(self.top)
    }

    /// The first block that waits is gone.
    #[inline]
    fn pop(&mut self) {
        self.waiting.remove_first();
        self.top = self.waiting.first().map_or(NOTHING, |place| self.blocks[place as usize]);
        if let Some(place) = self.waiting.second() {
            // It comes next and was not looked at for long.
            prefetch(&self.blocks[place as usize]);
        }
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

/// How far ahead of its submission the place of a task is fetched. The plan may have it far from those of the tasks before.
const AHEAD: u64 = 8;

/// How far ahead of its submission the plan of a task is fetched, which was made long ago.
const FAR_AHEAD: u64 = 64;

impl Progress {
    /// The task of a block will be submitted soon.
    #[inline]
    fn foresee(&self, part: Part) {
        prefetch(&self.lanes[part.worker() as usize].blocks[part.place() as usize]);
    }

    /// The task of a block is submitted.
    #[inline]
    fn submitted(&mut self, part: Part, slot: SlotRef) {
        let (worker, place) = (part.worker(), part.place());
        let lane = &mut self.lanes[worker as usize];
        let block = &mut lane.blocks[place as usize];
        block.1 = slot;
        lane.waiting.insert(place);
        if lane.waiting.first() == Some(place) {
            lane.top = *block;
            self.due.remove(worker);
        }
    }

    /// The task of a block is READY.
    #[inline]
    fn ready(&mut self, part: Part) {
        let (worker, place) = (part.worker(), part.place());
        if self.lanes[worker as usize].waiting.first() == Some(place) {
            self.due.insert(worker);
        }
    }

    /// A block will never be handed out.
    fn leave(&mut self, part: Part) {
        let (worker, place) = (part.worker(), part.place());
        let lane = &mut self.lanes[worker as usize];
        if lane.waiting.first() == Some(place) {
            self.leave_first(worker);
        } else if lane.waiting.contains(place) {
            lane.waiting.remove(place);
        }
    }

    /// The first block of a worker is handed out or will never be.
    #[inline]
    fn leave_first(&mut self, worker: u32) {
        let lane = &mut self.lanes[worker as usize];
        lane.pop();
        match lane.first() {
            Some((_, slot)) if self.is_ready[slot as usize] => self.due.insert(worker),
            _ => self.due.remove(worker),
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
    pub fn new(mut plan: Plan, machine: &Machine) -> StaticList {
        let n_workers = machine.workers.total() as usize;
        StaticList {
            progress: Progress {
                lanes: plan.take_lanes(n_workers),
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

    /// Fetches what will be looked at when the next tasks are submitted.
    #[inline]
    fn foresee_submission(&self, task: TaskId) {
        if let Some(part) = self.plan.parts.get((task.0 + FAR_AHEAD) as usize) {
            prefetch(part);
        }
        if let Some(&part) = self.plan.of(TaskId(task.0 + AHEAD)).first() {
            self.progress.foresee(part);
        }
    }

    /// Whether all of a crew are free and have this block on top.
    fn is_assembled(&self, order: u32, crew: Crew, free: &WorkerSet) -> bool {
        let on_top = |worker: u32| self.progress.lanes[worker as usize].first().is_some_and(|(top, _)| top == order);
        crew.ids().iter().all(|&worker| free.contains(worker) && on_top(worker))
    }

    /// Places what the free workers who are due have on top, in the order in which it is to start. The first two of them are known.
    fn place_in_order(&mut self, first: u32, second: u32, stage: &mut Stage<'_>) {
        let (mut next, mut due) = (Some(second), std::mem::take(&mut self.scratch));
        let lanes = &self.progress.lanes;
        let on_top = |worker: u32| u64::from(lanes[worker as usize].top.0) << 32 | u64::from(worker);
        due.push(on_top(first));
        while let Some(worker) = next {
            due.push(on_top(worker));
            next = self.progress.due.first_common(stage.floor().free_workers(), worker + 1);
        }
        due.sort_unstable();
        for block in due.drain(..) {
            let (order, worker) = ((block >> 32) as u32, block as u32);
            // It may be gone, handed out with others of its crew or its task.
            if self.progress.lanes[worker as usize].top.0 == order {
                self.place_first(worker, stage);
            }
        }
        self.scratch = due;
    }

    /// Places what a worker who is due has on top, if all that it takes are there.
    #[inline]
    fn place_first(&mut self, worker: u32, stage: &mut Stage<'_>) {
        let (order, slot) = self.progress.lanes[worker as usize].top;
        let crew = self.plan.crew(order, worker);
        if crew.is_one() && !stage.window.slot(slot).job.has(flag::SYNC_START) {
            self.place_alone(worker, slot, stage);
        } else {
            self.place_if_assembled(order, crew, slot, stage);
        }
    }

    /// Places a block of one worker, who has it on top.
    #[inline]
    fn place_alone(&mut self, worker: u32, slot: SlotRef, stage: &mut Stage<'_>) {
        if stage.place_on(slot, worker) == Placement::All {
            self.book.leave(stage.window.slot(slot).job.kind());
        }
        self.progress.leave_first(worker);
        if let Some((_, next)) = self.progress.lanes[worker as usize].first() {
            // It has waited for long and is in no near cache any more.
            stage.window.foresee(next);
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
        let mut blocks: Vec<(u32, Crew)> = parts
            .map(|&part| {
                let (worker, place) = (part.worker(), part.place());
                let (order, _) = self.progress.lanes[worker as usize].blocks[place as usize];
                (order, self.plan.crew(order, worker))
            })
            .collect();
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
        self.foresee_submission(task);
        self.plan.of(task).iter().for_each(|&part| self.progress.submitted(part, slot));
        Ok(())
    }

    #[inline]
    fn on_ready(&mut self, ready: Ready, now: u64) -> Result<(), Dropped> {
        let parts = self.plan.of(ready.task);
        if parts.is_empty() {
            self.n_unplanned += 1;
            return self.unplanned.on_ready(ready, now);
        }
        if let Err(dropped) = self.book.enter(ready.kind) {
            self.on_cancel(ready.slot, ready.task, now);
            return Err(dropped);
        }
        self.progress.is_ready[ready.slot as usize] = true;
        parts.iter().for_each(|&part| self.progress.ready(part));
        Ok(())
    }

    fn on_cancel(&mut self, _slot: SlotRef, task: TaskId, _now: u64) {
        self.plan.of(task).iter().for_each(|&part| self.progress.leave(part));
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.book.is_empty() && self.unplanned.is_idle()
    }

    #[inline]
    fn dispatch(&mut self, stage: &mut Stage<'_>) {
        let (due, free) = (&self.progress.due, stage.floor().free_workers());
        if let Some(worker) = due.first_common(free, 0) {
            match due.first_common(free, worker + 1) {
                None => self.place_first(worker, stage),
                Some(second) => self.place_in_order(worker, second, stage),
            }
        }
        if !self.unplanned.is_idle() {
            self.unplanned.dispatch(stage);
        }
    }

    fn report(&self) -> serde_json::Value {
        json!({ "planned_makespan": self.plan.makespan, "unplanned_tasks": self.n_unplanned })
    }

    fn queues(&self) -> QueueStats {
        self.book.stats()
    }
}

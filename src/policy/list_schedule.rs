//! The list schedule of a plain program: the READY task of the highest rank goes to the free worker with the smallest clock.
//!
//! That is what `predictive` does when nothing is ever full, without a window, jobs and accounts. It holds for programs in
//! which every task is one block on one worker and can be submitted at once, on machines without costs; others are simulated.

use super::mostly_sorted::MostlySorted;
use super::{Plan, predictive};
use crate::config::{FanoutOrder, Machine};
use crate::engine::ends::Ends;
use crate::error::RunError;
use crate::graph::{Producers, Task};
use crate::id::TaskType;
use crate::machine::{Floor, own_type};
use crate::workload::{Submit, Workload};

/// What a list schedule knows of a program.
pub struct Outline {
    /// Dependencies.
    pub producers: Producers,
    consumers: Producers,
    /// By task, the rank by which `predictive` chooses.
    pub ranks: Vec<u64>,
    cycles: Vec<u64>,
    kinds: Vec<TaskType>,
    /// Whether every task is one block on one worker that waits for its producers only.
    is_plain: bool,
}

impl Outline {
    /// Reads a whole program.
    ///
    /// # Errors
    /// When the program cannot be read.
    pub fn load(workload: &dyn Workload, machine: &Machine) -> Result<Outline, RunError> {
        let (mut cycles, mut kinds, mut is_plain) = (Vec::new(), Vec::new(), true);
        let (producers, _) = Producers::load(workload, machine, |orchestrator, _| {
            let task = Task::at_hand(orchestrator, 0);
            cycles.push(task.cycles());
            kinds.push(task.kind);
            is_plain &= own_type(task.kind).is_some() && is_plain_submit(&orchestrator.task);
        })?;
        let consumers = producers.reversed();
        let ranks = predictive::ranks(&producers, &cycles, |task| consumers.of(task).len() as u32);
        Ok(Outline { producers, consumers, ranks, cycles, kinds, is_plain })
    }
}

fn is_plain_submit(submit: &Submit) -> bool {
    let Submit { blocks, submit_at, fault, parent, .. } = submit;
    *blocks == 1 && *submit_at == 0 && !*fault && parent.is_none()
}

/// Whether the machine does everything in no time.
fn is_free_of_costs(machine: &Machine) -> bool {
    let (orchestrator, scheduler) = (&machine.orchestrator, &machine.scheduler);
    let costs = [
        orchestrator.submit,
        orchestrator.per_edge,
        orchestrator.scope,
        scheduler.admit,
        scheduler.complete,
        scheduler.edge,
        scheduler.dispatch,
        machine.worker.pickup,
    ];
    costs.iter().all(|&cost| cost == 0)
}

/// The list schedule of a plain program on a machine without costs; of another nothing.
#[must_use]
pub fn list_schedule(outline: &Outline, machine: &Machine) -> Option<Plan> {
    if !outline.is_plain || !is_free_of_costs(machine) {
        return None;
    }
    let (producers, n_workers) = (&outline.producers, machine.workers.total() as usize);
    let mut list = List {
        outline,
        newest_first: machine.rules.fanout_order == FanoutOrder::Lifo,
        floor: Floor::new(&machine.workers),
        queues: Default::default(),
        filled: 0,
        n_arrived: 0,
        waits_for: (0..producers.n_tasks()).map(|task| producers.of(task).len() as u32).collect(),
        ends: Ends::new(n_workers),
        running: vec![0; n_workers],
        plan: Plan::of_single_blocks(producers.n_tasks(), n_workers),
    };
    list.run();
    Some(list.plan)
}

/// A schedule in the making. Tasks are known by their numbers.
struct List<'a> {
    outline: &'a Outline,
    newest_first: bool,
    floor: Floor,
    /// READY tasks by type: the highest rank first, then the order of arrival. What the rank lacks to the highest, the arrival and
    /// the task itself are packed, because numbers are compared faster than fields.
    queues: [MostlySorted<u128>; 5],
    /// Bit k is set when queue k has a task.
    filled: u32,
    n_arrived: u32,
    /// By task: producers that have not ended.
    waits_for: Vec<u32>,
    ends: Ends,
    /// By worker: the task it runs.
    running: Vec<u32>,
    plan: Plan,
}

impl List<'_> {
    fn run(&mut self) {
        let mut sources: [Vec<u128>; 5] = Default::default();
        for task in 0..self.waits_for.len() as u32 {
            if self.waits_for[task as usize] == 0 {
                let (kind, place) = self.arrival(task);
                sources[kind as usize].push(place);
            }
        }
        // There may be many of them, and sorting them once is cheaper than a heap.
        self.queues = sources.map(|mut sources| {
            sources.sort_unstable();
            MostlySorted::of_sorted(sources)
        });
        let mut now = 0;
        self.hand_out(now);
        while self.ends.next() != u64::MAX {
            now = self.ends.next();
            while let Some(worker) = self.ends.take(now) {
                self.end(worker);
            }
            self.hand_out(now);
        }
        self.plan.makespan = now;
    }

    /// A task is READY: its type, and its place among those of that type.
    #[inline]
    fn arrival(&mut self, task: u32) -> (TaskType, u128) {
        let (rank, kind) = (self.outline.ranks[task as usize], self.outline.kinds[task as usize]);
        let place = u128::from(u64::MAX - rank) << 64 | u128::from(self.n_arrived) << 32 | u128::from(task);
        self.filled |= 1 << kind as u32;
        self.n_arrived += 1;
        (kind, place)
    }

    /// A worker is free again, and what waited for its task alone is READY.
    fn end(&mut self, worker: u32) {
        self.floor.give_back(worker);
        let task = self.running[worker as usize] as usize;
        let consumers = self.outline.consumers.of(task);
        for index in 0..consumers.len() {
            let consumer = consumers[if self.newest_first { consumers.len() - 1 - index } else { index }];
            let left = &mut self.waits_for[consumer as usize];
            *left -= 1;
            if *left == 0 {
                let (kind, place) = self.arrival(consumer);
                self.queues[kind as usize].push(place);
            }
        }
    }

    fn hand_out(&mut self, now: u64) {
        let mut filled = self.filled;
        while filled != 0 {
            let number = filled.trailing_zeros() as usize;
            filled &= filled - 1;
            let kind = TaskType::ALL[number];
            while !self.queues[number].is_empty()
                && let Some(worker) = self.floor.take(kind)
                && let Some(first) = self.queues[number].pop()
            {
                let task = first as u32;
                let end = now.saturating_add(self.outline.cycles[task as usize]);
                self.floor.worker_mut(worker).clock = end;
                self.running[worker as usize] = task;
                self.ends.push(end, worker);
                self.plan.add(task, worker);
            }
            if self.queues[number].is_empty() {
                self.filled &= !(1 << number);
            }
        }
    }
}

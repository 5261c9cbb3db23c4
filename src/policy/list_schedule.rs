//! The list schedule of a plain program: the READY task of the highest rank goes to the free worker with the smallest clock.
//!
//! That is what `predictive` does when nothing is ever full, without a window, jobs and accounts. It holds for programs in
//! which every task is one block on one worker and can be submitted at once, on machines without costs; others are simulated.

use super::Plan;
use crate::config::{FanoutOrder, Machine};
use crate::engine::ends::Ends;
use crate::graph::{Graph, Task};
use crate::id::{TaskId, TaskType};
use crate::machine::{Crew, Floor, own_type};
use crate::workload::Submit;
use std::collections::BinaryHeap;

/// Whether a task is one block that waits for its producers only.
#[must_use]
pub fn is_plain(submit: &Submit) -> bool {
    let Submit { blocks, submit_at, fault, parent, .. } = submit;
    *blocks == 1 && *submit_at == 0 && !*fault && parent.is_none()
}

/// Whether the machine does everything in no time.
#[must_use]
pub fn is_free_of_costs(machine: &Machine) -> bool {
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

/// The list schedule by ranks, one a task, if every task runs on a single worker.
#[must_use]
pub fn list_schedule(graph: &Graph, ranks: &[u64], machine: &Machine) -> Option<Plan> {
    let is_single = |task: &Task| own_type(task.kind).is_some();
    if !graph.tasks.iter().all(is_single) || u32::try_from(graph.tasks.len()).is_err() {
        return None;
    }
    let mut list = List {
        graph,
        ranks,
        newest_first: machine.rules.fanout_order == FanoutOrder::Lifo,
        floor: Floor::new(&machine.workers),
        queues: Default::default(),
        filled: 0,
        n_arrived: 0,
        waits_for: (0..graph.tasks.len() as u64).map(|task| graph.producers(TaskId(task)).len() as u32).collect(),
        ends: Ends::new(machine.workers.total() as usize),
        running: vec![TaskId(0); machine.workers.total() as usize],
        blocks: Vec::with_capacity(graph.tasks.len()),
    };
    let makespan = list.run();
    Some(Plan::new(&list.blocks, graph.tasks.len(), makespan))
}

/// A schedule in the making.
struct List<'a> {
    graph: &'a Graph,
    ranks: &'a [u64],
    newest_first: bool,
    floor: Floor,
    /// READY tasks by type: the highest rank first, then the order of arrival. Rank, tasks that arrived later and the task
    /// itself are packed, because numbers are compared faster than fields.
    queues: [BinaryHeap<u128>; 5],
    /// Bit k is set when queue k has a task.
    filled: u32,
    n_arrived: u32,
    /// By task: producers that have not ended.
    waits_for: Vec<u32>,
    ends: Ends,
    /// By worker: the task it runs.
    running: Vec<TaskId>,
    blocks: Vec<(TaskId, Crew)>,
}

impl List<'_> {
    /// Schedules everything; gives the end of the last task.
    fn run(&mut self) -> u64 {
        for task in 0..self.waits_for.len() {
            if self.waits_for[task] == 0 {
                self.arrive(TaskId(task as u64));
            }
        }
        let mut now = 0;
        self.hand_out(now);
        while self.ends.next() != u64::MAX {
            now = self.ends.next();
            while let Some(worker) = self.ends.take(now) {
                self.end(worker);
            }
            self.hand_out(now);
        }
        now
    }

    fn arrive(&mut self, task: TaskId) {
        let index = task.0 as usize;
        let kind = self.graph.tasks[index].kind;
        let later = u32::MAX - self.n_arrived;
        self.queues[kind as usize]
            .push(u128::from(self.ranks[index]) << 64 | u128::from(later) << 32 | u128::from(task.0));
        self.filled |= 1 << kind as u32;
        self.n_arrived += 1;
    }

    /// A worker is free again, and what waited for its task alone is READY.
    fn end(&mut self, worker: u32) {
        self.floor.give_back(worker);
        let graph = self.graph;
        let consumers = graph.consumers(self.running[worker as usize]);
        for index in 0..consumers.len() {
            let consumer = consumers[if self.newest_first { consumers.len() - 1 - index } else { index }];
            let left = &mut self.waits_for[consumer.0 as usize];
            *left -= 1;
            if *left == 0 {
                self.arrive(consumer);
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
                let task = TaskId(u64::from(first as u32));
                let end = now.saturating_add(self.graph.tasks[task.0 as usize].cycles());
                self.floor.worker_mut(worker).clock = end;
                self.running[worker as usize] = task;
                self.ends.push(end, worker);
                self.blocks.push((task, Crew::one(worker)));
            }
            if self.queues[number].is_empty() {
                self.filled &= !(1 << number);
            }
        }
    }
}

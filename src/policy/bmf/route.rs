//! Which queue each task goes to. Queue *i* is worker *i*; one queue more takes what no single worker can run.

use super::config::Config;
use super::graph::NodeGraph;
use crate::config::{ConfigError, Machine};
use crate::graph::Graph;
use crate::id::{TaskType, WorkerType};
use crate::machine::own_type;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The queue of every task and what to tell about the choice.
pub(super) struct Routes {
    /// By task id.
    pub queues: Vec<u32>,
    pub warnings: Vec<String>,
}

/// Sends every task to a queue:
///
/// - MIX tasks, and those whose blocks start together, take several workers: they go to the queue behind the workers.
/// - A node of the configuration goes to the queue named there, and it is an error if that cannot run its tasks.
/// - A node that only the trace names goes to queue 0, or, if that cannot run its tasks, to the first that can.
/// - A derived node goes to the queue with the fewest nodes among those that can run its tasks, the first of equals; if
///   `scheduler_count` is configured, among so many queues as far as they can run its tasks.
///
/// # Errors
/// When a configured queue has no worker, or one of the wrong type.
pub(super) fn route(
    config: &Config,
    nodes: &NodeGraph,
    graph: &Graph,
    machine: &Machine,
) -> Result<Routes, ConfigError> {
    let workers: Vec<WorkerType> =
        WorkerType::ALL.into_iter().flat_map(|kind| (0..machine.workers.count(kind)).map(move |_| kind)).collect();
    let mut router = Router {
        config,
        chosen: vec![[NONE; TaskType::ALL.len()]; nodes.nodes.len()],
        load: vec![0; workers.len()],
        by_load: Default::default(),
        workers,
        warnings: config.warnings(),
    };
    let mut queues = Vec::with_capacity(nodes.tasks.len());
    for (task, member) in graph.tasks.iter().zip(&nodes.tasks) {
        queues.push(if own_type(task.kind).is_none() || member.is_together {
            router.workers.len() as u32
        } else {
            match router.chosen[member.node as usize][task.kind as usize] {
                NONE => router.choose(member.node, nodes, task.kind)?,
                queue => queue,
            }
        });
    }
    Ok(Routes { queues, warnings: router.warnings })
}

/// No queue yet.
const NONE: u32 = u32::MAX;

struct Router<'a> {
    config: &'a Config,
    workers: Vec<WorkerType>,
    /// Queue by node and type of task.
    chosen: Vec<[u32; TaskType::ALL.len()]>,
    /// Derived nodes of each queue.
    load: Vec<u64>,
    /// By type of task: the queues that can run it, the one with the fewest nodes first. A load may be out of date; then it is
    /// too small.
    by_load: [BinaryHeap<Reverse<(u64, u32)>>; TaskType::ALL.len()],
    warnings: Vec<String>,
}

impl Router<'_> {
    fn choose(&mut self, node: u32, nodes: &NodeGraph, kind: TaskType) -> Result<u32, ConfigError> {
        let id = nodes.nodes[node as usize].id;
        let queue = if self.config.nodes.contains_key(&id) {
            self.configured(id, kind)?
        } else if nodes.is_declared {
            self.first_fit(id, kind)
        } else {
            self.least_loaded(kind)
        };
        if let Some(load) = self.load.get_mut(queue as usize) {
            *load += 1;
        }
        self.chosen[node as usize][kind as usize] = queue;
        Ok(queue)
    }

    fn configured(&self, node: i32, kind: TaskType) -> Result<u32, ConfigError> {
        let queue = self.config.queue_of(node);
        let Some(&worker) = self.workers.get(queue as usize) else {
            let workers = self.workers.len();
            return Err(ConfigError::Setting(format!(
                "bmf.nodes.{node}.scheduler = {queue}: queue {queue} is worker {queue}, and the machine has {workers} workers; \
                 use a queue below {workers}"
            )));
        };
        if fits(worker, kind) {
            return Ok(queue);
        }
        let remedy =
            self.candidates(kind).next().map_or_else(String::new, |queue| format!("; try scheduler = {queue}"));
        Err(ConfigError::Setting(format!(
            "bmf.nodes.{node}.scheduler = {queue}: queue {queue} is a {worker} worker and cannot run the {kind} tasks of node \
             {node}{remedy}"
        )))
    }

    fn first_fit(&mut self, node: i32, kind: TaskType) -> u32 {
        let queue = self.candidates(kind).next().unwrap_or(0);
        if queue > 0 {
            let worker = self.workers[0];
            self.warnings.push(format!(
                "bmf: queue 0 is a {worker} worker and cannot run the {kind} tasks of node {node}: they go to queue {queue}"
            ));
        }
        queue
    }

    fn least_loaded(&mut self, kind: TaskType) -> u32 {
        if self.by_load[kind as usize].is_empty() {
            let count = self.config.scheduler_count.unwrap_or(u32::MAX);
            // More queues than are configured serve a type only if none of those can run it.
            let is_served = self.candidates(kind).any(|queue| queue < count);
            let served = self.candidates(kind).filter(|&queue| queue < count || !is_served);
            self.by_load[kind as usize] = served.map(|queue| Reverse((0, queue))).collect();
        }
        while let Some(mut first) = self.by_load[kind as usize].peek_mut() {
            let Reverse((load, queue)) = *first;
            if load == self.load[queue as usize] {
                return queue;
            }
            *first = Reverse((self.load[queue as usize], queue));
        }
        0
    }

    /// Queues that can run a type, ascending. Never empty: the engine refuses tasks that no worker can run.
    fn candidates(&self, kind: TaskType) -> impl Iterator<Item = u32> + '_ {
        let able = self.workers.iter().enumerate().filter(move |&(_, &worker)| fits(worker, kind));
        able.map(|(queue, _)| queue as u32)
    }
}

fn fits(worker: WorkerType, kind: TaskType) -> bool {
    worker == WorkerType::Any || own_type(kind) == Some(worker)
}

//! Which queue each task goes to. Queue *i* is worker *i*; one queue more takes what no single worker can run.

use super::config::Config;
use super::read::Demand;
use crate::config::{ConfigError, Machine};
use crate::id::{TaskType, WorkerType};
use crate::machine::own_type;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Sends every task to a queue:
///
/// - MIX tasks, and those whose blocks start together, take several workers: they go to the queue behind the workers.
/// - A node of the configuration goes to the queue named there, and it is an error if that cannot run its tasks.
/// - A node that only the trace names goes to queue 0, or, if that cannot run its tasks, to the first that can.
/// - A derived node goes to the queue with the fewest nodes among those that can run its tasks, the first of equals; if
///   `scheduler_count` is configured, among so many queues as far as they can run its tasks.
pub(super) struct Router<'a> {
    config: &'a Config,
    workers: Vec<WorkerType>,
    /// Whether the trace names any node.
    is_declared: bool,
    /// By node: the type of its first task and the queue for it.
    first: Vec<Option<(TaskType, u32)>>,
    /// Queue by node and type of task, where nodes have tasks of several types.
    others: BTreeMap<(u32, TaskType), u32>,
    /// Derived nodes of each queue.
    load: Vec<u64>,
    /// By type of task: the queues that can run it, the one with the fewest nodes first. A load may be out of date; then it is
    /// too small.
    by_load: [BinaryHeap<Reverse<(u64, u32)>>; TaskType::ALL.len()],
    /// What to tell about the choice.
    pub warnings: Vec<String>,
}

impl<'a> Router<'a> {
    pub fn new(config: &'a Config, n_nodes: usize, is_declared: bool, machine: &Machine) -> Router<'a> {
        let workers: Vec<WorkerType> =
            WorkerType::ALL.into_iter().flat_map(|kind| (0..machine.workers.count(kind)).map(move |_| kind)).collect();
        Router {
            config,
            is_declared,
            first: vec![None; n_nodes],
            others: BTreeMap::new(),
            load: vec![0; workers.len()],
            by_load: Default::default(),
            workers,
            warnings: config.warnings(),
        }
    }

    /// The queue of a task of a node.
    ///
    /// # Errors
    /// When a configured queue has no worker, or one of the wrong type.
    #[inline]
    pub fn queue(&mut self, node: u32, id: i32, demand: Demand) -> Result<u32, ConfigError> {
        let kind = demand.kind;
        if own_type(kind).is_none() || demand.is_together {
            return Ok(self.workers.len() as u32);
        }
        match self.first[node as usize] {
            Some((known, queue)) if known == kind => Ok(queue),
            Some(_) => {
                if let Some(&queue) = self.others.get(&(node, kind)) {
                    return Ok(queue);
                }
                let queue = self.choose(id, kind)?;
                self.others.insert((node, kind), queue);
                Ok(queue)
            }
            None => {
                let queue = self.choose(id, kind)?;
                self.first[node as usize] = Some((kind, queue));
                Ok(queue)
            }
        }
    }

    fn choose(&mut self, id: i32, kind: TaskType) -> Result<u32, ConfigError> {
        let queue = if self.config.nodes.contains_key(&id) {
            self.configured(id, kind)?
        } else if self.is_declared {
            self.first_fit(id, kind)
        } else {
            self.least_loaded(kind)
        };
        if let Some(load) = self.load.get_mut(queue as usize) {
            *load += 1;
        }
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

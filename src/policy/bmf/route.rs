//! Which queue each task goes to. Queue *i* is worker *i*; one queue more takes what no single worker can run.

use super::config::Config;
use super::read::Demand;
use crate::config::{ConfigError, Machine};
use crate::id::{TaskType, WorkerType};
use crate::machine::own_type;
use std::collections::BTreeMap;

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
    /// By type of task: the queues that derived nodes go to.
    rounds: [Option<Round>; TaskType::ALL.len()],
    /// What to tell about the choice.
    pub warnings: Vec<String>,
}

impl<'a> Router<'a> {
    pub fn new(config: &'a Config, is_declared: bool, machine: &Machine) -> Router<'a> {
        let workers: Vec<WorkerType> = machine.workers.kinds().collect();
        Router {
            config,
            is_declared,
            first: Vec::new(),
            others: BTreeMap::new(),
            load: vec![0; workers.len()],
            rounds: Default::default(),
            workers,
            warnings: config.warnings(),
        }
    }

    /// The queue of a node all of whose tasks run on the same.
    ///
    /// # Errors
    /// When a configured queue has no worker, or one of the wrong type.
    #[inline]
    pub fn queue_of_all(&mut self, id: i32, demand: Demand) -> Result<u32, ConfigError> {
        if takes_several(demand) { Ok(self.workers.len() as u32) } else { self.choose(id, demand.kind) }
    }

    /// The queue of a task of a node.
    ///
    /// # Errors
    /// As [`Router::queue_of_all`].
    pub fn queue(&mut self, node: u32, id: i32, demand: Demand) -> Result<u32, ConfigError> {
        if takes_several(demand) {
            return Ok(self.workers.len() as u32);
        }
        let (kind, index) = (demand.kind, node as usize);
        if index >= self.first.len() {
            self.first.resize(index + 1, None);
        }
        match self.first[index] {
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
                self.first[index] = Some((kind, queue));
                Ok(queue)
            }
        }
    }

    #[inline(always)]
    fn choose(&mut self, id: i32, kind: TaskType) -> Result<u32, ConfigError> {
        let queue = if !self.config.nodes.is_empty() && self.config.nodes.contains_key(&id) {
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

    #[cold]
    fn configured(&self, node: i32, kind: TaskType) -> Result<u32, ConfigError> {
        let queue = self.config.queue_of(node);
        let Some(&worker) = self.workers.get(queue as usize) else {
            let workers = self.workers.len();
            let told = format!(
                "bmf.nodes.{node}.scheduler = {queue}: queue {queue} is worker {queue}, and the machine has {workers} workers; \
                 use a queue below {workers}"
            );
            return Err(self.refuse(node, &told));
        };
        if fits(worker, kind) {
            return Ok(queue);
        }
        let remedy =
            self.candidates(kind).next().map_or_else(String::new, |queue| format!("; try scheduler = {queue}"));
        let told = format!(
            "bmf.nodes.{node}.scheduler = {queue}: queue {queue} is a {worker} worker and cannot run the {kind} tasks of node \
             {node}{remedy}"
        );
        Err(self.refuse(node, &told))
    }

    /// The error about the queue of a configured node.
    fn refuse(&self, node: i32, message: &str) -> ConfigError {
        self.config.refuse(&[&format!("bmf.nodes.{node}.scheduler"), &format!("bmf.nodes.{node}")], message)
    }

    #[cold]
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

    #[inline(always)]
    fn least_loaded(&mut self, kind: TaskType) -> u32 {
        if let Some(round) = &mut self.rounds[kind as usize] {
            return round.next(&self.load);
        }
        let mut round = self.round(kind);
        let queue = round.next(&self.load);
        self.rounds[kind as usize] = Some(round);
        queue
    }

    /// The queues that derived nodes of a type go to.
    #[cold]
    fn round(&self, kind: TaskType) -> Round {
        let count = self.config.scheduler_count.unwrap_or(u32::MAX);
        // More queues than are configured serve a type only if none of those can run it.
        let is_served = self.candidates(kind).any(|queue| queue < count);
        let served = self.candidates(kind).filter(|&queue| queue < count || !is_served);
        Round { queues: served.collect(), next: 0, load: 0 }
    }

    /// Queues that can run a type, ascending. Never empty: the engine refuses tasks that no worker can run.
    fn candidates(&self, kind: TaskType) -> impl Iterator<Item = u32> + '_ {
        let able = self.workers.iter().enumerate().filter(move |&(_, &worker)| fits(worker, kind));
        able.map(|(queue, _)| queue as u32)
    }
}

/// Queues that get derived nodes in turns, the one with the fewest first. Loads only grow, so that nobody must be looked at
/// twice for the same load.
struct Round {
    queues: Vec<u32>,
    /// All queues before this place have a larger load than this.
    next: usize,
    load: u64,
}

impl Round {
    #[inline(always)]
    fn next(&mut self, loads: &[u64]) -> u32 {
        loop {
            match self.queues.get(self.next) {
                Some(&queue) if loads[queue as usize] <= self.load => return queue,
                Some(_) => self.next += 1,
                None if self.queues.is_empty() => return 0,
                None => (self.next, self.load) = (0, self.load + 1),
            }
        }
    }
}

/// Whether no single worker can run a task.
fn takes_several(demand: Demand) -> bool {
    own_type(demand.kind).is_none() || demand.is_together
}

fn fits(worker: WorkerType, kind: TaskType) -> bool {
    worker == WorkerType::Any || own_type(kind) == Some(worker)
}

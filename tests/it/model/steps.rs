//! What happens inside an instant: blocks end, jobs take effect, blocks are placed.

use super::{Model, Retired, Row, served_by};
use ptosim::config::FanoutOrder;
use ptosim::id::{TaskType, WorkerType};
use ptosim::workload::{Cost, Submit};

/// A block on its workers.
#[derive(Clone)]
pub struct Block {
    task: usize,
    number: u32,
    workers: Vec<usize>,
    /// When its last worker ends; known once it has started.
    pub end: u64,
}

/// Work for a scheduler thread.
#[derive(Clone)]
pub enum Job {
    /// A task was published.
    Admit(usize),
    /// A block of the task ended on these workers; a NONE task has none.
    Complete(usize, Vec<usize>),
    /// A block was placed.
    Dispatch(Block),
}

/// A job in progress.
pub struct RunningJob {
    job: Job,
    /// When it takes effect.
    pub end: u64,
}

impl Model<'_> {
    /// Step 2. A MIX block ends with its last worker, and its place in the order is that of its smallest worker.
    pub fn end_blocks(&mut self) -> bool {
        let now = self.now;
        let (mut ended, running): (Vec<_>, Vec<_>) = self.running.drain(..).partition(|block| block.end == now);
        self.running = running;
        ended.sort_by_key(|block| block.workers.iter().min().copied());
        let changed = !ended.is_empty();
        self.jobs.extend(ended.into_iter().map(|block| Job::Complete(block.task, block.workers)));
        changed
    }

    /// Step 3.
    pub fn end_jobs(&mut self) -> bool {
        let now = self.now;
        let (ended, working): (Vec<_>, Vec<_>) = self.working.drain(..).partition(|running| running.end == now);
        self.working = working;
        let changed = !ended.is_empty();
        for running in ended {
            self.effect(running.job);
        }
        changed
    }

    /// Step 4.
    ///
    /// Choice: the threads go on within the step while there are jobs, also with those that jobs of cost 0 put into the
    /// queue, so that the orchestrator only looks again when no free thread has anything to do.
    pub fn take_jobs(&mut self) -> bool {
        let mut changed = false;
        while self.working.len() < self.machine.scheduler.threads as usize {
            let Some(job) = self.jobs.pop_front() else { break };
            changed = true;
            let cost = self.take(&job);
            if cost == 0 {
                self.effect(job);
            } else {
                self.working.push(RunningJob { job, end: self.now + cost });
            }
        }
        changed
    }

    /// The cost of a job, known when it is taken.
    fn take(&mut self, job: &Job) -> u64 {
        let costs = &self.machine.scheduler;
        let told = &mut self.told.scheduler;
        told.jobs += 1;
        match job {
            Job::Admit(_) => {
                told.admit += costs.admit;
                costs.admit
            }
            Job::Complete(task, _) => {
                let task = &mut self.tasks[*task];
                task.taken += 1;
                let is_last = task.taken == task.blocks;
                let edges = if is_last { task.consumers.len() as u64 } else { 0 };
                let cost = costs.complete + costs.edge * edges;
                told.complete += cost;
                cost
            }
            Job::Dispatch(_) => {
                told.dispatch += costs.dispatch;
                costs.dispatch
            }
        }
    }

    fn effect(&mut self, job: Job) {
        match job {
            Job::Admit(task) => {
                self.tasks[task].admitted = true;
                self.check_ready(task);
            }
            Job::Complete(task, workers) => self.complete(task, &workers),
            Job::Dispatch(block) => self.start(block),
        }
    }

    fn complete(&mut self, id: usize, workers: &[usize]) {
        for &worker in workers {
            self.workers[worker].free = true;
        }
        let task = &mut self.tasks[id];
        task.ended += 1;
        if task.ended < task.blocks {
            return;
        }
        task.completed = true;
        let mut consumers = task.consumers.clone();
        match self.machine.rules.fanout_order {
            FanoutOrder::Lifo => consumers.reverse(),
            FanoutOrder::Fifo => {}
        }
        for consumer in consumers {
            self.check_ready(consumer);
        }
        self.consume();
    }

    fn check_ready(&mut self, id: usize) {
        let task = &self.tasks[id];
        let waits = task.producers.iter().any(|&producer| !self.tasks[producer].completed);
        if !task.admitted || task.ready.is_some() || waits {
            return;
        }
        self.tasks[id].ready = Some(self.now);
        match self.tasks[id].kind {
            TaskType::None => self.jobs.push_back(Job::Complete(id, Vec::new())),
            kind => self.ready.entry(kind).or_default().push_back(id),
        }
    }

    /// Looks for tasks that are CONSUMED now, and moves every `last_task_alive` as far as it goes.
    pub fn consume(&mut self) {
        for id in 0..self.tasks.len() {
            let task = &self.tasks[id];
            let needed = task.consumers.iter().any(|&consumer| !self.tasks[consumer].completed);
            if task.completed && !task.consumed && !needed && task.held_by.is_empty() {
                self.tasks[id].consumed = true;
                self.told.consumed_at.push((self.now, id));
            }
        }
        for (number, ring) in self.rings.iter_mut().enumerate() {
            while let Some(&oldest) = ring.alive().first().filter(|&&oldest| self.tasks[oldest].consumed) {
                ring.retired += 1;
                ring.heap_tail = self.tasks[oldest].heap_end.unwrap_or(ring.heap_tail);
                let (last_task_alive, heap_tail) = (ring.retired as u64, ring.heap_tail);
                self.told.history.push(Retired { at: self.now, ring: number, last_task_alive, heap_tail });
            }
        }
    }

    /// A dispatch job took effect. Every worker of a block ends on its own; all of them stay taken until the block's
    /// `complete` job takes effect.
    fn start(&mut self, mut block: Block) {
        let start = self.now + self.machine.worker.pickup;
        let task = &self.tasks[block.task];
        let submit = task.published.expect("a placed task is published");
        let ready = task.ready.expect("a placed task is READY");
        for &id in &block.workers {
            let worker = &mut self.workers[id];
            let end = start + cycles_on(worker.kind, &task.submit);
            self.told.stall[id] += start - worker.clock;
            worker.clock = end;
            block.end = block.end.max(end);
            let (task, worker) = (block.task as u64, id as u32);
            self.told.rows.push(Row { start, task, block: block.number, worker, submit, ready, end });
        }
        self.running.push(block);
    }

    /// Step 6: one pass over all queues; each is served until its head cannot be placed.
    pub fn place_blocks(&mut self) -> bool {
        let mut changed = false;
        for kind in TaskType::ALL {
            while let Some(&head) = self.ready.get(&kind).and_then(|queue| queue.front()) {
                if !self.place_head(head) {
                    break;
                }
                changed = true;
                if self.tasks[head].placed == self.tasks[head].blocks {
                    self.ready.get_mut(&kind).expect("the head came from there").pop_front();
                }
            }
        }
        changed
    }

    /// Places one block of `id`, or with `sync_start` all of them or none.
    fn place_head(&mut self, id: usize) -> bool {
        let count = if self.tasks[id].submit.sync_start { self.tasks[id].blocks } else { 1 };
        let mut placed = Vec::new();
        for _ in 0..count {
            let Some(workers) = self.choose(id) else { break };
            for &worker in &workers {
                self.workers[worker].free = false;
            }
            placed.push(workers);
        }
        if placed.len() < count as usize {
            for worker in placed.into_iter().flatten() {
                self.workers[worker].free = true;
            }
            return false;
        }
        for workers in placed {
            let number = self.tasks[id].placed;
            self.tasks[id].placed += 1;
            self.jobs.push_back(Job::Dispatch(Block { task: id, number, workers, end: 0 }));
        }
        true
    }

    /// The workers of the next block, in ascending order of id.
    fn choose(&self, id: usize) -> Option<Vec<usize>> {
        let task = &self.tasks[id];
        let Some(own) = served_by(task.kind) else { return self.choose_cluster(&task.submit) };
        let serves = |worker: usize| [own, WorkerType::Any].contains(&self.workers[worker].kind);
        Some(vec![self.free_by_clock((0..self.workers.len()).filter(|&worker| serves(worker))).first().copied()?])
    }

    fn choose_cluster(&self, submit: &Submit) -> Option<Vec<usize>> {
        let clusters = self.machine.workers.clusters as usize;
        let (n_cubes, n_vectors) = (usize::from(submit.units.cube), usize::from(submit.units.vector));
        let in_cluster = |cluster: usize| {
            let cubes = self.free_by_clock(std::iter::once(cluster));
            let vectors = self.free_by_clock([clusters + 2 * cluster, clusters + 2 * cluster + 1].into_iter());
            let (cubes, vectors) = (cubes.get(..n_cubes)?, vectors.get(..n_vectors)?);
            let mut chosen = [cubes, vectors].concat();
            chosen.sort_unstable();
            let clock = chosen.iter().map(|&worker| self.workers[worker].clock).max()?;
            Some((clock, cluster, chosen))
        };
        (0..clusters).filter_map(in_cluster).min().map(|(_, _, chosen)| chosen)
    }

    /// Those of `workers` that are free, by `(clock, id)`.
    fn free_by_clock(&self, workers: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut free: Vec<_> = workers.filter(|&worker| self.workers[worker].free).collect();
        free.sort_by_key(|&worker| (self.workers[worker].clock, worker));
        free
    }
}

/// Cycles of one block on a worker. Choice: a kind that the block takes no worker of does not lengthen the block.
fn cycles_on(kind: WorkerType, submit: &Submit) -> u64 {
    match submit.cost.expect("programs of the tests give every cost") {
        Cost::Cycles(cycles) => cycles,
        Cost::PerKind { cube, .. } if kind == WorkerType::Cube => cube,
        Cost::PerKind { vector, .. } => vector,
    }
}

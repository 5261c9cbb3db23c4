//! The list schedule of a plain program: the READY task of the highest rank goes to the free worker with the smallest clock.
//!
//! That is what `predictive` does when nothing is ever full, without a window, jobs and accounts. It holds for programs in
//! which every task is one block on one worker and can be submitted at once, on machines without costs; others are simulated.

use super::mostly_sorted::MostlySorted;
use super::{Plan, predictive};
use crate::config::{FanoutOrder, Machine};
use crate::engine::ends::Ends;
use crate::error::RunError;
use crate::graph::{self, Task, n_expected};
use crate::id::WorkerType;
use crate::large;
use crate::machine::own_type;
use crate::window::prefetch;
use crate::workload::{Submit, Workload};
use std::collections::VecDeque;
use std::ops::Range;

/// What a list schedule knows of a program.
pub struct Outline {
    /// One more than there are tasks: the last one marks where lists end.
    tasks: Vec<Sketch>,
    /// The consumers of all tasks, one list after the other, each ascending.
    consumers: Vec<u32>,
    /// Whether every task is one block on one worker that waits for its producers only.
    is_plain: bool,
}

/// What a list schedule knows of a task.
#[derive(Default)]
struct Sketch {
    /// By which `predictive` chooses.
    rank: u64,
    /// Cycles above [`KIND_BITS`] bits that hold the number of its type.
    work: u64,
    /// Producers that have not ended.
    waits_for: u32,
    /// Where its consumers begin; how many it has, while the program is read.
    first: u32,
}

/// Bits that hold the type of a task.
const KIND_BITS: u32 = 8;

/// How many tasks are handed out between the moment at which a task of a queue is fetched and its own turn.
const NEXT: usize = 2;

/// So many cycles or more are too many for a list schedule.
const MOST_CYCLES: u64 = 1 << (u64::BITS - KIND_BITS);

impl Sketch {
    /// A task without consumers.
    #[inline]
    fn new(task: &Task, n_producers: usize) -> Sketch {
        // Ranks do not hold as many cycles as fit here.
        let cycles = task.cycles().min(MOST_CYCLES - 1);
        Sketch { rank: 0, work: cycles << KIND_BITS | task.kind as u64, waits_for: n_producers as u32, first: 0 }
    }

    #[inline]
    fn cycles(&self) -> u64 {
        self.work >> KIND_BITS
    }

    /// The number of its type.
    #[inline]
    fn kind(&self) -> usize {
        (self.work & ((1 << KIND_BITS) - 1)) as usize
    }
}

impl Outline {
    /// Reads a whole program.
    ///
    /// # Errors
    /// When the program cannot be read.
    pub fn load(workload: &dyn Workload, machine: &Machine) -> Result<Outline, RunError> {
        let (mut tasks, mut producers, mut is_plain): (Vec<Sketch>, _, _) = (Vec::new(), Vec::new(), true);
        let mut n_edges = 0;
        graph::read(workload, machine, &mut producers, |orchestrator, _, found| {
            let own = &found[n_edges..];
            own.iter().for_each(|&producer: &u32| tasks[producer as usize].first += 1);
            let task = Task::at_hand(orchestrator, 0);
            large::push_expecting(&mut tasks, Sketch::new(&task, own.len()), || n_expected(orchestrator) + 1);
            is_plain &= own_type(task.kind).is_some() && is_plain_submit(&orchestrator.task);
            is_plain &= task.cycles() < MOST_CYCLES;
            n_edges = found.len();
        })?;
        assert!(u32::try_from(n_edges).is_ok(), "so many dependencies take more than all memory");
        tasks.push(Sketch::default());
        let mut outline = Outline { tasks, consumers: large::zeroed(n_edges), is_plain };
        outline.turn_round(&producers);
        Ok(outline)
    }

    /// Number of tasks.
    #[must_use]
    pub fn n_tasks(&self) -> usize {
        self.tasks.len() - 1
    }

    /// Number of dependencies.
    #[must_use]
    pub fn n_edges(&self) -> usize {
        self.consumers.len()
    }

    /// By task, the rank by which `predictive` chooses.
    #[must_use]
    pub fn ranks(&self) -> Vec<u64> {
        self.tasks[..self.n_tasks()].iter().map(|task| task.rank).collect()
    }

    /// Finds consumers and ranks from the producers of all tasks, one list after the other. Last task to first, because a rank
    /// follows from those of the consumers.
    fn turn_round(&mut self, producers: &[u32]) {
        let mut end = 0;
        for task in &mut self.tasks {
            end += task.first;
            task.first = end;
        }
        let mut left = producers;
        for task in (0..self.n_tasks()).rev() {
            // All its consumers are entered, and those of the next task. Its rank is the longest path behind it so far.
            let n_consumers = self.tasks[task + 1].first - self.tasks[task].first;
            let sketch = &mut self.tasks[task];
            let path = sketch.cycles().saturating_add(sketch.rank).min(predictive::LONGEST);
            sketch.rank = predictive::rank(path, n_consumers);
            let own;
            (left, own) = left.split_at(left.len() - sketch.waits_for as usize);
            for &producer in own {
                let producer = &mut self.tasks[producer as usize];
                producer.rank = producer.rank.max(path);
                producer.first -= 1;
                self.consumers[producer.first as usize] = task as u32;
            }
        }
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

/// The list schedule of a plain program on a machine without costs.
///
/// # Errors
/// The outline of a program or for a machine that this does not hold for.
pub fn list_schedule(outline: Outline, machine: &Machine) -> Result<Plan, Outline> {
    if !outline.is_plain || !is_free_of_costs(machine) {
        return Err(outline);
    }
    let (n_tasks, n_workers) = (outline.n_tasks(), machine.workers.total() as usize);
    let mut list = List {
        tasks: outline.tasks,
        consumers: outline.consumers,
        newest_first: machine.rules.fanout_order == FanoutOrder::Lifo,
        free: FreeWorkers::new(machine),
        queues: Default::default(),
        filled: 0,
        n_arrived: 0,
        ends: Ends::new(n_workers, 0),
        running: vec![0; n_workers],
        plan: Plan::of_single_blocks(n_tasks),
    };
    list.run();
    Ok(list.plan)
}

/// A schedule in the making. Tasks are known by their numbers.
struct List {
    tasks: Vec<Sketch>,
    consumers: Vec<u32>,
    newest_first: bool,
    free: FreeWorkers,
    /// READY tasks by type: the highest rank first, then the order of arrival. What the rank lacks to the highest, the arrival and
    /// the task itself are packed, because numbers are compared faster than fields.
    queues: [MostlySorted<u128>; 5],
    /// Bit k is set when queue k has a task.
    filled: u32,
    n_arrived: u32,
    ends: Ends,
    /// By worker: the task it runs.
    running: Vec<u32>,
    plan: Plan,
}

impl List {
    fn run(&mut self) {
        let mut sources: [Vec<u128>; 5] = Default::default();
        for task in 0..self.tasks.len() as u32 - 1 {
            if self.tasks[task as usize].waits_for == 0 {
                let (kind, place) = self.arrival(task);
                large::push(&mut sources[kind], place);
            }
        }
        // There may be many of them, and sorting them once is cheaper than a heap. They are in the order of arrival, and many have the
        // same rank.
        self.queues = sources.map(|mut sources| {
            sources.sort_by_key(|place| (place >> 64) as u64);
            MostlySorted::of_sorted(sources)
        });
        let mut now = 0;
        self.hand_out(now);
        while self.ends.next() != u64::MAX {
            now = self.ends.next();
            for (nth, word) in self.ends.turn().enumerate() {
                self.ends.take(word, nth).for_each(|worker| self.end(worker, now));
            }
            self.hand_out(now);
        }
        self.plan.makespan = now;
    }

    /// A task is READY: the number of its type, and its place among those of that type.
    #[inline]
    fn arrival(&mut self, task: u32) -> (usize, u128) {
        let sketch = &self.tasks[task as usize];
        let (rank, kind) = (sketch.rank, sketch.kind());
        // They are looked at when it is handed out.
        if let Some(consumer) = self.consumers.get(sketch.first as usize) {
            prefetch(consumer);
        }
        let place = u128::from(u64::MAX - rank) << 64 | u128::from(self.n_arrived) << 32 | u128::from(task);
        self.filled |= 1 << kind;
        self.n_arrived += 1;
        (kind, place)
    }

    /// A worker is free again, and what waited for its task alone is READY.
    #[inline]
    fn end(&mut self, worker: u32, now: u64) {
        self.free.give_back(worker, now);
        let consumers = consumers_of(&self.tasks, self.running[worker as usize]);
        for index in 0..consumers.len() {
            let place = if self.newest_first { consumers.end - 1 - index } else { consumers.start + index };
            let consumer = self.consumers[place];
            let left = &mut self.tasks[consumer as usize].waits_for;
            *left -= 1;
            if *left == 0 {
                let (kind, place) = self.arrival(consumer);
                self.queues[kind].push(place);
            }
        }
    }

    fn hand_out(&mut self, now: u64) {
        let mut filled = self.filled;
        while filled != 0 {
            let number = filled.trailing_zeros() as usize;
            filled &= filled - 1;
            let queue = &mut self.queues[number];
            while !queue.is_empty()
                && let Some(worker) = self.free.take(number)
                && let Some(first) = queue.pop()
            {
                let task = first as u32;
                let end = now.saturating_add(self.tasks[task as usize].cycles());
                if let Some(&soon) = queue.likely(NEXT) {
                    prefetch(&self.tasks[soon as u32 as usize]);
                }
                self.running[worker as usize] = task;
                self.ends.push(now, end, worker);
                self.plan.add(task, worker);
                // They are looked at when it ends, and were not for long: the first one and the last one are enough.
                if let [first, .., last] | [first @ last] = self.consumers[consumers_of(&self.tasks, task)] {
                    prefetch(&self.tasks[first as usize]);
                    prefetch(&self.tasks[last as usize]);
                }
            }
            if queue.is_empty() {
                self.filled &= !(1 << number);
            }
        }
    }
}

/// Free workers by type, ascending by `(clock, id)`. The clock of a worker is the cycle at which it is given back, so that new ones
/// go in at the end, or near it when blocks take no time.
struct FreeWorkers {
    rows: [VecDeque<(u64, u32)>; WorkerType::ALL.len()],
    /// By worker: the number of its type.
    kinds: Vec<u8>,
}

impl FreeWorkers {
    /// All workers of a machine, at clock 0.
    fn new(machine: &Machine) -> FreeWorkers {
        let mut free = FreeWorkers { rows: Default::default(), kinds: Vec::new() };
        for kind in WorkerType::ALL {
            for _ in 0..machine.workers.count(kind) {
                free.kinds.push(kind as u8);
                free.give_back(free.kinds.len() as u32 - 1, 0);
            }
        }
        free
    }

    /// Takes the first of those that run the task type with this number.
    #[inline]
    fn take(&mut self, kind: usize) -> Option<u32> {
        const ANY: usize = WorkerType::Any as usize;
        // Task types are MIX and then the types of workers in their order.
        let own = kind - 1;
        let is_any_first = match (self.rows[own].front(), self.rows[ANY].front()) {
            (Some(own), Some(any)) => any < own,
            (own, _) => own.is_none(),
        };
        self.rows[if is_any_first { ANY } else { own }].pop_front().map(|(_, worker)| worker)
    }

    #[inline]
    fn give_back(&mut self, worker: u32, now: u64) {
        let row = &mut self.rows[usize::from(self.kinds[worker as usize])];
        row.push_back((now, worker));
        let mut place = row.len() - 1;
        while place > 0 && row[place - 1] > row[place] {
            row.swap(place - 1, place);
            place -= 1;
        }
    }
}

/// Where the consumers of a task stand.
#[inline]
fn consumers_of(tasks: &[Sketch], task: u32) -> Range<usize> {
    tasks[task as usize].first as usize..tasks[task as usize + 1].first as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Producers;
    use crate::workload;

    #[test]
    fn its_ranks_are_those_of_predictive() {
        for spec in ["chain:n=9", "cholesky:tiles=8", "random:n=500,fanin=12", "moe", "bgemm"] {
            let (program, machine) = (workload::open(spec).expect("a generator"), Machine::default());
            let mut cycles = Vec::new();
            let (producers, _) = Producers::load(program.as_ref(), &machine, |orchestrator, _| {
                cycles.push(Task::at_hand(orchestrator, 0).cycles());
            })
            .expect("a program");
            let outline = Outline::load(program.as_ref(), &machine).expect("a program");
            assert_eq!(outline.ranks(), predictive::ranks(&producers, |task| cycles[task]), "{spec}");
            assert_eq!((outline.n_tasks(), outline.n_edges()), (producers.n_tasks(), producers.len()), "{spec}");
        }
    }
}

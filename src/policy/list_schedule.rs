//! The list schedule of a plain program: the READY task of the highest rank goes to the free worker with the smallest clock.
//!
//! That is what `predictive` does when nothing is ever full, without a window, jobs and accounts. It holds for programs in
//! which every task is one block on one worker and can be submitted at once, on machines without costs; others are simulated.

use super::mostly_sorted::MostlySorted;
use super::{Plan, predictive};
use crate::config::{FanoutOrder, Machine};
use crate::engine::ends::Ends;
use crate::error::RunError;
use crate::graph::{self, Task, check_number, n_edges_expected, n_expected};
use crate::id::{TaskType, WorkerType};
use crate::large;
use crate::machine::own_type;
use crate::orchestrator::Orchestrator;
use crate::window::{NONE, prefetch};
use crate::workload::{Cost, Submit, Workload};
use std::cmp::Reverse;

/// What a list schedule knows of a program.
#[derive(Default)]
pub struct Outline {
    tasks: Vec<Sketch>,
    /// By task, the rank by which `predictive` chooses.
    ranks: Vec<u64>,
    /// The dependencies of all tasks, in their order.
    edges: Vec<Edge>,
    /// Tasks without producers.
    sources: Vec<u32>,
    /// Whether every task is one block on one worker that waits for its producers only.
    is_plain: bool,
}

/// What a list schedule knows of a task.
struct Sketch {
    /// Cycles above [`KIND_BITS`] bits that hold the number of its type.
    work: u64,
    /// Producers that have not ended.
    waits_for: u32,
    /// The edge to its last consumer, or [`NONE`].
    newest: u32,
}

/// A task that waits for another.
#[derive(Clone, Copy)]
struct Edge {
    /// The consumer; before ranks are known, the producer.
    end: u32,
    /// The edge to the consumer before, or [`NONE`].
    older: u32,
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
    fn new(kind: TaskType, cycles: u64, n_producers: usize) -> Sketch {
        // Ranks do not hold as many cycles as fit here.
        let cycles = cycles.min(MOST_CYCLES - 1);
        Sketch { work: cycles << KIND_BITS | kind as u64, waits_for: n_producers as u32, newest: NONE }
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
        let mut outline = Outline { is_plain: true, ..Outline::default() };
        graph::read(workload, machine, |orchestrator, _, producers| outline.add(orchestrator, producers))?;
        check_number("dependencies", outline.edges.len() as u64, NONE)?;
        outline.rank();
        Ok(outline)
    }

    /// The next task.
    #[inline(always)]
    fn add(&mut self, orchestrator: &Orchestrator, producers: &[u32]) {
        let first = self.edges.len() as u32;
        let edges = producers.iter().enumerate().map(|(place, &producer)| {
            let newest = &mut self.tasks[producer as usize].newest;
            Edge { end: producer, older: std::mem::replace(newest, first + place as u32) }
        });
        large::extend_expecting(&mut self.edges, edges, || n_edges_expected(orchestrator));
        if producers.is_empty() {
            large::push(&mut self.sources, self.tasks.len() as u32);
        }
        let (kind, cost) = orchestrator.resolved;
        let (is_usual, cycles) = match cost {
            Cost::Cycles(cycles) if orchestrator.is_usual() => (true, cycles),
            _ => (false, Task::at_hand(orchestrator, 0).cycles()),
        };
        let sketch = Sketch::new(kind, cycles, producers.len());
        large::push_expecting(&mut self.tasks, sketch, || n_expected(orchestrator));
        self.is_plain &= cycles < MOST_CYCLES && orchestrator.task.submit_at == 0;
        self.is_plain &= is_usual || own_type(kind).is_some() && is_plain_submit(&orchestrator.task);
    }

    /// Number of tasks.
    #[must_use]
    pub fn n_tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Number of dependencies.
    #[must_use]
    pub fn n_edges(&self) -> usize {
        self.edges.len()
    }

    /// By task, the rank by which `predictive` chooses.
    #[must_use]
    pub fn into_ranks(self) -> Vec<u64> {
        self.ranks
    }

    /// Finds the ranks and turns the edges round, last task to first, because a rank follows from those of the consumers.
    fn rank(&mut self) {
        self.ranks = large::zeroed(self.tasks.len());
        let mut left = &mut self.edges[..];
        for (task, sketch) in self.tasks.iter().enumerate().rev() {
            let rank = predictive::rank_before(sketch.cycles(), self.ranks[task]);
            self.ranks[task] = rank;
            let own;
            (left, own) = left.split_at_mut(left.len() - sketch.waits_for as usize);
            for edge in own {
                let producer = std::mem::replace(&mut edge.end, task as u32);
                predictive::note_consumer(&mut self.ranks[producer as usize], rank);
            }
        }
    }
}

fn is_plain_submit(submit: &Submit) -> bool {
    let Submit { blocks, fault, parent, .. } = submit;
    *blocks == 1 && !*fault && parent.is_none()
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
    let n_workers = machine.workers.total() as usize;
    let sources = by_rank(outline.sources, &outline.ranks);
    let mut list = List {
        tasks: outline.tasks,
        edges: outline.edges,
        newest_first: machine.rules.fanout_order == FanoutOrder::Lifo,
        released: vec![0],
        n_released: 0,
        free: FreeWorkers::new(machine),
        queues: Default::default(),
        filled: 0,
        n_arrived: 0,
        ends: Ends::new(n_workers, 0),
        running: vec![0; n_workers],
        plan: Plan::instead_of(outline.ranks),
    };
    list.run(&sources);
    Ok(list.plan)
}

/// Tasks without producers, the highest rank first, and of equals in their order. There may be very many of them, and then most have
/// one of a few ranks.
fn by_rank(mut tasks: Vec<u32>, ranks: &[u64]) -> Vec<u32> {
    const FEW: usize = 64;
    let mut groups: Vec<(u64, u32)> = Vec::new();
    let find = |groups: &[(u64, u32)], rank: u64| groups.binary_search_by(|group| rank.cmp(&group.0));
    for &task in &tasks {
        let rank = ranks[task as usize];
        match find(&groups, rank) {
            Ok(place) => groups[place].1 += 1,
            Err(place) if groups.len() < FEW => groups.insert(place, (rank, 1)),
            Err(_) => {
                tasks.sort_by_key(|&task| Reverse(ranks[task as usize]));
                return tasks;
            }
        }
    }
    let mut begin = 0;
    for (_, count) in &mut groups {
        begin += std::mem::replace(count, begin);
    }
    let mut sorted = large::zeroed(tasks.len());
    for task in tasks {
        let group = find(&groups, ranks[task as usize]).expect("it was counted");
        sorted[groups[group].1 as usize] = task;
        groups[group].1 += 1;
    }
    sorted
}

/// A schedule in the making. Tasks are known by their numbers.
struct List {
    tasks: Vec<Sketch>,
    edges: Vec<Edge>,
    newest_first: bool,
    /// Tasks that have become READY now are the first so many, and one more place is there.
    released: Vec<u32>,
    n_released: usize,
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
    /// Until a task is handed out, its rank stands in its place.
    plan: Plan,
}

impl List {
    fn run(&mut self, sources: &[u32]) {
        let mut arrivals: [Vec<u128>; 5] = Default::default();
        for &task in sources {
            let (kind, place) = self.arrival(task);
            large::push(&mut arrivals[kind], place);
        }
        self.queues = arrivals.map(MostlySorted::of_sorted);
        let mut now = 0;
        self.hand_out(now);
        while self.ends.next() != u64::MAX {
            now = self.ends.next();
            let mut due = self.ends.turn();
            while let Some(worker) = self.ends.take(&mut due) {
                self.end(worker, now);
            }
            for place in 0..std::mem::take(&mut self.n_released) {
                let (kind, place) = self.arrival(self.released[place]);
                self.queues[kind].push(place);
            }
            self.hand_out(now);
        }
        self.plan.makespan = now;
        self.plan.leave_out(&self.unplanned());
    }

    /// Tasks that wait for an end that never comes.
    fn unplanned(&self) -> Vec<u32> {
        if self.plan.n_blocks() == self.tasks.len() {
            return Vec::new();
        }
        let blocked = (0..self.tasks.len() as u32).filter(|&task| self.tasks[task as usize].waits_for > 0);
        blocked.chain(self.queues.iter().flat_map(MostlySorted::iter).map(|&place| place as u32)).collect()
    }

    /// A task is READY: the number of its type, and its place among those of that type.
    #[inline]
    fn arrival(&mut self, task: u32) -> (usize, u128) {
        self.foresee(task as usize);
        let (rank, kind) = (self.plan.number(task), self.tasks[task as usize].kind());
        let place = u128::from(u64::MAX - rank) << 64 | u128::from(self.n_arrived) << 32 | u128::from(task);
        self.filled |= 1 << kind;
        self.n_arrived += 1;
        (kind, place)
    }

    /// Most tasks become READY about in their order: fetches what will be looked at for those that come a while later.
    #[inline]
    fn foresee(&self, task: usize) {
        const AHEAD: usize = 256;
        if let Some(sketch) = self.tasks.get(task + 2 * AHEAD) {
            prefetch(sketch);
            self.plan.foresee(task + 2 * AHEAD);
        }
        if let Some(sketch) = self.tasks.get(task + AHEAD)
            && let Some(edge) = self.edges.get(sketch.newest as usize)
        {
            prefetch(edge);
        }
    }

    /// A worker is free again, and what waited for its task alone is released.
    #[inline]
    fn end(&mut self, worker: u32, now: u64) {
        self.free.give_back(worker, now);
        let (begin, mut n_released) = (self.n_released, self.n_released);
        let mut next = self.tasks[self.running[worker as usize] as usize].newest;
        while let Some(&Edge { end: consumer, older }) = self.edges.get(next as usize) {
            let left = &mut self.tasks[consumer as usize].waits_for;
            *left -= 1;
            // Which of them are released is not to be foreseen, so there is no question about it that a processor could guess wrong.
            self.released[n_released] = consumer;
            n_released += usize::from(*left == 0);
            if n_released == self.released.len() {
                self.released.push(0);
            }
            next = older;
        }
        if !self.newest_first {
            self.released[begin..n_released].reverse();
        }
        self.n_released = n_released;
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
                let &Sketch { newest, .. } = &self.tasks[task as usize];
                let end = now.saturating_add(self.tasks[task as usize].cycles());
                if let Some(&soon) = queue.likely(NEXT) {
                    prefetch(&self.tasks[soon as u32 as usize]);
                }
                self.running[worker as usize] = task;
                self.ends.push(now, end, worker);
                self.plan.add(task, worker);
                // It is looked at when the task ends, and was not for long.
                if let Some(edge) = self.edges.get(newest as usize) {
                    prefetch(&self.tasks[edge.end as usize]);
                }
            }
            if queue.is_empty() {
                self.filled &= !(1 << number);
            }
        }
    }
}

/// Free workers by type, ascending by `(clock, id)`, packed. The clock of a worker is the cycle at which it is given back, so that new
/// ones go in at the end, or near it when blocks take no time.
struct FreeWorkers {
    rows: [MostlySorted<u128>; WorkerType::ALL.len()],
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
        let is_any_first = match self.rows[ANY].first() {
            None => false,
            Some(any) => self.rows[own].first().is_none_or(|own| any < own),
        };
        self.rows[if is_any_first { ANY } else { own }].pop().map(|worker| worker as u32)
    }

    #[inline]
    fn give_back(&mut self, worker: u32, now: u64) {
        self.rows[usize::from(self.kinds[worker as usize])].push(u128::from(now) << 32 | u128::from(worker));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Producers;
    use crate::workload;

    #[test]
    fn sources_are_sorted_by_rank_however_many_ranks_there_are() {
        for n_ranks in [1, 5, 1_000] {
            let ranks: Vec<u64> = (0..3_000_u64).map(|task| task.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20).collect();
            let ranks: Vec<u64> = ranks.iter().map(|rank| rank % n_ranks).collect();
            let mut sorted: Vec<u32> = (0..3_000).collect();
            sorted.sort_by_key(|&task| Reverse(ranks[task as usize]));
            assert_eq!(by_rank((0..3_000).collect(), &ranks), sorted);
        }
    }

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
            assert_eq!((outline.n_tasks(), outline.n_edges()), (producers.n_tasks(), producers.len()), "{spec}");
            assert_eq!(outline.into_ranks(), predictive::ranks(&producers, |task| cycles[task]), "{spec}");
        }
    }
}

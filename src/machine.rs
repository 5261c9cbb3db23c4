//! The workers: their type, their clock, what they run, and which of them are free.

use crate::config::Workers;
use crate::id::{TaskType, WorkerType};
use crate::window::SlotRef;
use crate::workload::Units;

pub use crate::worker_set::WorkerSet;

/// All workers of a machine.
pub struct Floor {
    workers: Vec<Worker>,
    free: [FreeSet; 5],
    free_ids: WorkerSet,
    /// Whether `free_ids` is kept.
    keeps_ids: bool,
    /// Whether free workers stand in the order of their clocks. It is found when somebody asks for it, and kept from then on.
    keeps_order: bool,
    clusters: u32,
    n_cubes: u32,
}

/// One worker, on one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Worker {
    /// What it is.
    pub kind: WorkerType,
    /// End of its last block, known as soon as that starts.
    pub clock: u64,
    /// Whether it can be given a block.
    pub is_free: bool,
    /// The block it leads: its own, or a MIX block of which it is the smallest worker.
    pub block: Block,
}

impl Worker {
    /// When the block that it leads ends.
    #[inline]
    pub fn block_end(&self) -> u64 {
        if self.block.crew.is_one() { self.clock } else { self.block.end }
    }
}

/// A block on its way through the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Block {
    /// Its task.
    pub slot: SlotRef,
    /// Its number among the task's blocks.
    pub index: u32,
    /// When it was placed, where it does not start at once.
    pub placed: u64,
    /// When a MIX block ends on its last worker.
    pub end: u64,
    /// Who runs it; the worker alone when there is no MIX block.
    pub crew: Crew,
}

/// The workers of one block: one, or up to three of one cluster, ascending.
#[derive(Clone, Copy, Debug, Default)]
pub struct Crew {
    ids: [u32; 3],
    len: u8,
}

impl Crew {
    /// A crew of one.
    #[inline]
    pub fn one(worker: u32) -> Crew {
        Crew { ids: [worker, 0, 0], len: 1 }
    }

    /// A crew of up to three different workers.
    pub fn of(workers: &[u32]) -> Crew {
        let mut crew = Crew::default();
        workers.iter().for_each(|&worker| crew.push(worker));
        crew
    }

    /// Its workers, ascending.
    #[inline]
    pub fn ids(&self) -> &[u32] {
        &self.ids[..usize::from(self.len)]
    }

    /// Whether it has one worker only.
    #[inline]
    pub fn is_one(&self) -> bool {
        self.len == 1
    }

    /// Its smallest worker, under which the block is known.
    #[inline]
    pub fn leader(&self) -> u32 {
        self.ids[0]
    }

    fn push(&mut self, worker: u32) {
        self.ids[usize::from(self.len)] = worker;
        self.len += 1;
        self.ids[..usize::from(self.len)].sort_unstable();
    }
}

/// Free workers of one type, ascending by `(clock, id)`, in a ring of places. Workers come back in almost this order, so a new
/// entry goes in near the back. Entries of workers that were taken otherwise are skipped when met.
#[derive(Default)]
struct FreeSet {
    /// A power of two of them.
    places: Box<[Entry]>,
    /// Counts the entries taken out.
    head: usize,
    /// Counts the entries put in.
    tail: usize,
    count: u32,
}

/// Clock and id of a worker in one number, because numbers are compared faster than fields.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Entry(u128);

impl Entry {
    #[inline]
    fn new(clock: u64, id: u32) -> Entry {
        Entry(u128::from(clock) << 64 | u128::from(id))
    }

    #[inline]
    fn clock(self) -> u64 {
        (self.0 >> 64) as u64
    }

    #[inline]
    fn id(self) -> u32 {
        self.0 as u32
    }
}

impl FreeSet {
    fn with_room_for(workers: u32) -> FreeSet {
        // All places are written one after the other, so few of them stay in the nearest cache. Tidying leaves less than half of them.
        let places = vec![Entry::default(); (2 * workers as usize).next_power_of_two()].into();
        FreeSet { places, head: 0, tail: 0, count: 0 }
    }

    #[inline]
    fn first(&self) -> Option<Entry> {
        (self.head < self.tail).then(|| self.places[self.head & (self.places.len() - 1)])
    }

    #[inline]
    fn insert(&mut self, entry: Entry) {
        let mask = self.places.len() - 1;
        let mut place = self.tail;
        while place > self.head && self.places[(place - 1) & mask] > entry {
            self.places[place & mask] = self.places[(place - 1) & mask];
            place -= 1;
        }
        self.places[place & mask] = entry;
        self.tail += 1;
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.tail - self.head == self.places.len()
    }

    /// Keeps the entries that are true, one for each worker. A worker may have several that are the same: if it was taken out of turn
    /// and came back with the same clock.
    #[cold]
    fn tidy(&mut self, is_true: impl Fn(Entry) -> bool) {
        let mask = self.places.len() - 1;
        let all = self.head..std::mem::replace(&mut self.tail, self.head);
        let mut last = None;
        for place in all {
            let entry = self.places[place & mask];
            if is_true(entry) && last != Some(entry) {
                self.places[self.tail & mask] = entry;
                self.tail += 1;
                last = Some(entry);
            }
        }
    }
}

impl Floor {
    /// All workers, free, at clock 0.
    #[must_use]
    pub fn new(config: &Workers) -> Floor {
        let mut floor = Floor {
            workers: Vec::with_capacity(config.total() as usize),
            free: WorkerType::ALL.map(|kind| FreeSet::with_room_for(config.count(kind))),
            free_ids: WorkerSet::new(config.total() as usize),
            keeps_ids: false,
            keeps_order: true,
            clusters: config.clusters,
            n_cubes: config.count(WorkerType::Cube),
        };
        for (id, kind) in (0..).zip(config.kinds()) {
            let block = Block { crew: Crew::one(id), ..Block::default() };
            floor.workers.push(Worker { kind, clock: 0, is_free: true, block });
            floor.free[kind as usize].insert(Entry::new(0, id));
            floor.free[kind as usize].count += 1;
        }
        floor
    }

    /// A worker.
    #[inline]
    pub fn worker(&self, id: u32) -> &Worker {
        &self.workers[id as usize]
    }

    /// A worker, to change.
    #[inline]
    pub fn worker_mut(&mut self, id: u32) -> &mut Worker {
        &mut self.workers[id as usize]
    }

    /// All workers in order of id.
    pub fn workers(&self) -> &[Worker] {
        &self.workers
    }

    /// Number of workers that are free, whatever their type.
    #[inline]
    pub fn n_free(&self) -> u32 {
        self.free.iter().map(|set| set.count).sum()
    }

    /// Keeps the set of free workers from now on.
    pub fn keep_free_workers(&mut self) {
        self.keeps_ids = true;
        let free = (0..).zip(&self.workers).filter(|(_, worker)| worker.is_free);
        free.for_each(|(id, _)| self.free_ids.insert(id));
    }

    /// Keeps the order of free workers only from the moment on at which somebody asks for the one with the smallest clock. For those
    /// who [keep](Floor::keep_free_workers) who is free and mostly take certain workers.
    pub fn leave_order(&mut self) {
        self.keeps_order = false;
        self.free.iter_mut().for_each(|set| set.head = set.tail);
    }

    #[cold]
    fn find_order(&mut self) {
        self.keeps_order = true;
        let mut free: Vec<Entry> = Vec::new();
        for (id, worker) in (0..).zip(&self.workers).filter(|(_, worker)| worker.is_free) {
            free.push(Entry::new(worker.clock, id));
        }
        free.sort_unstable();
        free.into_iter().for_each(|entry| self.free[self.workers[entry.id() as usize].kind as usize].insert(entry));
    }

    /// The workers that are free, once they are [kept](Floor::keep_free_workers).
    #[inline]
    pub fn free_workers(&self) -> &WorkerSet {
        debug_assert!(self.keeps_ids, "nobody keeps who is free");
        &self.free_ids
    }

    /// Number of free workers that could take a block of this type; MIX asks [`Floor::mix_capacity`].
    #[inline]
    pub fn n_free_for(&self, kind: TaskType) -> u32 {
        let any = self.free[WorkerType::Any as usize].count;
        own_type(kind).map_or(0, |own| self.free[own as usize].count + any)
    }

    /// Whether a worker is free that could take a block of the task type with this number, MIX and NONE aside.
    #[inline]
    pub fn has_free(&self, kind: usize) -> bool {
        // Task types are MIX and then the types of workers in their order.
        self.free[kind - 1].count + self.free[WorkerType::Any as usize].count > 0
    }

    /// Takes the free worker with the smallest `(clock, id)` among those that run this type.
    #[inline(always)]
    pub fn take(&mut self, kind: TaskType) -> Option<u32> {
        // Task types are MIX, then the types of workers in their order, then NONE.
        let own = (kind as usize).wrapping_sub(1);
        let has_any = self.free[WorkerType::Any as usize].count > 0;
        let set = self.free.get_mut(own)?;
        if has_any || set.tail - set.head != set.count as usize {
            return self.take_slowly(kind);
        }
        // Every entry is that of a free worker.
        let id = set.first()?.id();
        set.head += 1;
        set.count -= 1;
        self.workers[id as usize].is_free = false;
        if self.keeps_ids {
            self.free_ids.remove(id);
        }
        Some(id)
    }

    #[inline(never)]
    fn take_slowly(&mut self, kind: TaskType) -> Option<u32> {
        let own = own_type(kind)?;
        let id = [self.peek(own), self.peek(WorkerType::Any)].into_iter().flatten().min()?.id();
        self.take_worker(id);
        Some(id)
    }

    /// Smallest `(clock, id)` of the free workers of one type.
    #[inline]
    fn peek(&mut self, kind: WorkerType) -> Option<Entry> {
        if !self.keeps_order {
            self.find_order();
        }
        let set = &mut self.free[kind as usize];
        if set.count == 0 {
            return None;
        }
        while let Some(entry) = set.first() {
            let worker = &self.workers[entry.id() as usize];
            if worker.is_free && worker.clock == entry.clock() {
                return Some(entry);
            }
            set.head += 1;
        }
        None
    }

    /// Takes a certain free worker.
    #[inline(always)]
    pub fn take_worker(&mut self, id: u32) {
        let worker = &mut self.workers[id as usize];
        debug_assert!(worker.is_free, "worker {id} is not free");
        worker.is_free = false;
        if self.keeps_ids {
            self.free_ids.remove(id);
        }
        let set = &mut self.free[worker.kind as usize];
        set.count -= 1;
        if set.first().is_some_and(|first| first.id() == id) {
            set.head += 1;
        }
    }

    /// Gives a worker back.
    #[inline(always)]
    pub fn give_back(&mut self, id: u32) {
        let worker = &mut self.workers[id as usize];
        debug_assert!(!worker.is_free, "worker {id} is free already");
        worker.is_free = true;
        if self.keeps_ids {
            self.free_ids.insert(id);
            if !self.keeps_order {
                self.free[worker.kind as usize].count += 1;
                return;
            }
        }
        let entry = Entry::new(worker.clock, id);
        let set = &mut self.free[worker.kind as usize];
        set.count += 1;
        if set.is_full() {
            let workers = &self.workers;
            set.tidy(|other| {
                let worker = &workers[other.id() as usize];
                worker.is_free && worker.clock == other.clock() && other != entry
            });
        }
        set.insert(entry);
    }

    /// Takes the units of a MIX block of the cluster with the smallest (largest clock of the chosen units, cluster).
    pub fn take_mix(&mut self, units: Units) -> Option<Crew> {
        let (_, _, crew) = (0..self.clusters)
            .filter_map(|cluster| self.cluster_crew(cluster, units).map(|(clock, crew)| (clock, cluster, crew)))
            .min_by_key(|&(clock, cluster, _)| (clock, cluster))?;
        for &id in crew.ids() {
            self.take_worker(id);
        }
        Some(crew)
    }

    /// The units a cluster would give, and the largest of their clocks.
    fn cluster_crew(&self, cluster: u32, units: Units) -> Option<(u64, Crew)> {
        let mut crew = Crew::default();
        let mut clock = 0;
        if units.cube > 0 {
            let cube = self.worker(cluster);
            if !cube.is_free {
                return None;
            }
            crew.push(cluster);
            clock = cube.clock;
        }
        let first = self.n_cubes + 2 * cluster;
        let mut vectors = [first, first + 1];
        vectors.sort_by_key(|&id| (!self.worker(id).is_free, self.worker(id).clock, id));
        for &id in &vectors[..usize::from(units.vector)] {
            if !self.worker(id).is_free {
                return None;
            }
            crew.push(id);
            clock = clock.max(self.worker(id).clock);
        }
        Some((clock, crew))
    }

    /// How many MIX blocks the free units could take now.
    #[must_use]
    pub fn mix_capacity(&self, units: Units) -> u32 {
        (0..self.clusters)
            .map(|cluster| {
                let first = self.n_cubes + 2 * cluster;
                let cubes = u32::from(self.worker(cluster).is_free);
                let vectors = u32::from(self.worker(first).is_free) + u32::from(self.worker(first + 1).is_free);
                blocks_of(cubes, units.cube).min(blocks_of(vectors, units.vector))
            })
            .sum()
    }
}

fn blocks_of(available: u32, wanted: u8) -> u32 {
    available.checked_div(u32::from(wanted)).unwrap_or(u32::MAX)
}

/// How many blocks of a task can ever run at the same time.
#[must_use]
pub fn capacity(workers: &Workers, kind: TaskType, units: Units) -> u32 {
    match own_type(kind) {
        Some(own) => workers.count(own) + workers.count(WorkerType::Any),
        None if kind == TaskType::Mix => {
            workers.clusters.saturating_mul(blocks_of(1, units.cube).min(blocks_of(2, units.vector)))
        }
        None => u32::MAX,
    }
}

/// The worker type that serves a task type, next to ANY.
#[inline]
#[must_use]
pub fn own_type(kind: TaskType) -> Option<WorkerType> {
    // Task types are MIX, then the types of workers in their order, then NONE.
    match kind {
        TaskType::Mix | TaskType::None => None,
        _ => Some(WorkerType::ALL[kind as usize - 1]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::rolls;

    #[test]
    fn the_free_worker_with_the_smallest_clock_is_taken_however_often_workers_come_back() {
        let mut random = rolls(5);
        for n_workers in [1, 2, 3, 24] {
            let mut floor = Floor::new(&Workers { cube: n_workers, ..Workers::default() });
            for _ in 0..20_000 {
                let id = random(n_workers.into()) as u32;
                if !floor.worker(id).is_free {
                    // Half of the blocks take no time, so that a worker comes back with the clock it had.
                    floor.worker_mut(id).clock += random(2) * random(9);
                    floor.give_back(id);
                } else if random(2) == 0 {
                    floor.take_worker(id);
                } else {
                    let free = (0..).zip(floor.workers()).filter(|(_, worker)| worker.is_free);
                    let least = free.map(|(id, worker)| (worker.clock, id)).min().map(|(_, id)| id);
                    assert_eq!(floor.take(TaskType::Cube), least);
                }
                let n_free = floor.workers().iter().filter(|worker| worker.is_free).count();
                assert_eq!(floor.n_free(), n_free as u32);
            }
        }
    }

    /// Takes and gives back certain workers and then takes all in the order of their clocks.
    fn taken(mut floor: Floor) -> Vec<u32> {
        floor.keep_free_workers();
        for step in 0..40_u32 {
            let id = step * 7 % 9;
            floor.take_worker(id);
            floor.worker_mut(id).clock += u64::from(step * 5 % 8);
            floor.give_back(id);
        }
        floor.take_worker(4);
        let kinds = [TaskType::Cube, TaskType::Vector, TaskType::Cube, TaskType::Vector];
        kinds.into_iter().cycle().take(12).filter_map(|kind| floor.take(kind)).collect()
    }

    #[test]
    fn the_order_of_free_workers_is_the_same_whether_it_was_left_for_later_or_not() {
        let workers = Workers { clusters: 0, cube: 3, vector: 4, ai_cpu: 0, accelerator: 0, any: 2 };
        let (kept, mut left) = (Floor::new(&workers), Floor::new(&workers));
        left.leave_order();
        assert!(kept.workers()[8].kind == WorkerType::Any);
        assert_eq!(taken(left), taken(kept));
    }
}

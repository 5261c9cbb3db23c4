//! Clocks of the machine's workers while host threads run their blocks.
//!
//! A host thread runs blocks for many workers. Which worker a block counts for, and in which cycles, is settled by moving that
//! worker's clock on with one exchange: `start = max(task ready, clock)`, `clock = start + cycles`. Every host thread
//! prefers its own share of the workers, so the exchanges hardly ever meet. Blocks that need several workers at the same
//! instant (MIX, `sync_start`) take them under a lock that plain blocks never touch.

use crate::config::Workers;
use crate::id::{TaskType, WorkerType};
use crate::machine::{Crew, Floor, own_type};
use crate::sync::{Shared, Sharing};
use crate::workload::Units;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

/// The clocks of all workers, by id.
pub(super) struct Clocks {
    words: Box<[<Shared as Sharing>::U64]>,
    config: Workers,
    /// The floor, to choose several workers at once.
    together: Mutex<Floor>,
}

/// Cycles of a block on one worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    pub(super) worker: u32,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// The workers a host thread prefers, by type, each with the clock it last saw.
pub(super) struct Share {
    workers: [Tree; 5],
}

/// Every `step`-th worker from the `first` on, the smallest `(clock, worker)` at hand. Each node is the smaller of the two below
/// it: moving a clock on is one comparison a level, without a branch to guess.
struct Tree {
    first: u32,
    step: u32,
    /// `clock << 32 | nth worker`: the root at 1, the children of `n` at `2n` and `2n + 1`, the workers in the second half.
    nodes: Box<[u128]>,
}

/// Cycles of a block on a cube and on any other worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycles {
    pub(super) cube: u64,
    pub(super) vector: u64,
}

impl Cycles {
    #[inline]
    fn on(self, kind: WorkerType) -> u64 {
        if kind == WorkerType::Cube { self.cube } else { self.vector }
    }
}

impl Clocks {
    pub(super) fn new(config: &Workers) -> Clocks {
        Clocks {
            words: (0..config.total()).map(|_| <Shared as Sharing>::U64::new(0)).collect(),
            config: config.clone(),
            together: Mutex::new(Floor::new(config)),
        }
    }

    /// Ids of the workers of one type.
    fn ids(&self, kind: WorkerType) -> std::ops::Range<u32> {
        let before = WorkerType::ALL.into_iter().take_while(|&other| other != kind);
        let first = before.map(|other| self.config.count(other)).sum();
        first..first + self.config.count(kind)
    }

    /// Every `of`-th worker of each type from the `nth` on; all of a type that is too small to be shared.
    pub(super) fn share(&self, nth: usize, of: usize) -> Share {
        let workers = WorkerType::ALL.map(|kind| {
            let ids = self.ids(kind);
            let step = if ids.len() < of { 1 } else { of };
            Tree::new(ids.skip(if step == 1 { 0 } else { nth }).step_by(step), step as u32)
        });
        Share { workers }
    }

    /// Takes the cycles of a block on the worker of the share with the smallest clock.
    #[inline]
    pub(super) fn take(&self, share: &mut Share, kind: TaskType, ready: u64, cycles: u64) -> Span {
        let own = own_type(kind).expect("only MIX and NONE have no type of their own");
        loop {
            let tree = share.tree(own);
            let (seen, worker) = tree.smallest().expect("a task without workers is refused before the run");
            let start = ready.max(seen);
            let end = start.saturating_add(cycles);
            // Ordering: Relaxed; the clock carries no data.
            match self.words[worker as usize].compare_exchange(seen, end, Relaxed, Relaxed) {
                Ok(_) => {
                    tree.move_on(end);
                    return Span { worker, start, end };
                }
                Err(found) => tree.move_on(found),
            }
        }
    }

    /// Takes the cycles of blocks that start at the same instant. `blocks` blocks of a plain type, each on a worker of its own.
    pub(super) fn take_together(&self, kind: TaskType, blocks: u32, ready: u64, cycles: u64) -> Vec<Span> {
        let own = own_type(kind).expect("only MIX and NONE have no type of their own");
        let guard = self.together.lock().expect("nobody panics while choosing workers");
        loop {
            let ids = self.ids(own).chain(self.ids(WorkerType::Any));
            let mut workers: Vec<_> = ids.map(|id| (self.clock(id), id)).collect();
            workers.sort_unstable();
            workers.truncate(blocks as usize);
            let chosen: Vec<_> = workers.into_iter().map(|(clock, id)| (clock, id, cycles)).collect();
            if let Some(spans) = self.try_claim(&chosen, ready) {
                drop(guard);
                return spans;
            }
        }
    }

    /// Takes the cycles of MIX blocks that start at the same instant: one entry a block.
    pub(super) fn take_mix(&self, units: Units, blocks: u32, ready: u64, cycles: Cycles) -> Vec<Vec<Span>> {
        let mut floor = self.together.lock().expect("nobody panics while choosing workers");
        loop {
            for id in 0..self.words.len() as u32 {
                floor.worker_mut(id).clock = self.clock(id);
            }
            let crews: Vec<_> = (0..blocks).map_while(|_| floor.take_mix(units)).collect();
            assert_eq!(crews.len(), blocks as usize, "more blocks than the machine has room for were refused before");
            let ids = crews.iter().flat_map(Crew::ids);
            let chosen: Vec<_> =
                ids.map(|&id| (floor.worker(id).clock, id, cycles.on(floor.worker(id).kind))).collect();
            for &(_, id, _) in &chosen {
                floor.give_back(id);
            }
            if let Some(spans) = self.try_claim(&chosen, ready) {
                let mut spans = spans.into_iter();
                return crews.iter().map(|crew| spans.by_ref().take(crew.ids().len()).collect()).collect();
            }
        }
    }

    /// The latest clock of all workers.
    pub(super) fn latest(&self) -> u64 {
        (0..self.words.len() as u32).map(|worker| self.clock(worker)).max().unwrap_or(0)
    }

    fn clock(&self, worker: u32) -> u64 {
        self.words[worker as usize].load(Relaxed) // Ordering: the exchange decides.
    }

    /// Moves the clocks of all the chosen `(clock, worker, cycles)` on from one common start. When one of them is used by its own
    /// thread meanwhile, the cycles taken so far are lost to the others and nothing is taken.
    fn try_claim(&self, chosen: &[(u64, u32, u64)], ready: u64) -> Option<Vec<Span>> {
        let start = chosen.iter().map(|&(clock, ..)| clock).max().unwrap_or(0).max(ready);
        let claim = |&(clock, worker, cycles): &(u64, u32, u64)| {
            let end = start.saturating_add(cycles);
            // Ordering: Relaxed; the clock carries no data.
            self.words[worker as usize].compare_exchange(clock, end, Relaxed, Relaxed).ok()?;
            Some(Span { worker, start, end })
        };
        chosen.iter().map(claim).collect()
    }
}

impl Share {
    /// The workers of a type, or those of any type if the smallest `(clock, worker)` of both is there.
    #[inline]
    fn tree(&mut self, own: WorkerType) -> &mut Tree {
        let any = self.workers[WorkerType::Any as usize].smallest();
        let kind = match (self.workers[own as usize].smallest(), any) {
            (Some(a), Some(b)) if b < a => WorkerType::Any,
            (None, _) => WorkerType::Any,
            _ => own,
        };
        &mut self.workers[kind as usize]
    }

    /// The smallest clock of all its workers.
    pub(super) fn clock(&self) -> u64 {
        self.workers.iter().filter_map(Tree::smallest).map(|(clock, _)| clock).min().unwrap_or(0)
    }
}

impl Tree {
    fn new(workers: impl Iterator<Item = u32>, step: u32) -> Tree {
        let workers: Vec<u32> = workers.collect();
        let Some(&first) = workers.first() else { return Tree { first: 0, step, nodes: Box::default() } };
        let half = workers.len().next_power_of_two();
        let mut nodes = vec![u128::MAX; 2 * half];
        for nth in 0..workers.len() {
            nodes[half + nth] = nth as u128;
        }
        for node in (1..half).rev() {
            nodes[node] = nodes[2 * node].min(nodes[2 * node + 1]);
        }
        Tree { first, step, nodes: nodes.into() }
    }

    /// The smallest `(clock, worker)`.
    #[inline]
    fn smallest(&self) -> Option<(u64, u32)> {
        let root = *self.nodes.get(1)?;
        Some(((root >> 32) as u64, self.first + root as u32 * self.step))
    }

    /// Gives the worker with the smallest clock another one.
    #[inline]
    fn move_on(&mut self, clock: u64) {
        let nth = self.nodes[1] as u32;
        let mut smaller = u128::from(clock) << 32 | u128::from(nth);
        let mut node = self.nodes.len() / 2 + nth as usize;
        self.nodes[node] = smaller;
        while node > 1 {
            smaller = smaller.min(self.nodes[node ^ 1]);
            node /= 2;
            self.nodes[node] = smaller;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn machine() -> Clocks {
        Clocks::new(&Workers { cube: 2, vector: 3, ..Workers::default() })
    }

    #[test]
    fn the_worker_with_the_smallest_clock_is_taken_and_no_cycle_twice() {
        let clocks = machine();
        let (mut one, mut other) = (clocks.share(0, 1), clocks.share(0, 1));
        let spans = [
            clocks.take(&mut one, TaskType::Cube, 0, 10),
            clocks.take(&mut other, TaskType::Cube, 5, 10),
            clocks.take(&mut one, TaskType::Cube, 0, 10),
        ];
        assert_eq!(spans[0], Span { worker: 0, start: 0, end: 10 });
        assert_eq!(spans[1], Span { worker: 1, start: 5, end: 15 });
        assert_eq!(spans[2], Span { worker: 0, start: 10, end: 20 });
    }

    /// Any number of workers, in shares of one and of three threads, against a look at all of them.
    #[test]
    fn a_tree_always_knows_the_smallest_clock() {
        for (n_workers, step) in [(1, 1), (2, 1), (3, 1), (16, 1), (24, 3), (25, 3), (48, 1)] {
            let mut clocks: Vec<(u64, u32)> = (1..n_workers).step_by(step).map(|worker| (0, worker)).collect();
            let mut tree = Tree::new((1..n_workers).step_by(step), step as u32);
            for round in 0..500_u64 {
                let smallest = clocks.iter_mut().min();
                assert_eq!(tree.smallest(), smallest.as_deref().copied(), "{n_workers} workers, round {round}");
                if let Some(smallest) = smallest {
                    smallest.0 += round * 7919 % 31;
                    tree.move_on(smallest.0);
                }
            }
        }
    }

    #[test]
    fn blocks_taken_together_start_together() {
        let clocks = machine();
        let mut share = clocks.share(0, 1);
        clocks.take(&mut share, TaskType::Vector, 0, 7);
        let spans = clocks.take_together(TaskType::Vector, 3, 0, 5);
        assert!(spans.iter().all(|span| span.start == 7), "{spans:?}");
        assert_eq!(clocks.take(&mut share, TaskType::Vector, 0, 1).start, 12, "the share learns of it");
    }

    #[test]
    fn a_mix_block_takes_one_cluster() {
        let clocks = Clocks::new(&Workers { clusters: 2, ..Workers::default() });
        let mut share = clocks.share(0, 1);
        clocks.take(&mut share, TaskType::Cube, 0, 9);
        let blocks = clocks.take_mix(Units::default(), 1, 0, Cycles { cube: 3, vector: 4 });
        let spans: Vec<_> = blocks[0].iter().map(|span| (span.worker, span.start, span.end)).collect();
        assert_eq!(spans, [(1, 0, 3), (4, 0, 4), (5, 0, 4)]);
    }
}

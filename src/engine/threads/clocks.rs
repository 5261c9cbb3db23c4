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
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
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
    workers: [BinaryHeap<Reverse<(u64, u32)>>; 5],
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
            ids.skip(if step == 1 { 0 } else { nth }).step_by(step).map(|id| Reverse((0, id))).collect()
        });
        Share { workers }
    }

    /// Takes the cycles of a block on the worker of the share with the smallest clock.
    #[inline]
    pub(super) fn take(&self, share: &mut Share, kind: TaskType, ready: u64, cycles: u64) -> Span {
        let own = own_type(kind).expect("only MIX and NONE have no type of their own");
        loop {
            let mut top = share.smallest(own);
            let Reverse((seen, worker)) = *top;
            let start = ready.max(seen);
            let end = start.saturating_add(cycles);
            // Ordering: Relaxed; the clock carries no data.
            match self.words[worker as usize].compare_exchange(seen, end, Relaxed, Relaxed) {
                Ok(_) => {
                    *top = Reverse((end, worker));
                    return Span { worker, start, end };
                }
                Err(found) => *top = Reverse((found, worker)),
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
    /// The worker with the smallest `(clock, id)` among those of a type and those of any type.
    #[inline]
    fn smallest(&mut self, own: WorkerType) -> PeekMut<'_, Reverse<(u64, u32)>> {
        let any = self.workers[WorkerType::Any as usize].peek().map(|top| top.0);
        let own = match (self.workers[own as usize].peek().map(|top| top.0), any) {
            (Some(a), Some(b)) if b < a => WorkerType::Any,
            (None, _) => WorkerType::Any,
            _ => own,
        };
        self.workers[own as usize].peek_mut().expect("a task without workers is refused before the run")
    }

    /// The smallest clock of all its workers.
    pub(super) fn clock(&self) -> u64 {
        self.workers.iter().filter_map(|workers| workers.peek()).map(|top| top.0.0).min().unwrap_or(0)
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

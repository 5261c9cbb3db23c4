//! `predictive`: the READY task with the longest path behind it goes first, of equals the one that more tasks wait for,
//! from costs and dependencies known before the run.

use super::{Candidate, Order};
use crate::config::Machine;
use crate::error::RunError;
use crate::graph::{Producers, Task, n_expected};
use crate::large;
use crate::workload::Workload;

/// Tasks by a rank that was computed from the whole program; the highest goes first.
#[derive(Debug)]
pub struct Ranked<const HEFT: bool> {
    ranks: Vec<u64>,
}

/// The order of the policy `predictive`.
pub type Predictive = Ranked<false>;

/// Bits of a rank that hold the number of consumers; the cycles of the path are above them.
const CONSUMER_BITS: u32 = 16;

/// The longest path that a rank holds.
pub const LONGEST: u64 = u64::MAX >> CONSUMER_BITS;

/// The largest number of consumers that a rank holds.
const MOST_CONSUMERS: u64 = (1 << CONSUMER_BITS) - 1;

/// The rank of a task: cycles of the longest path that begins with it, as many as fit, then the number of its consumers.
#[inline]
#[must_use]
pub fn rank(path: u64, n_consumers: u32) -> u64 {
    path.min(LONGEST) << CONSUMER_BITS | u64::from(n_consumers).min(MOST_CONSUMERS)
}

/// The rank of a task of which every consumer has been noted in `behind`.
#[inline]
pub(super) fn rank_before(cycles: u64, behind: u64) -> u64 {
    rank(cycles.saturating_add(behind >> CONSUMER_BITS), (behind & MOST_CONSUMERS) as u32)
}

/// One more consumer with this rank: the longest path through it, and how many there are.
#[inline]
pub(super) fn note_consumer(behind: &mut u64, rank: u64) {
    let longest = (*behind & !MOST_CONSUMERS).max(rank & !MOST_CONSUMERS);
    *behind = longest | ((*behind & MOST_CONSUMERS) + 1).min(MOST_CONSUMERS);
}

/// The rank of every task.
#[must_use]
pub fn ranks(producers: &Producers, cycles: impl Fn(usize) -> u64) -> Vec<u64> {
    let mut ranks: Vec<u64> = large::zeroed(producers.n_tasks());
    for task in (0..ranks.len()).rev() {
        let own = rank_before(cycles(task), ranks[task]);
        ranks[task] = own;
        producers.of(task).iter().for_each(|&producer| note_consumer(&mut ranks[producer as usize], own));
    }
    ranks
}

impl Predictive {
    /// The order of a program, which is read for it.
    ///
    /// # Errors
    /// When the program cannot be read.
    pub fn read(workload: &dyn Workload, machine: &Machine) -> Result<Predictive, RunError> {
        let mut cycles = Vec::new();
        let (producers, _) = Producers::load(workload, machine, |orchestrator, _| {
            let own = Task::at_hand(orchestrator, 0).cycles();
            large::push_expecting(&mut cycles, own, || n_expected(orchestrator));
        })?;
        Ok(Ranked::new(ranks(&producers, |task| cycles[task])))
    }
}

impl<const HEFT: bool> Ranked<HEFT> {
    /// The order of these ranks, one a task.
    #[must_use]
    pub fn new(ranks: Vec<u64>) -> Self {
        Ranked { ranks }
    }
}

impl<const HEFT: bool> Order for Ranked<HEFT> {
    const NAME: &'static str = if HEFT { "heft" } else { "predictive" };

    #[inline]
    fn key(&mut self, candidate: &Candidate<'_>) -> u64 {
        u64::MAX - self.ranks[candidate.task.0 as usize]
    }
}

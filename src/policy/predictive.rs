//! `predictive`: the READY task with the longest path behind it goes first, of equals the one that more tasks wait for,
//! from costs and dependencies known before the run.

use super::{Candidate, Order};
use crate::config::Machine;
use crate::error::RunError;
use crate::graph::{Producers, Task};
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

/// The rank of every task: cycles of the longest path that begins with it, then the number of its consumers.
#[must_use]
pub fn ranks(producers: &Producers, cycles: &[u64], n_consumers: impl Fn(usize) -> u32) -> Vec<u64> {
    let mut ranks = producers.upward_ranks(0, |task| cycles[task]);
    for (task, rank) in ranks.iter_mut().enumerate() {
        let path = (*rank).min(u64::MAX >> CONSUMER_BITS);
        *rank = path << CONSUMER_BITS | u64::from(n_consumers(task)).min((1 << CONSUMER_BITS) - 1);
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
        let (producers, _) =
            Producers::load(workload, machine, |orchestrator, _| cycles.push(Task::at_hand(orchestrator, 0).cycles()))?;
        let counts = producers.counts();
        Ok(Ranked::new(ranks(&producers, &cycles, |task| counts[task])))
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

//! `predictive`: the READY task with the longest path behind it goes first, from costs known before the run.

use super::{Candidate, Order};
use crate::graph::Graph;

/// Tasks by a rank that was computed from the whole program; the highest goes first.
#[derive(Debug)]
pub struct Ranked<const HEFT: bool> {
    ranks: Vec<u64>,
}

/// The order of the policy `predictive`.
pub type Predictive = Ranked<false>;

/// The rank of every task: cycles of the longest path that begins with it.
#[must_use]
pub fn ranks(graph: &Graph) -> Vec<u64> {
    graph.longest_paths()
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

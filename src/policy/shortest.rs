//! `shortest`: the READY task with the fewest cycles goes first. A yardstick: the best mean wait, not the best makespan.

use super::{Candidate, Order};
use crate::sync::Word;
use std::sync::atomic::Ordering::Relaxed;

/// Fewest cycles first; a MIX block counts with its longer part.
#[derive(Debug, Default)]
pub struct Shortest;

impl Order for Shortest {
    const NAME: &'static str = "shortest";

    #[inline]
    fn key(&mut self, candidate: &Candidate<'_>) -> u64 {
        let job = &candidate.window.slot(candidate.slot).job;
        job.cycles.load(Relaxed).max(job.vector_cycles())
    }
}

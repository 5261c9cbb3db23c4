//! `lifo`: the task that became READY last goes first. A yardstick: what the order of a queue is worth.

use super::{Candidate, Order};

/// Newest first.
#[derive(Debug, Default)]
pub struct Lifo;

impl Order for Lifo {
    const NAME: &'static str = "lifo";

    #[inline]
    fn key(&mut self, candidate: &Candidate<'_>) -> u64 {
        u64::MAX - candidate.arrival
    }
}

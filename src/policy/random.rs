//! `random`: any READY task goes first, by a seed that the report prints. A yardstick: a rule worth its name beats it.

use super::{Candidate, Order};
use serde_json::json;

/// Keys from `SplitMix64`.
#[derive(Debug)]
pub struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    /// The sequence of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        Random { seed, state: seed }
    }
}

impl Order for Random {
    const NAME: &'static str = "random";

    #[inline]
    fn key(&mut self, _candidate: &Candidate<'_>) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn report(&self) -> serde_json::Value {
        json!({ "seed": self.seed })
    }
}

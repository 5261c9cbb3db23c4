//! Faults on purpose, from a seed: what a run must survive, or end with an error. Nothing here is active unless asked for.

use crate::sync::{Shared, Sharing};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Which faults to make, as typed: `slow_worker,lost_wakeup,seed=7`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Inject {
    /// One worker, chosen by the seed, takes 20 µs longer for every block.
    pub slow_worker: bool,
    /// One worker, chosen by the seed, stops for good at its first block: the run ends with an error.
    pub stopped_worker: bool,
    /// One wake-up in eight does not happen.
    pub lost_wakeup: bool,
    /// One completion in 64 is delayed by 50 µs.
    pub delayed_completion: bool,
    /// Scheduler threads pause for 100 µs at one task in 64.
    pub paused_scheduler: bool,
    /// What the choices come from.
    pub seed: u64,
}

/// The names of the faults.
const NAMES: &str = "slow_worker, stopped_worker, lost_wakeup, delayed_completion, paused_scheduler, seed=N";

impl Inject {
    /// Whether any fault is asked for.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self != Inject { seed: self.seed, ..Inject::default() }
    }
}

impl std::str::FromStr for Inject {
    type Err = String;

    fn from_str(text: &str) -> Result<Inject, String> {
        let mut inject = Inject::default();
        for word in text.split(',') {
            match word {
                "slow_worker" => inject.slow_worker = true,
                "stopped_worker" => inject.stopped_worker = true,
                "lost_wakeup" => inject.lost_wakeup = true,
                "delayed_completion" => inject.delayed_completion = true,
                "paused_scheduler" => inject.paused_scheduler = true,
                _ => {
                    let seed = word.strip_prefix("seed=").and_then(|seed| seed.parse().ok());
                    inject.seed = seed.ok_or_else(|| format!("fault `{word}`: must be one of {NAMES}"))?;
                }
            }
        }
        Ok(inject)
    }
}

/// Makes the faults of one run.
pub(super) struct Faults {
    inject: Inject,
    active: bool,
    victim: u32,
    drawn: <Shared as Sharing>::U64,
}

impl Faults {
    pub(super) fn new(inject: Inject, n_workers: u32) -> Faults {
        let victim = (mix(inject.seed) % u64::from(n_workers.max(1))) as u32;
        Faults { inject, active: inject.is_any(), victim, drawn: <Shared as Sharing>::U64::new(0) }
    }

    /// The seed, if any fault is made.
    pub(super) fn seed(&self) -> Option<u64> {
        self.active.then_some(self.inject.seed)
    }

    /// True once in `one_in` times.
    fn strikes(&self, one_in: u64) -> bool {
        // Ordering: Relaxed; any order of the draws will do.
        mix(self.inject.seed ^ mix(self.drawn.fetch_add(1, Relaxed) + 1)).is_multiple_of(one_in)
    }

    #[inline]
    pub(super) fn loses_wake_up(&self) -> bool {
        self.active && self.inject.lost_wakeup && self.strikes(8)
    }

    #[inline]
    pub(super) fn slow_down(&self, worker: u32) {
        if self.active && self.inject.slow_worker && worker == self.victim {
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    /// Whether this worker has stopped.
    #[inline]
    pub(super) fn has_stopped(&self, worker: u32) -> bool {
        self.active && self.inject.stopped_worker && worker == self.victim
    }

    #[inline]
    pub(super) fn delay_completion(&self) {
        if self.active && self.inject.delayed_completion && self.strikes(64) {
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    #[inline]
    pub(super) fn pause_scheduler(&self) {
        if self.active && self.inject.paused_scheduler && self.strikes(64) {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// One step of `SplitMix64`.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_by_name_and_a_wrong_name_is_told() {
        let inject: Inject = "slow_worker,seed=9".parse().expect("known names");
        assert!(inject.slow_worker && inject.seed == 9 && inject.is_any() && !inject.lost_wakeup);
        assert!("slow_wrker".parse::<Inject>().expect_err("a wrong name").contains("slow_worker"));
        assert!(!"seed=3".parse::<Inject>().expect("only a seed").is_any());
    }
}

//! Whether the settings of a machine fit together. Every message names the value and the remedy.

use super::machine::{ConfigError, Machine, Workers};
use crate::id::WorkerType;

/// More workers than any device has; keeps a slip of the finger from filling the host's memory.
const MOST_WORKERS: u64 = 1 << 20;

impl Machine {
    /// Checks the settings; to be called after the last one is made.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_workers(&self.workers)
            .and_then(|()| self.check_limits())
            .and_then(|()| self.check_clocks())
            .map_err(ConfigError::Setting)
    }

    /// What is allowed but worth knowing before reading the report of a run.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let (ready, window) = (self.limits.ready, self.limits.window * u64::from(self.limits.rings));
        if ready < window {
            vec![format!(
                "ready queues of {ready} entries are smaller than the {window} slots of the window and may fill up"
            )]
        } else {
            Vec::new()
        }
    }

    fn check_limits(&self) -> Result<(), String> {
        let limits = &self.limits;
        if !limits.window.is_power_of_two() {
            return Err(wrong_window(limits.window.into()));
        }
        if limits.rings == 0 || limits.rings > 64 {
            return Err(format!("limits.rings = {}: must be from 1 to 64", limits.rings));
        }
        let slots = u128::from(limits.window) * u128::from(limits.rings);
        if slots >= 1 << 31 {
            let most = ((1_u64 << 31) - 1) / u64::from(limits.rings);
            let (window, rings, most) = (limits.window, limits.rings, 1_u64 << most.ilog2());
            return Err(format!(
                "{rings} rings of {window} slots: must be below 2^31 together; try limits.window={most}"
            ));
        }
        if limits.spare >= limits.window {
            let (spare, window, most) = (limits.spare, limits.window, limits.window - 1);
            return Err(format!("limits.spare = {spare} of a window of {window} slots leaves none to use; try {most}"));
        }
        let adaptive = self.rules.adaptive_window;
        if adaptive > 0 && (!adaptive.is_power_of_two() || adaptive > limits.window) {
            let (window, near) = (limits.window, adaptive.checked_next_power_of_two().unwrap_or(limits.window));
            return Err(format!(
                "rules.adaptive_window = {adaptive}: must be a power of two of at most limits.window = {window}; try {}",
                near.min(window)
            ));
        }
        if limits.heap > 1 << 60 {
            return Err(format!("limits.heap = {}: must be at most 2^60 bytes", limits.heap));
        }
        at_least_one("limits.ready", limits.ready)
    }

    fn check_clocks(&self) -> Result<(), String> {
        at_least_one("clock_mhz", self.clock_mhz)
    }
}

/// What to say about a window that is not a power of two.
pub(super) fn wrong_window(slots: i128) -> String {
    let next = u64::try_from(slots.max(1)).ok().and_then(u64::checked_next_power_of_two).unwrap_or(1 << 30);
    format!("window of {slots} slots: must be a power of two; try {}", next.min(1 << 30))
}

fn at_least_one(key: &str, value: u64) -> Result<(), String> {
    if value == 0 { Err(format!("{key} = 0: must be at least 1")) } else { Ok(()) }
}

fn check_workers(workers: &Workers) -> Result<(), String> {
    let Workers { clusters, cube, vector, ai_cpu, accelerator, any } = *workers;
    if clusters > 0 && (cube > 0 || vector > 0) {
        let (key, value) = if cube > 0 { ("cube", cube) } else { ("vector", vector) };
        return Err(format!(
            "workers.{key} = {value} beside workers.clusters = {clusters}: clusters bring their own cube and vector \
             workers; set workers.clusters=0 too, or leave workers.{key} out"
        ));
    }
    let parts = [3 * u64::from(clusters), cube.into(), vector.into(), ai_cpu.into(), accelerator.into(), any.into()];
    match parts.iter().sum::<u64>() {
        0 => Err(format!("no workers: set at least one of workers.clusters, {}", worker_keys().join(", "))),
        total if total > MOST_WORKERS => Err(format!("{total} workers: must be at most {MOST_WORKERS}")),
        _ => Ok(()),
    }
}

fn worker_keys() -> Vec<String> {
    WorkerType::ALL.into_iter().map(|kind| format!("workers.{}", kind.name().to_lowercase())).collect()
}

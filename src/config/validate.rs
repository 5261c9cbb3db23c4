//! Whether the settings of a machine fit together. Every message names the value and the remedy.

use super::machine::{ConfigError, Limits, Machine, Workers};

/// More workers than any device has; keeps a slip of the finger from filling the host's memory.
pub const MOST_WORKERS: u64 = 1 << 20;
/// More threads than any scheduler has; reports give each a line.
const MOST_THREADS: u32 = 1 << 16;
/// Rings are told apart by the bits of a word.
const MOST_RINGS: u32 = 64;
/// What counts workers.
const WORKER_KEYS: [&str; 6] =
    ["workers.clusters", "workers.cube", "workers.vector", "workers.ai_cpu", "workers.accelerator", "workers.any"];

impl Machine {
    /// Checks the settings; to be called after the last one is made.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_workers(&self.workers)
            .and_then(|()| self.check_limits())
            .and_then(|()| self.check_threads())
            .and_then(|()| at_least_one("clock_mhz", self.clock_mhz, Machine::default().clock_mhz))
            .map_err(|(keys, message)| self.refuse(&keys, message))
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

    fn check_limits(&self) -> Result<(), Wrong> {
        let limits = &self.limits;
        if !limits.window.is_power_of_two() {
            return wrong(["limits.window"], wrong_window(limits.window.into()));
        }
        if limits.rings == 0 || limits.rings > MOST_RINGS {
            let (rings, near) = (limits.rings, limits.rings.clamp(1, MOST_RINGS));
            return wrong(
                ["limits.rings"],
                format!("limits.rings = {rings}: must be from 1 to {MOST_RINGS}; try {near}"),
            );
        }
        let slots = u128::from(limits.window) * u128::from(limits.rings);
        if slots >= 1 << 31 {
            let most = ((1_u64 << 31) - 1) / u64::from(limits.rings);
            let (window, rings, most) = (limits.window, limits.rings, 1_u64 << most.ilog2());
            return wrong(
                ["limits.window", "limits.rings"],
                format!("{rings} rings of {window} slots: must be below 2^31 together; try limits.window={most}"),
            );
        }
        if limits.spare >= limits.window {
            let (spare, window, most) = (limits.spare, limits.window, limits.window - 1);
            return wrong(
                ["limits.spare", "limits.window"],
                format!("limits.spare = {spare} of a window of {window} slots leaves none to use; try {most}"),
            );
        }
        self.check_adaptive_window()?;
        if limits.heap > 1 << 60 {
            let message = format!("limits.heap = {}: must be at most 2^60 bytes; try 1TiB", limits.heap);
            return wrong(["limits.heap"], message);
        }
        at_least_one("limits.ready", limits.ready, Limits::default().ready)
    }

    fn check_threads(&self) -> Result<(), Wrong> {
        match self.scheduler.threads {
            threads if threads > MOST_THREADS => wrong(
                ["scheduler.threads"],
                format!("scheduler.threads = {threads}: must be at most {MOST_THREADS}; try {MOST_THREADS}"),
            ),
            _ => Ok(()),
        }
    }

    fn check_adaptive_window(&self) -> Result<(), Wrong> {
        let (adaptive, window) = (self.rules.adaptive_window, self.limits.window);
        if adaptive == 0 || adaptive.is_power_of_two() && adaptive <= window {
            return Ok(());
        }
        let near = adaptive.checked_next_power_of_two().unwrap_or(window).min(window);
        wrong(
            ["rules.adaptive_window", "limits.window"],
            format!(
                "rules.adaptive_window = {adaptive}: must be a power of 2 of at most limits.window = {window}; try {near}"
            ),
        )
    }
}

/// What cannot be used: the keys it is about, the likely culprit first, and the message.
type Wrong = (Vec<&'static str>, String);

fn wrong<const N: usize>(keys: [&'static str; N], message: String) -> Result<(), Wrong> {
    Err((keys.into(), message))
}

/// What to say about a window that is not a power of two.
pub(super) fn wrong_window(slots: i128) -> String {
    let next = u64::try_from(slots.max(1)).ok().and_then(u64::checked_next_power_of_two).unwrap_or(1 << 30);
    format!("limits.window: window of {slots} slots: must be a positive power of 2; try {}", next.min(1 << 30))
}

fn at_least_one(key: &'static str, value: u64, usual: u64) -> Result<(), Wrong> {
    if value == 0 { wrong([key], format!("{key} = 0: must be at least 1; try {usual}")) } else { Ok(()) }
}

fn check_workers(workers: &Workers) -> Result<(), Wrong> {
    let Workers { clusters, cube, vector, ai_cpu, accelerator, any } = *workers;
    if clusters > 0 && (cube > 0 || vector > 0) {
        let (key, value) = if cube > 0 { ("workers.cube", cube) } else { ("workers.vector", vector) };
        return wrong(
            [key, "workers.clusters"],
            format!(
                "{key} = {value} beside workers.clusters = {clusters}: clusters bring their own cube and vector \
                 workers; set workers.clusters=0 too, or leave {key} out"
            ),
        );
    }
    let numbers = [clusters, cube, vector, ai_cpu, accelerator, any].map(u64::from);
    match numbers.iter().sum::<u64>() + 2 * numbers[0] {
        0 => wrong(WORKER_KEYS, format!("no workers: set at least one of {}", WORKER_KEYS.join(", "))),
        total if total > MOST_WORKERS => {
            let (key, _) =
                WORKER_KEYS.into_iter().zip(numbers).max_by_key(|(_, number)| *number).expect("there are some");
            wrong([key], format!("{total} workers: must be at most {MOST_WORKERS}; lower {key}"))
        }
        _ => Ok(()),
    }
}

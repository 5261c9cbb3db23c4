//! A window that adapts itself: it begins small, doubles while the orchestrator waits for slots, and halves when most of them
//! stay unused. `limits.window` is the most it can have.
//!
//! It is looked at once a lap, when as many tasks have retired as it has slots. It doubles if the orchestrator was blocked on
//! the window for more than an eighth of the lap and at most three quarters of the heap are in use, so that more tasks in
//! flight do not turn one wait into another. It halves if no more than a quarter of it was ever in use during the lap.
//! When nothing else can happen it doubles at once, so that it never is the cause of a deadlock.

use crate::config::Machine;
use crate::sync::Local;
use crate::window::Ring;

/// The size in use, and what is known of the present lap.
#[derive(Debug)]
pub(super) struct Adaptive {
    least: u64,
    most: u64,
    heap: u64,
    size: u64,
    largest: u64,
    changes: u64,
    lap: Lap,
}

#[derive(Debug, Default)]
struct Lap {
    began: u64,
    /// Tasks retired when it began.
    retired: u64,
    /// Cycles the orchestrator had been blocked on the window when it began.
    blocked: u64,
    /// Most slots in use at a time.
    peak: u64,
}

impl Adaptive {
    pub(super) fn new(machine: &Machine) -> Option<Adaptive> {
        let (least, limits) = (machine.rules.adaptive_window, &machine.limits);
        let most = limits.window - limits.spare;
        (least > 0).then(|| Adaptive {
            least: least.min(most),
            most,
            heap: limits.heap,
            size: least.min(most),
            largest: least.min(most),
            changes: 0,
            lap: Lap::default(),
        })
    }

    /// Whether a ring has a slot for one more task; `blocked` cycles were spent waiting for slots until `now`.
    pub(super) fn admits(&mut self, ring: &Ring<Local>, now: u64, blocked: u64) -> bool {
        let (used, retired) = (ring.submitted() - ring.retired(), ring.retired());
        self.lap.peak = self.lap.peak.max(used);
        if retired.saturating_sub(self.lap.retired) >= self.size {
            let waited = 8 * (blocked - self.lap.blocked) > now - self.lap.began;
            if waited && ring.heap_used() <= self.heap / 4 * 3 {
                self.grow();
            } else if 4 * self.lap.peak <= self.size && self.size / 2 >= self.least {
                self.size /= 2;
                self.changes += 1;
            }
            self.lap = Lap { began: now, retired, blocked, peak: used };
        }
        used < self.size
    }

    /// Doubles the size; false if it is the largest already.
    pub(super) fn grow(&mut self) -> bool {
        let larger = (self.size * 2).min(self.most);
        let grows = larger > self.size;
        self.size = larger;
        self.largest = self.largest.max(larger);
        self.changes += u64::from(grows);
        grows
    }

    /// A sentence for the report.
    pub(super) fn note(&self) -> String {
        let Adaptive { least, largest, size, changes, .. } = self;
        format!(
            "the window adapted itself {changes} times: {least} slots at first, at most {largest}, {size} at the end"
        )
    }
}

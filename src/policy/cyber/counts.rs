//! What the Cyber policies count, and the form of it in the report.

use super::Cyber;
use super::cpuset::{Class, affinity, parse_cpuset};
use serde_json::{Value, json};

/// Groups that the report lists.
const MAX_ROWS: usize = 1000;

/// What the report counts.
#[derive(Default)]
pub(super) struct Counts {
    /// Activations begun, by home.
    pub activations: Vec<u64>,
    /// Priorities above the highest level.
    pub clamped: u64,
    /// Tasks that ask for a home that does not exist or cannot serve them.
    pub misplaced: u64,
    /// Tasks whose name is that of another live one.
    pub repeated_names: u64,
    /// Tasks placed outside their home.
    pub wide: u64,
    /// Notifications to routines that live.
    pub notified: u64,
    /// Controls that name no live routine.
    pub unknown: u64,
    /// Routines removed.
    pub removed: u64,
    /// Tasks that were never started because of a removal or shutdown.
    pub dropped: u64,
}

impl Cyber {
    /// The counters, homes and thread placement as JSON.
    pub(super) fn counters(&self) -> Value {
        let counts = &self.counts;
        let mut groups: Vec<Value> = self
            .layout
            .homes
            .iter()
            .zip(&counts.activations)
            .map(|(home, activations)| json!({"name": home.name, "workers": home.workers, "activations": activations}))
            .collect();
        groups.truncate(MAX_ROWS);
        let threads: Vec<Value> = self
            .conf
            .threads
            .iter()
            .map(|thread| {
                let cpus = parse_cpuset(&thread.cpuset).unwrap_or_default();
                let sched = Class::new(&thread.policy, i32::try_from(thread.prio).unwrap_or(i32::MAX));
                json!({"name": thread.name, "cpus": affinity("range", &cpus, 0), "sched": sched})
            })
            .collect();
        let process = parse_cpuset(self.conf.process_level_cpuset.as_deref().unwrap_or("")).unwrap_or_default();
        json!({
            "routines": self.routines.created(),
            "routines_high_water": self.routines.len(),
            "groups": groups,
            "task_pool_size": self.layout.pool_size(),
            "clamped": counts.clamped,
            "misplaced": counts.misplaced,
            "repeated_names": counts.repeated_names,
            "wide": counts.wide,
            "notified": counts.notified,
            "unknown_routines": counts.unknown,
            "removed": counts.removed,
            "dropped": counts.dropped,
            "placement": {"process": affinity("range", &process, 0), "processors": self.layout.processors, "threads": threads},
        })
    }
}

//! What the Orleans policy counts besides turns, and the form of it in the report.

use super::Orleans;
use super::run_queue::Group;
use crate::window::SlotRef;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Groups that the report lists; the totals count all.
const MAX_ROWS: usize = 1000;

/// What the report counts besides turns.
#[derive(Default)]
pub(super) struct Counts {
    /// By kind of work item.
    pub kinds: [u64; 6],
    /// Tasks by who asked for them, as far as they say.
    pub callers: BTreeMap<String, u64>,
    /// Tasks without context.
    pub null_tasks: u64,
    /// Tasks longer than the warning length of a turn.
    pub long_running_tasks: u64,
    /// Tasks that waited longer than the warning length of a delay.
    pub long_queue_waits: u64,
    /// Tasks that found more than the soft limit in their group.
    pub soft_limit_warnings: u64,
    /// Tasks run before the rest of their group.
    pub inlined: u64,
    /// Tasks of several workers.
    pub wide: u64,
    /// Cycles of work after tasks.
    pub post_cycles: u64,
    /// Tasks that were never started because of a stop.
    pub dropped: u64,
    /// Of those, the ones that came after the stop.
    pub refused: u64,
    /// Tasks that failed.
    pub failed: u64,
}

impl Counts {
    /// A task that names its caller.
    pub fn asked_by(&mut self, caller: &str) {
        match self.callers.get_mut(caller) {
            Some(count) => *count += 1,
            None => _ = self.callers.insert(caller.to_string(), 1),
        }
    }
}

impl Orleans {
    /// The counters and the groups as JSON.
    pub(super) fn counters(&self) -> Value {
        let counts = &self.counts;
        let [invoke, request, response, closure, resume, task] = counts.kinds;
        let mut report = json!({
            "work_items": {
                "invoke": invoke, "request": request, "response": response,
                "closure": closure, "resume": resume, "task": task,
            },
            "callers": counts.callers,
            "null_tasks": counts.null_tasks,
            "activations": self.queue.groups().len(),
            "long_running_tasks": counts.long_running_tasks,
            "long_queue_waits": counts.long_queue_waits,
            "soft_limit_warnings": counts.soft_limit_warnings,
            "inlined": counts.inlined,
            "wide": counts.wide,
            "post_cycles": counts.post_cycles,
            "dropped": counts.dropped,
            "failed": counts.failed,
            "groups": self.rows(),
        });
        if let (Some(report), Value::Object(turns)) = (report.as_object_mut(), json!(self.queue.turns())) {
            report.extend(turns);
        }
        report
    }

    fn rows(&self) -> Vec<Value> {
        let row = |group: &Group<SlotRef>| {
            let mut row = json!({
                "context": group.name(),
                "system": group.is_system(),
                "state": group.state(),
                "queued": group.n_waiting(),
            });
            if let (Some(row), Value::Object(tally)) = (row.as_object_mut(), json!(group.tally)) {
                row.extend(tally);
            }
            row
        };
        self.queue.groups().iter().take(MAX_ROWS).map(row).collect()
    }
}

//! `per_worker`: every worker has its own ready queue and serves no other; a block joins the queue that is done first.

use super::own_queues::OwnQueues;
use super::{Dropped, Policy, Ready, Stage};
use crate::config::Machine;
use serde_json::json;

/// Own queues.
pub struct PerWorker {
    queues: OwnQueues,
}

impl PerWorker {
    /// Empty queues of a machine.
    #[must_use]
    pub fn new(machine: &Machine) -> PerWorker {
        PerWorker { queues: OwnQueues::new(machine) }
    }
}

impl Policy for PerWorker {
    const READS_SUBMISSIONS: bool = false;
    const INTERFERES: bool = false;

    fn name(&self) -> &'static str {
        "per_worker"
    }

    #[inline]
    fn is_steady(&self) -> bool {
        true
    }

    #[inline]
    fn on_ready(&mut self, ready: Ready, _now: u64) -> Result<(), Dropped> {
        self.queues.book.enter(ready.kind)?;
        self.queues.arrive(ready);
        Ok(())
    }

    #[inline]
    fn dispatch(&mut self, stage: &mut Stage<'_>) {
        while self.queues.dispatch(stage) {}
    }

    fn report(&self) -> serde_json::Value {
        json!({ "longest_queue": self.queues.longest() })
    }

    fn full_events(&self) -> Option<u64> {
        Some(self.queues.book.full_events())
    }
}

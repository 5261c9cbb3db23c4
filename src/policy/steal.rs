//! `steal`: every worker has its own ready queue, and one that has nothing to do takes from the longest.

use super::own_queues::OwnQueues;
use super::{Dropped, Policy, Ready, Stage};
use crate::config::Machine;
use serde_json::json;

/// Own queues with stealing.
pub struct Steal {
    queues: OwnQueues,
    stolen: u64,
}

impl Steal {
    /// Empty queues of a machine.
    #[must_use]
    pub fn new(machine: &Machine) -> Steal {
        Steal { queues: OwnQueues::new(machine), stolen: 0 }
    }
}

impl Policy for Steal {
    const READS_SUBMISSIONS: bool = false;
    const INTERFERES: bool = false;

    fn name(&self) -> &'static str {
        "steal"
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
        loop {
            let may_go_on = self.queues.dispatch(stage);
            self.stolen += self.queues.steal(stage);
            if !may_go_on {
                return;
            }
        }
    }

    fn report(&self) -> serde_json::Value {
        json!({ "longest_queue": self.queues.longest(), "stolen": self.stolen })
    }

    fn full_events(&self) -> Option<u64> {
        Some(self.queues.book.full_events())
    }
}

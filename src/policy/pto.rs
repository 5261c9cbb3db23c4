//! `pto`: one first-in-first-out ready queue per task type; the head goes to the free worker with the smallest clock.

use super::{Dropped, Placement, Policy, QueueLimit, Ready, Stage};
use crate::config::OnReadyFull;
use crate::fifo::Fifo;
use crate::id::TaskType;
use crate::window::SlotRef;

/// When the head of a queue leaves, the task so many places behind it is fetched: one that has waited for long is in no near
/// cache any more.
const AHEAD: usize = 8;

/// The rule of the PTO runtime itself.
pub struct Pto {
    queues: [Fifo<SlotRef>; 5],
    /// Bit k is set when queue k has an entry.
    waiting: u32,
    limit: QueueLimit,
    full_events: u64,
}

impl Pto {
    /// Empty queues.
    #[must_use]
    pub fn new(limit: QueueLimit) -> Pto {
        Pto { queues: Default::default(), waiting: 0, limit, full_events: 0 }
    }
}

impl Policy for Pto {
    const READS_SUBMISSIONS: bool = false;
    const INTERFERES: bool = false;
    const KEEPS_ORDER: bool = true;
    const ASKS_WHO_IS_FREE: bool = false;

    fn name(&self) -> &'static str {
        "pto"
    }

    #[inline]
    fn is_steady(&self) -> bool {
        true
    }

    #[inline]
    fn on_ready(&mut self, ready: Ready, _now: u64) -> Result<(), Dropped> {
        let queue = &mut self.queues[ready.kind as usize];
        if queue.len() as u64 >= self.limit.entries {
            self.full_events += 1;
            if self.limit.when_full == OnReadyFull::Drop {
                return Err(Dropped);
            }
            // A deferred task waits behind the queue and goes in first, which is the order of the queue itself.
        }
        queue.push(ready.slot);
        self.waiting |= 1 << ready.kind as u32;
        Ok(())
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.waiting == 0
    }

    #[inline(always)]
    fn dispatch(&mut self, stage: &mut Stage<'_>) {
        let mut queues = self.waiting;
        while queues != 0 {
            let index = queues.trailing_zeros() as usize;
            queues &= queues - 1;
            let (kind, queue) = (TaskType::ALL[index], &mut self.queues[index]);
            while let Some(&slot) = queue.front() {
                match stage.place_of(slot, kind) {
                    Placement::Nothing => break,
                    Placement::Some => {}
                    Placement::All => {
                        queue.drop_front();
                        if let Some(&next) = queue.get(AHEAD) {
                            stage.window.foresee(next);
                        }
                    }
                }
            }
            if queue.is_empty() {
                self.waiting &= !(1 << index);
            }
        }
    }

    fn full_events(&self) -> Option<u64> {
        Some(self.full_events)
    }
}

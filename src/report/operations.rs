//! How many atomic and queue operations the scheduler of a real device would have done, from the totals of a run.

use super::Report;
use serde::Serialize;

/// Operations by kind. Every count follows from the totals: nothing is counted while the run goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Operations {
    /// Times a completing task takes the lock of its fanout list.
    pub fanout_lock: u64,
    /// Additions to the fanin count of a consumer, one an edge.
    pub fanin_add: u64,
    /// Changes from PENDING to READY.
    pub ready_cas: u64,
    /// Changes from COMPLETED to CONSUMED.
    pub consumed_cas: u64,
    /// Steps of `last_task_alive`.
    pub advance: u64,
    /// Additions to the reference count of a producer, one an edge.
    pub fanout_add: u64,
    /// Tasks put into a ready queue; joints have none.
    pub push: u64,
    /// Tasks taken out of one.
    pub pop: u64,
}

impl Operations {
    /// The operations of a run in virtual time.
    #[must_use]
    pub fn of(report: &Report) -> Operations {
        let ended = &report.ended;
        let (ran, consumed) = (ended.completed + ended.failed, ended.consumed);
        // Every task is admitted once, every block dispatched and completed once; the other jobs complete joints.
        let joints = report.scheduler.jobs.saturating_sub(report.tasks + 2 * report.blocks);
        let queued = ran.saturating_sub(joints);
        Operations {
            fanout_lock: ran,
            fanin_add: report.edges,
            ready_cas: ran + ended.dropped,
            consumed_cas: consumed,
            advance: consumed,
            fanout_add: report.edges,
            push: queued,
            pop: queued,
        }
    }

    /// Names and counts.
    #[must_use]
    pub fn entries(&self) -> [(&'static str, u64); 8] {
        [
            ("fanout_lock", self.fanout_lock),
            ("fanin_add", self.fanin_add),
            ("ready_cas", self.ready_cas),
            ("consumed_cas", self.consumed_cas),
            ("advance", self.advance),
            ("fanout_add", self.fanout_add),
            ("push", self.push),
            ("pop", self.pop),
        ]
    }
}

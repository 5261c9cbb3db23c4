//! Several observers of one run.

use super::{BlockRow, Cause, JobStep, Observer, Phase, Placed, Retired, SchedulerJob};
use crate::id::{TaskId, TaskType, WorkerId};
use crate::sync::Local;
use crate::window::{SlotRef, Window};
use crate::workload::Symbols;

/// Any observers, several or none, so that the engine is compiled once for a policy and not once for every observer. What one
/// of them heeds all are told.
pub struct Watch<'s, 'o>(pub &'s mut [&'o mut dyn Observer]);

/// Passes calls on to all who watch.
macro_rules! pass_on {
    ($($call:ident($($argument:ident: $kind:ty),*);)*) => {
        $(
            #[inline]
            fn $call(&mut self, $($argument: $kind),*) {
                for observer in &mut *self.0 {
                    observer.$call($($argument),*);
                }
            }
        )*
    };
}

impl Observer for Watch<'_, '_> {
    #[inline]
    fn watches(&self) -> bool {
        !self.0.is_empty()
    }

    #[inline]
    fn heeds(&self, step: JobStep) -> bool {
        self.0.iter().any(|observer| observer.heeds(step))
    }

    #[inline]
    fn heeds_ends(&self) -> bool {
        self.0.iter().any(|observer| observer.heeds_ends())
    }

    pass_on! {
        block(row: &BlockRow, names: &Symbols);
        block_ends(leader: WorkerId, now: u64);
        submitted(task: TaskId, slot: SlotRef, window: &Window<Local>, now: u64);
        completed(task: TaskId, now: u64);
        consumed(task: TaskId, now: u64);
        retired(retired: &Retired, now: u64);
        ready(task: TaskId, slot: SlotRef, kind: TaskType, now: u64);
        withdrawn(kind: TaskType, now: u64);
        placed(placed: &Placed<'_>, now: u64);
        job(job: &SchedulerJob, step: JobStep, now: u64);
        job_at_once(job: &SchedulerJob, now: u64);
        started(slot: SlotRef, row: &BlockRow, names: &Symbols);
        orchestrator(phase: Phase, from: u64, now: u64);
        occupied(ring: u32, window: &Window<Local>, now: u64);
        instant_over(window: &Window<Local>, now: u64);
        policy_acts(now: u64);
        child_released(slot: SlotRef, now: u64);
        finished(names: &Symbols, now: u64);
        cancelled(task: TaskId, cause: &Cause<'_>, now: u64);
    }
}

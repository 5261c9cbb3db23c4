//! Readers that share a thread, so that what is written is taken apart once for all of them.

use super::{DoneJob, Names, Needs, Occupancy, Reader, Started, Submitted};
use crate::engine::{BlockRow, JobStep, Phase, Placed, SchedulerJob};
use crate::id::TaskType;
use crate::window::SlotRef;

/// Passes every call on to a reader that may be missing, and to both of two readers.
macro_rules! pass_on {
    ($($call:ident($($argument:ident: $kind:ty),*);)*) => {
        impl<R: Reader> Reader for Option<R> {
            fn needs(&self) -> Needs {
                self.as_ref().map_or(Needs::default(), Reader::needs)
            }

            $(
                #[inline(always)]
                fn $call(&mut self, $($argument: $kind),*) {
                    if let Some(reader) = self {
                        reader.$call($($argument),*);
                    }
                }
            )*
        }

        impl<A: Reader, B: Reader> Reader for (A, B) {
            fn needs(&self) -> Needs {
                self.0.needs().and(self.1.needs())
            }

            $(
                #[inline(always)]
                fn $call(&mut self, $($argument: $kind),*) {
                    self.0.$call($($argument),*);
                    self.1.$call($($argument),*);
                }
            )*
        }
    };
}

pass_on! {
    block(row: &BlockRow, names: &Names);
    submitted(submitted: &Submitted<'_>, now: u64);
    ready(slot: SlotRef, kind: TaskType, now: u64);
    withdrawn(kind: TaskType, now: u64);
    placed(placed: &Placed<'_>, now: u64);
    started(started: &Started, names: &Names, now: u64);
    job(job: &SchedulerJob, step: JobStep, now: u64);
    job_at_once(job: &DoneJob);
    orchestrator(phase: Phase, from: u64, now: u64);
    occupied(ring: u32, occupancy: &Occupancy, now: u64);
    consumed();
    policy_acts();
    child_released(slot: SlotRef, now: u64);
    finished(now: u64);
    turn(names: &Names);
}

//! Tells the observer of a run what happens; nothing of this is computed when nobody watches.

use super::clerk::Duty;
use super::jobs::Job;
use super::mode::Mode;
use super::virtual_time::Sim;
use super::{BlockRow, JobKind, JobStep, Observer, Placed, SchedulerJob};
use crate::id::WorkerId;
use crate::policy::Policy;
use crate::window::SlotRef;
use crate::workload::Symbols;

/// Tells of a block that was placed on one worker and started there at once, one thing after the other.
#[inline]
pub(super) fn step_by_step<O: Observer + ?Sized>(observer: &mut O, slot: SlotRef, row: &BlockRow, names: &Symbols) {
    let (task, kind, crew) = (row.task, row.kind, [row.worker.0]);
    observer.placed(&Placed { slot, task, kind, is_last: true, crew: &crew }, row.start);
    if observer.heeds(JobStep::Done) {
        let job = SchedulerJob { kind: JobKind::Dispatch, slot, task, worker: Some(row.worker) };
        observer.job_at_once(&job, row.start);
    }
    observer.block(row, names);
}

impl<P: Policy, O: Observer, M: Mode> Sim<'_, P, O, M> {
    /// Queues a job for the scheduler, or does it `at_once`.
    #[inline(always)]
    pub(super) fn push(&mut self, job: Job, at_once: bool) {
        if at_once {
            self.count_at_once(job);
            self.effect(job);
        } else {
            self.tell(job, JobStep::Queued);
            if self.is_taken_at_once(job) {
                self.jobs.count();
                self.begin(job);
            } else {
                self.jobs.push(job);
            }
        }
    }

    /// A job that takes effect at once is counted and told.
    #[inline(always)]
    pub(super) fn count_at_once(&mut self, job: Job) {
        self.jobs.count();
        let is_told_later = Self::STARTS_AT_ONCE && matches!(job, Job::Dispatch(_));
        if !is_told_later && self.observer.heeds(JobStep::Done) {
            let told = self.describe(job);
            self.observer.job_at_once(&told, self.now);
        }
    }

    /// Tells the observer how far a job is.
    #[inline]
    pub(super) fn tell(&mut self, job: Job, step: JobStep) {
        if self.observer.heeds(step) {
            let told = self.describe(job);
            self.observer.job(&told, step, self.now);
        }
    }

    /// A job as observers are told of it.
    #[inline]
    pub(super) fn describe(&self, job: Job) -> SchedulerJob {
        let (kind, slot, worker) = match job {
            Job::Admit(slot) => (JobKind::Admit, slot, None),
            Job::Join(slot) => (JobKind::Complete, slot, None),
            Job::Complete(leader) => (JobKind::Complete, self.floor.worker(leader).block.slot, Some(WorkerId(leader))),
            Job::Dispatch(leader) => (JobKind::Dispatch, self.floor.worker(leader).block.slot, Some(WorkerId(leader))),
        };
        SchedulerJob { kind, slot, task: self.window.slot(slot).task(), worker }
    }

    #[inline]
    pub(super) fn tell_placed(&mut self, leader: u32) {
        if self.observer.watches() {
            let block = &self.floor.worker(leader).block;
            let (slot, task) = (block.slot, self.window.slot(block.slot));
            let is_last = M::IS_USUAL || block.index + 1 == task.job.blocks();
            let crew = if M::IS_USUAL { &[leader] } else { block.crew.ids() };
            let placed = Placed { slot, task: task.task(), kind: task.job.kind(), is_last, crew };
            self.observer.placed(&placed, self.now);
        }
    }

    /// The orchestrator takes up another duty, which is due at once, or when something is consumed or never.
    #[inline(always)]
    pub(super) fn turn(&mut self, duty: Duty) {
        let waits = matches!(duty, Duty::Blocked(_) | Duty::Done);
        self.turn_until(duty, if waits { u64::MAX } else { 0 });
    }

    /// The orchestrator takes up another duty, which is due at a cycle.
    #[inline(always)]
    pub(super) fn turn_until(&mut self, duty: Duty, due: u64) {
        let since = self.clerk.since;
        if let Some(phase) = self.clerk.turn(duty, due, self.now)
            && self.observer.watches()
        {
            self.observer.orchestrator(phase, since, self.now);
        }
    }
}

//! The observed critical path: from the last end back to cycle 0, at each step what made it happen then and not earlier.
//!
//! The recorder keeps, for everything that can still lead to something, the chain of steps that led to it. Each cycle from 0 to the
//! makespan lies in exactly one step of the path. Memory grows with the window and the length of the path, not with the run.

use super::blame::{Blame, PathReport, PathStep};
use super::causes::{Activity, Cause, Chains, ROOT, Step, Subject, Via};
use crate::engine::{BlockRow, JobKind, JobStep, Observer, Phase, Placed, SchedulerJob};
use crate::id::{TaskId, TaskType};
use crate::sync::Local;
use crate::window::{SlotRef, Window};
use crate::workload::Symbols;
use std::collections::VecDeque;

/// An observer that finds the critical path of a run.
pub struct PathRecorder {
    chains: Chains,
    /// What is told now is an effect of this; `None` when the policy acts by itself.
    effect: Option<Effect>,
    orchestrator: Cause,
    /// What led to the last consumption.
    consumption: Option<Cause>,
    slots: Vec<SlotCauses>,
    workers: Vec<WorkerCauses>,
    /// Why the block placed last was placed now.
    placement: Cause,
    /// Jobs that wait for a thread, and since when.
    queue: VecDeque<(Cause, u64)>,
    running: Vec<(SchedulerJob, Cause)>,
    /// The block that ends last.
    last: Cause,
    names: Symbols,
}

#[derive(Clone, Copy)]
struct Effect {
    cause: Cause,
    job: Option<SchedulerJob>,
}

#[derive(Clone, Copy)]
struct SlotCauses {
    admitted: Option<Cause>,
    ready: Cause,
}

#[derive(Clone, Copy)]
struct WorkerCauses {
    free: Cause,
    /// The block it leads.
    block: Cause,
    crew: [u32; 3],
    crew_size: usize,
}

impl Default for PathRecorder {
    fn default() -> PathRecorder {
        PathRecorder::new()
    }
}

impl PathRecorder {
    /// Before the run.
    #[must_use]
    pub fn new() -> PathRecorder {
        PathRecorder {
            chains: Chains::new(),
            effect: None,
            orchestrator: ROOT,
            consumption: None,
            slots: Vec::new(),
            workers: Vec::new(),
            placement: ROOT,
            queue: VecDeque::new(),
            running: Vec::new(),
            last: ROOT,
            names: Symbols::default(),
        }
    }

    /// The path after the run, from cycle 0 to the makespan.
    #[must_use]
    pub fn steps(&self) -> Vec<PathStep> {
        let mut because = Blame::Compute;
        let mut steps: Vec<PathStep> = Vec::with_capacity(self.chains.len());
        for (from, step) in self.chains.backwards(self.last) {
            steps.push(told(from, step, because));
            because = match step.via {
                Via::Continues => because,
                Via::Dependency => Blame::Compute,
                Via::Worker => Blame::Worker,
                Via::Full(resource) => Blame::Full(resource),
                Via::Again => Blame::Policy,
            };
        }
        steps.reverse();
        steps
    }

    /// The path in numbers.
    #[must_use]
    pub fn report(&self) -> PathReport {
        PathReport::new(&self.steps(), &self.names)
    }

    /// The path after the run, and the names of tasks and kernels.
    #[must_use]
    pub fn finish(self) -> (Vec<PathStep>, Symbols) {
        (self.steps(), self.names)
    }

    #[inline]
    fn slot(&mut self, slot: SlotRef) -> &mut SlotCauses {
        let index = slot as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, SlotCauses { admitted: None, ready: ROOT });
        }
        &mut self.slots[index]
    }

    #[inline]
    fn worker(&mut self, worker: u32) -> &mut WorkerCauses {
        let index = worker as usize;
        if index >= self.workers.len() {
            let idle = WorkerCauses { free: ROOT, block: ROOT, crew: [0; 3], crew_size: 0 };
            self.workers.resize(index + 1, idle);
        }
        &mut self.workers[index]
    }

    /// What is told next is an effect of `new`, which the caller owns.
    #[inline]
    fn set_effect(&mut self, new: Option<Effect>) {
        if let Some(old) = std::mem::replace(&mut self.effect, new) {
            self.chains.release(old.cause);
        }
    }

    /// The wait of a task from its admission to now, for which `blame` is to blame; the caller owns it.
    fn since_admission(&mut self, slot: SlotRef, blame: Blame, now: u64) -> Option<Cause> {
        let admitted = self.slot(slot).admitted?;
        let admitted = self.chains.hold(admitted);
        Some(self.chains.extend(admitted, Activity::Other(blame), now, Subject::default()))
    }

    /// Why a job is queued; takes over what led to it.
    #[inline]
    fn why_queued(&mut self, job: &SchedulerJob) -> Cause {
        match (job.kind, job.worker) {
            (JobKind::Admit, _) => self.chains.hold(self.orchestrator),
            (JobKind::Dispatch, _) => std::mem::replace(&mut self.placement, ROOT),
            (JobKind::Complete, Some(leader)) => std::mem::replace(&mut self.worker(leader.0).block, ROOT),
            (JobKind::Complete, None) => std::mem::replace(&mut self.slot(job.slot).ready, ROOT),
        }
    }

    #[inline]
    fn begin(&mut self, job: &SchedulerJob, cost: u64, now: u64) {
        let (mut cause, queued) = self.queue.pop_front().expect("a job is queued before it begins");
        let subject = Subject { task: Some(job.task), ..Subject::default() };
        if now > queued {
            cause = self.chains.extend(cause, Activity::Other(Blame::Queue), now, subject);
        }
        if cost > 0 {
            let blame = match job.kind {
                JobKind::Admit => Blame::Admit,
                JobKind::Complete => Blame::Complete,
                JobKind::Dispatch => Blame::Dispatch,
            };
            cause = self.chains.extend(cause, Activity::Other(blame), now.saturating_add(cost), subject);
        }
        self.running.push((*job, cause));
    }

    #[inline]
    fn take_effect(&mut self, job: &SchedulerJob) {
        let running = self.running.iter().position(|(running, _)| running == job);
        let (_, cause) = self.running.swap_remove(running.expect("a job begins before it is done"));
        match (job.kind, job.worker) {
            (JobKind::Admit, _) => {
                let admitted = self.chains.hold(cause);
                if let Some(old) = self.slot(job.slot).admitted.replace(admitted) {
                    self.chains.release(old);
                }
            }
            (JobKind::Complete, Some(leader)) => {
                let WorkerCauses { crew, crew_size, .. } = *self.worker(leader.0);
                for &worker in &crew[..crew_size] {
                    let free = self.chains.hold(cause.via(Via::Worker));
                    let old = std::mem::replace(&mut self.worker(worker).free, free);
                    self.chains.release(old);
                }
            }
            (JobKind::Complete, None) | (JobKind::Dispatch, _) => {}
        }
        self.set_effect(Some(Effect { cause, job: Some(*job) }));
    }
}

/// One step as it is reported.
fn told(from: u64, step: &Step, because: Blame) -> PathStep {
    let Subject { task, worker, name, kernel } = step.subject();
    let (blame, is_kernel) = match step.activity {
        Activity::Run => (because, true),
        Activity::Other(blame) => (blame, false),
    };
    PathStep { from, to: step.to, blame, is_kernel, task, worker, name, kernel }
}

impl Observer for PathRecorder {
    #[inline]
    fn block(&mut self, row: &BlockRow, _names: &Symbols) {
        let Some(Effect { cause, job: Some(job) }) = self.effect else { return };
        let leader = job.worker.map_or(row.worker.0, |leader| leader.0);
        if row.worker.0 == leader {
            let subject =
                Subject { task: Some(row.task), worker: Some(row.worker), name: row.name, kernel: row.kernel };
            let mut cause = self.chains.hold(cause);
            if row.start > self.chains.end(cause) {
                let pickup = Subject { name: None, kernel: None, ..subject };
                cause = self.chains.extend(cause, Activity::Other(Blame::Pickup), row.start, pickup);
            }
            let block = self.chains.extend(cause, Activity::Run, row.end, subject);
            let old = std::mem::replace(&mut self.worker(leader).block, block);
            self.chains.release(old);
        }
        let block = self.worker(leader).block;
        let step = self.chains.last_mut(block);
        if row.end > step.to {
            step.lasts_on(row.worker, row.end);
        }
        if row.end > self.chains.end(self.last) || row.worker.0 == leader && self.chains.end(self.last) == 0 {
            let block = self.chains.hold(block);
            let old = std::mem::replace(&mut self.last, block);
            self.chains.release(old);
        }
    }

    #[inline]
    fn submitted(&mut self, _task: TaskId, slot: SlotRef, _window: &Window<Local>, _now: u64) {
        if let Some(old) = self.slot(slot).admitted.take() {
            self.chains.release(old);
        }
    }

    #[inline]
    fn consumed(&mut self, _task: TaskId, _now: u64) {
        let new = self.effect.map(|effect| self.chains.hold(effect.cause));
        if let Some(old) = std::mem::replace(&mut self.consumption, new) {
            self.chains.release(old);
        }
    }

    #[inline]
    fn ready(&mut self, task: TaskId, slot: SlotRef, _kind: TaskType, now: u64) {
        let cause = match self.effect {
            Some(Effect { cause, job }) => {
                let cause = self.chains.hold(cause);
                match job {
                    Some(job) if job.task != task => cause.via(Via::Dependency),
                    Some(job) if job.kind == JobKind::Complete => cause.via(Via::Again),
                    _ => cause,
                }
            }
            None => self.since_admission(slot, Blame::Policy, now).unwrap_or(ROOT),
        };
        let old = std::mem::replace(&mut self.slot(slot).ready, cause);
        self.chains.release(old);
    }

    #[inline]
    fn placed(&mut self, placed: &Placed<'_>, now: u64) {
        let ready = self.slot(placed.slot).ready;
        let mut chosen = ready;
        if self.chains.end(ready) < now {
            for &worker in placed.crew {
                let free = self.worker(worker).free;
                if self.chains.end(free) > self.chains.end(chosen) {
                    chosen = free;
                }
            }
        }
        chosen = self.chains.hold(chosen);
        if self.chains.end(chosen) < now {
            let subject = Subject { task: Some(placed.task), ..Subject::default() };
            chosen = self.chains.extend(chosen, Activity::Other(Blame::Policy), now, subject);
        }
        self.chains.replace(&mut self.placement, chosen);
        if placed.is_last {
            let ready = std::mem::replace(&mut self.slot(placed.slot).ready, ROOT);
            self.chains.release(ready);
        }
        let leader = self.worker(placed.crew[0]);
        leader.crew[..placed.crew.len()].copy_from_slice(placed.crew);
        leader.crew_size = placed.crew.len();
    }

    #[inline]
    fn job(&mut self, job: &SchedulerJob, step: JobStep, now: u64) {
        match step {
            JobStep::Queued => {
                let cause = self.why_queued(job);
                debug_assert_eq!(self.chains.end(cause), now, "{job:?} is queued by what just happened");
                self.queue.push_back((cause, now));
            }
            JobStep::Begun(cost) => self.begin(job, cost, now),
            JobStep::Done => self.take_effect(job),
        }
    }

    #[inline]
    fn orchestrator(&mut self, phase: Phase, from: u64, now: u64) {
        debug_assert_eq!(self.chains.end(self.orchestrator), from, "the orchestrator is never without a phase");
        let blame = match phase {
            Phase::Working => Blame::Submit,
            Phase::Waiting => Blame::SubmitAt,
            Phase::Blocked(resource) => {
                if let Some(cause) = self.consumption.filter(|&cause| self.chains.end(cause) == now) {
                    let cause = self.chains.hold(cause.via(Via::Full(resource)));
                    self.chains.replace(&mut self.orchestrator, cause);
                    return;
                }
                Blame::Full(resource)
            }
        };
        self.orchestrator = self.chains.extend(self.orchestrator, Activity::Other(blame), now, Subject::default());
    }

    #[inline]
    fn policy_acts(&mut self, _now: u64) {
        self.set_effect(None);
    }

    fn child_released(&mut self, slot: SlotRef, now: u64) {
        let cause = self.since_admission(slot, Blame::Policy, now);
        self.set_effect(cause.map(|cause| Effect { cause, job: None }));
    }

    fn finished(&mut self, names: &Symbols, _now: u64) {
        self.names = names.clone();
    }
}

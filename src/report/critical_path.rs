//! The observed critical path: from the last end back to cycle 0, at each step what made it happen then and not earlier.
//!
//! The recorder keeps, for everything that can still lead to something, the chain of steps that led to it. Each cycle from 0 to the
//! makespan lies in exactly one step of the path. What all chains share is told while the run goes on, so that memory grows with
//! the window and not with the run.

use super::blame::{Blame, PathStep};
use super::causes::{Activity, Cause, Chains, NOTHING, Step, Subject, Via};
use crate::engine::journal::{Names, Needs, Reader, Submitted};
use crate::engine::{BlockRow, JobKind, JobStep, Phase, Placed, SchedulerJob};
use crate::id::{TaskId, TaskType};
use crate::window::SlotRef;
use std::collections::VecDeque;

/// Steps that are kept before the first look for those that all chains share.
const FEW_STEPS: usize = 1 << 16;

/// Takes the steps of a path, from cycle 0 to the makespan.
pub trait Steps: Send + 'static {
    /// The next step.
    fn step(&mut self, step: &PathStep, names: &Names);
}

impl Steps for Vec<PathStep> {
    fn step(&mut self, step: &PathStep, _names: &Names) {
        self.push(*step);
    }
}

/// A reader of a journal that finds the critical path of a run.
pub struct PathRecorder<S> {
    chains: Chains,
    /// What is told now is an effect of this; `None` when the policy acts by itself.
    effect: Option<Effect>,
    orchestrator: Cause,
    /// What led to the last consumption.
    consumption: Cause,
    slots: Vec<SlotCauses>,
    workers: Vec<WorkerCauses>,
    /// Why the block placed last was placed now.
    placement: Cause,
    /// Jobs that wait for a thread, and since when.
    queue: VecDeque<(Cause, u64)>,
    running: Vec<(SchedulerJob, Cause)>,
    /// The block that ends last.
    last: Cause,
    /// Steps kept at which the next look for shared ones pays.
    next_look: usize,
    path: Path<S>,
}

/// The path as far as it is certain.
struct Path<S> {
    steps: S,
    /// The kernel whose blame is not known until something says why it was waited for, and what follows it.
    open: Vec<PathStep>,
}

impl<S: Steps> Path<S> {
    fn add(&mut self, from: u64, step: &Step, names: &Names) {
        match step.via {
            Via::Continues => {}
            Via::Dependency => self.close(Blame::Compute, names),
            Via::Worker => self.close(Blame::Worker, names),
            Via::Full(resource) => self.close(Blame::Full(resource), names),
            Via::Again => self.close(Blame::Policy, names),
        }
        let step = told(from, step);
        if step.is_kernel || !self.open.is_empty() {
            self.open.push(step);
        } else {
            self.steps.step(&step, names);
        }
    }

    /// The kernels that are open were waited for because of this.
    fn close(&mut self, because: Blame, names: &Names) {
        for mut step in self.open.drain(..) {
            if step.is_kernel {
                step.blame = because;
            }
            self.steps.step(&step, names);
        }
    }
}

#[derive(Clone, Copy)]
struct Effect {
    cause: Cause,
    job: Option<SchedulerJob>,
}

#[derive(Clone, Copy)]
struct SlotCauses {
    /// Until it is READY.
    admitted: Cause,
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

impl<S: Steps> PathRecorder<S> {
    /// Before the run; `steps` takes the path.
    #[must_use]
    pub fn new(steps: S) -> PathRecorder<S> {
        let mut chains = Chains::new();
        let orchestrator = chains.root();
        PathRecorder {
            chains,
            effect: None,
            orchestrator,
            consumption: NOTHING,
            slots: Vec::new(),
            workers: Vec::new(),
            placement: NOTHING,
            queue: VecDeque::new(),
            running: Vec::new(),
            last: NOTHING,
            next_look: FEW_STEPS,
            path: Path { steps, open: Vec::new() },
        }
    }

    /// Tells the rest of the path after the run.
    #[must_use]
    pub fn finish(mut self, names: &Names) -> S {
        self.chains.finish(self.last, |from, step| self.path.add(from, step, names));
        self.path.close(Blame::Compute, names);
        self.path.steps
    }

    /// A worker that was free before any waiting task became READY is never what such a task waits for. Forgets why, so that a
    /// worker without work does not keep old chains alive.
    fn forget_idle_workers(&mut self) {
        let ready = self.slots.iter().filter(|slot| !slot.ready.is_nothing()).map(|slot| self.chains.end(slot.ready));
        let oldest = ready.min().unwrap_or(u64::MAX);
        for worker in &mut self.workers {
            if self.chains.end(worker.free) <= oldest {
                self.chains.replace(&mut worker.free, NOTHING);
            }
        }
    }

    #[inline]
    fn slot(&mut self, slot: SlotRef) -> &mut SlotCauses {
        let index = slot as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, SlotCauses { admitted: NOTHING, ready: NOTHING });
        }
        &mut self.slots[index]
    }

    #[inline]
    fn worker(&mut self, worker: u32) -> &mut WorkerCauses {
        let index = worker as usize;
        if index >= self.workers.len() {
            let idle = WorkerCauses { free: NOTHING, block: NOTHING, crew: [0; 3], crew_size: 0 };
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
        let admitted = self.slot(slot).admitted;
        if admitted.is_nothing() {
            return None;
        }
        let admitted = self.chains.hold(admitted);
        Some(self.chains.extend(admitted, Activity::Other(blame), now, Subject::default()))
    }

    /// Why a job is queued; takes over what led to it.
    #[inline]
    fn why_queued(&mut self, job: &SchedulerJob) -> Cause {
        match (job.kind, job.worker) {
            (JobKind::Admit, _) => self.chains.hold(self.orchestrator),
            (JobKind::Dispatch, _) => std::mem::replace(&mut self.placement, NOTHING),
            (JobKind::Complete, Some(leader)) => std::mem::replace(&mut self.worker(leader.0).block, NOTHING),
            (JobKind::Complete, None) => std::mem::replace(&mut self.slot(job.slot).ready, NOTHING),
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

    /// A job that began takes effect.
    #[inline]
    fn end(&mut self, job: &SchedulerJob) {
        let running = self.running.iter().position(|(running, _)| running == job);
        let (_, cause) = self.running.swap_remove(running.expect("a job begins before it is done"));
        self.take_effect(job, cause);
    }

    /// What is told next is an effect of a job; takes over what led to it.
    #[inline]
    fn take_effect(&mut self, job: &SchedulerJob, cause: Cause) {
        match (job.kind, job.worker) {
            (JobKind::Admit, _) => {
                let admitted = self.chains.hold(cause);
                let old = std::mem::replace(&mut self.slot(job.slot).admitted, admitted);
                self.chains.release(old);
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

/// One step as it is reported; what a kernel is to blame for shows later.
fn told(from: u64, step: &Step) -> PathStep {
    let Subject { task, worker, name, kernel } = step.subject();
    let (blame, is_kernel) = match step.activity {
        Activity::Run => (Blame::Compute, true),
        Activity::Other(blame) => (blame, false),
    };
    PathStep { from, to: step.to, blame, is_kernel, task, worker, name, kernel }
}

impl<S: Steps> Reader for PathRecorder<S> {
    fn needs(&self) -> Needs {
        Needs { causes: true, ..Needs::default() }
    }

    #[inline]
    fn block(&mut self, row: &BlockRow, _names: &Names) {
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
    fn submitted(&mut self, submitted: &Submitted<'_>, _now: u64) {
        let old = std::mem::replace(&mut self.slot(submitted.slot).admitted, NOTHING);
        self.chains.release(old);
    }

    #[inline]
    fn consumed(&mut self) {
        let new = self.effect.map_or(NOTHING, |effect| self.chains.hold(effect.cause));
        self.chains.replace(&mut self.consumption, new);
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
            None => self.since_admission(slot, Blame::Policy, now).unwrap_or_else(|| self.chains.root()),
        };
        let old = std::mem::replace(self.slot(slot), SlotCauses { admitted: NOTHING, ready: cause });
        self.chains.release(old.ready);
        self.chains.release(old.admitted);
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
            let ready = std::mem::replace(&mut self.slot(placed.slot).ready, NOTHING);
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
            JobStep::Begun(cost) | JobStep::Joined(cost) => self.begin(job, cost, now),
            JobStep::Done => self.end(job),
        }
    }

    #[inline]
    fn orchestrator(&mut self, phase: Phase, from: u64, now: u64) {
        debug_assert_eq!(self.chains.end(self.orchestrator), from, "the orchestrator is never without a phase");
        let blame = match phase {
            Phase::Working => Blame::Submit,
            Phase::Waiting => Blame::SubmitAt,
            Phase::Blocked(resource) => {
                if !self.consumption.is_nothing() && self.chains.end(self.consumption) == now {
                    let cause = self.chains.hold(self.consumption.via(Via::Full(resource)));
                    self.chains.replace(&mut self.orchestrator, cause);
                    return;
                }
                Blame::Full(resource)
            }
        };
        self.orchestrator = self.chains.extend(self.orchestrator, Activity::Other(blame), now, Subject::default());
    }

    fn child_released(&mut self, slot: SlotRef, now: u64) {
        let cause = self.since_admission(slot, Blame::Policy, now);
        self.set_effect(cause.map(|cause| Effect { cause, job: None }));
    }

    #[inline]
    fn job_at_once(&mut self, job: &SchedulerJob, _now: u64) {
        let cause = self.why_queued(job);
        self.take_effect(job, cause);
    }

    #[inline]
    fn policy_acts(&mut self) {
        self.set_effect(None);
    }

    fn turn(&mut self, names: &Names) {
        if self.chains.len() >= self.next_look {
            self.forget_idle_workers();
            self.chains.settle(self.last, |from, step| self.path.add(from, step, names));
            self.next_look = FEW_STEPS.max(2 * self.chains.len());
        }
    }
}

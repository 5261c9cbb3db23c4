//! The observed critical path: from the last end back to cycle 0, at each step what made it happen then and not earlier.
//!
//! The recorder keeps, for everything that can still lead to something, the chain of steps that led to it. Each cycle from 0 to the
//! makespan lies in exactly one step of the path. What all chains share is told while the run goes on, so that memory grows with
//! the window and not with the run.

use super::blame::{Blame, PathStep};
use super::causes::{Activity, BEGINNING, Cause, Chains, NOTHING, Step, Subject, Via};
use crate::engine::journal::{DoneJob, Names, Needs, Reader, Started, Submitted};
use crate::engine::{BlockRow, JobKind, JobStep, Phase, Placed, SchedulerJob};
use crate::id::TaskType;
use crate::window::SlotRef;
use std::collections::VecDeque;

/// Steps that are kept before the first look for those that nobody needs and those that all chains share.
const FEW_STEPS: usize = 1 << 14;

/// Steps that are kept at most while nobody can take any.
const MANY_STEPS: usize = 1 << 20;

/// Takes the steps of a path, from cycle 0 to the makespan.
pub trait Steps: Send + 'static {
    /// Whether it can take steps without waiting for something else.
    fn is_open(&mut self) -> bool {
        true
    }

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
    keepers: Keepers,
    /// Steps kept at which the next look for others pays.
    next_look: usize,
    /// Whether there may be steps to hand on as soon as somebody takes them.
    is_waiting: bool,
    path: Path<S>,
}

/// Everything that can still lead to something.
struct Keepers {
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
    /// The block that ends last, and when.
    last: Cause,
    last_end: u64,
}

impl Keepers {
    fn each(&mut self, visit: &mut dyn FnMut(&mut Cause)) {
        let Keepers { effect, orchestrator, consumption, slots, workers, placement, queue, running, last, last_end: _ } =
            self;
        [orchestrator, consumption, placement, last].into_iter().for_each(&mut *visit);
        if let Some(effect) = effect {
            visit(&mut effect.cause);
        }
        for slot in slots {
            visit(&mut slot.admitted);
            visit(&mut slot.ready);
        }
        for worker in workers {
            visit(&mut worker.free);
            visit(&mut worker.block);
        }
        queue.iter_mut().for_each(|(cause, _)| visit(cause));
        running.iter_mut().for_each(|(_, cause)| visit(cause));
    }

    /// A worker that was free before any waiting task became READY is never what such a task waits for. Forgets why, so that a
    /// worker without work does not keep old chains alive.
    fn forget_idle_workers(&mut self, chains: &Chains) {
        let ready = self.slots.iter().filter(|slot| !slot.ready.is_nothing()).map(|slot| chains.end(slot.ready));
        let oldest = ready.min().unwrap_or(u64::MAX);
        for worker in &mut self.workers {
            if chains.end(worker.free) <= oldest {
                worker.free = NOTHING;
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

    /// Why a job is queued; what led to it is not kept any longer.
    #[inline(always)]
    fn why_queued(&mut self, job: &DoneJob) -> Cause {
        match (job.kind, job.worker) {
            (JobKind::Admit, _) => self.orchestrator,
            (JobKind::Dispatch, _) => std::mem::replace(&mut self.placement, NOTHING),
            (JobKind::Complete, Some(leader)) => std::mem::replace(&mut self.worker(leader.0).block, NOTHING),
            (JobKind::Complete, None) => std::mem::replace(&mut self.slot(job.slot).ready, NOTHING),
        }
    }

    /// What is told next is an effect of a job.
    #[inline(always)]
    fn take_effect(&mut self, job: &DoneJob, cause: Cause) {
        match (job.kind, job.worker) {
            (JobKind::Admit, _) => self.slot(job.slot).admitted = cause,
            (JobKind::Complete, Some(leader)) => {
                let (leader, free) = (self.worker(leader.0), cause.via(Via::Worker));
                if leader.crew_size == 1 {
                    leader.free = free;
                } else {
                    let WorkerCauses { crew, crew_size, .. } = *leader;
                    crew[..crew_size].iter().for_each(|&worker| self.worker(worker).free = free);
                }
            }
            (JobKind::Complete, None) | (JobKind::Dispatch, _) => {}
        }
        self.effect = Some(Effect { cause, job: Some(*job) });
    }
}

/// The path as far as it is certain.
struct Path<S> {
    steps: S,
    /// The kernel whose blame is not known until something says why it was waited for, and what follows it.
    open: Vec<Step>,
}

impl<S: Steps> Path<S> {
    #[inline]
    fn add(&mut self, step: &Step, names: &Names) {
        match step.via() {
            Via::Continues => {}
            Via::Dependency => self.close(Blame::Compute, names),
            Via::Worker => self.close(Blame::Worker, names),
            Via::Full(resource) => self.close(Blame::Full(resource), names),
            Via::Again => self.close(Blame::Policy, names),
        }
        if let (Activity::Other(blame), true) = (step.activity(), self.open.is_empty()) {
            self.steps.step(&told(step, blame, false), names);
        } else {
            self.open.push(*step);
        }
    }

    /// The kernels that are open were waited for because of this.
    fn close(&mut self, because: Blame, names: &Names) {
        for step in &self.open {
            let (blame, is_kernel) = match step.activity() {
                Activity::Run => (because, true),
                Activity::Other(blame) => (blame, false),
            };
            self.steps.step(&told(step, blame, is_kernel), names);
        }
        self.open.clear();
    }
}

#[derive(Clone, Copy)]
struct Effect {
    cause: Cause,
    job: Option<DoneJob>,
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
        let keepers = Keepers {
            effect: None,
            orchestrator: BEGINNING,
            consumption: NOTHING,
            slots: Vec::new(),
            workers: Vec::new(),
            placement: NOTHING,
            queue: VecDeque::new(),
            running: Vec::new(),
            last: NOTHING,
            last_end: 0,
        };
        let path = Path { steps, open: Vec::new() };
        PathRecorder { chains: Chains::new(), keepers, next_look: FEW_STEPS, is_waiting: false, path }
    }

    /// Tells the rest of the path after the run.
    #[must_use]
    pub fn finish(mut self, names: &Names) -> S {
        self.chains.finish(self.keepers.last, |step| self.path.add(step, names));
        self.path.close(Blame::Compute, names);
        self.path.steps
    }

    /// The wait of a task from its admission to now, for which `blame` is to blame.
    fn since_admission(&mut self, slot: SlotRef, blame: Blame, now: u64) -> Option<Cause> {
        let admitted = self.keepers.slot(slot).admitted;
        (!admitted.is_nothing()).then(|| self.chains.extend(admitted, Activity::Other(blame), now, Subject::default()))
    }

    /// Why a block is placed now and not earlier; what led to its task is not kept any longer than for its last block.
    #[inline(always)]
    fn why_placed(&mut self, placed: &Placed<'_>, now: u64) -> Cause {
        let ready = &mut self.keepers.slot(placed.slot).ready;
        let mut chosen = *ready;
        if placed.is_last {
            *ready = NOTHING;
        }
        let mut end = self.chains.end(chosen);
        if end < now {
            for &worker in placed.crew {
                let free = self.keepers.worker(worker).free;
                if self.chains.end(free) > end {
                    (chosen, end) = (free, self.chains.end(free));
                }
            }
        }
        if end < now {
            let subject = Subject { task: Some(placed.task), ..Subject::default() };
            chosen = self.chains.extend(chosen, Activity::Other(Blame::Policy), now, subject);
        }
        chosen
    }

    /// A block started at once, and the job that dispatches it is not told.
    #[cold]
    fn started_alone(&mut self, started: Started, names: &Names, now: u64) {
        let Started { slot, is_last, row, .. } = started;
        let (task, kind, crew) = (row.task, row.kind, [row.worker.0]);
        self.placed(&Placed { slot, task, kind, is_last, crew: &crew }, now);
        self.block(&row, names);
    }

    #[inline]
    fn begin(&mut self, job: &SchedulerJob, cost: u64, now: u64) {
        let (mut cause, queued) = self.keepers.queue.pop_front().expect("a job is queued before it begins");
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
        self.keepers.running.push((*job, cause));
    }

    /// A job that began takes effect.
    #[inline]
    fn end(&mut self, job: &SchedulerJob) {
        let running = self.keepers.running.iter().position(|(running, _)| running == job);
        let (_, cause) = self.keepers.running.swap_remove(running.expect("a job begins before it is done"));
        self.keepers.take_effect(&job.into(), cause);
    }
}

/// One step as it is reported.
#[inline(always)]
fn told(step: &Step, blame: Blame, is_kernel: bool) -> PathStep {
    let (from, to, Subject { task, worker, name, kernel }) = (step.from, step.to(), step.subject());
    PathStep { from, to, blame, is_kernel, task, worker, name, kernel }
}

impl<S: Steps> Reader for PathRecorder<S> {
    fn needs(&self) -> Needs {
        Needs { causes: true, ..Needs::default() }
    }

    #[inline]
    fn block(&mut self, row: &BlockRow, _names: &Names) {
        let Some(Effect { mut cause, job: Some(job) }) = self.keepers.effect else { return };
        let leader = job.worker.map_or(row.worker.0, |leader| leader.0);
        if row.worker.0 == leader {
            let subject =
                Subject { task: Some(row.task), worker: Some(row.worker), name: row.name, kernel: row.kernel };
            if row.start > self.chains.end(cause) {
                let pickup = Subject { name: None, kernel: None, ..subject };
                cause = self.chains.extend(cause, Activity::Other(Blame::Pickup), row.start, pickup);
            }
            self.keepers.worker(leader).block = self.chains.extend(cause, Activity::Run, row.end, subject);
        }
        let block = self.keepers.worker(leader).block;
        self.chains.prolong(block, row.worker, row.end);
        let last_end = self.keepers.last_end;
        if row.end > last_end || row.worker.0 == leader && last_end == 0 {
            (self.keepers.last, self.keepers.last_end) = (block, row.end);
        }
    }

    #[inline(always)]
    fn started(&mut self, started: &Started, names: &Names, now: u64) {
        let Started { slot, is_last, is_dispatched, ref row } = *started;
        let (task, kind, worker) = (row.task, row.kind, row.worker);
        let placed = Placed { slot, task, kind, is_last, crew: &[worker.0] };
        if !is_dispatched {
            return self.started_alone(*started, names, now);
        }
        // Nothing comes between the placement of the block, the job that dispatches it and its start.
        let cause = self.why_placed(&placed, now);
        let subject = Subject { task: Some(task), worker: Some(worker), name: row.name, kernel: row.kernel };
        let block = self.chains.extend(cause, Activity::Run, row.end, subject);
        let keepers = &mut self.keepers;
        let leader = keepers.worker(worker.0);
        (leader.crew[0], leader.crew_size, leader.block) = (worker.0, 1, block);
        let job = DoneJob { kind: JobKind::Dispatch, slot, worker: Some(worker) };
        keepers.effect = Some(Effect { cause, job: Some(job) });
        if row.end > keepers.last_end || keepers.last_end == 0 {
            (keepers.last, keepers.last_end) = (block, row.end);
        }
    }

    #[inline]
    fn submitted(&mut self, submitted: &Submitted<'_>, _now: u64) {
        self.keepers.slot(submitted.slot).admitted = NOTHING;
    }

    #[inline]
    fn consumed(&mut self) {
        self.keepers.consumption = self.keepers.effect.map_or(NOTHING, |effect| effect.cause);
    }

    #[inline]
    fn ready(&mut self, slot: SlotRef, _kind: TaskType, now: u64) {
        let ready = match self.keepers.effect {
            Some(Effect { cause, job }) => match job {
                Some(job) if job.slot != slot => cause.via(Via::Dependency),
                Some(job) if job.kind == JobKind::Complete => cause.via(Via::Again),
                _ => cause,
            },
            None => self.since_admission(slot, Blame::Policy, now).unwrap_or(BEGINNING),
        };
        *self.keepers.slot(slot) = SlotCauses { admitted: NOTHING, ready };
    }

    #[inline]
    fn placed(&mut self, placed: &Placed<'_>, now: u64) {
        self.keepers.placement = self.why_placed(placed, now);
        let leader = self.keepers.worker(placed.crew[0]);
        leader.crew_size = placed.crew.len();
        leader.crew.iter_mut().zip(placed.crew).for_each(|(place, &worker)| *place = worker);
    }

    #[inline]
    fn job(&mut self, job: &SchedulerJob, step: JobStep, now: u64) {
        match step {
            JobStep::Queued => {
                let cause = self.keepers.why_queued(&job.into());
                debug_assert_eq!(self.chains.end(cause), now, "{job:?} is queued by what just happened");
                self.keepers.queue.push_back((cause, now));
            }
            JobStep::Begun(cost) | JobStep::Joined(cost) => self.begin(job, cost, now),
            JobStep::Done => self.end(job),
        }
    }

    #[inline]
    fn orchestrator(&mut self, phase: Phase, from: u64, now: u64) {
        let Keepers { orchestrator, consumption, .. } = &mut self.keepers;
        debug_assert_eq!(self.chains.end(*orchestrator), from, "the orchestrator is never without a phase");
        let blame = match phase {
            Phase::Working => Blame::Submit,
            Phase::Waiting => Blame::SubmitAt,
            Phase::Blocked(resource) => {
                if !consumption.is_nothing() && self.chains.end(*consumption) == now {
                    *orchestrator = consumption.via(Via::Full(resource));
                    return;
                }
                Blame::Full(resource)
            }
        };
        *orchestrator = self.chains.extend(*orchestrator, Activity::Other(blame), now, Subject::default());
    }

    fn child_released(&mut self, slot: SlotRef, now: u64) {
        let cause = self.since_admission(slot, Blame::Policy, now);
        self.keepers.effect = cause.map(|cause| Effect { cause, job: None });
    }

    #[inline(always)]
    fn job_at_once(&mut self, job: &DoneJob) {
        let cause = self.keepers.why_queued(job);
        self.keepers.take_effect(job, cause);
    }

    #[inline]
    fn policy_acts(&mut self) {
        self.keepers.effect = None;
    }

    fn turn(&mut self, names: &Names) {
        let n_steps = self.chains.len();
        if n_steps >= self.next_look || self.is_waiting && self.path.steps.is_open() {
            let is_taken = n_steps >= MANY_STEPS || self.path.steps.is_open();
            self.is_waiting = !is_taken;
            self.keepers.forget_idle_workers(&self.chains);
            let hand_on = is_taken.then_some(|step: &Step| self.path.add(step, names));
            self.chains.tidy(&mut self.keepers, Keepers::each, hand_on);
            // What is kept although nobody takes it yet will hardly become less before somebody does.
            let growth = if is_taken || 2 * self.chains.len() < n_steps { 2 } else { 4 };
            self.next_look = FEW_STEPS.max(growth * self.chains.len());
        }
    }
}

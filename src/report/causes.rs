//! Chains of steps, each with the one that led to it; chains that nobody can reach any more are forgotten at once.
//!
//! ```text
//! root ◀─ submit ◀─ run a ◀─ complete ◀─ run b ◀─ …      every step ends where the next begins
//!                     ▲
//!                     └───── run c                         chains share their beginnings
//! ```

use super::blame::Blame;
use crate::id::{Symbol, TaskId, WorkerId};
use crate::window::Resource;

/// What a step consists of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Activity {
    /// A kernel runs.
    Run,
    /// Anything else, which is to blame itself.
    Other(Blame),
}

/// Why what follows a step had to wait for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Via {
    /// The same actor goes on.
    Continues,
    /// A consumer needs the result.
    Dependency,
    /// A task needs the worker.
    Worker,
    /// The orchestrator needs what the task kept.
    Full(Resource),
    /// The policy runs the task again.
    Again,
}

/// The end of a chain, and why the next step waits for it. Whoever keeps one owns a reference to its step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cause {
    step: u32,
    pub(super) via: Via,
}

/// The start of the run, which needs no reference.
pub(super) const ROOT: Cause = Cause { step: 0, via: Via::Continues };

impl Cause {
    /// The same chain for another reason.
    pub(super) fn via(self, via: Via) -> Cause {
        Cause { via, ..self }
    }
}

/// What a step is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Subject {
    pub(super) task: Option<TaskId>,
    pub(super) worker: Option<WorkerId>,
    pub(super) name: Option<Symbol>,
    pub(super) kernel: Option<Symbol>,
}

/// One step of a chain. A long run keeps millions of them, so what it is about takes few bytes; `MAX` stands for nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) to: u64,
    task: u64,
    worker: u32,
    name: u32,
    kernel: u32,
    pub(super) activity: Activity,
    /// Why this step waited for its parent.
    pub(super) via: Via,
    parent: u32,
    /// Keepers and children; 0 when its place is vacant.
    refs: u32,
}

impl Step {
    #[inline]
    fn new(cause: Cause, activity: Activity, to: u64, subject: Subject) -> Step {
        Step {
            to,
            task: subject.task.map_or(u64::MAX, |task| task.0),
            worker: subject.worker.map_or(u32::MAX, |worker| worker.0),
            name: subject.name.map_or(u32::MAX, |name| name.0),
            kernel: subject.kernel.map_or(u32::MAX, |kernel| kernel.0),
            activity,
            via: cause.via,
            parent: cause.step,
            refs: 1,
        }
    }

    /// What it is about.
    pub(super) fn subject(&self) -> Subject {
        let Step { task, worker, name, kernel, .. } = *self;
        Subject {
            task: (task != u64::MAX).then_some(TaskId(task)),
            worker: (worker != u32::MAX).then_some(WorkerId(worker)),
            name: (name != u32::MAX).then_some(Symbol(name)),
            kernel: (kernel != u32::MAX).then_some(Symbol(kernel)),
        }
    }

    /// It happens on another worker, until later.
    #[inline]
    pub(super) fn lasts_on(&mut self, worker: WorkerId, to: u64) {
        self.worker = worker.0;
        self.to = to;
    }
}

/// All steps that can still be reached.
pub(super) struct Chains {
    steps: Vec<Step>,
    vacant: Vec<u32>,
}

impl Chains {
    pub(super) fn new() -> Chains {
        let root = Step { refs: u32::MAX / 2, ..Step::new(ROOT, Activity::Run, 0, Subject::default()) };
        Chains { steps: vec![root], vacant: Vec::new() }
    }

    /// When a chain ends.
    #[inline]
    pub(super) fn end(&self, cause: Cause) -> u64 {
        self.steps[cause.step as usize].to
    }

    /// One more keeper.
    #[inline]
    pub(super) fn hold(&mut self, cause: Cause) -> Cause {
        if cause.step != 0 {
            self.steps[cause.step as usize].refs += 1;
        }
        cause
    }

    /// One keeper less.
    #[inline]
    pub(super) fn release(&mut self, cause: Cause) {
        let mut index = cause.step;
        while index != 0 {
            let step = &mut self.steps[index as usize];
            step.refs -= 1;
            if step.refs > 0 {
                return;
            }
            self.vacant.push(index);
            index = step.parent;
        }
    }

    /// Puts `new`, which the caller owns, into `place`.
    #[inline]
    pub(super) fn replace(&mut self, place: &mut Cause, new: Cause) {
        let old = std::mem::replace(place, new);
        self.release(old);
    }

    /// A chain with one more step up to `to`; takes over the caller's reference.
    #[inline]
    pub(super) fn extend(&mut self, cause: Cause, activity: Activity, to: u64, subject: Subject) -> Cause {
        debug_assert!(self.end(cause) <= to, "a step to {to} begins at {}", self.end(cause));
        let step = Step::new(cause, activity, to, subject);
        let index = if let Some(index) = self.vacant.pop() {
            self.steps[index as usize] = step;
            index
        } else {
            self.steps.push(step);
            u32::try_from(self.steps.len() - 1).expect("fewer than 2^32 steps are alive")
        };
        Cause { step: index, via: Via::Continues }
    }

    /// The last step of a chain.
    #[inline]
    pub(super) fn last_mut(&mut self, cause: Cause) -> &mut Step {
        &mut self.steps[cause.step as usize]
    }

    /// The steps of a chain, the last one first.
    pub(super) fn backwards(&self, cause: Cause) -> impl Iterator<Item = (u64, &Step)> {
        let mut index = cause.step;
        std::iter::from_fn(move || {
            let step = (index != 0).then(|| &self.steps[index as usize])?;
            index = step.parent;
            Some((self.steps[index as usize].to, step))
        })
    }

    /// Steps that are kept.
    pub(super) fn len(&self) -> usize {
        self.steps.len() - 1 - self.vacant.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_keeps_is_forgotten_and_shared_beginnings_stay() {
        let mut chains = Chains::new();
        let grow = |chains: &mut Chains, cause, to| chains.extend(cause, Activity::Run, to, Subject::default());
        let a = grow(&mut chains, ROOT, 5);
        let kept = chains.hold(a);
        let b = grow(&mut chains, a, 9);
        let c = grow(&mut chains, kept, 7);
        assert_eq!((chains.len(), chains.end(b), chains.end(c)), (3, 9, 7));
        chains.release(b);
        assert_eq!(chains.len(), 2);
        assert_eq!(chains.backwards(c).map(|(from, step)| (from, step.to)).collect::<Vec<_>>(), [(5, 7), (0, 5)]);
        chains.release(c);
        assert_eq!(chains.len(), 0);
        assert_eq!(grow(&mut chains, ROOT, 1).step, 1, "vacant places are used again");
    }

    #[test]
    fn a_step_is_small_and_its_subject_comes_back_whole() {
        assert!(size_of::<Step>() <= 40, "{} bytes", size_of::<Step>());
        let whole = Subject {
            task: Some(TaskId(7)),
            worker: Some(WorkerId(0)),
            name: Some(Symbol(3)),
            kernel: Some(Symbol(0)),
        };
        for subject in [Subject::default(), whole, Subject { worker: None, ..whole }] {
            let mut chains = Chains::new();
            let cause = chains.extend(ROOT, Activity::Run, 1, subject);
            assert_eq!(chains.last_mut(cause).subject(), subject);
        }
    }
}

//! Chains of steps, each with the one that led to it; chains that nobody can reach any more are forgotten at once.
//!
//! ```text
//! root ◀─ submit ◀─ run a ◀─ complete ◀─ run b ◀─ …      every step ends where the next begins
//!                     ▲
//!                     └───── run c                         chains share their beginnings
//! ```
//!
//! What all chains share can no longer change. It is handed on now and then and the last step of it becomes the root, so that
//! what is kept is bounded by what is in flight.

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

/// No cause: a place where none is kept.
pub(super) const NOTHING: Cause = Cause { step: u32::MAX, via: Via::Continues };

impl Cause {
    #[inline]
    pub(super) fn is_nothing(self) -> bool {
        self.step == NOTHING.step
    }

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
    /// The last step that all chains share, as far as was looked; before the first one, the start of the run.
    root: u32,
}

impl Chains {
    pub(super) fn new() -> Chains {
        let start = Step { refs: 0, ..Step::new(NOTHING, Activity::Run, 0, Subject::default()) };
        Chains { steps: vec![start], vacant: Vec::new(), root: 0 }
    }

    /// What all chains begin with; the caller owns it.
    pub(super) fn root(&mut self) -> Cause {
        self.hold(Cause { step: self.root, via: Via::Continues })
    }

    /// When a chain ends.
    #[inline]
    pub(super) fn end(&self, cause: Cause) -> u64 {
        if cause.is_nothing() { 0 } else { self.steps[cause.step as usize].to }
    }

    /// One more keeper.
    #[inline]
    pub(super) fn hold(&mut self, cause: Cause) -> Cause {
        if !cause.is_nothing() {
            self.steps[cause.step as usize].refs += 1;
        }
        cause
    }

    /// One keeper less.
    #[inline]
    pub(super) fn release(&mut self, cause: Cause) {
        if cause.is_nothing() {
            return;
        }
        let mut index = cause.step;
        loop {
            let step = &mut self.steps[index as usize];
            step.refs -= 1;
            if step.refs > 0 || index == self.root {
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
        let cause = if cause.is_nothing() { self.root() } else { cause };
        debug_assert!(self.end(cause) <= to, "a step to {to} begins at {}", self.end(cause));
        let step = Step::new(cause, activity, to, subject);
        let index = if let Some(index) = self.vacant.pop() {
            self.steps[index as usize] = step;
            index
        } else {
            self.steps.push(step);
            let index = u32::try_from(self.steps.len() - 1).ok().filter(|&index| index != NOTHING.step);
            index.expect("fewer than 2^32 - 1 steps are alive")
        };
        Cause { step: index, via: Via::Continues }
    }

    /// The last step of a chain.
    #[inline]
    pub(super) fn last_mut(&mut self, cause: Cause) -> &mut Step {
        &mut self.steps[cause.step as usize]
    }

    /// Hands on the steps that all chains share, in order, each with its beginning; `chain` is any of them. Its own last step is
    /// kept, because it may still change.
    pub(super) fn settle(&mut self, chain: Cause, mut hand_on: impl FnMut(u64, &Step)) {
        let steps = self.steps_of(chain);
        for &index in steps.split_last().map_or(&[][..], |(_, before)| before) {
            let root = &mut self.steps[self.root as usize];
            // The step behind the root refers to it; who else does begins there.
            if root.refs > 1 {
                return;
            }
            root.refs = 0;
            let from = root.to;
            self.vacant.push(self.root);
            self.root = index;
            hand_on(from, &self.steps[index as usize]);
        }
    }

    /// Hands on the steps of a chain that were not handed on before.
    pub(super) fn finish(&self, chain: Cause, mut hand_on: impl FnMut(u64, &Step)) {
        let mut from = self.steps[self.root as usize].to;
        for index in self.steps_of(chain) {
            let step = &self.steps[index as usize];
            hand_on(from, step);
            from = step.to;
        }
    }

    /// The steps of a chain behind the root, the first one first.
    fn steps_of(&self, chain: Cause) -> Vec<u32> {
        let mut indices = Vec::new();
        let mut index = if chain.is_nothing() { self.root } else { chain.step };
        while index != self.root {
            indices.push(index);
            index = self.steps[index as usize].parent;
        }
        indices.reverse();
        indices
    }

    /// Steps that are kept.
    pub(super) fn len(&self) -> usize {
        self.steps.len() - self.vacant.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grow(chains: &mut Chains, cause: Cause, to: u64) -> Cause {
        chains.extend(cause, Activity::Run, to, Subject::default())
    }

    fn spans(chains: &Chains, chain: Cause) -> Vec<(u64, u64)> {
        let mut spans = Vec::new();
        chains.finish(chain, |from, step| spans.push((from, step.to)));
        spans
    }

    #[test]
    fn what_nobody_keeps_is_forgotten_and_shared_beginnings_stay() {
        let mut chains = Chains::new();
        let root = chains.root();
        let a = grow(&mut chains, root, 5);
        let kept = chains.hold(a);
        let b = grow(&mut chains, a, 9);
        let c = grow(&mut chains, kept, 7);
        assert_eq!((chains.len(), chains.end(b), chains.end(c)), (4, 9, 7));
        chains.release(b);
        assert_eq!(chains.len(), 3);
        assert_eq!(spans(&chains, c), [(0, 5), (5, 7)]);
        chains.release(c);
        assert_eq!(chains.len(), 1);
        let root = chains.root();
        assert_eq!(grow(&mut chains, root, 1).step, 1, "vacant places are used again");
    }

    #[test]
    fn what_all_share_is_handed_on_and_what_forks_is_kept() {
        let mut chains = Chains::new();
        let root = chains.root();
        let a = grow(&mut chains, root, 5);
        let b = grow(&mut chains, a, 6);
        let fork = chains.hold(b);
        let c = grow(&mut chains, b, 8);
        let other = grow(&mut chains, fork, 9);
        let mut settled = Vec::new();
        chains.settle(c, |from, step| settled.push((from, step.to)));
        assert_eq!(settled, [(0, 5), (5, 6)]);
        assert_eq!((spans(&chains, c), spans(&chains, other)), (vec![(6, 8)], vec![(6, 9)]));
        chains.release(other);
        let d = grow(&mut chains, c, 10);
        chains.settle(d, |from, step| settled.push((from, step.to)));
        assert_eq!(settled, [(0, 5), (5, 6), (6, 8)], "the last step may still change");
        assert_eq!(chains.len(), 2);
    }

    #[test]
    fn who_keeps_the_start_keeps_everything() {
        let mut chains = Chains::new();
        let (root, start) = (chains.root(), chains.root());
        let a = grow(&mut chains, root, 5);
        let b = grow(&mut chains, a, 6);
        chains.settle(b, |from, step| panic!("{from} to {} is not shared", step.to));
        chains.release(start);
        let mut settled = 0;
        chains.settle(b, |_, _| settled += 1);
        assert_eq!(settled, 1);
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
            let root = chains.root();
            let cause = chains.extend(root, Activity::Run, 1, subject);
            assert_eq!(chains.last_mut(cause).subject(), subject);
        }
    }
}

//! Chains of steps, each with the one that led to it; chains that nobody can reach any more are forgotten now and then.
//!
//! ```text
//! root ◀─ submit ◀─ run a ◀─ complete ◀─ run b ◀─ …      every step ends where the next begins
//!                     ▲
//!                     └───── run c                         chains share their beginnings
//! ```
//!
//! Steps are only appended, so that a step stands behind the one that led to it. [`Chains::tidy`] drops what no keeper leads back
//! to. What all chains share can no longer change: it is handed on, and the last step of it becomes the root, so that what is
//! kept is bounded by what is in flight.

use super::blame::Blame;
use crate::id::{Symbol, TaskId, WorkerId};
use crate::large;
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

/// The end of a chain, and why the next step waits for it. [`Chains::tidy`] must be shown all that are kept.
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
        }
    }

    /// What it is about.
    #[inline(always)]
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

/// Place of the last step that all chains share, as far as was looked; before the first look, the start of the run.
const ROOT: u32 = 0;

/// What all chains begin with.
pub(super) const BEGINNING: Cause = Cause { step: ROOT, via: Via::Continues };

/// All steps that can still be reached, and those that came to nothing since the last look.
pub(super) struct Chains {
    steps: Vec<Step>,
    /// Made use of by every look.
    uses: Vec<Use>,
}

/// Who refers to a step.
#[derive(Clone, Copy)]
struct Use {
    /// Keepers and steps that follow it; afterwards its new place.
    count: u32,
    /// A step that follows it, or [`NOTHING`].
    next: u32,
}

impl Chains {
    pub(super) fn new() -> Chains {
        Chains { steps: vec![Step::new(NOTHING, Activity::Run, 0, Subject::default())], uses: Vec::new() }
    }

    /// When a chain ends.
    #[inline]
    pub(super) fn end(&self, cause: Cause) -> u64 {
        if cause.is_nothing() { 0 } else { self.steps[cause.step as usize].to }
    }

    /// A chain with one more step up to `to`.
    #[inline]
    pub(super) fn extend(&mut self, cause: Cause, activity: Activity, to: u64, subject: Subject) -> Cause {
        let cause = if cause.is_nothing() { BEGINNING } else { cause };
        debug_assert!(self.end(cause) <= to, "a step to {to} begins at {}", self.end(cause));
        let index = self.steps.len() as u32;
        assert!(index < NOTHING.step, "fewer than 2^32 - 1 steps are kept");
        large::push(&mut self.steps, Step::new(cause, activity, to, subject));
        Cause { step: index, via: Via::Continues }
    }

    /// The last step of a chain.
    #[inline]
    pub(super) fn last_mut(&mut self, cause: Cause) -> &mut Step {
        &mut self.steps[cause.step as usize]
    }

    /// Drops all steps that no keeper leads back to. Those that all chains share are handed on in order, each with its beginning;
    /// a step that nothing follows yet may still change and is kept. `keepers` shows every cause that is kept, each time alike.
    pub(super) fn tidy<K>(
        &mut self,
        keepers: &mut K,
        each: impl Fn(&mut K, &mut dyn FnMut(&mut Cause)),
        mut hand_on: impl FnMut(u64, &Step),
    ) {
        let Chains { steps, uses } = self;
        large::fill(uses, steps.len(), Use { count: 0, next: NOTHING.step });
        each(keepers, &mut |cause| {
            if !cause.is_nothing() {
                uses[cause.step as usize].count += 1;
            }
        });
        for index in (1..steps.len()).rev() {
            if uses[index].count > 0 {
                let before = &mut uses[steps[index].parent as usize];
                *before = Use { count: before.count + 1, next: index as u32 };
            }
        }
        let mut root = ROOT as usize;
        while let Use { count: 1, next } = uses[root]
            && next != NOTHING.step
            && uses[next as usize].next != NOTHING.step
        {
            hand_on(steps[root].to, &steps[next as usize]);
            uses[root].count = 0;
            root = next as usize;
        }
        close_up(steps, uses, root);
        each(keepers, &mut |cause| {
            if !cause.is_nothing() {
                cause.step = uses[cause.step as usize].count;
            }
        });
    }

    /// Hands on the steps of a chain that were not handed on before.
    pub(super) fn finish(&self, chain: Cause, mut hand_on: impl FnMut(u64, &Step)) {
        let mut indices = Vec::new();
        let mut index = if chain.is_nothing() { ROOT } else { chain.step };
        while index != ROOT {
            indices.push(index);
            index = self.steps[index as usize].parent;
        }
        let mut from = self.steps[ROOT as usize].to;
        for &index in indices.iter().rev() {
            let step = &self.steps[index as usize];
            hand_on(from, step);
            from = step.to;
        }
    }

    /// Steps that are kept, and those that were not looked at yet.
    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }
}

/// Moves the steps in use together, `root` to the front; leaves their new places in `uses`.
fn close_up(steps: &mut Vec<Step>, uses: &mut [Use], root: usize) {
    steps[ROOT as usize] = steps[root];
    uses[root].count = ROOT;
    let mut length = 1;
    for index in root + 1..steps.len() {
        if uses[index].count > 0 {
            let step = steps[index];
            steps[length] = Step { parent: uses[step.parent as usize].count, ..step };
            uses[index].count = length as u32;
            length += 1;
        }
    }
    steps.truncate(length);
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

    /// Tidies up with these keepers; returns what was handed on.
    fn tidy<const N: usize>(chains: &mut Chains, mut kept: [&mut Cause; N]) -> Vec<(u64, u64)> {
        let mut settled = Vec::new();
        let each = |kept: &mut [&mut Cause; N], visit: &mut dyn FnMut(&mut Cause)| {
            kept.iter_mut().for_each(|cause| visit(cause));
        };
        chains.tidy(&mut kept, each, |from, step| settled.push((from, step.to)));
        settled
    }

    #[test]
    fn what_nobody_keeps_is_forgotten_and_shared_beginnings_stay() {
        let mut chains = Chains::new();
        let a = grow(&mut chains, BEGINNING, 5);
        let mut b = grow(&mut chains, a, 9);
        let mut c = grow(&mut chains, a, 7);
        assert_eq!(tidy(&mut chains, [&mut b, &mut c, &mut NOTHING.clone()]), [(0, 5)]);
        assert_eq!((chains.len(), chains.end(b), chains.end(c)), (3, 9, 7));
        assert!(tidy(&mut chains, [&mut c]).is_empty(), "nothing follows it yet");
        assert_eq!((chains.len(), spans(&chains, c)), (2, vec![(5, 7)]));
        assert!(tidy(&mut chains, []).is_empty());
        assert_eq!(chains.len(), 1);
    }

    #[test]
    fn what_all_share_is_handed_on_and_what_forks_is_kept() {
        let mut chains = Chains::new();
        let a = grow(&mut chains, BEGINNING, 5);
        let b = grow(&mut chains, a, 6);
        let mut c = grow(&mut chains, b, 8);
        let mut other = grow(&mut chains, b, 9);
        assert_eq!(tidy(&mut chains, [&mut c, &mut other]), [(0, 5), (5, 6)]);
        assert_eq!((spans(&chains, c), spans(&chains, other)), (vec![(6, 8)], vec![(6, 9)]));
        let mut d = grow(&mut chains, c, 10);
        assert_eq!(tidy(&mut chains, [&mut d]), [(6, 8)], "the last step may still change");
        assert_eq!((chains.len(), spans(&chains, d)), (2, vec![(8, 10)]));
    }

    #[test]
    fn who_keeps_the_start_keeps_everything() {
        let mut chains = Chains::new();
        let mut start = BEGINNING;
        let a = grow(&mut chains, start, 5);
        let mut b = grow(&mut chains, a, 6);
        assert!(tidy(&mut chains, [&mut start, &mut b]).is_empty());
        assert_eq!((chains.len(), spans(&chains, b)), (3, vec![(0, 5), (5, 6)]));
        assert_eq!(tidy(&mut chains, [&mut b]), [(0, 5)]);
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
            let cause = chains.extend(BEGINNING, Activity::Run, 1, subject);
            assert_eq!(chains.last_mut(cause).subject(), subject);
        }
    }
}

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
use crate::window::{NONE, Resource, symbol};

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

impl Activity {
    /// A number below 16.
    #[inline(always)]
    fn number(self) -> u64 {
        match self {
            Activity::Run => Blame::ALL.len() as u64,
            Activity::Other(blame) => blame.index() as u64,
        }
    }

    #[inline(always)]
    fn of_number(number: u64) -> Activity {
        Blame::ALL.get(number as usize).map_or(Activity::Run, |&blame| Activity::Other(blame))
    }
}

impl Via {
    const ALL: [Via; 8] = [
        Via::Continues,
        Via::Dependency,
        Via::Worker,
        Via::Again,
        Via::Full(Resource::Window),
        Via::Full(Resource::Heap),
        Via::Full(Resource::Deps),
        Via::Full(Resource::Tensors),
    ];

    /// Its place in [`Via::ALL`].
    #[inline(always)]
    const fn number(self) -> u8 {
        match self {
            Via::Continues => 0,
            Via::Dependency => 1,
            Via::Worker => 2,
            Via::Again => 3,
            Via::Full(Resource::Window) => 4,
            Via::Full(Resource::Heap) => 5,
            Via::Full(Resource::Deps) => 6,
            Via::Full(Resource::Tensors) => 7,
        }
    }
}

const CONTINUES: u8 = Via::Continues.number();

/// The end of a chain, and why the next step waits for it. [`Chains::tidy`] must be shown all that are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cause {
    step: u32,
    /// Number of a [`Via`].
    via: u8,
}

/// No cause: a place where none is kept.
pub(super) const NOTHING: Cause = Cause { step: u32::MAX, via: CONTINUES };

impl Cause {
    #[inline]
    pub(super) fn is_nothing(self) -> bool {
        self.step == NOTHING.step
    }

    /// The same chain for another reason.
    #[inline(always)]
    pub(super) fn via(self, via: Via) -> Cause {
        Cause { via: via.number(), ..self }
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

/// One step as it is kept. A long run keeps millions of them, so it takes few bytes; its beginning is the end of its parent.
///
/// ```text
/// bits of what: task 36 | worker + 1 21 | activity 4 | via 3
/// ```
#[derive(Clone, Copy, Debug)]
struct Kept {
    to: u64,
    what: u64,
    /// [`NONE`] if there is none.
    kernel: u32,
    parent: u32,
}

/// Tasks a path can name, one less than that: so many would take hours to run.
const N_TASKS: u64 = 1 << 36;
const WORKER: u32 = 36;
/// A machine has at most 2^20 workers.
const WORKERS: u64 = (1 << 21) - 1;
const ACTIVITY: u32 = 57;
const VIA: u32 = 61;

impl Kept {
    #[inline(always)]
    fn new(cause: Cause, activity: Activity, to: u64, subject: Subject) -> Kept {
        let task = subject.task.map_or(N_TASKS - 1, |task| task.0);
        assert!(task < N_TASKS, "so many tasks take hours");
        let what = task | Kept::worker(subject.worker) | activity.number() << ACTIVITY | u64::from(cause.via) << VIA;
        Kept { to, what, kernel: subject.kernel.map_or(NONE, |kernel| kernel.0), parent: cause.step }
    }

    #[inline(always)]
    fn worker(worker: Option<WorkerId>) -> u64 {
        worker.map_or(0, |worker| u64::from(worker.0) + 1) << WORKER
    }
}

/// One step of a chain as it is handed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) from: u64,
    kept: Kept,
    name: u32,
}

impl Step {
    /// Its end.
    #[inline(always)]
    pub(super) fn to(&self) -> u64 {
        self.kept.to
    }

    /// What it consists of.
    #[inline(always)]
    pub(super) fn activity(&self) -> Activity {
        Activity::of_number(self.kept.what >> ACTIVITY & 15)
    }

    /// Why it waited for the one before it.
    #[inline(always)]
    pub(super) fn via(&self) -> Via {
        Via::ALL[(self.kept.what >> VIA) as usize]
    }

    /// What it is about.
    #[inline(always)]
    pub(super) fn subject(&self) -> Subject {
        let Kept { what, kernel, .. } = self.kept;
        let (task, worker) = (what & (N_TASKS - 1), (what >> WORKER & WORKERS) as u32);
        Subject {
            task: (task != N_TASKS - 1).then_some(TaskId(task)),
            worker: worker.checked_sub(1).map(WorkerId),
            name: symbol(self.name),
            kernel: symbol(kernel),
        }
    }
}

/// Place of the last step that all chains share, as far as was looked; before the first look, the start of the run.
const ROOT: u32 = 0;

/// What all chains begin with.
pub(super) const BEGINNING: Cause = Cause { step: ROOT, via: CONTINUES };

/// All steps that can still be reached, and those that came to nothing since the last look.
pub(super) struct Chains {
    steps: Vec<Kept>,
    /// Own names of tasks, by step, or [`NONE`]; most programs have none, and then this is empty.
    names: Vec<u32>,
    /// Made use of by every look: how many keepers and steps refer to a step, and [`FOLLOWED`]; afterwards its new place.
    uses: Vec<u32>,
}

/// Set in the uses of a step that another follows.
const FOLLOWED: u32 = 1 << 31;

impl Chains {
    pub(super) fn new() -> Chains {
        let root = Kept::new(NOTHING, Activity::Run, 0, Subject::default());
        Chains { steps: vec![root], names: Vec::new(), uses: Vec::new() }
    }

    /// When a chain ends.
    #[inline]
    pub(super) fn end(&self, cause: Cause) -> u64 {
        if cause.is_nothing() { 0 } else { self.steps[cause.step as usize].to }
    }

    /// A chain with one more step up to `to`.
    #[inline(always)]
    pub(super) fn extend(&mut self, cause: Cause, activity: Activity, to: u64, subject: Subject) -> Cause {
        let cause = if cause.is_nothing() { BEGINNING } else { cause };
        debug_assert!(self.end(cause) <= to, "a step to {to} begins at {}", self.end(cause));
        let index = self.steps.len() as u32;
        assert!(index < FOLLOWED, "fewer than 2^31 steps are kept");
        large::push(&mut self.steps, Kept::new(cause, activity, to, subject));
        if let Some(name) = subject.name {
            self.names.resize(index as usize, NONE);
            large::push(&mut self.names, name.0);
        }
        Cause { step: index, via: CONTINUES }
    }

    /// The last step of a chain happens on another worker if it lasts longer there.
    #[inline]
    pub(super) fn prolong(&mut self, cause: Cause, worker: WorkerId, to: u64) {
        let step = &mut self.steps[cause.step as usize];
        if to > step.to {
            step.to = to;
            step.what = step.what & !(WORKERS << WORKER) | Kept::worker(Some(worker));
        }
    }

    /// The step at a place behind one that ends at `from`.
    #[inline(always)]
    fn step(&self, index: usize, from: u64) -> Step {
        Step { from, kept: self.steps[index], name: self.names.get(index).copied().unwrap_or(NONE) }
    }

    /// Drops all steps that no keeper leads back to. Those that all chains share are handed on in order, if anybody takes them; a
    /// step that nothing follows yet may still change and is kept. `keepers` shows every cause that is kept, each time alike.
    pub(super) fn tidy<K>(
        &mut self,
        keepers: &mut K,
        each: impl Fn(&mut K, &mut dyn FnMut(&mut Cause)),
        hand_on: Option<impl FnMut(&Step)>,
    ) {
        let Chains { steps, uses, .. } = self;
        large::fill(uses, steps.len(), 0);
        each(keepers, &mut |cause| {
            if !cause.is_nothing() {
                uses[cause.step as usize] += 1;
            }
        });
        for index in (1..steps.len()).rev() {
            if uses[index] > 0 {
                let before = &mut uses[steps[index].parent as usize];
                *before = (*before | FOLLOWED) + 1;
            }
        }
        let root = hand_on.map_or(ROOT, |hand_on| self.hand_on(hand_on));
        self.close_up(root);
        each(keepers, &mut |cause| {
            if !cause.is_nothing() {
                cause.step = self.uses[cause.step as usize];
            }
        });
    }

    /// Hands on what all chains share; returns the last step of it.
    fn hand_on(&self, mut hand_on: impl FnMut(&Step)) -> u32 {
        let (mut root, mut n_uses, mut end) = (ROOT, self.uses[ROOT as usize], self.steps[ROOT as usize].to);
        for (next, (&uses, kept)) in self.uses.iter().zip(&self.steps).enumerate().skip(1) {
            // Only one step follows.
            if n_uses != FOLLOWED + 1 {
                break;
            }
            if uses == 0 || kept.parent != root {
                continue;
            }
            if uses < FOLLOWED {
                break;
            }
            hand_on(&self.step(next, end));
            (root, n_uses, end) = (next as u32, uses, kept.to);
        }
        root
    }

    /// Moves the steps in use together, `root` to the front; leaves their new places in the list of uses.
    fn close_up(&mut self, root: u32) {
        let Chains { steps, names, uses } = self;
        let root = root as usize;
        steps[ROOT as usize] = steps[root];
        uses[root] = ROOT;
        let mut length = 1;
        for index in root + 1..steps.len() {
            if uses[index] > 0 {
                let step = steps[index];
                steps[length] = Kept { parent: uses[step.parent as usize], ..step };
                if length < names.len() {
                    names[length] = names.get(index).copied().unwrap_or(NONE);
                }
                uses[index] = length as u32;
                length += 1;
            }
        }
        steps.truncate(length);
        names.truncate(length);
    }

    /// Hands on the steps of a chain that were not handed on before.
    pub(super) fn finish(&self, chain: Cause, mut hand_on: impl FnMut(&Step)) {
        let mut indices = Vec::new();
        let mut index = if chain.is_nothing() { ROOT } else { chain.step };
        while index != ROOT {
            indices.push(index);
            index = self.steps[index as usize].parent;
        }
        let mut from = self.steps[ROOT as usize].to;
        for &index in indices.iter().rev() {
            let step = self.step(index as usize, from);
            hand_on(&step);
            from = step.to();
        }
    }

    /// Steps that are kept, and those that were not looked at yet.
    pub(super) fn len(&self) -> usize {
        self.steps.len()
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
        chains.finish(chain, |step| spans.push((step.from, step.to())));
        spans
    }

    /// Tidies up with these keepers; returns what was handed on.
    fn tidy<const N: usize>(chains: &mut Chains, mut kept: [&mut Cause; N]) -> Vec<(u64, u64)> {
        let mut settled = Vec::new();
        let each = |kept: &mut [&mut Cause; N], visit: &mut dyn FnMut(&mut Cause)| {
            kept.iter_mut().for_each(|cause| visit(cause));
        };
        chains.tidy(&mut kept, each, Some(|step: &Step| settled.push((step.from, step.to()))));
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
    fn nothing_is_handed_on_while_nobody_takes_it() {
        let mut chains = Chains::new();
        let a = grow(&mut chains, BEGINNING, 5);
        let (mut b, lost) = (grow(&mut chains, a, 6), grow(&mut chains, a, 7));
        assert_eq!(chains.end(lost), 7);
        chains.tidy(&mut b, |b, visit| visit(b), None::<fn(&Step)>);
        assert_eq!((chains.len(), spans(&chains, b)), (3, vec![(0, 5), (5, 6)]));
        assert_eq!(tidy(&mut chains, [&mut b]), [(0, 5)]);
    }

    #[test]
    fn a_step_is_small_and_its_subject_comes_back_whole() {
        assert!(size_of::<Kept>() <= 24, "{} bytes", size_of::<Kept>());
        let whole = Subject {
            task: Some(TaskId(7)),
            worker: Some(WorkerId(0)),
            name: Some(Symbol(3)),
            kernel: Some(Symbol(0)),
        };
        let largest = Subject {
            task: Some(TaskId(N_TASKS - 2)),
            worker: Some(WorkerId(1 << 20)),
            name: Some(Symbol(NONE - 1)),
            kernel: Some(Symbol(NONE - 1)),
        };
        let subjects = [Subject::default(), whole, Subject { worker: None, ..whole }, largest];
        let activities = Blame::ALL.into_iter().map(Activity::Other).chain([Activity::Run]);
        for ((activity, via), subject) in activities.zip(Via::ALL.into_iter().cycle()).zip(subjects.into_iter().cycle())
        {
            let (mut chains, mut told) = (Chains::new(), Vec::new());
            let lost = grow(&mut chains, BEGINNING, 1);
            let mut cause = chains.extend(BEGINNING.via(via), activity, 1, subject);
            cause = chains.extend(cause, Activity::Run, 2, Subject::default());
            assert_eq!(chains.end(lost), 1);
            chains.tidy(&mut cause, |cause, visit| visit(cause), None::<fn(&Step)>);
            chains.finish(cause, |step| told.push((step.activity(), step.via(), step.subject())));
            assert_eq!(told, [(activity, via, subject), (Activity::Run, Via::Continues, Subject::default())]);
        }
    }

    #[test]
    fn a_step_that_lasts_longer_on_another_worker_is_told_there() {
        let (mut chains, mut told) = (Chains::new(), Vec::new());
        let subject = Subject { worker: Some(WorkerId(4)), ..Subject::default() };
        let cause = chains.extend(BEGINNING, Activity::Run, 5, subject);
        [(7, 6), (8, 5)].into_iter().for_each(|(worker, to)| chains.prolong(cause, WorkerId(worker), to));
        chains.finish(cause, |step| told.push((step.to(), step.subject().worker)));
        assert_eq!(told, [(6, Some(WorkerId(7)))]);
    }
}

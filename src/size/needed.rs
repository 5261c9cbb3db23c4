//! The sizes with which a run that got stuck finishes.
//!
//! Whatever lacks is enlarged until the run finishes. Then every size that must change is searched from what scopes hold
//! upwards, so that the first with which the run finishes is the smallest. More is not always better: a larger heap has its
//! gaps elsewhere, a larger pool lets tasks start in another order.

use super::smallest::Searcher;
use super::trial::{Halt, Trial, Trials};
use super::{Kind, Request};
use crate::check::Holding;
use crate::config::{Limits, Machine};
use crate::engine::RunError;
use crate::graph::{Graph, count_tasks};
use crate::policy::Choice;
use crate::report::Deadlock;
use crate::workload::{Program, Workload};
use std::sync::atomic::AtomicBool;

/// Tasks run while sizes are tried in order. A budget of tasks and not of time: the answer is the same on every host.
const MOST_TASKS: u64 = 30_000_000;
/// What a run costs beside its tasks, in tasks.
const TASKS_PER_RUN: u64 = 1_000;
/// Heaps that are ruled out between two runs before the next is simply run.
const MOST_RULED_OUT: u64 = 16;
/// A program with more tasks is not held in memory, and what its scopes hold is not known.
const MOST_IN_MEMORY: u64 = 250_000;

/// Fills in the sizes with which the run that ended in `deadlock` finishes: each is the smallest with the others in place.
/// None when no larger size helps.
///
/// # Errors
/// When the workload cannot be read again.
pub fn fill_needed(
    deadlock: &mut Deadlock,
    workload: &dyn Workload,
    machine: &Machine,
    choice: &Choice,
) -> Result<(), RunError> {
    let Some(kind) = Kind::named(&deadlock.resource) else { return Ok(()) };
    let n_tasks = count_tasks(workload)?;
    let (program, holding) = if n_tasks > MOST_IN_MEMORY {
        (None, Holding::default())
    } else {
        let program = Program::load(workload)?;
        let holding = Holding::of(&program, &Graph::load(&program, machine)?, machine)?;
        (Some(program), holding)
    };
    let stop = AtomicBool::new(false);
    let request = Request { choice, within: 0.0, stop: &stop, progress: &|_, _| () };
    let workload = program.as_ref().map_or(workload, |program| program);
    let trials = Trials::new(workload, machine, &request).until_submitted(n_tasks);
    trials.know_stuck(&machine.limits, kind);
    let most_in_order = if program.is_some() { MOST_TASKS / (n_tasks + TASKS_PER_RUN) } else { 0 };
    let searcher = Searcher {
        trials: &trials,
        holding: &holding,
        spare: machine.limits.spare,
        most_in_order: most_in_order as usize,
        most_ruled_out: MOST_RULED_OUT,
    };
    match searcher.needed(kind, &machine.limits) {
        Ok((limits, is_smallest)) => {
            let changed = Kind::ALL.into_iter().filter(|kind| kind.value(&limits) != kind.value(&machine.limits));
            deadlock.needed = changed.map(|kind| (kind.key().to_string(), kind.value(&limits))).collect();
            deadlock.is_smallest = is_smallest;
            Ok(())
        }
        Err(Halt::Failed(error)) => Err(error),
        Err(Halt::Stopped) => Ok(()),
    }
}

impl Searcher<'_> {
    /// Sizes with which a run finishes that is stuck on `kind` with those `given`, and whether each is the smallest with the
    /// others in place; those given when no larger size helps.
    fn needed(&self, kind: Kind, given: &Limits) -> Result<(Limits, bool), Halt> {
        let Some((mut limits, raised)) = self.raise(kind, given)? else { return Ok((given.clone(), false)) };
        // Making one smaller can make less of another enough, so go round until nothing changes. That ends: a size given
        // that is enough stays, and all others shrink.
        loop {
            let (before, mut is_smallest) = (limits.clone(), true);
            for &kind in &raised {
                let unchanged = kind.with(&limits, kind.value(given));
                if self.trials.run(&unchanged)?.makespan().is_some() {
                    limits = unchanged;
                    continue;
                }
                let (size, is_proven) = self.least_from(kind, &limits, kind.value(given))?;
                is_smallest &= is_proven;
                limits = kind.with(&limits, size);
            }
            if raised.len() == 1 || limits == before {
                return Ok((limits, is_smallest));
            }
        }
    }

    /// Enlarges whatever lacks until the run finishes; the sizes and what was enlarged, if that is possible.
    fn raise(&self, first: Kind, given: &Limits) -> Result<Option<(Limits, Vec<Kind>)>, Halt> {
        let (mut limits, mut raised, mut lacks) = (given.clone(), Vec::new(), Some(first));
        loop {
            let Some(kind) = lacks.filter(|kind| kind.can_grow(&limits)) else { return Ok(None) };
            let (size, bound) = (kind.value(&limits), self.lower_bound(kind, 0));
            let larger = if size < bound { bound } else { self.scale(kind).round_up(kind.larger(size)) };
            limits = kind.with(&limits, larger);
            if !raised.contains(&kind) {
                raised.push(kind);
            }
            match self.trials.run(&limits)? {
                Trial::Completes(_) => return Ok(Some((limits, raised))),
                Trial::Stuck(now, _) => lacks = now,
            }
        }
    }

    /// The smallest size with which the run finishes, the others being `others`, with which it does, and whether all smaller
    /// ones are known not to do. With nothing known about the program it is a size near the one given, which does not do.
    fn least_from(&self, kind: Kind, others: &Limits, given: u64) -> Result<(u64, bool), Halt> {
        if self.most_in_order > 0 {
            return self.least(kind, others);
        }
        Ok((self.leap(kind, others, self.scale(kind).round_down(given))?, false))
    }
}

impl Kind {
    /// A much larger size to try.
    fn larger(self, size: u64) -> u64 {
        match self {
            Kind::Window => size * 2,
            Kind::Heap | Kind::Deps | Kind::Tensors => size.saturating_mul(4).max(64),
        }
    }

    /// Whether a larger size makes sense at all.
    fn can_grow(self, limits: &Limits) -> bool {
        match self {
            Kind::Window => limits.window * u64::from(limits.rings) < 1 << 30,
            Kind::Heap => limits.heap < 1 << 60,
            Kind::Deps | Kind::Tensors => self.value(limits) < 1 << 30,
        }
    }
}

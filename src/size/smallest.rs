//! The search for the smallest size that completes.

use super::kind::Scale;
use super::trial::{Halt, Trial, Trials};
use super::{Kind, Proven};
use crate::check::{Holding, Tail};
use crate::config::Limits;

/// Sizes tried at the same time while looking for the first that completes.
const AT_ONCE: usize = 8;

/// What a search works with.
pub(super) struct Searcher<'a> {
    pub(super) trials: &'a Trials<'a>,
    pub(super) holding: &'a Holding,
    /// Slots of a window that stay unused.
    pub(super) spare: u64,
    /// Sizes tried one after the other before the search takes larger steps.
    pub(super) most_in_order: usize,
    /// Heaps ruled out by what scopes hold before one is simply run.
    pub(super) most_ruled_out: u64,
}

impl Searcher<'_> {
    pub(super) fn scale(&self, kind: Kind) -> Scale {
        Scale::new(kind, self.holding.heap_step(), self.spare)
    }

    /// The smallest size that what scopes hold does not rule out.
    pub(super) fn lower_bound(&self, kind: Kind, from: u64) -> u64 {
        let moments = self.holding.moments.iter();
        let spare = self.spare;
        let least = match kind {
            Kind::Window => moments.map(|moment| moment.slots).max().map_or(1, |slots| slots + spare).max(spare + 1),
            Kind::Deps => moments.map(|moment| moment.deps).max().unwrap_or(0),
            Kind::Tensors => moments.map(|moment| moment.tensors).max().unwrap_or(0),
            Kind::Heap if self.holding.allocations.iter().all(Vec::is_empty) => 0,
            Kind::Heap => {
                let largest = self.holding.allocations.iter().flatten().map(|allocation| allocation.bytes).max();
                let from = from.max(largest.unwrap_or(0));
                return self.holding.smallest_heap(from, Tail::AtOldest, self.most_ruled_out);
            }
        };
        self.scale(kind).round_up(least).max(from)
    }

    /// The smallest size with which the run completes, the others being `others`, with which it does.
    pub(super) fn smallest(&self, kind: Kind, others: &Limits) -> Result<Proven, Halt> {
        let (size, is_proven) = self.least(kind, others)?;
        self.proven(kind, others, size, is_proven)
    }

    /// The same size, and whether no smaller one completes.
    pub(super) fn least(&self, kind: Kind, others: &Limits) -> Result<(u64, bool), Halt> {
        let (scale, enough) = (self.scale(kind), kind.value(others));
        let mut next = self.lower_bound(kind, 0);
        let mut tried = 0;
        while tried < self.most_in_order && next < enough {
            let mut sizes = Vec::with_capacity(AT_ONCE);
            while sizes.len() < AT_ONCE && next < enough {
                sizes.push(next);
                next = self.lower_bound(kind, scale.above(next));
            }
            // The first is most often the answer, so the others wait for it.
            let batch = if tried == 0 { &sizes[..1] } else { &sizes[..] };
            let trials = self.trials.at(kind, others, batch)?;
            if let Some(first) = trials.iter().position(|trial| trial.makespan().is_some()) {
                return Ok((batch[first], true));
            }
            tried += batch.len();
            next = if batch.len() < sizes.len() { sizes[batch.len()] } else { next };
        }
        if next >= enough {
            return Ok((enough, true));
        }
        let below = scale.below(next).expect("smaller sizes were tried");
        Ok((self.leap(kind, others, below)?, false))
    }

    /// A size that completes while one step less does not; sizes between that and `from` are not all tried.
    pub(super) fn leap(&self, kind: Kind, others: &Limits, from: u64) -> Result<u64, Halt> {
        let (scale, enough) = (self.scale(kind), kind.value(others));
        let completes = |size: u64| self.trials.run(&kind.with(others, size)).map(|trial| trial.makespan().is_some());
        let twice = |size: u64| scale.round_up(size.saturating_mul(2)).max(scale.above(size)).min(enough);
        let (mut low, mut high) = (from, twice(from));
        while high < enough && !completes(high)? {
            (low, high) = (high, twice(high));
        }
        while scale.distance(low, high) > 1 {
            let middle = scale.middle(low, high);
            if completes(middle)? { high = middle } else { low = middle }
        }
        Ok(high)
    }

    /// An answer with what happens one step below it.
    fn proven(&self, kind: Kind, others: &Limits, size: u64, is_proven: bool) -> Result<Proven, Halt> {
        let Some(less) = self.scale(kind).below(size) else { return Ok(Proven { size, is_proven, below: None }) };
        let below = match self.trials.run(&kind.with(others, less))? {
            Trial::Stuck(_, reason) => Some(reason),
            // Every smaller size was run and did not complete, or is below what scopes hold.
            Trial::Completes(_) => unreachable!("{} = {less} was ruled out and completes", kind.key()),
        };
        Ok(Proven { size, is_proven, below })
    }
}

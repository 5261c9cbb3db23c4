//! The searches: the smallest size that completes, the smallest that is fast, and all sizes together.

use super::curve::{curve, knee, slower_when_larger};
use super::kind::Scale;
use super::trial::{Halt, Trial, Trials};
use super::{Answer, Fast, Kind, Proven, Request, Sizes, Sizing, Together};
use crate::check::{Holding, Tail};
use crate::config::Limits;
use crate::engine::RunError;

/// Sizes tried one after the other before the search takes larger steps.
const MOST_IN_ORDER: usize = 2_000;
/// Sizes tried at the same time while looking for the first that completes.
const AT_ONCE: usize = 8;
/// Fewer sizes than this between two known ones are all tried.
const NEIGHBOURHOOD: u64 = 16;

/// What a search works with.
pub(super) struct Searcher<'a> {
    pub(super) trials: &'a Trials<'a>,
    pub(super) holding: &'a Holding,
    pub(super) unlimited: &'a Limits,
    pub(super) high_water: Sizes,
}

impl Searcher<'_> {
    /// Fills in what can be found until the search is stopped.
    pub(super) fn fill(&self, sizing: &mut Sizing, request: &Request) -> Result<(), RunError> {
        match self.search(sizing, request) {
            Ok(()) | Err(Halt::Stopped) => Ok(()),
            Err(Halt::Failed(error)) => Err(error),
        }
    }

    fn search(&self, sizing: &mut Sizing, request: &Request) -> Result<(), Halt> {
        let most = (sizing.unlimited.makespan as f64 * (1.0 + request.within)).floor() as u64;
        for kind in Kind::ALL {
            let mut answer = self.nothing_yet(kind);
            let ended = self.answer(kind, most, &mut answer);
            answer.curve = curve(self.trials.known(kind, self.unlimited));
            answer.knee = knee(&answer.curve);
            answer.slower_when_larger = slower_when_larger(&answer.curve);
            sizing.answers.push(answer);
            ended?;
        }
        sizing.smallest = Some(self.smallest_together()?);
        sizing.fast = Some(self.fast_together(most, &sizing.answers)?);
        Ok(())
    }

    fn nothing_yet(&self, kind: Kind) -> Answer {
        let curve = curve(self.trials.known(kind, self.unlimited));
        Answer { kind, smallest: None, fast: None, curve, knee: None, slower_when_larger: Vec::new() }
    }

    fn answer(&self, kind: Kind, most: u64, answer: &mut Answer) -> Result<(), Halt> {
        let smallest = self.smallest(kind, self.unlimited)?;
        let size = smallest.size;
        answer.smallest = Some(smallest);
        answer.fast = Some(self.fast(kind, size, most)?);
        Ok(())
    }

    fn scale(&self, kind: Kind) -> Scale {
        Scale::new(kind, self.holding.heap_step(), self.unlimited.spare)
    }

    /// The smallest size that what scopes hold does not rule out.
    fn lower_bound(&self, kind: Kind, from: u64) -> u64 {
        let moments = self.holding.moments.iter();
        let spare = self.unlimited.spare;
        let least = match kind {
            Kind::Window => moments.map(|moment| moment.slots).max().map_or(1, |slots| slots + spare).max(spare + 1),
            Kind::Deps => moments.map(|moment| moment.deps).max().unwrap_or(0),
            Kind::Tensors => moments.map(|moment| moment.tensors).max().unwrap_or(0),
            Kind::Heap if self.holding.allocations.iter().all(Vec::is_empty) => 0,
            Kind::Heap => {
                let largest = self.holding.allocations.iter().flatten().map(|allocation| allocation.bytes).max();
                return self.holding.smallest_heap(from.max(largest.unwrap_or(0)), Tail::AtOldest);
            }
        };
        self.scale(kind).round_up(least).max(from)
    }

    /// The smallest size with which the run completes, the others being `others`, with which it does.
    fn smallest(&self, kind: Kind, others: &Limits) -> Result<Proven, Halt> {
        let (scale, enough) = (self.scale(kind), kind.value(others));
        let mut next = self.lower_bound(kind, 0);
        let mut tried = 0;
        while tried < MOST_IN_ORDER && next < enough {
            let mut sizes = Vec::with_capacity(AT_ONCE);
            while sizes.len() < AT_ONCE && next < enough {
                sizes.push(next);
                next = self.lower_bound(kind, scale.above(next));
            }
            // The first is most often the answer, so the others wait for it.
            let batch = if tried == 0 { &sizes[..1] } else { &sizes[..] };
            let trials = self.trials.at(kind, others, batch)?;
            if let Some(first) = trials.iter().position(|trial| trial.makespan().is_some()) {
                return self.proven(kind, others, batch[first], true);
            }
            tried += batch.len();
            next = if batch.len() < sizes.len() { sizes[batch.len()] } else { next };
        }
        if next >= enough {
            return self.proven(kind, others, enough, true);
        }
        let below = scale.below(next).expect("smaller sizes were tried");
        let size = self.leap(kind, others, below)?;
        self.proven(kind, others, size, false)
    }

    /// A size that completes while one step less does not; sizes between that and `from` are not all tried.
    fn leap(&self, kind: Kind, others: &Limits, from: u64) -> Result<u64, Halt> {
        let (scale, enough) = (self.scale(kind), kind.value(others));
        let completes = |size: u64| self.trials.run(&kind.with(others, size)).map(|trial| trial.makespan().is_some());
        let (mut low, mut high) = (from, scale.round_up(from.saturating_mul(2)).min(enough));
        while high < enough && !completes(high)? {
            (low, high) = (high, scale.round_up(high.saturating_mul(2)).min(enough));
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
            Trial::Stuck(reason) => Some(reason),
            // Every smaller size was run and did not complete, or is below what scopes hold.
            Trial::Completes(_) => unreachable!("{} = {less} was ruled out and completes", kind.key()),
        };
        Ok(Proven { size, is_proven, below })
    }

    /// The smallest size found with a makespan of at most `most`, the others being unlimited.
    fn fast(&self, kind: Kind, smallest: u64, most: u64) -> Result<Fast, Halt> {
        let (scale, others) = (self.scale(kind), self.unlimited);
        self.trials.at(kind, others, &self.grid(kind, smallest))?;
        loop {
            let known = self.trials.known(kind, others);
            let is_fast = |trial: &Trial| trial.makespan().is_some_and(|makespan| makespan <= most);
            let at = known.iter().position(|(_, trial)| is_fast(trial)).expect("unlimited sizes are fast");
            let (size, trial) = &known[at];
            let makespan = trial.makespan().expect("a fast run completes");
            let below = known[..at].last().filter(|(below, _)| *below >= smallest);
            let low = below.map_or(*size, |(below, _)| *below);
            if scale.distance(low, *size) <= 1 {
                let run = known[..=at].iter().filter(|(size, _)| *size >= smallest).count() as u64;
                let is_proven = scale.distance(smallest, *size) < run;
                let below = below.and_then(|(_, trial)| trial.makespan());
                return Ok(Fast { size: *size, makespan, below, is_proven });
            }
            if scale.distance(low, *size) <= NEIGHBOURHOOD {
                let between: Vec<u64> = std::iter::successors(Some(scale.above(low)), |&s| Some(scale.above(s)))
                    .take_while(|s| s < size)
                    .collect();
                self.trials.at(kind, others, &between)?;
            } else {
                self.trials.at(kind, others, &[scale.middle(low, *size)])?;
            }
        }
    }

    /// Sizes to look at between the smallest and the one that nothing waits for: all powers of two, and both ends.
    fn grid(&self, kind: Kind, smallest: u64) -> Vec<u64> {
        let scale = self.scale(kind);
        let most = kind.value(self.unlimited);
        let enough = match kind {
            Kind::Window => scale.round_up(self.high_water.window + self.unlimited.spare),
            // The gaps of a smaller ring are not those of the unlimited one.
            Kind::Heap => scale.round_up(self.high_water.heap.saturating_mul(2)),
            Kind::Deps => self.high_water.deps,
            Kind::Tensors => self.high_water.tensors,
        };
        let end = enough.clamp(smallest, most.max(smallest));
        let mut sizes = vec![smallest, end];
        let powers = std::iter::successors(Some(1_u64), |&size| size.checked_mul(2)).take_while(|&size| size < end);
        sizes.extend(powers.map(|size| scale.round_up(size)).filter(|&size| size > smallest && size < end));
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Sizes that complete together, none of which can be smaller with the others in place.
    fn smallest_together(&self) -> Result<Together, Halt> {
        let mut limits = self.unlimited.clone();
        loop {
            let before = limits.clone();
            for kind in [Kind::Window, Kind::Tensors, Kind::Heap, Kind::Deps] {
                let size = self.smallest(kind, &limits)?.size;
                limits = kind.with(&limits, size);
            }
            if limits == before {
                break;
            }
        }
        let makespan = self.trials.run(&limits)?.makespan().expect("every step of the search completes");
        Ok(Together::new(&limits, makespan))
    }

    /// The fast sizes in one machine; when they are too slow together, all of them grow.
    fn fast_together(&self, most: u64, answers: &[Answer]) -> Result<Together, Halt> {
        let mut limits = self.unlimited.clone();
        for answer in answers {
            let fast = answer.fast.as_ref().expect("every kind is answered before");
            limits = answer.kind.with(&limits, fast.size);
        }
        loop {
            if let Trial::Completes(makespan) = self.trials.run(&limits)?
                && makespan <= most
            {
                return Ok(Together::new(&limits, makespan));
            }
            for kind in Kind::ALL {
                let larger = self.scale(kind).round_up(kind.value(&limits).saturating_mul(2));
                limits = kind.with(&limits, larger.min(kind.value(self.unlimited)));
            }
        }
    }
}

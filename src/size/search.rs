//! All searches of `size`: for every kind the smallest that completes and the smallest that is fast, and all together.

use super::curve::{curve, knee, slower_when_larger};
use super::kind::Scale;
use super::smallest::Searcher;
use super::trial::{Halt, Trial};
use super::{Answer, Fast, Kind, Request, Sizes, Sizing, Together};
use crate::config::Limits;
use crate::engine::RunError;

/// Fewer sizes than this between two known ones are all tried.
const NEIGHBOURHOOD: u64 = 16;

/// A search for all answers.
pub(super) struct Survey<'a> {
    pub(super) searcher: Searcher<'a>,
    pub(super) unlimited: &'a Limits,
    pub(super) high_water: Sizes,
}

impl Survey<'_> {
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
            answer.curve = curve(self.searcher.trials.known(kind, self.unlimited));
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
        let curve = curve(self.searcher.trials.known(kind, self.unlimited));
        Answer { kind, smallest: None, fast: None, curve, knee: None, slower_when_larger: Vec::new() }
    }

    fn answer(&self, kind: Kind, most: u64, answer: &mut Answer) -> Result<(), Halt> {
        let smallest = self.searcher.smallest(kind, self.unlimited)?;
        let size = smallest.size;
        answer.smallest = Some(smallest);
        answer.fast = Some(self.fast(kind, size, most)?);
        Ok(())
    }

    /// The smallest size found with a makespan of at most `most`, the others being unlimited.
    fn fast(&self, kind: Kind, smallest: u64, most: u64) -> Result<Fast, Halt> {
        let (scale, others) = (self.scale(kind), self.unlimited);
        self.searcher.trials.at(kind, others, &self.grid(kind, smallest))?;
        loop {
            let known = self.searcher.trials.known(kind, others);
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
                self.searcher.trials.at(kind, others, &between)?;
            } else {
                self.searcher.trials.at(kind, others, &[scale.middle(low, *size)])?;
            }
        }
    }

    fn scale(&self, kind: Kind) -> Scale {
        self.searcher.scale(kind)
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
                let size = self.searcher.smallest(kind, &limits)?.size;
                limits = kind.with(&limits, size);
            }
            if limits == before {
                break;
            }
        }
        let makespan = self.searcher.trials.run(&limits)?.makespan().expect("every step of the search completes");
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
            if let Trial::Completes(makespan) = self.searcher.trials.run(&limits)?
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

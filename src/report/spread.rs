//! A run of unknown length in a bounded number of bins: when time outgrows them, neighbours are put together.

/// Most bins; at least half of them are in use after a long run.
const N_BINS: usize = 1024;

/// What a bin can be put together from.
pub(super) trait Bin: Clone + Default {
    /// Takes in the bin to its right.
    fn absorb(&mut self, right: &Self);
}

/// Bins of equal width, a power of two.
#[derive(Clone, Default)]
pub(super) struct Bins<B> {
    shift: u32,
    bins: Vec<B>,
}

impl<B: Bin> Bins<B> {
    /// Cycles of a bin.
    pub(super) fn width(&self) -> u64 {
        1 << self.shift
    }

    pub(super) fn all(&self) -> &[B] {
        &self.bins
    }

    /// The bin of a cycle.
    #[inline]
    pub(super) fn at(&mut self, cycle: u64) -> &mut B {
        let mut index = cycle >> self.shift;
        while index >= N_BINS as u64 {
            self.halve();
            index = cycle >> self.shift;
        }
        let index = index as usize;
        if index >= self.bins.len() {
            self.bins.resize(index + 1, B::default());
        }
        &mut self.bins[index]
    }

    /// Visits the bins from a cycle up to another with the cycles that fall into each.
    #[inline]
    pub(super) fn over(&mut self, from: u64, to: u64, mut visit: impl FnMut(&mut B, u64)) {
        if to <= from {
            return;
        }
        let first = from >> self.shift;
        if first == (to - 1) >> self.shift
            && let Some(bin) = self.bins.get_mut(first as usize)
        {
            return visit(bin, to - from);
        }
        self.at(to - 1);
        let mut cycle = from;
        while cycle < to {
            // The last bin may end at 2^64, which is no number.
            let end = to.min(((cycle >> self.shift) + 1).checked_mul(self.width()).unwrap_or(to));
            visit(&mut self.bins[(cycle >> self.shift) as usize], end - cycle);
            cycle = end;
        }
    }

    #[cold]
    fn halve(&mut self) {
        self.shift += 1;
        let halved = self.bins.chunks(2).map(|pair| {
            let mut bin = pair[0].clone();
            pair.get(1).inspect(|right| bin.absorb(right));
            bin
        });
        self.bins = halved.collect();
    }
}

/// How long something was going on in a bin, and what it mostly was.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Busy {
    pub(super) cycles: u64,
    /// The label with the majority of the cycles, if any label has it.
    pub(super) label: u32,
    votes: u64,
}

impl Busy {
    /// Adds cycles under a label.
    #[inline]
    pub(super) fn add(&mut self, label: u32, cycles: u64) {
        self.cycles += cycles;
        self.vote(label, cycles);
    }

    #[inline]
    fn vote(&mut self, label: u32, votes: u64) {
        if self.label == label {
            self.votes += votes;
        } else if self.votes >= votes {
            self.votes -= votes;
        } else {
            (self.label, self.votes) = (label, votes - self.votes);
        }
    }
}

impl Bin for Busy {
    fn absorb(&mut self, right: &Busy) {
        self.cycles += right.cycles;
        self.vote(right.label, right.votes);
    }
}

/// A value over time: its largest and its mean in a bin.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Level {
    pub(super) max: u64,
    /// Value × cycles.
    pub(super) area: u128,
}

impl Bin for Level {
    fn absorb(&mut self, right: &Level) {
        self.max = self.max.max(right.max);
        self.area += right.area;
    }
}

/// A value that changes at certain cycles.
#[derive(Clone, Default)]
pub(super) struct Curve {
    bins: Bins<Level>,
    value: u64,
    since: u64,
    /// What is to be added to the bin of `since`: most changes fall into the same bin as the one before.
    open: Level,
    /// Where that bin ends.
    open_end: u64,
}

impl Curve {
    /// From `now` on it is `value`.
    #[inline(always)]
    pub(super) fn set(&mut self, value: u64, now: u64) {
        if value == self.value {
            return;
        }
        if now >= self.open_end {
            self.open(now);
        }
        self.open.area += u128::from(self.value) * u128::from(now - self.since);
        self.since = now;
        self.value = value;
        self.open.max = self.open.max.max(value);
    }

    /// Goes on to the bin of `now`.
    #[cold]
    fn open(&mut self, now: u64) {
        self.advance(now);
        self.bins.at(now);
        self.open_end = ((now >> self.bins.shift) + 1) << self.bins.shift;
    }

    fn advance(&mut self, now: u64) {
        if self.open != Level::default() {
            self.bins.at(self.since).absorb(&self.open);
            self.open = Level::default();
        }
        let value = self.value;
        self.bins.over(self.since, now, |level, cycles| {
            level.max = level.max.max(value);
            level.area += u128::from(value) * u128::from(cycles);
        });
        self.since = now;
    }

    /// The bins up to `end`.
    pub(super) fn close(&mut self, end: u64) -> &Bins<Level> {
        self.advance(end.max(self.since));
        &self.bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_cycles_there_are_fall_into_the_last_bin() {
        let mut bins = Bins::<Busy>::default();
        bins.over(1, u64::MAX, |bin, cycles| bin.add(0, cycles));
        assert_eq!(bins.all().iter().map(|bin| bin.cycles).sum::<u64>(), u64::MAX - 1);
        assert_eq!(bins.all().len(), N_BINS);
    }

    #[test]
    fn a_long_run_fits_and_nothing_is_lost() {
        let mut bins: Bins<Busy> = Bins::default();
        for start in (0..1_000_000).step_by(10) {
            bins.over(start, start + 7, |bin, cycles| bin.add(u32::from(start >= 500_000), cycles));
        }
        assert!(bins.all().len() <= N_BINS && bins.all().len() * 2 > N_BINS, "{}", bins.all().len());
        assert_eq!(bins.all().iter().map(|bin| bin.cycles).sum::<u64>(), 700_000);
        assert_eq!(bins.width(), 1024);
        let labels: Vec<u32> = bins.all().iter().map(|bin| bin.label).collect();
        assert!(labels.is_sorted() && labels[0] == 0 && labels[labels.len() - 1] == 1);
    }

    #[test]
    fn a_curve_keeps_its_peak_and_its_area() {
        let mut curve = Curve::default();
        curve.set(3, 0);
        curve.set(9, 100);
        curve.set(1, 100_000);
        let bins = curve.close(200_000);
        assert_eq!(bins.all().iter().map(|bin| bin.area).sum::<u128>(), 300 + 9 * 99_900 + 100_000);
        assert_eq!(bins.all().iter().map(|bin| bin.max).max(), Some(9));
        assert_eq!(bins.all().last().map(|bin| bin.max), Some(1));
    }
}

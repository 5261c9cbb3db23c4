//! A set of numbers that knows its smallest one: words of 64 bits, and words over words up to a single one.

use crate::window::NONE;

/// A set of numbers below a limit.
pub(super) struct NumberSet {
    /// The smallest member, or [`NONE`]. It stands nowhere else, so that a set of one costs next to nothing.
    first: u32,
    /// The other members, then for each level which words of the level before are not empty.
    words: Vec<u64>,
    /// Where each level begins; only so many are used.
    begins: [u32; MOST_LEVELS],
    n_levels: usize,
    len: usize,
}

/// So many levels of 64 to one hold all numbers of 32 bits.
const MOST_LEVELS: usize = 6;

impl NumberSet {
    pub fn new(limit: usize) -> NumberSet {
        let (mut begins, mut n_levels, mut total) = ([0; MOST_LEVELS], 0, 0);
        let mut width = limit.max(1);
        while n_levels == 0 || width > 1 {
            width = width.div_ceil(64);
            begins[n_levels] = total as u32;
            n_levels += 1;
            total += width;
        }
        NumberSet { first: NONE, words: vec![0; total], begins, n_levels, len: 0 }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Puts in a number that is not in it.
    #[inline]
    pub fn insert(&mut self, number: u32) {
        self.len += 1;
        let other = number.max(self.first);
        self.first = number.min(self.first);
        if other != NONE {
            self.enter(other);
        }
    }

    /// Takes out a number that is in it.
    #[inline]
    pub fn remove(&mut self, number: u32) {
        if number == self.first {
            self.remove_first();
        } else {
            self.len -= 1;
            self.leave(number);
        }
    }

    /// Takes out the smallest member, which must be there.
    #[inline]
    pub fn remove_first(&mut self) {
        self.len -= 1;
        if self.len == 0 {
            self.first = NONE;
        } else {
            self.first = self.find_second();
            self.leave(self.first);
        }
    }

    /// The smallest member.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// The smallest member behind a number below the limit.
    #[inline]
    pub fn next_after(&self, number: u32) -> Option<u32> {
        if self.first > number || self.len < 2 {
            return self.first().filter(|&first| first > number);
        }
        let mut place = number;
        for (level, begin) in self.begins[..self.n_levels].iter().enumerate() {
            let behind = self.words[(begin + place / 64) as usize] & u64::MAX << (place % 64) << 1;
            if behind != 0 {
                let found = place / 64 * 64 + behind.trailing_zeros();
                let below = self.begins[..level].iter().rev();
                return Some(
                    below.fold(found, |index, &begin| {
                        index * 64 + self.words[(begin + index) as usize].trailing_zeros()
                    }),
                );
            }
            place /= 64;
        }
        None
    }

    /// The smallest member but one, which must be there. Mostly it is near the first.
    #[inline]
    fn find_second(&self) -> u32 {
        let near = self.words[self.first as usize / 64];
        if near != 0 {
            return self.first / 64 * 64 + near.trailing_zeros();
        }
        let levels = self.begins[..self.n_levels].iter().rev();
        levels.fold(0, |index, &begin| index * 64 + self.words[(begin + index) as usize].trailing_zeros())
    }

    #[inline]
    fn enter(&mut self, mut number: u32) {
        for begin in &self.begins[..self.n_levels] {
            let word = &mut self.words[(begin + number / 64) as usize];
            let was_empty = *word == 0;
            *word |= 1 << (number % 64);
            if !was_empty {
                return;
            }
            number /= 64;
        }
    }

    #[inline]
    fn leave(&mut self, mut number: u32) {
        for begin in &self.begins[..self.n_levels] {
            let word = &mut self.words[(begin + number / 64) as usize];
            *word &= !(1 << (number % 64));
            if *word != 0 {
                return;
            }
            number /= 64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::NumberSet;
    use crate::dice::rolls;
    use std::collections::BTreeSet;

    #[test]
    fn it_agrees_with_a_set_of_the_standard_library() {
        for limit in [0, 1, 64, 65, 5_000, 300_000] {
            let (mut set, mut known, mut random) = (NumberSet::new(limit), BTreeSet::new(), rolls(7));
            for _ in 0..2_000.min(limit * 20) {
                let number = random(limit as u64) as u32;
                if known.insert(number) {
                    set.insert(number);
                } else {
                    known.remove(&number);
                    set.remove(number);
                }
                assert_eq!((set.first(), set.len()), (known.first().copied(), known.len()), "below {limit}");
                assert_eq!(set.next_after(number), known.range(number + 1..).next().copied(), "below {limit}");
            }
            while let Some(number) = known.pop_first() {
                assert_eq!(set.first(), Some(number), "below {limit}");
                set.remove_first();
            }
        }
    }
}

//! A set of workers: a bit each, in words of 64.

/// A set of workers.
#[derive(Clone, Default, Debug)]
pub struct WorkerSet {
    words: Vec<u64>,
}

impl WorkerSet {
    /// An empty set for workers below `n_workers`.
    #[must_use]
    pub fn new(n_workers: usize) -> WorkerSet {
        WorkerSet { words: vec![0; n_workers.div_ceil(64)] }
    }

    /// Puts a worker in.
    #[inline]
    pub fn insert(&mut self, id: u32) {
        self.words[id as usize / 64] |= 1 << (id % 64);
    }

    /// Takes a worker out.
    #[inline]
    pub fn remove(&mut self, id: u32) {
        self.words[id as usize / 64] &= !(1 << (id % 64));
    }

    /// Whether a worker is in it.
    #[inline]
    pub fn contains(&self, id: u32) -> bool {
        self.words[id as usize / 64] >> (id % 64) & 1 == 1
    }

    /// The first worker from `from` on that is in both sets.
    #[inline]
    pub fn first_common(&self, other: &WorkerSet, from: u32) -> Option<u32> {
        self.first(from, |index| self.words[index] & other.words[index])
    }

    /// How many words of 64 workers there are.
    #[inline]
    #[must_use]
    pub fn n_words(&self) -> usize {
        self.words.len()
    }

    /// Those of a word of workers that are in both sets, a bit each.
    #[inline]
    #[must_use]
    pub fn common_word(&self, other: &WorkerSet, word: usize) -> u64 {
        self.words[word] & other.words[word]
    }

    /// The first worker from `from` on that is in both sets; in this one 0 is worker 64 × `offset` of the other.
    #[inline]
    pub fn first_common_behind(&self, offset: u32, other: &WorkerSet, from: u32) -> Option<u32> {
        self.first(from, |index| self.words[index] & other.words[index + offset as usize])
    }

    /// The first worker from `from` on that is in this set but not in the other.
    #[inline]
    pub fn first_without(&self, other: &WorkerSet, from: u32) -> Option<u32> {
        self.first(from, |index| self.words[index] & !other.words[index])
    }

    #[inline]
    fn first(&self, from: u32, word: impl Fn(usize) -> u64) -> Option<u32> {
        let mut mask = u64::MAX << (from % 64);
        for index in from as usize / 64..self.words.len() {
            let bits = word(index) & mask;
            if bits != 0 {
                return Some(index as u32 * 64 + bits.trailing_zeros());
            }
            mask = u64::MAX;
        }
        None
    }
}

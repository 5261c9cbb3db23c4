//! A queue of values that leave in order and mostly come in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem::take;

/// The queue: what came in order waits in a row, the rest in a heap.
#[derive(Clone, Debug)]
pub(super) struct MostlySorted<T> {
    /// Behind those that are gone.
    row: Vec<T>,
    /// How many of the row are gone; 0 when all are, because the row is emptied then.
    gone: usize,
    rest: BinaryHeap<Reverse<T>>,
}

/// How many of the last values of the row may be larger than a value that goes into it.
const NEAR: usize = 16;

impl<T: Ord> Default for MostlySorted<T> {
    fn default() -> MostlySorted<T> {
        MostlySorted { row: Vec::new(), gone: 0, rest: BinaryHeap::new() }
    }
}

impl<T: Ord + Default> MostlySorted<T> {
    /// A queue of values that are in order.
    pub fn of_sorted(values: Vec<T>) -> MostlySorted<T> {
        MostlySorted { row: values, ..MostlySorted::default() }
    }

    #[inline]
    pub fn push(&mut self, value: T) {
        if self.row.len() == self.row.capacity() {
            self.make_room();
        }
        if self.row.last().is_none_or(|last| *last <= value) {
            self.row.push(value);
        } else {
            self.push_late(value);
        }
    }

    /// Uses the room of those that are gone if that is worth the moves.
    #[cold]
    fn make_room(&mut self) {
        if 2 * self.gone >= self.row.len() {
            self.row.drain(..take(&mut self.gone));
        }
        self.row.reserve(1);
    }

    /// A value that comes behind larger ones goes to its place in the row if that is near, else into the heap. Mostly it is very
    /// near, so that the places are looked at one by one.
    #[inline(never)]
    fn push_late(&mut self, value: T) {
        let mut place = self.row.len();
        let begin = place.saturating_sub(NEAR).max(self.gone);
        if begin > self.gone && value < self.row[begin] {
            self.rest.push(Reverse(value));
            return;
        }
        while place > begin && value < self.row[place - 1] {
            place -= 1;
        }
        self.row.insert(place, value);
    }

    /// The smallest value.
    #[inline]
    pub fn first(&self) -> Option<&T> {
        let rest = self.rest.peek().map(|Reverse(value)| value);
        match self.row.get(self.gone) {
            Some(row) if rest.is_none_or(|rest| row <= rest) => Some(row),
            _ => rest,
        }
    }

    /// A value that probably has so many smaller ones before it.
    #[inline]
    pub fn likely(&self, place: usize) -> Option<&T> {
        self.row.get(self.gone + place)
    }

    /// Takes the smallest value out.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if !self.rest.is_empty() {
            return self.pop_either();
        }
        self.pop_row()
    }

    #[inline]
    fn pop_row(&mut self) -> Option<T> {
        let first = take(self.row.get_mut(self.gone)?);
        self.gone += 1;
        if self.gone == self.row.len() {
            self.row.clear();
            self.gone = 0;
        }
        Some(first)
    }

    #[inline(never)]
    fn pop_either(&mut self) -> Option<T> {
        match (self.row.get(self.gone), self.rest.peek()) {
            (Some(row), Some(Reverse(rest))) if row <= rest => self.pop_row(),
            _ => self.rest.pop().map(|Reverse(value)| value),
        }
    }

    /// Takes a value out, if it is there.
    pub fn remove(&mut self, value: &T) {
        let Ok(place) = self.row[self.gone..].binary_search(value) else {
            return self.rest.retain(|Reverse(other)| other != value);
        };
        self.row[self.gone..=self.gone + place].rotate_right(1);
        self.pop_row();
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.row.len() - self.gone + self.rest.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.row.is_empty() && self.rest.is_empty()
    }

    /// All values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.row[self.gone..].iter().chain(self.rest.iter().map(|Reverse(value)| value))
    }
}

#[cfg(test)]
mod tests {
    use super::MostlySorted;
    use std::collections::BTreeSet;

    #[test]
    fn it_agrees_with_a_set_of_the_standard_library() {
        for disorder in [0, 5, 1_000] {
            let (mut queue, mut known, mut seed) = (MostlySorted::default(), BTreeSet::new(), 3_u64);
            for number in 0..3_000_u64 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let value = (number + (seed >> 33) % (disorder + 1), number);
                queue.push(value);
                known.insert(value);
                if seed >> 62 == 0 {
                    assert_eq!((queue.first().copied(), queue.pop()), (known.first().copied(), known.pop_first()));
                }
                if seed >> 60 == 8 {
                    let gone =
                        known.iter().nth((seed >> 32) as usize % known.len()).copied().expect("it is below the length");
                    queue.remove(&gone);
                    known.remove(&gone);
                }
                assert_eq!((queue.len(), queue.is_empty()), (known.len(), known.is_empty()));
            }
            assert_eq!(queue.iter().copied().collect::<BTreeSet<_>>(), known);
            assert!(std::iter::from_fn(|| queue.pop()).eq(known));
            assert_eq!(queue.pop(), None);
        }
    }
}

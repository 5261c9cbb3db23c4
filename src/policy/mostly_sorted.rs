//! A queue of values that leave in order and mostly come in order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The queue: what came in order waits in a row, the rest in a heap.
#[derive(Clone, Debug)]
pub(super) struct MostlySorted<T> {
    row: VecDeque<T>,
    rest: BinaryHeap<Reverse<T>>,
}

impl<T: Ord> Default for MostlySorted<T> {
    fn default() -> MostlySorted<T> {
        MostlySorted { row: VecDeque::new(), rest: BinaryHeap::new() }
    }
}

impl<T: Ord> MostlySorted<T> {
    /// A queue of values that are in order.
    pub fn of_sorted(values: Vec<T>) -> MostlySorted<T> {
        MostlySorted { row: values.into(), rest: BinaryHeap::new() }
    }

    #[inline]
    pub fn push(&mut self, value: T) {
        if self.row.back().is_none_or(|last| *last <= value) {
            self.row.push_back(value);
        } else {
            self.push_late(value);
        }
    }

    /// A value that others came before which are larger goes to its place in the row, if that is near, or into the heap.
    fn push_late(&mut self, value: T) {
        const NEAR: usize = 16;
        let begin = self.row.len().saturating_sub(NEAR);
        if begin > 0 && value < self.row[begin] {
            self.rest.push(Reverse(value));
            return;
        }
        let mut place = self.row.len();
        while place > begin && value < self.row[place - 1] {
            place -= 1;
        }
        self.row.insert(place, value);
    }

    /// The smallest value.
    #[inline]
    pub fn first(&self) -> Option<&T> {
        if self.is_first_in_row() { self.row.front() } else { self.rest.peek().map(|Reverse(value)| value) }
    }

    /// A value that is probably the smallest.
    #[inline]
    pub fn likely_first(&self) -> Option<&T> {
        self.row.front()
    }

    /// A value that probably has so many smaller ones before it.
    #[inline]
    pub fn likely(&self, place: usize) -> Option<&T> {
        self.row.get(place)
    }

    /// Takes the smallest value out.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.is_first_in_row() { self.row.pop_front() } else { self.rest.pop().map(|Reverse(value)| value) }
    }

    /// Takes a value out, if it is there.
    pub fn remove(&mut self, value: &T) {
        match self.row.binary_search(value) {
            Ok(place) => drop(self.row.remove(place)),
            Err(_) => self.rest.retain(|Reverse(other)| other != value),
        }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.row.len() + self.rest.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.row.is_empty() && self.rest.is_empty()
    }

    /// All values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.row.iter().chain(self.rest.iter().map(|Reverse(value)| value))
    }

    /// Takes all values out, in order.
    pub fn take_sorted(&mut self) -> Vec<T> {
        let rest = std::mem::take(&mut self.rest);
        let mut values: Vec<T> = self.row.drain(..).chain(rest.into_iter().map(|Reverse(value)| value)).collect();
        values.sort();
        values
    }

    #[inline]
    fn is_first_in_row(&self) -> bool {
        match (self.row.front(), self.rest.peek()) {
            (Some(row), Some(Reverse(rest))) => row <= rest,
            (_, rest) => rest.is_none(),
        }
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
                assert_eq!((queue.len(), queue.is_empty()), (known.len(), known.is_empty()));
            }
            assert_eq!(queue.iter().copied().collect::<BTreeSet<_>>(), known);
            assert_eq!(queue.take_sorted(), known.into_iter().collect::<Vec<_>>());
            assert_eq!(queue.pop(), None);
        }
    }
}

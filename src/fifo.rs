//! A queue of small values, first in first out, that grows as it must and is quicker than a general one: most of what the
//! engine does is to put something at the end of a queue and to take it out at the front.

/// The queue.
#[derive(Clone, Default, Debug)]
pub struct Fifo<T> {
    /// None, or a power of two of them.
    places: Box<[T]>,
    /// Counts the values taken out.
    head: usize,
    /// Counts the values put in.
    tail: usize,
}

impl<T: Copy + Default> Fifo<T> {
    /// Puts a value in at the end.
    #[inline(always)]
    pub fn push(&mut self, value: T) {
        if self.len() == self.places.len() {
            self.grow();
        }
        let place = self.tail & self.places.len().wrapping_sub(1);
        self.places[place] = value;
        self.tail = self.tail.wrapping_add(1);
    }

    /// Takes the first value out.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        let value = *self.front()?;
        self.drop_front();
        Some(value)
    }

    /// Takes the first value out, which is there.
    #[inline(always)]
    pub fn drop_front(&mut self) {
        debug_assert!(!self.is_empty(), "nothing to take out");
        self.head = self.head.wrapping_add(1);
    }

    /// The first value.
    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        self.get(0)
    }

    /// The value that comes out after `index` others.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len() {
            return None;
        }
        self.places.get(self.head.wrapping_add(index) & self.places.len().wrapping_sub(1))
    }

    /// How many values are in it.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head)
    }

    /// Whether nothing is in it.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    #[cold]
    fn grow(&mut self) {
        let values: Vec<T> = (0..self.len()).filter_map(|index| self.get(index).copied()).collect();
        self.places = vec![T::default(); (2 * values.len()).max(16)].into();
        self.places[..values.len()].copy_from_slice(&values);
        (self.head, self.tail) = (0, values.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::rolls;
    use std::collections::VecDeque;

    #[test]
    fn what_goes_in_comes_out_in_order_over_many_rounds_and_sizes() {
        let mut random = rolls(3);
        for most in [1, 2, 15, 16, 17, 100] {
            let (mut fifo, mut model) = (Fifo::default(), VecDeque::new());
            for value in 0..20_000_u64 {
                if model.len() < most && random(2) == 0 {
                    fifo.push(value);
                    model.push_back(value);
                } else {
                    assert_eq!(fifo.pop(), model.pop_front());
                }
                assert_eq!((fifo.len(), fifo.is_empty()), (model.len(), model.is_empty()));
                assert_eq!(fifo.front(), model.front());
                let index = random(most as u64 + 2) as usize;
                assert_eq!(fifo.get(index), model.get(index));
            }
            assert!(fifo.places.len() <= (2 * most).next_power_of_two().max(16), "it grows no more than it must");
        }
    }
}

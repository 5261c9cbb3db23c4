//! Tasks that are not due yet: the earliest first, and of equal times the one that came first.

use crate::policy::mostly_sorted::MostlySorted;
use std::cmp::Ordering;

/// A heap by time and order of arrival. The items themselves are never compared.
#[derive(Clone, Debug)]
pub struct Heap<T> {
    entries: MostlySorted<Entry<T>>,
    next_seq: u64,
}

/// One item that waits for its time.
#[derive(Clone, Default, Debug)]
pub struct Entry<T> {
    /// When it is due.
    pub when: u64,
    /// Its place in the order of arrival; strictly increasing.
    pub seq: u64,
    /// What is due.
    pub item: T,
}

impl<T> Entry<T> {
    fn key(&self) -> (u64, u64) {
        (self.when, self.seq)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Entry<T>) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Entry<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Entry<T>) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<T> Default for Heap<T> {
    fn default() -> Heap<T> {
        Heap { entries: MostlySorted::default(), next_seq: 0 }
    }
}

impl<T: Default> Heap<T> {
    /// Adds an item; gives its place in the order of arrival.
    #[inline]
    pub fn push(&mut self, when: u64, item: T) -> u64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        self.entries.push(Entry { when, seq, item });
        seq
    }

    /// Takes the first item if it is due.
    #[inline]
    pub fn pop_due(&mut self, now: u64) -> Option<Entry<T>> {
        if self.next_when()? > now {
            return None;
        }
        self.entries.pop()
    }

    /// When the first item is due.
    #[inline]
    pub fn next_when(&self) -> Option<u64> {
        self.entries.first().map(|entry| entry.when)
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All items in the order in which they would be taken.
    pub fn in_order(&self) -> Vec<&Entry<T>> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_unstable();
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::Heap;
    use crate::dice::rolls;

    /// Not comparable, so that only time and order can decide.
    #[derive(Default)]
    struct Opaque(u64);

    #[test]
    fn random_items_come_out_by_time_and_arrival_and_the_length_is_what_is_left() {
        let mut heap = Heap::default();
        let mut random = rolls(1);
        let mut last_seq = None;
        for number in 0..10_000 {
            let seq = heap.push(random(500), Opaque(number));
            assert!(last_seq.is_none_or(|last| seq > last), "numbers strictly increase");
            last_seq = Some(seq);
        }
        let mut fired: Vec<(u64, u64)> = Vec::new();
        let mut now = 0;
        while !heap.is_empty() {
            match heap.pop_due(now) {
                Some(entry) => {
                    assert!(entry.when <= now);
                    assert_eq!(entry.item.0, entry.seq);
                    fired.push((entry.when, entry.seq));
                }
                None => now = heap.next_when().unwrap(),
            }
            assert_eq!(heap.len(), 10_000 - fired.len());
        }
        assert!(fired.is_sorted());
    }

    #[test]
    fn nothing_is_taken_before_its_time() {
        let mut heap = Heap::default();
        heap.push(5, "late");
        heap.push(1, "early");
        heap.push(5, "later");
        assert!(heap.pop_due(0).is_none());
        assert_eq!(heap.pop_due(4).map(|entry| entry.item), Some("early"));
        assert!(heap.pop_due(4).is_none());
        assert_eq!(heap.in_order().iter().map(|entry| entry.item).collect::<Vec<_>>(), ["late", "later"]);
    }
}

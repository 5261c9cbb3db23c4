//! The entries of the `RunQueue` that the same workers can serve, and their order.

use super::run_queue::Item;
use std::collections::VecDeque;

/// Place of an entry: what became runnable at an earlier time goes first; at the same time, what an expired turn puts back
/// comes last; then the order of tickets. All are packed, because numbers are compared faster than fields.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key(u128);

/// Bits of a key that hold the ticket.
const TICKET_BITS: u32 = 62;

impl Key {
    #[inline]
    pub(super) fn new(is_application: bool, time: u64, is_again: bool, ticket: u64) -> Key {
        let place = u128::from(time) << 1 | u128::from(is_again);
        Key(u128::from(is_application) << 127 | place << TICKET_BITS | u128::from(ticket))
    }

    #[inline]
    fn is_application(self) -> bool {
        self.0 >> 127 == 1
    }

    #[inline]
    pub(super) fn ticket(self) -> u64 {
        self.0 as u64 & ((1 << TICKET_BITS) - 1)
    }
}

/// What stands in the queue.
pub(super) enum Entry<T> {
    Task(Item<T>),
    Group(u32),
}

pub(super) struct Place<T> {
    pub key: Key,
    pub entry: Entry<T>,
}

/// Entries that the same workers can serve, first come first served.
pub(super) struct Lane<T> {
    /// Those of the system, if they go first; then all others. Each ascending.
    pub places: [VecDeque<Place<T>>; 2],
}

impl<T> Lane<T> {
    pub fn front(&self) -> Option<&Place<T>> {
        self.places[0].front().or_else(|| self.places[1].front())
    }

    pub fn pop_front(&mut self) -> Option<Place<T>> {
        self.places[0].pop_front().or_else(|| self.places[1].pop_front())
    }

    /// Puts an entry in; nearly always that is at the end.
    #[inline]
    pub fn insert(&mut self, place: Place<T>) {
        let places = &mut self.places[usize::from(place.key.is_application())];
        if places.back().is_none_or(|last| last.key < place.key) {
            places.push_back(place);
        } else {
            let behind = places.iter().rev().take_while(|other| other.key > place.key).count();
            places.insert(places.len() - behind, place);
        }
    }
}

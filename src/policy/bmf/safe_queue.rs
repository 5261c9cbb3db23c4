//! Queues that several threads may use: first in first out, and by priority. A full one refuses, nothing ever waits.

use std::collections::{BinaryHeap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// First in, first out.
#[derive(Debug)]
pub struct SafeQueue<T>(Guarded<VecDeque<T>>);

/// The greatest first.
#[derive(Debug)]
pub struct SafePriorityQueue<T>(Guarded<BinaryHeap<T>>);

/// A container, the most it may hold, and its name in traces.
#[derive(Debug)]
struct Guarded<C>(Mutex<Content<C>>);

#[derive(Clone, Debug, Default)]
struct Content<C> {
    items: C,
    /// 0 is no limit.
    max_num_items: usize,
    identifier: String,
}

impl<C> Guarded<C> {
    fn new(items: C) -> Guarded<C> {
        Guarded(Mutex::new(Content { items, max_num_items: 0, identifier: String::new() }))
    }

    /// Every operation leaves the content whole, so that of a thread that panicked can be used.
    fn lock(&self) -> MutexGuard<'_, Content<C>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> Content<C> {
    fn has_room(&self, len: usize) -> bool {
        self.max_num_items == 0 || len < self.max_num_items
    }
}

/// The operations that both kinds share, written once for each container.
macro_rules! operations {
    ($queue:ident, $container:ident, $push:ident, $pop:ident, $first:ident, $peek:ident $(, $bound:path)?) => {
        impl<T $(: $bound)?> Default for $queue<T> {
            fn default() -> Self {
                $queue(Guarded::new($container::new()))
            }
        }

        impl<T $(: $bound)?> From<$container<T>> for $queue<T> {
            fn from(items: $container<T>) -> Self {
                $queue(Guarded::new(items))
            }
        }

        impl<T: Clone $(+ $bound)?> Clone for $queue<T> {
            fn clone(&self) -> Self {
                $queue(Guarded(Mutex::new(self.0.lock().clone())))
            }
        }

        impl<T $(: $bound)?> $queue<T> {
            /// Limits the queue; 0 is no limit.
            pub fn set_max_num_items(&self, max_num_items: usize) {
                self.0.lock().max_num_items = max_num_items;
            }

            /// Names the queue in traces.
            pub fn set_identifier(&self, identifier: &str) {
                self.0.lock().identifier = identifier.into();
            }

            /// Name and length, for traces.
            pub fn trace(&self) -> (String, usize) {
                let content = self.0.lock();
                (content.identifier.clone(), content.items.len())
            }

            /// Adds an item; false if the queue is full.
            #[must_use]
            pub fn push(&self, item: T) -> bool {
                let mut content = self.0.lock();
                let has_room = content.has_room(content.items.len());
                if has_room {
                    content.items.$push(item);
                }
                has_room
            }

            /// Takes the first item.
            pub fn pop(&self) -> Option<T> {
                self.0.lock().items.$pop()
            }

            /// A copy of the first item.
            pub fn $first(&self) -> Option<T>
            where
                T: Clone,
            {
                self.0.lock().items.$peek().cloned()
            }

            /// Takes everything, leaving the queue empty.
            pub fn take(&self) -> $container<T> {
                std::mem::take(&mut self.0.lock().items)
            }

            /// Number of items.
            pub fn len(&self) -> usize {
                self.0.lock().items.len()
            }

            /// Whether there is no item.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }
    };
}

operations!(SafeQueue, VecDeque, push_back, pop_front, front, front);
operations!(SafePriorityQueue, BinaryHeap, push, pop, top, peek, Ord);

#[cfg(test)]
mod tests {
    use super::{SafePriorityQueue, SafeQueue};
    use std::cmp::Reverse;
    use std::collections::VecDeque;

    #[test]
    fn an_empty_queue_gives_nothing() {
        let queue = SafeQueue::default();
        assert_eq!((queue.len(), queue.is_empty(), queue.front()), (0, true, None));
        assert!(queue.push(1));
        assert_eq!(queue.front(), Some(1));
        assert_eq!(queue.pop(), Some(1));
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn a_full_queue_refuses_at_its_limit_and_never_waits() {
        let queue = SafeQueue::default();
        queue.set_max_num_items(2);
        assert_eq!([1, 2, 3].map(|item| queue.push(item)), [true, true, false]);
        assert_eq!(queue.pop(), Some(1));
        assert!(queue.push(3));
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some(2), Some(3), None]);
        let queue = SafePriorityQueue::default();
        queue.set_max_num_items(1);
        assert_eq!([queue.push(1), queue.push(2)], [true, false]);
    }

    #[test]
    fn the_greatest_comes_first_and_a_limit_of_0_is_none() {
        let queue = SafePriorityQueue::default();
        for number in (0..100).rev() {
            assert!(queue.push(Reverse(number)));
        }
        assert_eq!(queue.top(), Some(Reverse(0)));
        assert!((0..100).all(|number| queue.pop() == Some(Reverse(number))));
    }

    #[test]
    fn copies_are_independent_and_moving_empties() {
        let queue = SafeQueue::from(VecDeque::from([1, 2]));
        queue.set_identifier("input");
        let copy = queue.clone();
        assert_eq!(queue.take(), [1, 2]);
        assert_eq!((queue.trace(), copy.trace()), (("input".into(), 0), ("input".into(), 2)));
    }

    #[test]
    fn threads_neither_lose_nor_double_items() {
        let queue = SafeQueue::default();
        std::thread::scope(|scope| {
            for start in [0, 1000] {
                let queue = &queue;
                scope.spawn(move || (start..start + 1000).for_each(|item| assert!(queue.push(item))));
            }
        });
        let mut items: Vec<_> = queue.take().into();
        items.sort_unstable();
        assert_eq!(items, (0..2000).collect::<Vec<_>>());
    }
}

//! A bounded lock-free queue of slots for any number of threads at both ends.
//!
//! One word a cell holds the turn of the cell and its value together, so that one exchange fills or empties it:
//!
//! ```text
//! turn p          free for the p-th push        (turn << 32 | nothing)
//! turn p + 1      holds the p-th value          (turn << 32 | slot)
//! turn p + size   free again, one lap later
//! ```
//!
//! The counters at both ends only follow the cells, and whoever finds one behind moves it on. Whoever reads a counter sees the
//! cells that it has passed, so a cell is never found a lap behind it. A thread that is stopped between
//! its exchange and the counter therefore keeps nobody from going on, which matters where threads outnumber CPUs: in a queue
//! that claims a place first and fills it afterwards (`crossbeam`'s `ArrayQueue` for one) a stopped thread hides everything
//! behind it. The queue is as large as the window, so it is never full.

use crate::sync::{Sharing, Word};
use crate::window::{SlotRef, Span};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// The queue. Turns count modulo 2^32: a thread would have to sleep through that many operations to be misled.
pub(super) struct ReadyRing<S: Sharing> {
    /// The tail at [`TAIL`] and the head at [`HEAD`], cache lines apart.
    ends: Span<S::U64>,
    cells: Span<S::U64>,
}

const TAIL: usize = 0;
const HEAD: usize = 16;
/// Words of [`ReadyRing::ends`].
pub(super) const ENDS: usize = 32;

/// The queue gives the value back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Full(pub(super) SlotRef);

impl<S: Sharing> ReadyRing<S> {
    /// An empty queue for at least `entries` values.
    pub(super) fn new(entries: usize) -> ReadyRing<S> {
        let zeros = |count: usize| (0..count).map(|_| S::U64::new(0)).collect::<Box<[_]>>().into();
        let ring = ReadyRing { ends: zeros(ENDS), cells: zeros(size_for(entries)) };
        ring.clear();
        ring
    }

    /// A queue over words that somebody else may use too.
    #[cfg(not(loom))]
    pub(super) fn over(ends: Span<S::U64>, cells: Span<S::U64>) -> ReadyRing<S> {
        ReadyRing { ends, cells }
    }

    /// Empties a queue that nobody else uses yet.
    pub(super) fn clear(&self) {
        // Ordering: Relaxed; whoever shares the queue publishes it.
        for (turn, cell) in self.cells.iter().enumerate() {
            cell.store((turn as u64) << 32, Relaxed);
        }
    }

    #[inline]
    fn cell(&self, position: u64) -> &S::U64 {
        &self.cells[position as usize & (self.cells.len() - 1)]
    }

    /// Puts a value at the end. `retries` counts what others made it do again.
    #[inline]
    pub(super) fn push(&self, slot: SlotRef, retries: &mut u64) -> Result<(), Full> {
        loop {
            // Ordering: Acquire pairs with `follow`; the counter is a hint where to look, the cell decides.
            let tail = self.ends[TAIL].load(Acquire);
            let cell = self.cell(tail);
            let found = cell.load(Acquire); // Ordering: pairs with the exchanges below.
            let turn = turn(found);
            if turn == tail as u32 {
                // Ordering: AcqRel; Release hands the task to whoever takes it, Acquire takes the place over.
                if cell.compare_exchange(found, pack(tail + 1, slot), AcqRel, Relaxed).is_ok() {
                    follow::<S>(&self.ends[TAIL], tail);
                    return Ok(());
                }
            } else if turn.wrapping_sub(tail as u32).cast_signed() > 0 {
                // The place is filled, and perhaps taken again; only the counter is behind.
                follow::<S>(&self.ends[TAIL], tail);
            } else if self.ends[TAIL].load(Relaxed) == tail {
                return Err(Full(slot));
            }
            *retries += 1;
        }
    }

    /// Takes the value at the front. `retries` as for [`ReadyRing::push`].
    #[inline]
    pub(super) fn pop(&self, retries: &mut u64) -> Option<SlotRef> {
        loop {
            // Ordering: Acquire pairs with `follow`: the cell is not seen as it was a lap before.
            let head = self.ends[HEAD].load(Acquire);
            let cell = self.cell(head);
            let found = cell.load(Acquire); // Ordering: pairs with the exchange of `push`.
            let turn = turn(found);
            if turn == (head as u32).wrapping_add(1) {
                let free = pack(head + self.cells.len() as u64, 0);
                // Ordering: AcqRel; Acquire takes the task over, Release hands the place to the next lap.
                if cell.compare_exchange(found, free, AcqRel, Relaxed).is_ok() {
                    follow::<S>(&self.ends[HEAD], head);
                    return Some(found as SlotRef);
                }
            } else if turn == head as u32 {
                if self.ends[HEAD].load(Relaxed) == head {
                    return None;
                }
            } else {
                follow::<S>(&self.ends[HEAD], head);
            }
            *retries += 1;
        }
    }

    /// Whether there is nothing to take.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        loop {
            let head = self.ends[HEAD].load(Acquire); // Ordering: as in `pop`.
            let turn = turn(self.cell(head).load(Acquire)); // Ordering: pairs with the exchange of `push`.
            if turn == (head as u32).wrapping_add(1) {
                return false;
            }
            if turn == head as u32 {
                return true;
            }
            follow::<S>(&self.ends[HEAD], head);
        }
    }

    /// Whether the place for the next push is as the one thread that pushes left it. Otherwise somebody else wrote there, and
    /// a push could look for its place for ever.
    #[cfg(not(loom))]
    pub(super) fn is_back_sound(&self) -> bool {
        let tail = self.ends[TAIL].load(Relaxed); // Ordering: the caller's own word.
        let turn = turn(self.cell(tail).load(Acquire)); // Ordering: pairs with the exchange of `pop`.
        turn.wrapping_sub(tail as u32).cast_signed() <= 0
    }

    /// Whether the next value, or the place for it, is as the one thread that pops must find it.
    #[cfg(not(loom))]
    pub(super) fn is_front_sound(&self) -> bool {
        let head = self.ends[HEAD].load(Relaxed); // Ordering: the caller's own word.
        let turn = turn(self.cell(head).load(Acquire)); // Ordering: pairs with the exchange of `push`.
        turn.wrapping_sub(head as u32) <= 1
    }

    /// About how many values wait.
    #[inline]
    pub(super) fn len(&self) -> u64 {
        // Ordering: Relaxed; a hint.
        self.ends[TAIL].load(Relaxed).saturating_sub(self.ends[HEAD].load(Relaxed))
    }
}

/// Cells for this many entries. With a single cell the turns of a value and of the next free place would be the same.
pub(super) fn size_for(entries: usize) -> usize {
    entries.next_power_of_two().max(2)
}

/// Moves a counter on from a position that is done; somebody else may have.
#[inline]
fn follow<S: Sharing>(counter: &S::U64, position: u64) {
    // Ordering: Release; who reads the counter sees this cell as the caller saw it, and through the chain of exchanges all before it.
    let _ = counter.compare_exchange(position, position + 1, Release, Relaxed);
}

#[inline]
fn pack(turn: u64, slot: SlotRef) -> u64 {
    turn << 32 | u64::from(slot)
}

#[inline]
fn turn(cell: u64) -> u32 {
    (cell >> 32) as u32
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sync::Shared;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn values_come_out_in_order_over_many_laps() {
        let ring = ReadyRing::<Shared>::new(4);
        for lap in 0..100 {
            for value in 0..4 {
                assert_eq!(ring.push(lap * 4 + value, &mut 0), Ok(()));
            }
            assert_eq!(ring.push(1000, &mut 0), Err(Full(1000)));
            for value in 0..4 {
                assert_eq!(ring.pop(&mut 0), Some(lap * 4 + value));
            }
            assert_eq!(ring.pop(&mut 0), None);
            assert!(ring.is_empty());
        }
    }

    #[test]
    fn pu_03_a_full_ring_refuses_until_its_first_value_is_taken() {
        let ring = ReadyRing::<Shared>::new(4);
        let pushed = [1, 2, 3, 4, 5].map(|value| ring.push(value, &mut 0).is_ok());
        assert_eq!(pushed, [true, true, true, true, false]);
        assert_eq!((ring.pop(&mut 0), ring.len()), (Some(1), 3));
        assert_eq!((ring.push(5, &mut 0), ring.len()), (Ok(()), 4));
        assert_eq!([(); 5].map(|()| ring.pop(&mut 0)), [Some(2), Some(3), Some(4), Some(5), None]);
        assert_eq!((ring.len(), ring.is_empty()), (0, true));
    }

    #[test]
    fn pu_13_every_value_passes_exactly_once_whatever_the_number_of_threads() {
        for (producers, consumers) in [(1, 1), (4, 4), (8, 2), (2, 8)] {
            for cells in [2, 64] {
                let seen = pass(producers, consumers, cells);
                let lost = seen.iter().filter(|&&count| count != 1).count();
                assert_eq!(lost, 0, "{producers} producers, {consumers} consumers, {cells} cells");
            }
        }
    }

    /// Sends many values a producer through a ring; how often each came out.
    fn pass(producers: u32, consumers: u32, cells: usize) -> Vec<u64> {
        const EACH: u32 = if cfg!(miri) { 40 } else { 10_000 };
        let ring = ReadyRing::<Shared>::new(cells);
        let seen: Vec<AtomicU64> = (0..producers * EACH).map(|_| AtomicU64::new(0)).collect();
        let taken = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for producer in 0..producers {
                let ring = &ring;
                scope.spawn(move || {
                    for value in 0..EACH {
                        while ring.push(producer * EACH + value, &mut 0).is_err() {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            for _ in 0..consumers {
                scope.spawn(|| {
                    while taken.load(Ordering::Relaxed) < u64::from(producers * EACH) {
                        match ring.pop(&mut 0) {
                            Some(value) => {
                                seen[value as usize].fetch_add(1, Ordering::Relaxed);
                                taken.fetch_add(1, Ordering::Relaxed);
                            }
                            None => std::thread::yield_now(),
                        }
                    }
                });
            }
        });
        seen.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::Shared;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn two_pushers_and_a_taker_over_a_lap_of_two_cells() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(Some(2));
        builder.check(|| {
            let ring = Arc::new(ReadyRing::<Shared>::new(2));
            let pushers = [1, 2].map(|value| {
                let ring = Arc::clone(&ring);
                thread::spawn(move || ring.push(value, &mut 0).expect("two cells hold two values"))
            });
            let mut values: Vec<_> = ring.pop(&mut 0).into_iter().collect();
            for pusher in pushers {
                pusher.join().expect("pushers end");
            }
            // The third value goes into a cell that was used before.
            if !values.is_empty() {
                assert_eq!(ring.push(3, &mut 0), Ok(()));
            }
            values.extend(std::iter::from_fn(|| ring.pop(&mut 0)));
            values.sort_unstable();
            assert_eq!(values, if values.len() == 3 { vec![1, 2, 3] } else { vec![1, 2] });
        });
    }

    /// One takes both values while another looks. Were the counter seen before the cells that it has passed, the other would move
    /// it on over a place that is still to be filled, and the next value would never come out.
    #[test]
    fn a_counter_is_never_seen_before_the_cells_it_has_passed() {
        loom::model(|| {
            let ring = Arc::new(ReadyRing::<Shared>::new(2));
            for value in [1, 2] {
                ring.push(value, &mut 0).expect("two cells hold two values");
            }
            let theirs = Arc::clone(&ring);
            let taker = thread::spawn(move || [(); 2].map(|()| theirs.pop(&mut 0)));
            let seen = ring.pop(&mut 0);
            let taken = taker.join().expect("the taker ends");
            assert_eq!(taken.into_iter().chain([seen]).flatten().sum::<SlotRef>(), 3, "each value once");
            assert_eq!((ring.push(3, &mut 0), ring.pop(&mut 0)), (Ok(()), Some(3)));
        });
    }
}

//! Readers and the pages that lie before them.
//!
//! ```text
//! engine ── page ──▶ desk: reader, pages ─┐
//!            └─────▶ desk: reader, pages ─┴─▶ whoever is free lets the reader that is furthest behind read its next page
//! ```
//!
//! Those who are free are threads made for it, the engine when a reader is too far behind, and who waits for the end of a reader. So
//! every processor has work as long as there is any, wherever the system lets threads run.

use super::words::Page;
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Pages before a reader at which the engine stops to let it read.
const MANY: usize = 8;
/// Pages before a reader with which the engine leaves it to others.
const FEW: usize = 4;

/// A reader whatever its type.
pub(super) trait PageReader: Send {
    /// Reads the next page.
    fn read(&mut self, page: &Page);
    /// There is no other page.
    fn end(self: Box<Self>);
}

/// All readers.
#[derive(Default)]
pub(super) struct Desks {
    state: Mutex<State>,
    /// Told when there is something to read, room for pages, or an end.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    desks: Vec<Desk>,
    /// Pages that everybody has read.
    used: Vec<Page>,
    /// Whether no page follows those that lie here.
    is_over: bool,
    /// What the first reader said that panicked.
    panic: Option<Box<dyn Any + Send>>,
    /// Threads that wait for a change.
    n_waiting: usize,
}

struct Desk {
    seat: Seat,
    pages: VecDeque<Arc<Page>>,
}

enum Seat {
    Free(Box<dyn PageReader>),
    /// Somebody lets it read.
    Taken,
    /// It came to the end, or panicked.
    Left,
}

/// A reader that is taken, and the page it reads; none is its end.
struct Turn {
    desk: usize,
    reader: Box<dyn PageReader>,
    page: Option<Arc<Page>>,
}

impl Desks {
    /// Adds a reader and returns its number.
    pub(super) fn add(&self, reader: Box<dyn PageReader>) -> usize {
        let desks = &mut self.lock().desks;
        desks.push(Desk { seat: Seat::Free(reader), pages: VecDeque::new() });
        desks.len() - 1
    }

    /// A page to be used again.
    pub(super) fn used(&self) -> Option<Page> {
        self.lock().used.pop()
    }

    /// Lays a page before all readers, and lets some read if they are far behind.
    pub(super) fn hand_on(&self, page: Page) {
        let (page, mut state) = (Arc::new(page), self.lock());
        for desk in state.desks.iter_mut().filter(|desk| !matches!(desk.seat, Seat::Left)) {
            desk.pages.push_back(Arc::clone(&page));
        }
        state.used.extend(Arc::into_inner(page));
        self.tell(&state);
        if state.longest() >= MANY {
            self.catch_up(state);
        }
    }

    /// Lets readers read until none is far behind.
    fn catch_up<'a>(&'a self, mut state: MutexGuard<'a, State>) {
        loop {
            state = match state.take(FEW + 1, None) {
                Some(turn) => self.read(state, turn),
                None if state.longest() >= MANY => self.wait(state),
                None => return,
            };
        }
    }

    /// No page follows: readers come to the end.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.is_over = true;
        self.tell(&state);
    }

    /// Lets readers read until all have come to the end.
    pub(super) fn read_all(&self) {
        self.read_until(None, |state| state.desks.iter().all(Desk::is_left));
    }

    /// Lets readers read, this one before others, until it has come to the end.
    pub(super) fn read_to_end(&self, desk: usize) {
        self.read_until(Some(desk), |state| state.desks[desk].is_left());
    }

    /// What the first reader said that panicked.
    pub(super) fn panic(&self) -> Option<Box<dyn Any + Send>> {
        self.lock().panic.take()
    }

    fn read_until(&self, first: Option<usize>, is_enough: impl Fn(&State) -> bool) {
        let mut state = self.lock();
        while !is_enough(&state) {
            state = match state.take(1, first) {
                Some(turn) => self.read(state, turn),
                None => self.wait(state),
            };
        }
    }

    /// Lets a reader read, and takes the lock again when it has.
    fn read<'a>(&'a self, state: MutexGuard<'a, State>, turn: Turn) -> MutexGuard<'a, State> {
        drop(state);
        let Turn { desk, mut reader, page } = turn;
        let read = catch_unwind(AssertUnwindSafe(|| match &page {
            Some(page) => {
                reader.read(page);
                Seat::Free(reader)
            }
            None => {
                reader.end();
                Seat::Left
            }
        }));
        let used = page.and_then(Arc::into_inner);
        let mut state = self.lock();
        state.used.extend(used);
        state.desks[desk].seat = read.unwrap_or_else(|panic| {
            state.panic.get_or_insert(panic);
            state.desks[desk].pages.clear();
            Seat::Left
        });
        self.tell(&state);
        state
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.n_waiting += 1;
        let mut state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.n_waiting -= 1;
        state
    }

    fn tell(&self, state: &State) {
        if state.n_waiting > 0 {
            self.changed.notify_all();
        }
    }
}

impl State {
    /// The most pages before a reader.
    fn longest(&self) -> usize {
        self.desks.iter().map(|desk| desk.pages.len()).max().unwrap_or(0)
    }

    /// Takes the free reader with most pages, but at least so many, or this one if it has any; or one that came to the end.
    fn take(&mut self, least: usize, first: Option<usize>) -> Option<Turn> {
        let is_over = self.is_over;
        let waiting = self.desks.iter().enumerate().filter(|(_, desk)| desk.waits(least, is_over));
        let (index, _) = waiting.max_by_key(|&(index, desk)| (Some(index) == first, desk.pages.len()))?;
        let desk = &mut self.desks[index];
        let Seat::Free(reader) = std::mem::replace(&mut desk.seat, Seat::Taken) else { return None };
        Some(Turn { desk: index, reader, page: desk.pages.pop_front() })
    }
}

impl Desk {
    fn is_left(&self) -> bool {
        matches!(self.seat, Seat::Left)
    }

    /// Whether somebody should let it read.
    fn waits(&self, least: usize, is_over: bool) -> bool {
        matches!(self.seat, Seat::Free(_)) && (self.pages.len() >= least || is_over)
    }
}

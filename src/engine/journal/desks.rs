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

/// A reader that is taken, and the page it reads; without a page it comes to its end.
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
        let read = catch_unwind(AssertUnwindSafe(|| {
            let Some(page) = &page else {
                reader.end();
                return Seat::Left;
            };
            reader.read(page);
            Seat::Free(reader)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::thread;

    /// Counts pages in `told.0`, falls over one of them, and tells its end in `told.1`.
    struct Counts {
        told: Arc<(AtomicUsize, AtomicUsize)>,
        panics_at: usize,
    }

    impl PageReader for Counts {
        fn read(&mut self, page: &Page) {
            let n_before = self.told.0.fetch_add(1, SeqCst);
            assert_eq!(page.used, n_before, "pages come in order");
            assert_ne!(n_before, self.panics_at, "told to");
        }

        fn end(self: Box<Self>) {
            self.told.1.fetch_add(1, SeqCst);
        }
    }

    /// Lays so many pages before readers that fall over some page; returns what each told.
    fn read(n_pages: usize, n_threads: usize, panics: &[usize]) -> (Desks, Vec<(usize, usize)>) {
        let (desks, mut told) = (Desks::default(), Vec::new());
        for &panics_at in panics {
            let counts = Counts { told: Arc::default(), panics_at };
            told.push(Arc::clone(&counts.told));
            desks.add(Box::new(counts));
        }
        thread::scope(|scope| {
            (0..n_threads).for_each(|_| drop(scope.spawn(|| desks.read_all())));
            for number in 0..n_pages {
                let mut page = desks.used().map_or_else(Page::empty, Page::wiped);
                page.used = number;
                desks.hand_on(page);
                assert!(desks.lock().longest() < MANY, "memory is bounded");
            }
            desks.end();
            desks.read_to_end(0);
            desks.read_all();
        });
        (desks, told.iter().map(|told| (told.0.load(SeqCst), told.1.load(SeqCst))).collect())
    }

    const NEVER: usize = usize::MAX;

    #[test]
    fn every_reader_gets_every_page_in_order_with_any_number_of_threads() {
        for n_threads in [0, 1, 3] {
            let (desks, told) = read(60, n_threads, &[NEVER; 3]);
            assert_eq!(told, [(60, 1); 3], "{n_threads} threads");
            assert!(desks.panic().is_none());
        }
    }

    #[test]
    fn a_reader_that_panics_leaves_and_the_others_go_on() {
        for n_threads in [0, 2] {
            let (desks, told) = read(30, n_threads, &[4, NEVER]);
            assert_eq!(told, [(5, 0), (30, 1)], "{n_threads} threads");
            assert!(desks.panic().is_some());
        }
    }
}

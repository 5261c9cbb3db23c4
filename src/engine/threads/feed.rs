//! A program that is written while it is read: what an embedding program submits, one operation at a time.

use crate::id::{BufferId, TaskType};
use crate::workload::{Cost, NewBuffer, Operation, Region, Source, Submit, Symbols, WorkloadError};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Operations not yet read.
#[derive(Default)]
pub(super) struct Feed {
    entries: VecDeque<Entry>,
    n_buffers: u32,
}

/// One operation.
pub(super) enum Entry {
    Submit(Box<Order>),
    ScopeBegin,
    ScopeEnd,
}

/// A kernel and its regions.
pub(super) struct Order {
    kernel: String,
    kind: TaskType,
    pub(super) reads: Vec<Region>,
    pub(super) updates: Vec<Region>,
    pub(super) writes: Vec<Region>,
    pub(super) allocates: Vec<NewBuffer>,
}

impl Order {
    pub(super) fn new(kernel: &str, kind: TaskType) -> Order {
        let kernel = kernel.to_string();
        Order { kernel, kind, reads: Vec::new(), updates: Vec::new(), writes: Vec::new(), allocates: Vec::new() }
    }
}

impl From<Order> for Entry {
    fn from(order: Order) -> Entry {
        Entry::Submit(Box::new(order))
    }
}

impl Feed {
    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push_back(entry);
    }

    pub(super) fn next_buffer(&mut self) -> BufferId {
        self.n_buffers += 1;
        BufferId(self.n_buffers - 1)
    }
}

/// Reads a feed; an empty one looks like the end of the program until more is written.
pub(super) struct FeedSource {
    feed: Rc<RefCell<Feed>>,
    symbols: Symbols,
    buffers: Symbols,
}

impl FeedSource {
    pub(super) fn new(feed: Rc<RefCell<Feed>>) -> FeedSource {
        FeedSource { feed, symbols: Symbols::default(), buffers: Symbols::default() }
    }
}

impl Source for FeedSource {
    fn next(&mut self, task: &mut Submit) -> Result<Option<Operation>, WorkloadError> {
        Ok(match self.feed.borrow_mut().entries.pop_front() {
            None => None,
            Some(Entry::ScopeBegin) => Some(Operation::ScopeBegin),
            Some(Entry::ScopeEnd) => Some(Operation::ScopeEnd),
            Some(Entry::Submit(order)) => {
                task.clear();
                let Order { kernel, kind, reads, updates, writes, allocates } = *order;
                task.kernel = Some(self.symbols.intern(&kernel));
                task.kind = Some(kind);
                task.cost = Some(Cost::Cycles(1));
                (task.reads, task.updates, task.writes, task.allocates) = (reads, updates, writes, allocates);
                Some(Operation::Submit)
            }
        })
    }

    fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    fn buffers(&self) -> &Symbols {
        &self.buffers
    }
}

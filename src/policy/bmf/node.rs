//! A node of the stream graph with the tasks it holds, and the streams between nodes.

use crate::id::TaskId;
use crate::policy::mostly_sorted::MostlySorted;
use crate::policy::number_set::NumberSet;
use crate::window::SlotRef;

/// A node of the stream graph.
pub(super) struct Node {
    pub held: Held,
    /// Tasks scheduled and not processed.
    pub pending: u64,
    pub limit: u64,
    /// How many of its streams are full.
    pub full_streams: u32,
    /// Tasks not scheduled yet, READY or not.
    pub unscheduled: u64,
    /// Tasks neither processed nor cancelled.
    pub left: u64,
    /// Where its part of the list of live upstream nodes begins, and how many they are.
    pub live: (u32, u32),
    /// Its place among all nodes.
    pub place: u32,
    /// How many nodes of that part passes have skipped since it was last tidied.
    pub skipped: u32,
    /// The last pass that met it.
    pub met: u64,
    /// When a pass last found nobody able here and upstream; that holds until a node becomes able.
    pub clear: u64,
    /// Whether neither it nor any node before it can schedule anything any more.
    pub is_exhausted: bool,
    /// Whether it could schedule a task if it were asked.
    pub is_able: bool,
    /// Nothing of it is scheduled.
    pub is_paused: bool,
    /// What it still has is not to run.
    pub is_force_closed: bool,
    pub processed: u64,
    pub pending_high: u64,
    pub held_high: usize,
    pub last_schedule: Option<u64>,
    pub closed_at: Option<u64>,
}

/// READY tasks of a node that are not scheduled: the smallest timestamp first, then the smallest id.
/// Most nodes never have more than one, for which nothing is allocated.
#[derive(Default)]
pub(super) struct Held {
    pub first: Option<Waiting>,
    rest: MostlySorted<Waiting>,
}

/// Timestamp, task and slot.
pub(super) type Waiting = (i64, TaskId, SlotRef);

/// Packets on the way from one node to another.
#[derive(Clone, Default)]
pub(super) struct Stream {
    /// Completed tasks of the one with a consumer in the other that is not scheduled.
    pub waiting: u64,
    pub limit: u64,
    pub high: u64,
}

impl Node {
    pub fn new(limit: u64, n_tasks: u64, live: (u32, u32), place: u32) -> Node {
        Node {
            held: Held::default(),
            pending: 0,
            limit,
            full_streams: 0,
            unscheduled: n_tasks,
            left: n_tasks,
            live,
            place,
            skipped: 0,
            met: 0,
            clear: 0,
            is_exhausted: false,
            is_able: false,
            is_paused: false,
            is_force_closed: false,
            processed: 0,
            pending_high: 0,
            held_high: 0,
            last_schedule: None,
            closed_at: None,
        }
    }

    /// Looks again whether it is able; true if it has become so.
    #[inline]
    pub fn review(&mut self, able: &mut NumberSet) -> bool {
        let is_able = !self.held.is_empty() && !self.is_held_back();
        let was_able = std::mem::replace(&mut self.is_able, is_able);
        match (was_able, is_able) {
            (false, true) => able.insert(self.place),
            (true, false) => able.remove(self.place),
            _ => {}
        }
        is_able && !was_able
    }

    /// Whether it has too many tasks pending, or a node behind it too many packets waiting.
    pub fn is_held_back(&self) -> bool {
        self.pending >= self.limit || self.full_streams > 0
    }
}

impl Held {
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    #[inline]
    pub fn push(&mut self, task: Waiting) {
        match self.first {
            None => self.first = Some(task),
            Some(first) => {
                self.rest.push(first.max(task));
                self.first = Some(first.min(task));
            }
        }
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Waiting> {
        std::mem::replace(&mut self.first, self.rest.pop())
    }

    /// Takes all tasks out, in their order.
    pub fn take_sorted(&mut self) -> Vec<Waiting> {
        self.first.take().into_iter().chain(self.rest.take_sorted()).collect()
    }
}

impl Stream {
    pub fn is_full(&self) -> bool {
        self.waiting >= self.limit
    }
}

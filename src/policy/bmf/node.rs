//! A node of the stream graph with the tasks it holds.

use super::graph::NodeGraph;
use crate::policy::mostly_sorted::MostlySorted;
use crate::window::{NONE, SlotRef};

/// A node of the stream graph.
#[derive(Default)]
pub(super) struct Node {
    pub held: Held,
    /// Tasks scheduled and not processed.
    pub pending: u32,
    /// How many of its streams are full.
    pub full_streams: u32,
    /// Tasks not scheduled yet, READY or not.
    pub unscheduled: u32,
    /// Tasks neither processed nor cancelled.
    pub left: u32,
    /// Whether neither it nor any node before it can schedule anything any more.
    pub is_exhausted: bool,
    /// Whether it could schedule a task if it were asked.
    pub is_able: bool,
    /// Nothing of it is scheduled.
    pub is_paused: bool,
    /// What it still has is not to run.
    pub is_force_closed: bool,
}

/// How many of its tasks may be pending, and how many packets of another node may wait for a node.
pub(super) struct Limits {
    /// For most nodes.
    pub usual: u32,
    /// By node, if the configuration says anything of any.
    pub own: Vec<u32>,
}

/// READY tasks of a node that are not scheduled: the smallest timestamp first, then the smallest id.
/// Most nodes never have more than one, for which nothing is allocated.
pub(super) struct Held {
    /// The first task, or [`NONE`], and its slot.
    task: u32,
    slot: SlotRef,
    len: u32,
    rest: Option<Box<MostlySorted<Waiting>>>,
}

/// Timestamp, task and slot.
pub(super) type Waiting = (i64, u32, SlotRef);

impl Node {
    pub fn new(n_tasks: u32) -> Node {
        Node { unscheduled: n_tasks, left: n_tasks, ..Node::default() }
    }

    /// Whether it has too many tasks pending, or a node behind it too many packets waiting.
    #[inline]
    pub fn is_held_back(&self, limit: u32) -> bool {
        self.pending >= limit || self.full_streams > 0
    }
}

impl Limits {
    #[inline]
    pub fn of(&self, node: u32) -> u32 {
        self.own.get(node as usize).copied().unwrap_or(self.usual)
    }
}

impl Default for Held {
    fn default() -> Held {
        Held { task: NONE, slot: 0, len: 0, rest: None }
    }
}

impl Held {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.task == NONE
    }

    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// The first task.
    pub fn first(&self) -> Option<u32> {
        (!self.is_empty()).then_some(self.task)
    }

    #[inline]
    pub fn push(&mut self, task: u32, slot: SlotRef, graph: &NodeGraph) {
        self.len += 1;
        if self.is_empty() {
            (self.task, self.slot) = (task, slot);
            return;
        }
        let first = (graph.timestamp(self.task), self.task, self.slot);
        let new = (graph.timestamp(task), task, slot);
        self.rest.get_or_insert_default().push(first.max(new));
        (_, self.task, self.slot) = first.min(new);
    }

    #[inline]
    pub fn pop(&mut self) -> Option<(u32, SlotRef)> {
        if self.is_empty() {
            return None;
        }
        let first = (self.task, self.slot);
        self.len -= 1;
        let next = if self.len == 0 { None } else { self.rest.as_mut().and_then(|rest| rest.pop()) };
        (self.task, self.slot) = next.map_or((NONE, 0), |(_, task, slot)| (task, slot));
        Some(first)
    }

    /// Takes all tasks out, in their order.
    pub fn take_all(&mut self) -> Vec<(u32, SlotRef)> {
        std::iter::from_fn(|| self.pop()).collect()
    }
}

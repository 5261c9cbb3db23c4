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
    /// The queue that its tasks go to, or [`NONE`] if they take no worker; nothing if each task has its own.
    pub queue: u32,
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
    rest: Option<Box<MostlySorted<Waiting>>>,
}

/// Rank in the node, task and slot, packed, because numbers are compared faster than fields.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting(u128);

impl Waiting {
    #[inline]
    fn new(task: u32, slot: SlotRef, graph: &NodeGraph) -> Waiting {
        // With the sign turned round, numbers without a sign are in the same order.
        let rank = graph.rank_in_node(task).cast_unsigned() ^ 1 << 63;
        Waiting(u128::from(rank) << 64 | u128::from(task) << 32 | u128::from(slot))
    }

    #[inline]
    fn task_and_slot(self) -> (u32, SlotRef) {
        ((self.0 >> 32) as u32, self.0 as SlotRef)
    }
}

impl Node {
    pub fn new(n_tasks: u32, queue: u32) -> Node {
        // Tasks without a worker are never scheduled.
        let unscheduled = if queue == NONE { 0 } else { n_tasks };
        Node { unscheduled, left: n_tasks, queue, ..Node::default() }
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
        Held { task: NONE, slot: 0, rest: None }
    }
}

impl Held {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.task == NONE
    }

    pub fn len(&self) -> u32 {
        u32::from(!self.is_empty()) + self.rest.as_ref().map_or(0, |rest| rest.len() as u32)
    }

    /// The first task.
    pub fn first(&self) -> Option<u32> {
        (!self.is_empty()).then_some(self.task)
    }

    /// Puts a task in; whether it is the only one.
    #[inline]
    pub fn push(&mut self, task: u32, slot: SlotRef, graph: &NodeGraph) -> bool {
        if self.is_empty() {
            (self.task, self.slot) = (task, slot);
            return true;
        }
        let (first, new) = (Waiting::new(self.task, self.slot, graph), Waiting::new(task, slot, graph));
        self.rest.get_or_insert_default().push(first.max(new));
        (self.task, self.slot) = first.min(new).task_and_slot();
        false
    }

    #[inline]
    pub fn pop(&mut self) -> Option<(u32, SlotRef)> {
        if self.is_empty() {
            return None;
        }
        let first = (self.task, self.slot);
        let next = self.rest.as_mut().and_then(|rest| rest.pop());
        (self.task, self.slot) = next.map_or((NONE, 0), Waiting::task_and_slot);
        Some(first)
    }

    /// No task comes any more: others can have the memory.
    pub fn give_up_room(&mut self) {
        self.rest = None;
    }

    /// Takes all tasks out, in their order.
    pub fn take_all(&mut self) -> Vec<(u32, SlotRef)> {
        std::iter::from_fn(|| self.pop()).collect()
    }
}

//! A node of the stream graph with the tasks it holds.

use super::graph::NodeGraph;
use crate::policy::mostly_sorted::MostlySorted;
use crate::window::{NONE, SlotRef};

/// A node of the stream graph: half a cache line.
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
    queue: [u8; 3],
    flags: u8,
}

/// What is true of a node.
#[derive(Clone, Copy)]
pub(super) enum Flag {
    /// It could schedule a task if it were asked.
    Able = 1,
    /// Nothing of it is scheduled.
    Paused = 2,
    /// What it still has is not to run.
    ForceClosed = 4,
    /// Some stream into it was full once.
    WasFull = 8,
}

/// How many of its tasks may be pending, and how many packets of another node may wait for a node.
pub(super) struct Limits {
    /// For most nodes.
    pub usual: u32,
    /// By node, if the configuration says anything of any.
    pub own: Vec<u32>,
}

/// READY tasks of a node that are not scheduled: the smallest timestamp first, then the smallest id.
/// Most nodes never have more than one, for which no row is taken.
pub(super) struct Held {
    /// The first task, or [`NONE`], and its slot.
    task: u32,
    slot: SlotRef,
    /// The row of the others, or [`NONE`].
    row: u32,
}

/// Rows in which tasks wait behind the first ones of their nodes. A node has one only while there are such tasks, so that few of them
/// are used again and again.
#[derive(Default)]
pub(super) struct Rows {
    rows: Vec<MostlySorted<Waiting>>,
    /// Those that no node has.
    free: Vec<u32>,
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
    /// A node whose tasks go to this queue, or take no worker if it is [`NONE`]. There are far fewer than 2^24 workers.
    pub fn new(n_tasks: u32, queue: u32) -> Node {
        // Tasks without a worker are never scheduled.
        let unscheduled = if queue == NONE { 0 } else { n_tasks };
        let [a, b, c, _] = queue.to_le_bytes();
        Node { unscheduled, left: n_tasks, queue: [a, b, c], ..Node::default() }
    }

    /// The queue that its tasks go to, or [`NONE`] if they take no worker; nothing if each task has its own.
    #[inline]
    pub fn queue(&self) -> u32 {
        let [a, b, c] = self.queue;
        let queue = u32::from_le_bytes([a, b, c, 0]);
        if queue == NONE >> 8 { NONE } else { queue }
    }

    #[inline]
    pub fn is(&self, flag: Flag) -> bool {
        self.flags & flag as u8 != 0
    }

    #[inline]
    pub fn set(&mut self, flag: Flag, is_true: bool) {
        self.flags = if is_true { self.flags | flag as u8 } else { self.flags & !(flag as u8) };
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

impl Rows {
    #[inline]
    fn push(&mut self, row: &mut u32, waiting: Waiting) {
        if *row == NONE {
            *row = self.free.pop().unwrap_or_else(|| {
                self.rows.push(MostlySorted::default());
                self.rows.len() as u32 - 1
            });
        }
        self.rows[*row as usize].push(waiting);
    }

    #[inline]
    fn pop(&mut self, row: &mut u32) -> Option<Waiting> {
        let tasks = self.rows.get_mut(*row as usize)?;
        let first = tasks.pop();
        if tasks.is_empty() {
            self.free.push(std::mem::replace(row, NONE));
        }
        first
    }
}

impl Default for Held {
    fn default() -> Held {
        Held { task: NONE, slot: 0, row: NONE }
    }
}

impl Held {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.task == NONE
    }

    pub fn len(&self, rows: &Rows) -> u32 {
        u32::from(!self.is_empty()) + rows.rows.get(self.row as usize).map_or(0, |row| row.len() as u32)
    }

    /// The first task.
    pub fn first(&self) -> Option<u32> {
        (!self.is_empty()).then_some(self.task)
    }

    /// Puts a task in; whether it is the only one.
    #[inline]
    pub fn push(&mut self, task: u32, slot: SlotRef, graph: &NodeGraph, rows: &mut Rows) -> bool {
        if self.is_empty() {
            (self.task, self.slot) = (task, slot);
            return true;
        }
        let (first, new) = (Waiting::new(self.task, self.slot, graph), Waiting::new(task, slot, graph));
        rows.push(&mut self.row, first.max(new));
        (self.task, self.slot) = first.min(new).task_and_slot();
        false
    }

    #[inline]
    pub fn pop(&mut self, rows: &mut Rows) -> Option<(u32, SlotRef)> {
        if self.is_empty() {
            return None;
        }
        let first = (self.task, self.slot);
        (self.task, self.slot) = rows.pop(&mut self.row).map_or((NONE, 0), Waiting::task_and_slot);
        Some(first)
    }

    /// Takes all tasks out, in their order.
    pub fn take_all(&mut self, rows: &mut Rows) -> Vec<(u32, SlotRef)> {
        std::iter::from_fn(|| self.pop(rows)).collect()
    }
}

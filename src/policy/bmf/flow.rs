//! The flow of tasks from nodes into queues: which node may schedule a task now, and which must wait.
//!
//! A READY task waits in its node. Scheduling a node moves its oldest task into a queue; a node is held back when too many
//! of its tasks are scheduled and not processed, or when too many packets wait for one of the nodes behind it.
//!
//! ```text
//! READY ─▶ node ─schedule_node▶ queue ─▶ worker ─▶ processed ─▶ packets in the streams to the nodes behind
//!            ▲ held back by its own pending tasks and by full streams           │
//!            └─────────────── sched_required, upstream first ◀──────────────────┘
//! ```

use super::choose::NodeTable;
use super::config::{Config, NodeConfig};
use super::graph::{NodeGraph, Outlet, QUEUED, Stream};
use super::node::{Limits, Node};
use super::pass::Passes;
use super::record::{LISTED, NodeRecord};
use crate::id::TaskId;
use crate::policy::number_set::NumberSet;
use crate::window::{NONE, SlotRef};

/// All nodes and streams of a run.
pub(super) struct Flow {
    pub shape: NodeGraph,
    pub nodes: Vec<Node>,
    /// What the report tells of the nodes it lists.
    pub records: Vec<NodeRecord>,
    /// Tasks scheduled by the last calls, in order, to be put into their queues.
    pub scheduled: Vec<Scheduled>,
    /// Nodes closed by the last calls.
    pub closed: Vec<u32>,
    /// Tasks neither processed nor cancelled.
    pub left: u64,
    /// READY tasks not scheduled.
    pub held: usize,
    /// When a task was scheduled last.
    pub last_schedule: u64,
    /// Whether anything is scheduled at all.
    pub is_open: bool,
    limits: Limits,
    table: NodeTable,
    /// Nodes with READY tasks not scheduled.
    holding: NumberSet,
    pub(super) passes: Passes,
}

/// A task that left its node.
#[derive(Clone, Copy)]
pub(super) struct Scheduled {
    pub task: u32,
    pub slot: SlotRef,
    pub node: i32,
    pub timestamp: i64,
    /// Although it was held back.
    pub by_force: bool,
}

impl Flow {
    pub fn new(shape: NodeGraph, config: &Config) -> Flow {
        let limit = |id| u32::try_from(config.node(id).queue_length_limit).unwrap_or(u32::MAX);
        let n_nodes = shape.n_tasks.len();
        let own = if config.nodes.is_empty() { 0 } else { n_nodes as u32 };
        let mut flow = Flow {
            limits: Limits {
                usual: NodeConfig::default().queue_length_limit as u32,
                own: (0..own).map(|node| limit(shape.id(node))).collect(),
            },
            nodes: shape.n_tasks.iter().map(|&n_tasks| Node::new(n_tasks)).collect(),
            records: vec![NodeRecord::default(); n_nodes.min(LISTED)],
            scheduled: Vec::new(),
            closed: Vec::new(),
            left: shape.tasks.len() as u64,
            held: 0,
            last_schedule: 0,
            is_open: false,
            table: NodeTable::default(),
            holding: NumberSet::new(n_nodes),
            passes: Passes::new(&shape),
            shape,
        };
        // Tasks without a worker are never scheduled.
        for member in &flow.shape.tasks {
            flow.nodes[member.node as usize].unscheduled -= u32::from(!member.is_scheduled());
        }
        flow
    }

    #[inline]
    pub fn node_of(&self, task: TaskId) -> u32 {
        self.shape.tasks[task.0 as usize].node
    }

    /// A READY task waits in its node.
    pub fn hold(&mut self, task: TaskId, slot: SlotRef) {
        let index = self.node_of(task);
        let node = &mut self.nodes[index as usize];
        node.held.push(task.0 as u32, slot, &self.shape);
        let n_held = node.held.len();
        // Both are looked at for the first time since the program was read: what it consumes when it is scheduled, and what
        // consumes from it when it is completed.
        let task = task.0 as usize;
        self.shape.producers.foresee(task);
        self.shape.outlets.foresee(task);
        if let Some(record) = self.records.get_mut(index as usize) {
            record.held_high = record.held_high.max(n_held);
        }
        self.held += 1;
        if n_held == 1 {
            self.holding.insert(index);
            self.review(index);
        }
    }

    /// Looks again whether a node is able; called whenever what decides it may have changed.
    #[inline]
    fn review(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        let is_able = !node.held.is_empty() && !node.is_held_back(self.limits.of(index));
        if node.is_able != is_able {
            node.is_able = is_able;
            self.passes.changed(index, is_able);
        }
    }

    /// The graph starts: every source is listed, and each listing schedules one node.
    pub fn start(&mut self, now: u64) {
        for index in 0..self.nodes.len() as u32 {
            if self.shape.streams_into(index).is_empty() {
                self.add_node(index, now);
            }
        }
    }

    /// Lists a node and schedules the one listed that was chosen longest ago.
    pub fn add_node(&mut self, index: u32, now: u64) {
        self.table.add(self.shape.id(index));
        let is_held_back = |id| {
            let index = self.shape.index_of(id);
            index.is_none_or(|index| self.nodes[index as usize].is_held_back(self.limits.of(index)))
        };
        if let Some(chosen) = self.table.choose(is_held_back).and_then(|id| self.shape.index_of(id)) {
            self.schedule_node(chosen, now);
        }
    }

    /// Takes a node off the list again.
    pub fn remove_node(&mut self, index: u32) {
        self.table.remove(self.shape.id(index));
    }

    /// Schedules the oldest READY task of a node, whatever holds it back.
    pub fn schedule_node(&mut self, index: u32, now: u64) {
        if self.is_open && !self.nodes[index as usize].is_paused {
            self.schedule_oldest(index, now, false);
        }
    }

    /// Schedules the READY task with the smallest timestamp and node of all, although it is held back.
    pub fn force(&mut self, now: u64) -> bool {
        let open = self.holding.iter().filter(|&index| !self.nodes[index as usize].is_paused);
        let oldest = open.min_by_key(|&index| {
            let first = self.nodes[index as usize].held.first();
            (first.map(|task| self.shape.timestamp(task)), index)
        });
        oldest.is_some_and(|index| self.schedule_oldest(index, now, true))
    }

    fn schedule_oldest(&mut self, index: u32, now: u64, by_force: bool) -> bool {
        let node = &mut self.nodes[index as usize];
        let Some((task, slot)) = node.held.pop() else { return false };
        if node.held.is_empty() {
            self.holding.remove(index);
        }
        self.held -= 1;
        node.pending += 1;
        if let Some(record) = self.records.get_mut(index as usize) {
            record.pending_high = record.pending_high.max(node.pending);
            record.last_schedule = Some(now);
        }
        self.last_schedule = now;
        self.review(index);
        self.unqueue_packets(task);
        let (node, timestamp) = (self.shape.id(index), self.shape.timestamp(task));
        self.scheduled.push(Scheduled { task, slot, node, timestamp, by_force });
        true
    }

    /// A task is completed. `was_scheduled` is false for one that takes no worker.
    pub fn complete(&mut self, task: TaskId, was_scheduled: bool, now: u64) {
        let index = self.node_of(task);
        self.queue_packets(task);
        if let Some(record) = self.records.get_mut(index as usize) {
            record.processed += 1;
        }
        let closed = self.is_over(index, now);
        if closed {
            self.close(index, now);
        }
        for outlet in self.shape.outlets.range(task.0 as usize) {
            match self.shape.outlets.tasks[outlet].to {
                NONE => break,
                to => self.sched_required(to, now),
            }
        }
        if was_scheduled {
            self.one_less_pending(index);
        }
        if !closed {
            self.sched_required(index, now);
        }
    }

    /// A scheduled task was taken out of its queue again.
    pub fn remove(&mut self, task: TaskId, now: u64) {
        let index = self.node_of(task);
        self.one_less_pending(index);
        if self.is_over(index, now) {
            self.close(index, now);
        } else {
            self.sched_required(index, now);
        }
    }

    #[inline]
    fn one_less_pending(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        node.pending -= 1;
        if node.pending + 1 == self.limits.of(index) {
            self.review(index);
        }
    }

    /// A task that was not scheduled will never run.
    pub fn cancel(&mut self, task: TaskId, now: u64) {
        let index = self.node_of(task);
        if self.shape.tasks[task.0 as usize].is_scheduled() {
            self.unqueue_packets(task.0 as u32);
        }
        if self.is_over(index, now) {
            self.close(index, now);
        }
    }

    /// Takes every READY task that waits in a node.
    pub fn take_held(&mut self, index: u32, now: u64) -> Vec<SlotRef> {
        let held = self.nodes[index as usize].held.take_all();
        self.held -= held.len();
        if !held.is_empty() {
            self.holding.remove(index);
        }
        self.review(index);
        for &(task, _) in &held {
            self.unqueue_packets(task);
            self.is_over(index, now);
        }
        held.into_iter().map(|(_, slot)| slot).collect()
    }

    /// Whether a node has no tasks left.
    pub fn is_closed(&self, index: u32) -> bool {
        self.nodes[index as usize].left == 0
    }

    /// Why the oldest READY task is not scheduled, in words.
    pub fn why_held(&self) -> Option<String> {
        let index = self.holding.first()?;
        let node = &self.nodes[index as usize];
        let (name, id) = (self.shape.names.name(TaskId(node.held.first()?.into())), self.shape.id(index));
        let is_full = |stream: &&Stream| stream.waiting >= self.limits.of(stream.to);
        let cause = match self.shape.streams_out_of(index).find(is_full) {
            _ if node.is_paused => "the node is paused".to_string(),
            _ if node.pending >= self.limits.of(index) => {
                format!("{} tasks of it are pending, the most there can be", node.pending)
            }
            Some(stream) => format!("{} packets wait for node {}", stream.waiting, self.shape.id(stream.to)),
            None => "nothing asks for it".to_string(),
        };
        Some(format!("{} READY tasks are held back, the first of them {name} of node {id}: {cause}", self.held))
    }

    /// One task less of a node; whether it was the last.
    fn is_over(&mut self, index: u32, now: u64) -> bool {
        let node = &mut self.nodes[index as usize];
        node.left -= 1;
        self.left -= 1;
        let is_over = node.left == 0;
        if is_over {
            if let Some(record) = self.records.get_mut(index as usize) {
                record.closed_at = Some(now);
            }
            self.closed.push(index);
        }
        is_over
    }

    /// A node closes: each node upstream schedules one task, whatever holds it back.
    fn close(&mut self, index: u32, now: u64) {
        for place in self.passes.live(&self.shape, index) {
            self.schedule_node(self.shape.upstream[place], now);
        }
    }

    /// The packets of a completed task wait for their consumers.
    #[inline]
    fn queue_packets(&mut self, task: TaskId) {
        let NodeGraph { outlets, streams, .. } = &mut self.shape;
        let (mut n_filled, own) = (0, outlets.range(task.0 as usize));
        for outlet in &mut outlets.tasks[own] {
            if outlet.waiting > 0 {
                outlet.waiting |= QUEUED;
                let stream = &mut streams[outlet.stream as usize];
                stream.waiting += 1;
                stream.high = stream.high.max(stream.waiting);
                n_filled += u32::from(stream.waiting == self.limits.of(outlet.to));
            }
        }
        if n_filled > 0 {
            let from = self.node_of(task);
            self.nodes[from as usize].full_streams += n_filled;
            self.review(from);
        }
    }

    /// A consumer is scheduled or will never be: packets that waited for it alone do not wait any more.
    #[inline]
    fn unqueue_packets(&mut self, consumer: u32) {
        let to = self.shape.tasks[consumer as usize].node;
        self.nodes[to as usize].unscheduled -= 1;
        for edge in self.shape.producers.range(consumer as usize) {
            let NodeGraph { producers, outlets, streams, .. } = &mut self.shape;
            let of_producer = outlets.range(producers.tasks[edge] as usize);
            let Some(outlet) = find_outlet(&mut outlets.tasks[of_producer], to) else { continue };
            outlet.waiting -= 1;
            if outlet.waiting != QUEUED {
                continue;
            }
            outlet.waiting = 0;
            let stream = &mut streams[outlet.stream as usize];
            let (from, was_full) = (stream.from, stream.waiting == self.limits.of(to));
            stream.waiting -= 1;
            if was_full {
                self.nodes[from as usize].full_streams -= 1;
                self.review(from);
            }
        }
    }
}

/// The outlet to a node among those of a task.
#[inline]
fn find_outlet(outlets: &mut [Outlet], to: u32) -> Option<&mut Outlet> {
    const FEW: usize = 8;
    let place = if outlets.len() <= FEW {
        outlets.iter().position(|outlet| outlet.to == to)
    } else {
        outlets.binary_search_by_key(&to, |outlet| outlet.to).ok()
    };
    place.map(|place| &mut outlets[place])
}

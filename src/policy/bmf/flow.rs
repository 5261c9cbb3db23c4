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
use super::config::Config;
use super::graph::{NONE, NodeGraph};
use super::node::{Node, Stream};
use crate::graph::Graph;
use crate::id::TaskId;
use crate::policy::number_set::NumberSet;
use crate::window::SlotRef;

/// All nodes and streams of a run.
pub(super) struct Flow {
    pub graph: Graph,
    pub shape: NodeGraph,
    pub nodes: Vec<Node>,
    pub streams: Vec<Stream>,
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
    table: NodeTable,
    /// Nodes with READY tasks not scheduled.
    holding: NumberSet,
    /// Places of the nodes that could schedule a task if they were asked. A node comes after those upstream of it.
    able: NumberSet,
    /// Nodes from this place on may be upstream of each other.
    n_ordered: u32,
    /// The nodes upstream of each that may still schedule something, or have such nodes before them.
    live_upstream: Vec<Upstream>,
    pass: u64,
    /// Grows when a node becomes able.
    epoch: u64,
    /// The epoch in which the last pass began.
    began: u64,
    /// Nodes that wait in a pass for a node upstream.
    path: Vec<Visit>,
}

/// A node upstream of another.
#[derive(Clone, Copy)]
struct Upstream {
    node: u32,
    place: u32,
    /// No node of the list up to this one has a larger place.
    bound: u32,
}

/// A node that a pass of `sched_required` is visiting.
#[derive(Clone, Copy)]
struct Visit {
    node: u32,
    /// How many of its upstream nodes were looked at.
    looked_at: u32,
    /// How many of those were passed over by their place alone.
    skipped: u32,
    /// Whether one of the others will never schedule anything.
    is_stale: bool,
    /// Whether nobody was found able so far.
    is_clear: bool,
}

/// A task that left its node.
#[derive(Clone, Copy)]
pub(super) struct Scheduled {
    pub task: TaskId,
    pub slot: SlotRef,
    pub node: i32,
    pub timestamp: i64,
    /// Although it was held back.
    pub by_force: bool,
}

impl Visit {
    fn new(node: u32) -> Visit {
        Visit { node, looked_at: 0, skipped: 0, is_stale: false, is_clear: true }
    }
}

impl Flow {
    pub fn new(graph: Graph, shape: NodeGraph, config: &Config) -> Flow {
        let limit = |node: u32| config.node(shape.nodes[node as usize].id).queue_length_limit;
        let (places, n_ordered) = shape.places();
        let mut live_upstream = Vec::with_capacity(shape.streams.len());
        let mut nodes = Vec::with_capacity(places.len());
        for (index, &place) in (0..).zip(&places) {
            let upstream = shape.upstream(index);
            let live = (live_upstream.len() as u32, upstream.len() as u32);
            let mut bound = 0;
            live_upstream.extend(upstream.iter().map(|&node| {
                let place = places[node as usize];
                bound = place.max(bound);
                Upstream { node, place, bound }
            }));
            nodes.push(Node::new(limit(index), shape.nodes[index as usize].n_tasks, live, place));
        }
        let mut flow = Flow {
            streams: shape.streams.iter().map(|&(_, to)| Stream { limit: limit(to), ..Stream::default() }).collect(),
            scheduled: Vec::new(),
            closed: Vec::new(),
            left: shape.tasks.len() as u64,
            held: 0,
            last_schedule: 0,
            is_open: false,
            table: NodeTable::default(),
            holding: NumberSet::new(nodes.len()),
            able: NumberSet::new(nodes.len()),
            n_ordered,
            live_upstream,
            pass: 0,
            epoch: 1,
            began: 0,
            path: Vec::new(),
            nodes,
            graph,
            shape,
        };
        // Tasks without a worker are never scheduled.
        for member in &flow.shape.tasks {
            flow.nodes[member.node as usize].unscheduled -= u64::from(!member.is_scheduled);
        }
        flow
    }

    pub fn node_of(&self, task: TaskId) -> u32 {
        self.shape.tasks[task.0 as usize].node
    }

    /// A READY task waits in its node.
    pub fn hold(&mut self, task: TaskId, slot: SlotRef) {
        let member = self.shape.tasks[task.0 as usize];
        let node = &mut self.nodes[member.node as usize];
        node.held.push((member.timestamp, task, slot));
        node.held_high = node.held_high.max(node.held.len());
        self.held += 1;
        if node.held.len() == 1 {
            self.holding.insert(member.node);
            self.review(member.node);
        }
    }

    /// Keeps the count of nodes that could schedule a task; called whenever what decides it may have changed.
    #[inline]
    fn review(&mut self, index: u32) {
        self.epoch += u64::from(self.nodes[index as usize].review(&mut self.able));
    }

    /// The graph starts: every source is listed, and each listing schedules one node.
    pub fn start(&mut self, now: u64) {
        for index in 0..self.nodes.len() as u32 {
            if self.shape.upstream(index).is_empty() {
                self.add_node(index, now);
            }
        }
    }

    /// Lists a node and schedules the one listed that was chosen longest ago.
    pub fn add_node(&mut self, index: u32, now: u64) {
        self.table.add(self.shape.nodes[index as usize].id);
        let (shape, nodes) = (&self.shape, &self.nodes);
        let is_held_back = |id| shape.index_of(id).is_none_or(|index| nodes[index as usize].is_held_back());
        if let Some(chosen) = self.table.choose(is_held_back).and_then(|id| self.shape.index_of(id)) {
            self.schedule_node(chosen, now);
        }
    }

    /// Takes a node off the list again.
    pub fn remove_node(&mut self, index: u32) {
        self.table.remove(self.shape.nodes[index as usize].id);
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
            let first = self.nodes[index as usize].held.first;
            (first.map(|(timestamp, ..)| timestamp), index)
        });
        oldest.is_some_and(|index| self.schedule_oldest(index, now, true))
    }

    fn schedule_oldest(&mut self, index: u32, now: u64, by_force: bool) -> bool {
        let node = &mut self.nodes[index as usize];
        let Some((timestamp, task, slot)) = node.held.pop() else { return false };
        if node.held.is_empty() {
            self.holding.remove(index);
        }
        self.held -= 1;
        node.pending += 1;
        node.pending_high = node.pending_high.max(node.pending);
        node.last_schedule = Some(now);
        self.last_schedule = now;
        self.review(index);
        self.unqueue_packets(task);
        self.scheduled.push(Scheduled { task, slot, node: self.shape.nodes[index as usize].id, timestamp, by_force });
        true
    }

    /// Something happened that may let a node schedule a task: first every node upstream gets the chance, ascending and
    /// each once, then the node itself.
    #[inline]
    pub fn sched_required(&mut self, index: u32, now: u64) {
        if self.is_open && self.able.len() > 0 {
            self.ask(index, now);
        }
    }

    fn ask(&mut self, index: u32, now: u64) {
        // Scheduling is what changes who is able, so if nobody else is, asking the others changes nothing. That goes for
        // nodes before the first that is able: what may make them able comes after they were asked.
        let Some(first) = self.able.first() else { return };
        let place = self.nodes[index as usize].place;
        let first = first.min(self.n_ordered);
        if place < first {
            return;
        }
        if place == first && place < self.n_ordered || self.able.len() == 1 && self.nodes[index as usize].is_able {
            self.schedule_node(index, now);
            return;
        }
        if self.nodes[index as usize].clear == self.epoch {
            return;
        }
        self.pass += 1;
        self.began = self.epoch;
        self.nodes[index as usize].met = self.pass;
        let mut visit = Visit::new(index);
        loop {
            if let Some(upstream) = self.next_upstream(&mut visit, first) {
                self.path.push(visit);
                visit = Visit::new(upstream);
                continue;
            }
            self.leave(&visit, now);
            match self.path.pop() {
                Some(asking) => visit = asking,
                None => return,
            }
        }
    }

    /// The next node upstream that is to be visited, if any is left. Those at places before `first` have nothing to do.
    #[inline]
    fn next_upstream(&mut self, visit: &mut Visit, first: u32) -> Option<u32> {
        let (from, length) = self.nodes[visit.node as usize].live;
        let all = &self.live_upstream[from as usize..(from + length) as usize];
        if visit.looked_at == 0 {
            visit.looked_at = all.partition_point(|upstream| upstream.bound < first) as u32;
            visit.skipped = u32::from(visit.looked_at > 0);
        }
        while let Some(upstream) = all.get(visit.looked_at as usize) {
            visit.looked_at += 1;
            if upstream.place < first {
                visit.skipped += 1;
                continue;
            }
            let node = &mut self.nodes[upstream.node as usize];
            if node.is_exhausted {
                visit.is_stale = true;
                continue;
            }
            let is_clear = node.clear == self.epoch;
            if std::mem::replace(&mut node.met, self.pass) == self.pass {
                visit.is_clear &= is_clear;
            } else if !is_clear {
                return Some(upstream.node);
            }
        }
        None
    }

    /// A node has asked everybody upstream and has its own turn; the one that asked it is the last of the path.
    fn leave(&mut self, visit: &Visit, now: u64) {
        let Visit { node, skipped, is_stale, is_clear, .. } = *visit;
        if self.nodes[node as usize].is_able {
            self.schedule_node(node, now);
        }
        if is_clear && !self.nodes[node as usize].is_able {
            // If somebody became able during the pass, this is worth nothing.
            self.nodes[node as usize].clear = self.began;
        } else if let Some(asking) = self.path.last_mut() {
            asking.is_clear = false;
        }
        // Nodes passed over are looked at when that has happened so often that a look costs little in comparison.
        let (_, length) = self.nodes[node as usize].live;
        let total = self.nodes[node as usize].skipped + skipped;
        let is_worth_it = is_stale || total > 4 * length;
        self.nodes[node as usize].skipped = if is_worth_it { 0 } else { total };
        self.forget_exhausted(node, is_worth_it);
    }

    /// Drops upstream nodes that will never schedule anything, so that passes stay short.
    fn forget_exhausted(&mut self, index: u32, is_worth_it: bool) {
        let (from, length) = self.nodes[index as usize].live;
        let mut kept = length;
        if is_worth_it {
            kept = 0;
            for place in from..from + length {
                let upstream = self.live_upstream[place as usize];
                if !self.nodes[upstream.node as usize].is_exhausted {
                    self.live_upstream[(from + kept) as usize] = upstream;
                    kept += 1;
                }
            }
        }
        let node = &mut self.nodes[index as usize];
        node.live.1 = kept;
        node.is_exhausted = kept == 0 && node.unscheduled == 0;
    }

    /// A task is completed. `was_scheduled` is false for one that takes no worker.
    pub fn complete(&mut self, task: TaskId, was_scheduled: bool, now: u64) {
        let index = self.node_of(task);
        self.queue_packets(task);
        self.nodes[index as usize].processed += 1;
        let closed = self.is_over(index, now);
        if closed {
            self.close(index, now);
        }
        let mut next = self.shape.first_outlet[task.0 as usize];
        while let Some(outlet) = self.shape.outlets.get(next as usize) {
            next = outlet.next;
            self.sched_required(outlet.to, now);
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
        if node.pending + 1 == node.limit {
            self.review(index);
        }
    }

    /// A task that was not scheduled will never run.
    pub fn cancel(&mut self, task: TaskId, now: u64) {
        let index = self.node_of(task);
        if self.shape.tasks[task.0 as usize].is_scheduled {
            self.unqueue_packets(task);
        }
        if self.is_over(index, now) {
            self.close(index, now);
        }
    }

    /// Takes every READY task that waits in a node.
    pub fn take_held(&mut self, index: u32, now: u64) -> Vec<SlotRef> {
        let held = self.nodes[index as usize].held.take_sorted();
        self.held -= held.len();
        if !held.is_empty() {
            self.holding.remove(index);
        }
        self.review(index);
        for &(_, task, _) in &held {
            self.unqueue_packets(task);
            self.is_over(index, now);
        }
        held.into_iter().map(|(.., slot)| slot).collect()
    }

    /// Whether all nodes behind a source are closed while it still has tasks.
    pub fn is_useless(&self, index: u32) -> bool {
        let is_closed = |node: u32| self.nodes[node as usize].closed_at.is_some();
        let mut downstream = self.shape.downstream(index).peekable();
        self.shape.upstream(index).is_empty() && downstream.peek().is_some() && downstream.all(is_closed)
    }

    /// Why the oldest READY task is not scheduled, in words.
    pub fn why_held(&self) -> Option<String> {
        let index = self.holding.first()?;
        let node = &self.nodes[index as usize];
        let (_, task, _) = node.held.first?;
        let (name, id) = (self.graph.name(task), self.shape.nodes[index as usize].id);
        let full =
            self.shape.streams.iter().zip(&self.streams).find(|((from, _), stream)| *from == index && stream.is_full());
        let cause = match full {
            _ if node.is_paused => "the node is paused".to_string(),
            _ if node.pending >= node.limit => {
                format!("{} tasks of it are pending, the most there can be", node.pending)
            }
            Some(((_, to), stream)) => {
                format!("{} packets wait for node {}", stream.waiting, self.shape.nodes[*to as usize].id)
            }
            None => "nothing asks for it".to_string(),
        };
        Some(format!("{} READY tasks are held back, the first of them {name} of node {id}: {cause}", self.held))
    }

    /// One task less of a node; whether it was the last.
    fn is_over(&mut self, index: u32, now: u64) -> bool {
        let node = &mut self.nodes[index as usize];
        node.left -= 1;
        self.left -= 1;
        if node.left == 0 {
            node.closed_at = Some(now);
            self.closed.push(index);
        }
        node.left == 0
    }

    /// A node closes: each node upstream schedules one task, whatever holds it back.
    fn close(&mut self, index: u32, now: u64) {
        let (from, length) = self.nodes[index as usize].live;
        for place in from..from + length {
            self.schedule_node(self.live_upstream[place as usize].node, now);
        }
    }

    /// The packets of a completed task wait for their consumers.
    #[inline]
    fn queue_packets(&mut self, task: TaskId) {
        let (mut n_filled, mut next) = (0, self.shape.first_outlet[task.0 as usize]);
        while let Some(outlet) = self.shape.outlets.get_mut(next as usize) {
            next = outlet.next;
            if outlet.waiting > 0 {
                outlet.is_queued = true;
                let stream = &mut self.streams[outlet.stream as usize];
                stream.waiting += 1;
                stream.high = stream.high.max(stream.waiting);
                n_filled += u32::from(stream.waiting == stream.limit);
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
    fn unqueue_packets(&mut self, consumer: TaskId) {
        let to = self.node_of(consumer);
        self.nodes[to as usize].unscheduled -= 1;
        for edge in self.graph.first_edge(consumer)..self.graph.first_edge(TaskId(consumer.0 + 1)) {
            let inlet = self.shape.inlets[edge];
            if inlet == NONE {
                continue;
            }
            let outlet = &mut self.shape.outlets[inlet as usize];
            outlet.waiting -= 1;
            if outlet.waiting > 0 || !outlet.is_queued {
                continue;
            }
            let stream = &mut self.streams[outlet.stream as usize];
            let was_full = stream.waiting == stream.limit;
            stream.waiting -= 1;
            if was_full {
                let (from, _) = self.shape.streams[outlet.stream as usize];
                let node = &mut self.nodes[from as usize];
                node.full_streams -= 1;
                self.epoch += u64::from(node.review(&mut self.able));
            }
        }
    }
}

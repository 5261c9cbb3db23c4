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
use super::graph::{Member, NodeGraph, QUEUED, Stream};
use super::node::{Flag, Limits, Node, Rows};
use super::pass::Passes;
use super::queues::{Item, Queues};
use super::record::{LISTED, NodeRecord, Record};
use crate::id::TaskId;
use crate::window::{NONE, SlotRef};

/// All nodes and streams of a run.
pub(super) struct Flow {
    pub shape: NodeGraph,
    pub nodes: Vec<Node>,
    rows: Rows,
    /// What the report tells of the nodes it lists.
    pub records: Vec<NodeRecord>,
    pub queues: Queues,
    pub record: Record,
    n_scheduled: u32,
    /// Nodes closed by the last calls, if sources are cut off then.
    pub closed: Option<Vec<u32>>,
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
    holding: Holding,
    /// The only task so far that the completion at hand released. No node is able, and it waits in none.
    released: Option<(u32, SlotRef)>,
    pub(super) passes: Passes,
}

/// Nodes with READY tasks not scheduled. They are only looked for when nothing else helps, so that others stay listed until then
/// or until there are many of them.
#[derive(Default)]
struct Holding {
    /// Some of them more than once.
    listed: Vec<u32>,
    /// When there are so many, those that hold nothing any more are taken out.
    limit: usize,
}

/// Looks again whether a node is able.
#[inline(never)]
fn review(index: u32, nodes: &mut [Node], limits: &Limits, passes: &mut Passes) {
    let node = &mut nodes[index as usize];
    let is_able = !node.held.is_empty() && !node.is_held_back(limits.of(index));
    if node.is(Flag::Able) != is_able {
        node.set(Flag::Able, is_able);
        passes.changed(index, is_able);
    }
}

impl Holding {
    /// A node holds a task, and held none before.
    #[inline]
    fn add(&mut self, node: u32, nodes: &[Node]) {
        if self.listed.len() >= self.limit {
            self.tidy(nodes);
        }
        self.listed.push(node);
    }

    #[cold]
    fn tidy(&mut self, nodes: &[Node]) {
        const FEW: usize = 256;
        self.listed.retain(|&node| !nodes[node as usize].held.is_empty());
        self.listed.sort_unstable();
        self.listed.dedup();
        self.limit = (2 * self.listed.len()).max(FEW);
    }

    /// All of them, ascending.
    fn all(&mut self, nodes: &[Node]) -> &[u32] {
        self.tidy(nodes);
        &self.listed
    }
}

impl Flow {
    pub fn new(mut shape: NodeGraph, config: &Config, queues: Queues, record: Record) -> Flow {
        let limit = |id| u32::try_from(config.node(id).queue_length_limit).unwrap_or(u32::MAX);
        let n_nodes = shape.n_nodes();
        let own = if config.nodes.is_empty() { 0 } else { n_nodes as u32 };
        let mut flow = Flow {
            limits: Limits {
                usual: NodeConfig::default().queue_length_limit as u32,
                own: (0..own).map(|node| limit(shape.id(node))).collect(),
            },
            nodes: std::mem::take(&mut shape.nodes),
            rows: Rows::default(),
            records: vec![NodeRecord::default(); n_nodes.min(LISTED)],
            queues,
            record,
            n_scheduled: 0,
            closed: config.force_close.then(Vec::new),
            left: shape.tasks.len() as u64,
            held: 0,
            last_schedule: 0,
            is_open: false,
            table: NodeTable::default(),
            holding: Holding::default(),
            released: None,
            passes: Passes::new(&mut shape),
            shape,
        };
        // Tasks without a worker are never scheduled.
        for (member, &queue) in flow.shape.tasks.iter().zip(&flow.shape.queues) {
            flow.nodes[member.node as usize].unscheduled -= u32::from(queue == NONE);
        }
        flow
    }

    #[inline]
    pub fn node_of(&self, task: TaskId) -> u32 {
        self.shape.tasks[task.0 as usize].node
    }

    /// A task became READY by its own admission or by the start of its parent: its node is asked at once.
    #[inline]
    pub fn admit(&mut self, task: TaskId, slot: SlotRef, index: u32, now: u64) {
        self.shape.foresee_tasks(task.0 as usize);
        if self.lets_through(index) {
            self.pass_through(task.0 as u32, slot, index, now);
        } else {
            self.hold(task.0 as u32, slot, index);
            self.sched_required(index, now);
        }
    }

    /// A task became READY by the completion at hand, which asks for its node when everybody is released.
    #[inline]
    pub fn release(&mut self, task: TaskId, slot: SlotRef) {
        self.shape.foresee_tasks(task.0 as usize);
        if self.released.is_none() && !self.passes.is_any_able() && self.passes.is_acyclic() {
            self.released = Some((task.0 as u32, slot));
        } else {
            self.hold_released();
            self.hold(task.0 as u32, slot, self.node_of(task));
        }
    }

    /// The task that was released alone waits in its node like any other.
    #[inline]
    pub fn hold_released(&mut self) {
        if let Some((task, slot)) = self.released.take() {
            self.hold(task, slot, self.shape.tasks[task as usize].node);
        }
    }

    /// Whether a node that is asked now would schedule a task that it gets now, and nobody else would schedule anything. What it holds
    /// already is held back, and it with that.
    #[inline]
    fn lets_through(&self, index: u32) -> bool {
        let node = &self.nodes[index as usize];
        let is_held_back = node.is_held_back(self.limits.of(index)) || node.is(Flag::Paused);
        self.is_open && !self.passes.is_any_able() && !is_held_back
    }

    /// A READY task waits in its node, which is given.
    pub fn hold(&mut self, task: u32, slot: SlotRef, index: u32) {
        let node = &mut self.nodes[index as usize];
        let is_first = node.held.push(task, slot, &self.shape, &mut self.rows);
        if let Some(record) = self.records.get_mut(index as usize) {
            record.held_high = record.held_high.max(node.held.len(&self.rows));
        }
        self.held += 1;
        if is_first {
            let is_able = !node.is_held_back(self.limits.of(index));
            self.holding.add(index, &self.nodes);
            if is_able {
                self.nodes[index as usize].set(Flag::Able, true);
                self.passes.changed(index, true);
            }
        }
    }

    /// A task that goes straight through its node waits there alone.
    #[inline(always)]
    fn pass_through(&mut self, task: u32, slot: SlotRef, index: u32, now: u64) {
        if let Some(record) = self.records.get_mut(index as usize) {
            record.held_high = record.held_high.max(1);
        }
        self.schedule(task, slot, index, now);
    }

    /// Looks again whether a node is able; called whenever what decides it may have changed.
    fn review(&mut self, index: u32) {
        review(index, &mut self.nodes, &self.limits, &mut self.passes);
    }

    /// The graph starts: every source is listed, and each listing schedules one node.
    pub fn start(&mut self, now: u64) {
        for (index, is_source) in (0..).zip(self.shape.sources()) {
            if is_source {
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
    #[inline]
    pub fn schedule_node(&mut self, index: u32, now: u64) {
        let node = &self.nodes[index as usize];
        if self.is_open && !node.held.is_empty() && !node.is(Flag::Paused) {
            self.schedule_oldest(index, now, false);
        }
    }

    /// Schedules the READY task with the smallest timestamp and node of all, although it is held back.
    pub fn force(&mut self, now: u64) -> bool {
        let holding = self.holding.all(&self.nodes).iter().copied();
        let open = holding.filter(|&index| !self.nodes[index as usize].is(Flag::Paused));
        let oldest = open.min_by_key(|&index| {
            let first = self.nodes[index as usize].held.first();
            (first.map(|task| self.shape.timestamp(task)), index)
        });
        oldest.is_some_and(|index| self.schedule_oldest(index, now, true))
    }

    fn schedule_oldest(&mut self, index: u32, now: u64, by_force: bool) -> bool {
        let node = &mut self.nodes[index as usize];
        let Some((task, slot)) = node.held.pop(&mut self.rows) else { return false };
        self.held -= 1;
        if by_force {
            self.record.forced(now, &self.shape.names, TaskId(task.into()));
        }
        self.schedule(task, slot, index, now);
        let node = &mut self.nodes[index as usize];
        if node.is(Flag::Able) && (node.held.is_empty() || node.is_held_back(self.limits.of(index))) {
            node.set(Flag::Able, false);
            self.passes.changed(index, false);
        }
        true
    }

    /// A READY task that waits in no node goes into its queue.
    #[inline(always)]
    fn schedule(&mut self, task: u32, slot: SlotRef, index: u32, now: u64) {
        let node = &mut self.nodes[index as usize];
        node.pending += 1;
        node.unscheduled -= 1;
        let queue = node.queue();
        if let Some(record) = self.records.get_mut(index as usize) {
            record.pending_high = record.pending_high.max(node.pending);
            record.last_schedule = Some(now);
        }
        self.last_schedule = now;
        self.unqueue_packets(task, index);
        let item = Item::new(self.shape.timestamp(task), self.shape.id(index), self.n_scheduled, task, slot);
        self.queues.push(self.shape.queue(task, queue), item);
        self.n_scheduled += 1;
        self.record.admitted(now, &self.shape.names, TaskId(task.into()));
    }

    /// A task is completed. `was_scheduled` is false for one that takes no worker.
    pub fn complete(&mut self, task: TaskId, was_scheduled: bool, now: u64) {
        let Member { node: index, outlet: first, .. } = self.shape.tasks[task.0 as usize];
        self.queue_packets(index, first);
        if let Some(record) = self.records.get_mut(index as usize) {
            record.processed += 1;
        }
        let closed = self.is_over(index, now);
        if closed && self.held > 0 {
            self.close(index, now);
        }
        let mut next = first as usize;
        if let Some((task, slot)) = self.released.take() {
            next = self.pass_on(task, slot, index, next, now);
        }
        // When nobody is able, nobody becomes so by asking.
        while self.passes.is_any_able()
            && let Some(&outlet) = self.shape.outlets.get(next)
        {
            self.sched_required(self.shape.streams[outlet.stream()].to, now);
            next = if outlet.is_last() { usize::MAX } else { next + 1 };
        }
        let has_room = was_scheduled && self.one_less_pending(index);
        if has_room && self.lets_through(index) {
            // It alone is able now, and is held back again when it has scheduled one more.
            self.schedule_held(index, now);
            return;
        }
        if has_room {
            self.review(index);
        }
        if !closed {
            self.sched_required(index, now);
        }
    }

    /// The oldest task that waits in a node that is not marked as able goes into its queue.
    #[inline]
    fn schedule_held(&mut self, index: u32, now: u64) {
        if let Some((task, slot)) = self.nodes[index as usize].held.pop(&mut self.rows) {
            self.held -= 1;
            self.schedule(task, slot, index, now);
        }
    }

    /// The completion of a task of a node released one task alone. Returns the first of the outlets, which begin with `first`, whose
    /// nodes are still to be asked.
    #[inline]
    fn pass_on(&mut self, task: u32, slot: SlotRef, from: u32, first: usize, now: u64) -> usize {
        let to = self.shape.tasks[task as usize].node;
        let keeps_others = self.passes.is_indexed() || !self.nodes[to as usize].is(Flag::WasFull);
        if to == from || !keeps_others || !self.lets_through(to) {
            self.hold(task, slot, to);
            return first;
        }
        self.pass_through(task, slot, to, now);
        if self.passes.is_any_able() { self.shape.outlet_behind(first, to) } else { first }
    }

    /// A scheduled task was taken out of its queue again.
    pub fn remove(&mut self, task: TaskId, now: u64) {
        let index = self.node_of(task);
        if self.one_less_pending(index) {
            self.review(index);
        }
        if self.is_over(index, now) {
            self.close(index, now);
        } else {
            self.sched_required(index, now);
        }
    }

    /// A task of a node is not pending any more; whether tasks that the node holds were held back by that.
    #[inline]
    fn one_less_pending(&mut self, index: u32) -> bool {
        let node = &mut self.nodes[index as usize];
        node.pending -= 1;
        node.pending + 1 == self.limits.of(index) && !node.held.is_empty()
    }

    /// A task that was not scheduled will never run.
    pub fn cancel(&mut self, task: TaskId, now: u64) {
        let (index, task) = (self.node_of(task), task.0 as u32);
        let node = &mut self.nodes[index as usize];
        if self.shape.queue(task, node.queue()) != NONE {
            node.unscheduled -= 1;
            self.unqueue_packets(task, index);
        }
        if self.is_over(index, now) {
            self.close(index, now);
        }
    }

    /// Takes every READY task that waits in a node.
    pub fn take_held(&mut self, index: u32, now: u64) -> Vec<SlotRef> {
        let held = self.nodes[index as usize].held.take_all(&mut self.rows);
        self.held -= held.len();
        self.review(index);
        for &(task, _) in &held {
            self.nodes[index as usize].unscheduled -= 1;
            self.unqueue_packets(task, index);
            self.is_over(index, now);
        }
        held.into_iter().map(|(_, slot)| slot).collect()
    }

    /// Whether a node has no tasks left.
    pub fn is_closed(&self, index: u32) -> bool {
        self.nodes[index as usize].left == 0
    }

    /// Why the oldest READY task is not scheduled, in words.
    pub fn why_held(&mut self) -> Option<String> {
        let index = *self.holding.all(&self.nodes).first()?;
        let node = &self.nodes[index as usize];
        let (name, id) = (self.shape.names.name(TaskId(node.held.first()?.into())), self.shape.id(index));
        let is_full = |stream: &&Stream| stream.waiting >= self.limits.of(stream.to);
        let cause = match self.shape.streams_out_of(index).find(is_full) {
            _ if node.is(Flag::Paused) => "the node is paused".to_string(),
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
            if let Some(closed) = &mut self.closed {
                closed.push(index);
            }
        }
        is_over
    }

    /// A node closes: each node upstream schedules one task, whatever holds it back.
    pub(super) fn close(&mut self, index: u32, now: u64) {
        let (begin, end) = self.shape.live[index as usize];
        for place in begin..end {
            self.schedule_node(self.shape.upstream[place as usize], now);
        }
    }

    /// The packets of a completed task of a node wait for their consumers; its outlets begin with `first`.
    #[inline]
    fn queue_packets(&mut self, from: u32, first: u32) {
        let NodeGraph { outlets, streams, .. } = &mut self.shape;
        let mut n_filled = 0;
        for outlet in outlets.get_mut(first as usize..).unwrap_or_default() {
            if outlet.waiting > 0 {
                outlet.waiting |= QUEUED;
                let stream = &mut streams[outlet.stream()];
                stream.waiting += 1;
                stream.high = stream.high.max(stream.waiting);
                if stream.waiting == self.limits.of(stream.to) {
                    n_filled += 1;
                    self.nodes[stream.to as usize].set(Flag::WasFull, true);
                }
            }
            if outlet.is_last() {
                break;
            }
        }
        if n_filled > 0 {
            self.nodes[from as usize].full_streams += n_filled;
            self.review(from);
        }
    }

    /// A consumer of a node is scheduled or will never be: packets that waited for it alone do not wait any more.
    #[inline(always)]
    fn unqueue_packets(&mut self, consumer: u32, to: u32) {
        let (limit, range) = (self.limits.of(to), self.shape.inlets_of(consumer as usize));
        let Flow { shape: NodeGraph { inlets, outlets, streams, .. }, nodes, limits, passes, .. } = self;
        for &inlet in &inlets[range] {
            let Some(outlet) = outlets.get_mut(inlet as usize) else { continue };
            outlet.waiting -= 1;
            if outlet.waiting != QUEUED {
                continue;
            }
            outlet.waiting = 0;
            let stream = &mut streams[outlet.stream()];
            stream.waiting -= 1;
            if stream.waiting + 1 == limit {
                nodes[stream.from as usize].full_streams -= 1;
                review(stream.from, nodes, limits, passes);
            }
        }
    }
}

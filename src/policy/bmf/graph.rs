//! The node graph of a program: which node each task belongs to, its timestamp, and the streams between nodes.
//!
//! A trace says `node` and `timestamp`, or both are derived: a node is a pair of kernel and level (the longest path of
//! dependencies before the task), numbered by first appearance, so that the graph has no cycle; the timestamp is the
//! task's place among those of its node, from 1.

use super::timestamp;
use crate::engine::RunError;
use crate::graph::Graph;
use crate::id::{Symbol, TaskId, TaskType};
use crate::workload::Submit;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// All nodes and tasks.
pub(super) struct NodeGraph {
    /// Nodes by ascending id.
    pub nodes: Vec<Shape>,
    /// Tasks by id.
    pub tasks: Vec<Member>,
    /// Streams: from which node to which, those of a node one after the other.
    pub streams: Vec<(u32, u32)>,
    /// Whether the trace names any node.
    pub is_declared: bool,
    /// Where the streams of each node begin; one more than there are nodes.
    first_stream: Vec<u32>,
    /// Nodes upstream of each, ascending.
    upstream: Vec<u32>,
    /// Where those of each node begin in `upstream`; one more than there are nodes.
    first_upstream: Vec<u32>,
    pub outlets: Vec<Outlet>,
    /// By task: the first of its outlets, or [`NONE`].
    pub first_outlet: Vec<u32>,
    /// By edge of the graph, consumer by consumer: the outlet that the packet comes from, or [`NONE`] if producer and consumer
    /// are of the same node.
    pub inlets: Vec<u32>,
}

/// No outlet.
pub(super) const NONE: u32 = u32::MAX;

/// A node.
#[derive(Clone, Default, Debug)]
pub(super) struct Shape {
    /// Its number in the trace.
    pub id: i32,
    pub n_tasks: u64,
}

/// A task as a member of its node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// Index of its node.
    pub node: u32,
    pub timestamp: i64,
    /// Whether it has several blocks that start together.
    pub is_together: bool,
    /// Whether it takes a worker.
    pub is_scheduled: bool,
}

/// What a task puts into one stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outlet {
    /// The next outlet of the same task, to a node with a larger index, or [`NONE`].
    pub next: u32,
    pub stream: u32,
    /// The node at its end.
    pub to: u32,
    /// Consumers there that are not scheduled yet. Those that take no worker are never scheduled and do not count.
    pub waiting: u32,
    /// Whether its packet waits in the stream.
    pub is_queued: bool,
}

/// What the trace says of a task.
pub(super) struct Fields {
    node: Option<i32>,
    timestamp: Option<i64>,
    is_together: bool,
}

impl Fields {
    pub fn of(submit: &Submit) -> Fields {
        let policy = submit.policy.as_deref();
        Fields {
            node: policy.and_then(|policy| policy.node),
            timestamp: policy.and_then(|policy| policy.timestamp),
            is_together: submit.sync_start && submit.blocks > 1,
        }
    }
}

impl NodeGraph {
    /// Finds the nodes of a program.
    pub fn new(graph: &Graph, fields: &[Fields], declared: &BTreeSet<(i32, i32)>) -> Result<NodeGraph, RunError> {
        let is_declared = fields.iter().any(|task| task.node.is_some());
        let (mut nodes, index_of) = nodes(graph, fields, declared);
        let tasks = members(graph, fields, &index_of, &mut nodes)?;
        let mut node_graph = NodeGraph {
            nodes,
            tasks,
            streams: Vec::new(),
            is_declared,
            first_stream: vec![0],
            upstream: Vec::new(),
            first_upstream: Vec::new(),
            outlets: Vec::with_capacity(graph.n_edges()),
            first_outlet: vec![NONE; fields.len()],
            inlets: Vec::with_capacity(graph.n_edges()),
        };
        node_graph.find_outlets(graph);
        node_graph.find_streams(declared);
        node_graph.find_upstream();
        Ok(node_graph)
    }

    /// Index of a node.
    pub fn index_of(&self, id: i32) -> Option<u32> {
        self.nodes.binary_search_by_key(&id, |node| node.id).ok().map(|index| index as u32)
    }

    /// The nodes that feed a node, ascending.
    pub fn upstream(&self, node: u32) -> &[u32] {
        let index = node as usize;
        &self.upstream[self.first_upstream[index] as usize..self.first_upstream[index + 1] as usize]
    }

    /// The nodes that a node feeds, in no order.
    pub fn downstream(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let index = node as usize;
        let streams = self.first_stream[index] as usize..self.first_stream[index + 1] as usize;
        self.streams[streams].iter().map(|&(_, to)| to)
    }

    /// A place for every node such that every node comes after those upstream, and how many places that holds for: nodes on
    /// cycles and behind them come last.
    pub fn places(&self) -> (Vec<u32>, u32) {
        let n_nodes = self.nodes.len() as u32;
        let mut left: Vec<u32> = (0..n_nodes).map(|node| self.upstream(node).len() as u32).collect();
        // Of those that can be next the first: then most nodes upstream of one have their places in the order of their numbers.
        let mut next: BinaryHeap<Reverse<u32>> =
            (0..n_nodes).filter(|&node| left[node as usize] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(n_nodes as usize);
        while let Some(Reverse(node)) = next.pop() {
            order.push(node);
            for to in self.downstream(node) {
                left[to as usize] -= 1;
                if left[to as usize] == 0 {
                    next.push(Reverse(to));
                }
            }
        }
        let n_ordered = order.len() as u32;
        order.extend((0..n_nodes).filter(|&node| left[node as usize] > 0));
        let mut places = vec![0; n_nodes as usize];
        for (place, &node) in order.iter().enumerate() {
            places[node as usize] = place as u32;
        }
        (places, n_ordered)
    }

    /// Finds what every task puts into streams: one outlet for each node that consumes from it.
    fn find_outlets(&mut self, graph: &Graph) {
        for (index, member) in self.tasks.iter().enumerate() {
            for producer in graph.producers(TaskId(index as u64)) {
                let producer = producer.0 as usize;
                if self.tasks[producer].node == member.node {
                    self.inlets.push(NONE);
                    continue;
                }
                let outlet = outlet(&mut self.outlets, &mut self.first_outlet[producer], member.node);
                self.outlets[outlet as usize].waiting += u32::from(member.is_scheduled);
                self.inlets.push(outlet);
            }
        }
    }

    /// Finds the streams: one from each node to each other that consumes from it.
    fn find_streams(&mut self, declared: &BTreeSet<(i32, i32)>) {
        let index = |id| self.index_of(id).expect("every declared node is listed");
        let mut declared =
            declared.iter().map(|&(from, to)| (index(from), index(to))).collect::<Vec<_>>().into_iter().peekable();
        // By node: the last node found to feed it, and the number of that stream.
        let mut fed: Vec<(u32, u32)> = vec![(u32::MAX, 0); self.nodes.len()];
        let (tasks, first) = self.by_node();
        for from in 0..self.nodes.len() as u32 {
            while let Some((_, to)) = declared.next_if(|&(node, _)| node == from) {
                stream(&mut self.streams, &mut fed, from, to);
            }
            for &task in &tasks[first[from as usize] as usize..first[from as usize + 1] as usize] {
                let mut next = self.first_outlet[task as usize];
                while let Some(outlet) = self.outlets.get_mut(next as usize) {
                    outlet.stream = stream(&mut self.streams, &mut fed, from, outlet.to);
                    next = outlet.next;
                }
            }
            self.first_stream.push(self.streams.len() as u32);
        }
    }

    /// Tasks of each node one after the other, and where those of each begin.
    fn by_node(&self) -> (Vec<u32>, Vec<u32>) {
        let mut first = vec![0; self.nodes.len() + 1];
        for (index, node) in self.nodes.iter().enumerate() {
            first[index + 1] = first[index] + node.n_tasks as u32;
        }
        let (mut next, mut tasks) = (first.clone(), vec![0; self.tasks.len()]);
        for (task, member) in self.tasks.iter().enumerate() {
            let place = &mut next[member.node as usize];
            tasks[*place as usize] = task as u32;
            *place += 1;
        }
        (tasks, first)
    }

    fn find_upstream(&mut self) {
        let mut first = vec![0; self.nodes.len() + 1];
        for &(_, to) in &self.streams {
            first[to as usize + 1] += 1;
        }
        for index in 0..self.nodes.len() {
            first[index + 1] += first[index];
        }
        let mut next = first.clone();
        self.upstream = vec![0; self.streams.len()];
        for &(from, to) in &self.streams {
            let place: &mut u32 = &mut next[to as usize];
            self.upstream[*place as usize] = from;
            *place += 1;
        }
        self.first_upstream = first;
    }
}

/// The outlet to a node among those of a task, which are in order of the nodes; a new one if it is met for the first time.
#[inline]
fn outlet(outlets: &mut Vec<Outlet>, first: &mut u32, to: u32) -> u32 {
    let (mut before, mut next) = (NONE, *first);
    while let Some(outlet) = outlets.get(next as usize)
        && outlet.to <= to
    {
        if outlet.to == to {
            return next;
        }
        (before, next) = (next, outlet.next);
    }
    let new = outlets.len() as u32;
    outlets.push(Outlet { next, stream: 0, to, waiting: 0, is_queued: false });
    match outlets.get_mut(before as usize) {
        Some(outlet) => outlet.next = new,
        None => *first = new,
    }
    new
}

/// The number of a stream, a new one if it is met for the first time.
fn stream(streams: &mut Vec<(u32, u32)>, fed: &mut [(u32, u32)], from: u32, to: u32) -> u32 {
    let last = &mut fed[to as usize];
    if last.0 != from {
        *last = (from, streams.len() as u32);
        streams.push((from, to));
    }
    last.1
}

/// All nodes by ascending id, and the index of the node of every task. Derived numbers begin behind those of the trace.
fn nodes(graph: &Graph, fields: &[Fields], declared: &BTreeSet<(i32, i32)>) -> (Vec<Shape>, Vec<u32>) {
    let named = fields.iter().filter_map(|task| task.node);
    let first = named.clone().max().map_or(0, |largest| largest.saturating_add(1).max(0));
    let (derived, n_derived) = derive(graph, fields);
    if n_derived > 0 && declared.is_empty() && named.clone().next().is_none() {
        // Derived numbers are indices.
        let ids = 0..n_derived.cast_signed();
        return (ids.map(|id| Shape { id, n_tasks: 0 }).collect(), derived);
    }
    let id = |number: u32| first.wrapping_add(number.cast_signed());
    let mut ids: Vec<i32> = named.chain(declared.iter().flat_map(|&(a, b)| [a, b])).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.extend((0..n_derived).map(id));
    ids.sort_unstable();
    ids.dedup();
    let place = |id: i32| ids.binary_search(&id).expect("every node is listed") as u32;
    let of_derived: Vec<u32> = (0..n_derived).map(|number| place(id(number))).collect();
    let mut last = None;
    let index_of = |(task, &number): (&Fields, &u32)| match (task.node, last) {
        (None, _) => of_derived[number as usize],
        (Some(id), Some((known, index))) if id == known => index,
        (Some(id), _) => {
            last = Some((id, place(id)));
            place(id)
        }
    };
    let indices = fields.iter().zip(&derived).map(index_of).collect();
    (ids.into_iter().map(|id| Shape { id, n_tasks: 0 }).collect(), indices)
}

/// The number of the derived node of every task that names none, and how many there are.
fn derive(graph: &Graph, fields: &[Fields]) -> (Vec<u32>, u32) {
    let mut numbers = vec![0; fields.len()];
    let mut seen: HashMap<Kind, u32, BuildHasherDefault<Multiplied>> = HashMap::default();
    if fields.iter().all(|task| task.node.is_some()) {
        return (numbers, 0);
    }
    let mut levels: Vec<u32> = Vec::with_capacity(fields.len());
    // By level: the kernel seen last and its node.
    let mut last: Vec<(Option<Symbol>, u32)> = Vec::new();
    for (index, task) in fields.iter().enumerate() {
        let producers = graph.producers(TaskId(index as u64)).iter();
        let level = producers.map(|producer| levels[producer.0 as usize] + 1).max().unwrap_or(0);
        levels.push(level);
        if task.node.is_some() {
            continue;
        }
        let kernel = graph.tasks[index].kernel;
        numbers[index] = match last.get(level as usize) {
            Some(&(known, number)) if known == kernel && number != NONE => number,
            _ => {
                let next = seen.len() as u32;
                let number = *seen.entry((kernel, level)).or_insert(next);
                if level as usize >= last.len() {
                    last.resize(level as usize + 1, (None, NONE));
                }
                last[level as usize] = (kernel, number);
                number
            }
        };
    }
    (numbers, seen.len() as u32)
}

/// What a derived node is known by: kernel and level.
type Kind = (Option<Symbol>, u32);

/// A hash of a few small numbers: enough for keys that nobody chooses to collide.
#[derive(Default)]
struct Multiplied(u64);

impl Hasher for Multiplied {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }
}

fn members(graph: &Graph, fields: &[Fields], index_of: &[u32], nodes: &mut [Shape]) -> Result<Vec<Member>, RunError> {
    let mut members = Vec::with_capacity(fields.len());
    for (index, (&node, task)) in index_of.iter().zip(fields).enumerate() {
        let shape = &mut nodes[node as usize];
        shape.n_tasks += 1;
        let timestamp = task.timestamp.unwrap_or(shape.n_tasks.cast_signed());
        if timestamp == timestamp::UNSET {
            let line = graph.tasks[index].line.map_or_else(String::new, |line| format!("line {line}: "));
            let (name, id) = (graph.name(TaskId(index as u64)), shape.id);
            return Err(RunError::Task(format!(
                "{line}task {name}: timestamp -1 means that there is none, and policy bmf refuses it; leave it out to number \
                 the tasks of node {id} in order"
            )));
        }
        let is_scheduled = graph.tasks[index].kind != TaskType::None;
        members.push(Member { node, timestamp, is_together: task.is_together, is_scheduled });
    }
    Ok(members)
}

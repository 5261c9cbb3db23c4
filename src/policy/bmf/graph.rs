//! The node graph of a program: which node each task belongs to, its timestamp, and the streams between nodes.
//!
//! A trace says `node` and `timestamp`, or both are derived: a node is a pair of kernel and level (the longest path of
//! dependencies before the task), numbered by first appearance, so that the graph has no cycle; the timestamp is the
//! task's place among those of its node, from 1.

use super::timestamp;
use crate::engine::RunError;
use crate::graph::Graph;
use crate::id::{TaskId, TaskType};
use crate::workload::{Operation, Submit, Workload};
use std::collections::{BTreeSet, HashMap};

/// All nodes and tasks.
pub(super) struct NodeGraph {
    /// Nodes by ascending id.
    pub nodes: Vec<Shape>,
    /// Tasks by id.
    pub tasks: Vec<Member>,
    /// Streams: from which node to which.
    pub streams: Vec<(u32, u32)>,
    /// Whether the trace names any node.
    pub is_declared: bool,
    outlets: Vec<Outlet>,
    first_outlet: Vec<u32>,
}

/// A node: who feeds it and whom it feeds, by index, ascending.
#[derive(Clone, Default, Debug)]
pub(super) struct Shape {
    /// Its number in the trace.
    pub id: i32,
    pub upstream: Vec<u32>,
    pub downstream: Vec<u32>,
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
}

/// What a task puts into one stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outlet {
    pub stream: u32,
    /// The node at its end.
    pub to: u32,
    /// Consumers there that are not scheduled yet. Those that take no worker are never scheduled and do not count.
    pub waiting: u32,
}

/// What the trace says of a task.
struct Fields {
    node: Option<i32>,
    timestamp: Option<i64>,
    is_together: bool,
}

impl NodeGraph {
    /// Finds the nodes of a program.
    pub fn new(workload: &dyn Workload, graph: &Graph, declared: &BTreeSet<(i32, i32)>) -> Result<NodeGraph, RunError> {
        let fields = fields(workload)?;
        let is_declared = fields.iter().any(|task| task.node.is_some());
        let ids = node_ids(graph, &fields);
        let distinct: BTreeSet<i32> = ids.iter().copied().chain(declared.iter().flat_map(|&(a, b)| [a, b])).collect();
        let mut nodes: Vec<_> = distinct.into_iter().map(|id| Shape { id, ..Shape::default() }).collect();
        let tasks = members(graph, &fields, &ids, &mut nodes)?;
        let mut node_graph =
            NodeGraph { nodes, tasks, streams: Vec::new(), is_declared, outlets: Vec::new(), first_outlet: vec![0] };
        node_graph.link(graph, declared);
        Ok(node_graph)
    }

    /// What a task puts into streams, by ascending node at their end.
    pub fn outlets(&self, task: TaskId) -> &[Outlet] {
        &self.outlets[self.range(task)]
    }

    /// As [`NodeGraph::outlets`], to change.
    pub fn outlets_mut(&mut self, task: TaskId) -> &mut [Outlet] {
        let range = self.range(task);
        &mut self.outlets[range]
    }

    fn range(&self, task: TaskId) -> std::ops::Range<usize> {
        let index = task.0 as usize;
        self.first_outlet[index] as usize..self.first_outlet[index + 1] as usize
    }

    /// Index of a node.
    pub fn index_of(&self, id: i32) -> Option<u32> {
        self.nodes.binary_search_by_key(&id, |node| node.id).ok().map(|index| index as u32)
    }

    /// Finds the streams: one from each node to each other that consumes from it.
    fn link(&mut self, graph: &Graph, declared: &BTreeSet<(i32, i32)>) {
        let mut numbers: HashMap<(u32, u32), u32> = HashMap::new();
        let mut number = |streams: &mut Vec<(u32, u32)>, ends| {
            *numbers.entry(ends).or_insert_with(|| {
                streams.push(ends);
                streams.len() as u32 - 1
            })
        };
        let index = |id| self.index_of(id).expect("every declared node is listed");
        let declared: Vec<_> = declared.iter().map(|&(from, to)| (index(from), index(to))).collect();
        for ends in declared {
            number(&mut self.streams, ends);
        }
        let mut consumers: Vec<(u32, u32)> = Vec::new();
        for task in 0..self.tasks.len() as u64 {
            let from = self.tasks[task as usize].node;
            consumers.clear();
            consumers.extend(graph.consumers(TaskId(task)).iter().map(|consumer| {
                let index = consumer.0 as usize;
                (self.tasks[index].node, u32::from(graph.tasks[index].kind != TaskType::None))
            }));
            consumers.retain(|&(to, _)| to != from);
            consumers.sort_unstable();
            for group in consumers.chunk_by(|a, b| a.0 == b.0) {
                let to = group[0].0;
                let stream = number(&mut self.streams, (from, to));
                let waiting = group.iter().map(|&(_, counts)| counts).sum();
                self.outlets.push(Outlet { stream, to, waiting });
            }
            self.first_outlet.push(self.outlets.len() as u32);
        }
        let mut ends = self.streams.clone();
        ends.sort_unstable();
        for (from, to) in ends {
            self.nodes[from as usize].downstream.push(to);
            self.nodes[to as usize].upstream.push(from);
        }
    }
}

/// Reads the fields of every task.
fn fields(workload: &dyn Workload) -> Result<Vec<Fields>, RunError> {
    let (mut source, mut task, mut fields) = (workload.open()?, Submit::default(), Vec::new());
    while let Some(operation) = source.next(&mut task)? {
        if operation == Operation::Submit {
            let policy = task.policy.as_deref();
            fields.push(Fields {
                node: policy.and_then(|policy| policy.node),
                timestamp: policy.and_then(|policy| policy.timestamp),
                is_together: task.sync_start && task.blocks > 1,
            });
        }
    }
    Ok(fields)
}

/// The node of every task. Derived numbers begin behind those of the trace.
fn node_ids(graph: &Graph, fields: &[Fields]) -> Vec<i32> {
    let first = fields.iter().filter_map(|task| task.node).max().map_or(0, |largest| largest.saturating_add(1).max(0));
    let mut levels: Vec<u32> = Vec::with_capacity(fields.len());
    let mut seen = HashMap::new();
    let mut ids = Vec::with_capacity(fields.len());
    for (index, task) in fields.iter().enumerate() {
        let producers = graph.producers(TaskId(index as u64)).iter();
        let level = producers.map(|producer| levels[producer.0 as usize] + 1).max().unwrap_or(0);
        levels.push(level);
        ids.push(task.node.unwrap_or_else(|| {
            let next = first.wrapping_add(i32::try_from(seen.len()).unwrap_or(i32::MAX));
            *seen.entry((graph.tasks[index].kernel, level)).or_insert(next)
        }));
    }
    ids
}

fn members(graph: &Graph, fields: &[Fields], ids: &[i32], nodes: &mut [Shape]) -> Result<Vec<Member>, RunError> {
    let index_of: HashMap<i32, u32> = nodes.iter().enumerate().map(|(index, node)| (node.id, index as u32)).collect();
    let mut members = Vec::with_capacity(ids.len());
    for (index, (id, task)) in ids.iter().zip(fields).enumerate() {
        let node = index_of[id];
        let shape = &mut nodes[node as usize];
        shape.n_tasks += 1;
        let timestamp = task.timestamp.unwrap_or(shape.n_tasks.cast_signed());
        if timestamp == timestamp::UNSET {
            let line = graph.tasks[index].line.map_or_else(String::new, |line| format!("line {line}: "));
            let name = graph.name(TaskId(index as u64));
            return Err(RunError::Task(format!(
                "{line}task {name}: timestamp -1 means that there is none, and policy bmf refuses it; leave it out to number \
                 the tasks of node {id} in order"
            )));
        }
        members.push(Member { node, timestamp, is_together: task.is_together });
    }
    Ok(members)
}

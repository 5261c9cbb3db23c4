//! The node graph of a program: which node each task belongs to, its timestamp, and the streams between nodes.
//!
//! Most of it is one entry a task, so that every byte counts: new memory costs more time than anything that is done with it.

use super::config::Config;
use super::read::{Names, Program};
use super::route::Router;
use crate::config::Machine;
use crate::engine::RunError;
use crate::graph::{Adjacency, Producers};
use crate::id::{TaskId, TaskType};
use crate::policy::number_set::NumberSet;
use crate::window::NONE;
use std::collections::BTreeSet;

/// All nodes and tasks.
pub(super) struct NodeGraph {
    /// Ids of the nodes, ascending; nothing if they are the indices, because all nodes are derived.
    ids: Vec<i32>,
    /// By node.
    pub n_tasks: Vec<u32>,
    /// Tasks by id.
    pub tasks: Vec<Member>,
    /// By task, as far as the trace gives any.
    timestamps: Vec<Option<i64>>,
    /// Whether the trace names any node.
    pub is_declared: bool,
    /// Those into a node one after the other.
    pub streams: Vec<Stream>,
    /// Streams of the configuration, node by node.
    declared: Vec<(u32, u32)>,
    /// Where the streams into each node begin; one more than there are nodes.
    first_stream: Vec<u32>,
    /// For the streams of each node, the nodes they come from, ascending.
    pub upstream: Vec<u32>,
    /// Whether every node comes after those upstream of it.
    pub is_ordered: bool,
    /// By task, what it puts into streams, ascending by the node at the end; unused ones come last.
    pub outlets: Adjacency<Outlet>,
    pub producers: Producers,
    pub names: Names,
    /// What to tell about the choice of queues.
    pub warnings: Vec<String>,
}

/// A task as a member of its node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// Index of its node.
    pub node: u32,
    /// Its place among those of its node, from 1, which is its timestamp if the trace gives none.
    place: u32,
    /// The queue it goes to, or [`NONE`] if it takes no worker.
    pub queue: u32,
}

impl Member {
    /// Whether it takes a worker. What takes none is never scheduled.
    pub fn is_scheduled(&self) -> bool {
        self.queue != NONE
    }
}

/// Packets on the way from one node to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub from: u32,
    pub to: u32,
    /// Completed tasks of the one with a consumer in the other that is not scheduled.
    pub waiting: u32,
    pub high: u32,
}

/// What a task puts into one stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outlet {
    /// The node at the end of the stream, or [`NONE`] if this is unused.
    pub to: u32,
    pub stream: u32,
    /// Consumers there that are not scheduled yet, and [`QUEUED`].
    pub waiting: u32,
}

/// Set in an outlet while its packet waits in the stream.
pub(super) const QUEUED: u32 = 1 << 31;

impl NodeGraph {
    /// Finds the nodes of a program and gives each a queue.
    pub fn new(program: Program, config: &Config, machine: &Machine) -> Result<NodeGraph, RunError> {
        let is_declared = !program.named.is_empty();
        let Program { producers, mut nodes, n_nodes, named, demands, timestamps, refused, names } = program;
        let ids = ids(&named, n_nodes, &config.streams, &mut nodes);
        let mut graph = NodeGraph {
            n_tasks: vec![0; if ids.is_empty() { n_nodes as usize } else { ids.len() }],
            ids,
            tasks: Vec::with_capacity(nodes.len()),
            timestamps,
            is_declared,
            streams: Vec::new(),
            declared: Vec::new(),
            first_stream: vec![0],
            upstream: Vec::new(),
            is_ordered: true,
            outlets: Adjacency { first: Vec::new(), tasks: Vec::new() },
            producers,
            names,
            warnings: Vec::new(),
        };
        if let Some((task, line)) = refused {
            return Err(graph.refuse(task, line, nodes[task.0 as usize]));
        }
        let mut router = Router::new(config, graph.n_tasks.len(), is_declared, machine);
        for (node, demand) in nodes.into_iter().zip(demands) {
            let queue = router.queue(node, graph.id(node), demand)?;
            let n_tasks = &mut graph.n_tasks[node as usize];
            *n_tasks += 1;
            graph.tasks.push(Member {
                node,
                place: *n_tasks,
                queue: if demand.kind == TaskType::None { NONE } else { queue },
            });
        }
        graph.warnings = router.warnings;
        graph.find_streams(&config.streams);
        Ok(graph)
    }

    /// The error for a task that has the timestamp of none.
    fn refuse(&self, task: TaskId, line: Option<u64>, node: u32) -> RunError {
        let line = line.map_or_else(String::new, |line| format!("line {line}: "));
        let (name, id) = (self.names.name(task), self.id(node));
        RunError::Task(format!(
            "{line}task {name}: timestamp -1 means that there is none, and policy bmf refuses it; leave it out to number \
             the tasks of node {id} in order"
        ))
    }

    /// The number of a node in the trace.
    #[inline]
    pub fn id(&self, node: u32) -> i32 {
        self.ids.get(node as usize).copied().unwrap_or(node.cast_signed())
    }

    /// Index of a node.
    pub fn index_of(&self, id: i32) -> Option<u32> {
        if self.ids.is_empty() {
            return u32::try_from(id).ok().filter(|&index| (index as usize) < self.n_tasks.len());
        }
        self.ids.binary_search(&id).ok().map(|index| index as u32)
    }

    #[inline]
    pub fn timestamp(&self, task: u32) -> i64 {
        match self.timestamps.get(task as usize) {
            Some(&Some(timestamp)) => timestamp,
            _ => self.tasks[task as usize].place.into(),
        }
    }

    /// Where the streams into a node stand.
    #[inline]
    pub fn streams_into(&self, node: u32) -> std::ops::Range<usize> {
        let index = node as usize;
        self.first_stream[index] as usize..self.first_stream[index + 1] as usize
    }

    /// The nodes that each node feeds.
    pub fn downstream(&self) -> Adjacency<u32> {
        Adjacency { first: self.first_stream.clone(), tasks: self.upstream.clone() }.reversed()
    }

    /// A place for every node such that every node comes after those upstream, and how many places that holds for: nodes on
    /// cycles and behind them come last. Nothing if the indices are such places.
    pub fn places(&self) -> (Vec<u32>, u32) {
        let n_nodes = self.n_tasks.len() as u32;
        if self.is_ordered {
            return (Vec::new(), n_nodes);
        }
        let downstream = self.downstream();
        let mut left: Vec<u32> = (0..n_nodes).map(|node| self.streams_into(node).len() as u32).collect();
        // Of those that can be next the first: then most nodes upstream of one have their places in the order of their numbers.
        let mut next = NumberSet::new(n_nodes as usize);
        (0..n_nodes).filter(|&node| left[node as usize] == 0).for_each(|node| next.insert(node));
        let mut order = Vec::with_capacity(n_nodes as usize);
        while let Some(node) = next.first() {
            next.remove_first();
            order.push(node);
            for &to in downstream.of(node as usize) {
                left[to as usize] -= 1;
                if left[to as usize] == 0 {
                    next.insert(to);
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

    /// The streams out of a node: those of the configuration, then those that its tasks feed, one after the other. One may come
    /// several times.
    pub fn streams_out_of(&self, node: u32) -> impl Iterator<Item = &Stream> {
        let declared = self.declared.iter().filter(move |&&(from, _)| from == node);
        let declared = declared
            .filter_map(move |&(_, to)| self.streams[self.streams_into(to)].iter().find(|stream| stream.from == node));
        let tasks = (0..self.tasks.len()).filter(move |&task| self.tasks[task].node == node);
        let outlets = tasks.flat_map(|task| self.outlets.of(task)).filter(|outlet| outlet.to != NONE);
        declared.chain(outlets.map(|outlet| &self.streams[outlet.stream as usize]))
    }

    /// Finds what every task puts into streams, one outlet for each node that consumes from it, and the streams: one from each
    /// node to each other that consumes from it. Node by node, so that only what was found last must be looked at.
    fn find_streams(&mut self, declared: &BTreeSet<(i32, i32)>) {
        let index = |id| self.index_of(id).expect("every declared node is listed");
        self.declared = declared.iter().map(|&(from, to)| (index(from), index(to))).collect();
        let mut by_end = self.declared.clone();
        by_end.sort_unstable_by_key(|&(_, to)| to);
        let mut by_end = by_end.into_iter().peekable();
        // By task, at first the node of its last consumer, then how many outlets it has; by node, one more than the last stream
        // out of it.
        let (mut used, mut fed) = (vec![NONE; self.tasks.len()], vec![0_u32; self.n_tasks.len()]);
        self.outlets = self.unused_outlets(&mut used);
        used.fill(0);
        let (tasks, first) = self.by_node();
        for to in 0..self.n_tasks.len() as u32 {
            let begin = self.streams.len() as u32;
            while let Some((from, _)) = by_end.next_if(|&(_, end)| end == to) {
                self.stream(from, to, begin, &mut fed);
            }
            for &task in &tasks[first[to as usize] as usize..first[to as usize + 1] as usize] {
                self.find_outlets_to(to, task as usize, &mut used, |graph, from| {
                    graph.stream(from, to, begin, &mut fed)
                });
            }
            let upstream = &mut self.upstream[begin as usize..];
            if !upstream.is_sorted() {
                upstream.sort_unstable();
            }
            self.first_stream.push(self.streams.len() as u32);
        }
    }

    /// Finds the outlets through which a task of a node gets its packets.
    #[inline]
    fn find_outlets_to(
        &mut self,
        to: u32,
        task: usize,
        used: &mut [u32],
        mut stream: impl FnMut(&mut NodeGraph, u32) -> u32,
    ) {
        let waiting = u32::from(self.tasks[task].is_scheduled());
        for edge in self.producers.range(task) {
            let producer = self.producers.tasks[edge] as usize;
            let from = self.tasks[producer].node;
            if from == to {
                continue;
            }
            let used = &mut used[producer];
            let next = (self.outlets.first[producer] + *used) as usize;
            if *used > 0
                && let outlet = &mut self.outlets.tasks[next - 1]
                && outlet.to == to
            {
                outlet.waiting += waiting;
                continue;
            }
            *used += 1;
            self.outlets.tasks[next] = Outlet { to, stream: stream(self, from), waiting };
        }
    }

    /// The stream from a node to the one at hand, whose streams begin at `begin`; a new one if it is met for the first time.
    #[inline]
    fn stream(&mut self, from: u32, to: u32, begin: u32, fed: &mut [u32]) -> u32 {
        let last = &mut fed[from as usize];
        if *last <= begin {
            self.streams.push(Stream { from, to, waiting: 0, high: 0 });
            self.upstream.push(from);
            self.is_ordered &= from < to;
            *last = self.streams.len() as u32;
        }
        *last - 1
    }

    /// Room for the outlets of every task: one for each time that the next of its consumers is of another node. `last` begins with
    /// no node for every task.
    fn unused_outlets(&self, last: &mut [u32]) -> Adjacency<Outlet> {
        let mut first = vec![0_u32; self.tasks.len() + 1];
        for (task, member) in self.tasks.iter().enumerate() {
            for &producer in self.producers.of(task) {
                let before = std::mem::replace(&mut last[producer as usize], member.node);
                first[producer as usize + 1] += u32::from(before != member.node);
            }
        }
        for task in 0..self.tasks.len() {
            first[task + 1] += first[task];
        }
        let unused = Outlet { to: NONE, stream: 0, waiting: 0 };
        Adjacency { tasks: vec![unused; first[self.tasks.len()] as usize], first }
    }

    /// Tasks of each node one after the other, and where those of each begin.
    fn by_node(&self) -> (Vec<u32>, Vec<u32>) {
        let mut first = vec![0; self.n_tasks.len() + 1];
        for (index, n_tasks) in self.n_tasks.iter().enumerate() {
            first[index + 1] = first[index] + n_tasks;
        }
        let mut tasks = vec![0; self.tasks.len()];
        for (task, member) in self.tasks.iter().enumerate() {
            tasks[(first[member.node as usize] + member.place - 1) as usize] = task as u32;
        }
        (tasks, first)
    }
}

/// Ids of all nodes, ascending, and `nodes` turned from numbers into indices of these. Derived numbers begin behind those of the
/// trace. Nothing if all nodes are derived, because then ids, indices and numbers are the same.
fn ids(named: &[(u32, i32)], n_nodes: u32, declared: &BTreeSet<(i32, i32)>, nodes: &mut [u32]) -> Vec<i32> {
    if named.is_empty() && declared.is_empty() {
        return Vec::new();
    }
    let first = named.iter().map(|&(_, id)| id).max().map_or(0, |largest| largest.saturating_add(1).max(0));
    let (mut of_trace, mut n_derived) = (named.iter().peekable(), 0_u32);
    let id_of = (0..n_nodes).map(|number| {
        if let Some(&(_, id)) = of_trace.next_if(|&&(next, _)| next == number) {
            return id;
        }
        n_derived += 1;
        first.wrapping_add((n_derived - 1).cast_signed())
    });
    let id_of: Vec<i32> = id_of.collect();
    let mut ids: Vec<i32> = id_of.iter().copied().chain(declared.iter().flat_map(|&(a, b)| [a, b])).collect();
    ids.sort_unstable();
    ids.dedup();
    let index_of = |id: &i32| ids.binary_search(id).expect("every node is listed") as u32;
    let indices: Vec<u32> = id_of.iter().map(index_of).collect();
    nodes.iter_mut().for_each(|node| *node = indices[*node as usize]);
    ids
}

//! The node graph of a program: which node each task belongs to, its timestamp, and the streams between nodes.
//!
//! Most of it is one entry a task, so that every byte counts: new memory costs more time than anything that is done with it.

use super::config::Config;
use super::finder::Finder;
use super::node::Node;
use super::read::{Names, Program, Sketch, name_nodes};
use super::record::LISTED;
use super::route::Router;
use super::sorting;
use crate::config::{ConfigError, Machine};
use crate::engine::RunError;
use crate::graph::Adjacency;
use crate::id::{TaskId, TaskType};
use crate::large;
use crate::policy::number_set::NumberSet;
use crate::window::{NONE, prefetch};
use zerocopy::FromZeros;

/// All nodes and tasks.
pub(super) struct NodeGraph {
    /// Ids of the nodes, ascending; nothing if they are the indices, because all nodes are derived.
    ids: Vec<i32>,
    /// By node: how many tasks it has and the queue that they go to, before anything happens. It is taken from here for the run.
    pub nodes: Vec<Node>,
    /// How many tasks the first nodes have, as many as the report lists.
    pub n_tasks: Vec<u32>,
    /// Tasks by id.
    pub tasks: Vec<Member>,
    /// By task, its queue, or [`NONE`] if it takes no worker; nothing if all tasks of every node have the same.
    pub queues: Vec<u32>,
    /// By task, as far as the trace gives any.
    timestamps: Vec<Option<i64>>,
    /// Whether the trace names any node.
    pub is_declared: bool,
    /// Those into a node one after the other, and those into the last node first.
    pub streams: Vec<Stream>,
    /// Streams of the configuration, node by node.
    declared: Vec<(u32, u32)>,
    /// For the streams into each node, the nodes they come from, ascending.
    pub upstream: Vec<u32>,
    /// By node: where those upstream begin, and where those end that may still schedule something, or have such nodes before them.
    pub live: Vec<(u32, u32)>,
    /// Whether every node comes after those upstream of it.
    is_ordered: bool,
    /// Nodes that are not fed by the node before them, ascending.
    spines: Vec<u32>,
    /// By node, something that is larger for a node than for those upstream; nothing if that is not known.
    levels: Vec<u32>,
    /// What tasks put into streams: those of a task one after the other, ascending by the node at the end.
    pub outlets: Vec<Outlet>,
    /// The outlets of producers through which tasks get their packets, those of a task one after the other; [`NONE`] for producers of
    /// its own node.
    pub inlets: Vec<u32>,
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
    pub place: u32,
    /// The first of its outlets; none has this number if it has none. How many consumers it has, while the program is read.
    pub outlet: u32,
    /// The first of its inlets.
    pub inlet: u32,
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
#[derive(Clone, Copy, Debug, FromZeros)]
pub(super) struct Outlet {
    /// The stream, and [`LAST`].
    pub stream: u32,
    /// Consumers there that are not scheduled yet, and [`QUEUED`].
    pub waiting: u32,
}

impl Outlet {
    #[inline]
    pub fn stream(self) -> usize {
        (self.stream & !LAST) as usize
    }

    /// Whether it is the last of its task.
    #[inline]
    pub fn is_last(self) -> bool {
        self.stream & LAST != 0
    }
}

/// Set in the last outlet of a task. It is the first that is found, in room that is [`UNUSED`].
const LAST: u32 = 1 << 31;

/// Set in the place behind the room for the outlets of a task, as long as it has none.
pub(super) const UNUSED: u32 = 1 << 31;

/// Set in an outlet while its packet waits in the stream.
pub(super) const QUEUED: u32 = 1 << 31;

impl NodeGraph {
    /// Finds the nodes of a program and gives each a queue.
    pub fn new(mut program: Program, config: &Config, machine: &Machine) -> Result<NodeGraph, RunError> {
        let (ids, is_declared) = (name_nodes(&mut program, &config.streams), !program.named.is_empty());
        let mut graph = NodeGraph {
            ids,
            nodes: Vec::new(),
            n_tasks: program.nodes.iter().map(|node| node.n_tasks).take(LISTED).collect(),
            tasks: Vec::new(),
            queues: Vec::new(),
            timestamps: std::mem::take(&mut program.timestamps),
            is_declared,
            streams: Vec::new(),
            declared: Vec::new(),
            upstream: Vec::new(),
            live: Vec::new(),
            is_ordered: true,
            spines: Vec::new(),
            levels: Vec::new(),
            outlets: Vec::new(),
            inlets: Vec::new(),
            names: std::mem::take(&mut program.names),
            warnings: Vec::new(),
        };
        if let Some((task, place)) = &program.refused {
            return Err(graph.refuse(*task, place, program.members[task.0 as usize].node));
        }
        let mut router = Router::new(config, is_declared, machine);
        graph.route(&program, &mut router)?;
        graph.warnings = router.warnings;
        let Program { producers, members, nodes, is_grouped, .. } = program;
        (graph.tasks, graph.inlets) = (members, producers);
        graph.live = large::with_capacity(graph.nodes.len());
        graph.live.resize(graph.nodes.len(), (0, 0));
        let by_node = if is_grouped && graph.ids.is_empty() { Vec::new() } else { graph.by_node() };
        graph.find_streams(config, &by_node);
        if !graph.is_ordered && graph.ids.is_empty() {
            graph.levels = nodes.iter().map(|node| node.level).collect();
        }
        Ok(graph)
    }

    /// Gives every node or every task a queue, in the order of tasks.
    fn route(&mut self, program: &Program, router: &mut Router<'_>) -> Result<(), ConfigError> {
        if self.ids.is_empty() && program.demands.is_empty() {
            // Nodes are numbered by their first tasks.
            self.nodes = large::with_capacity(program.nodes.len());
            for (index, &Sketch { n_tasks, demand, .. }) in (0..).zip(&program.nodes) {
                let queue = router.queue_of_all(index, demand)?;
                self.nodes.push(Node::new(n_tasks, if demand.kind == TaskType::None { NONE } else { queue }));
            }
            return Ok(());
        }
        self.nodes = program.nodes.iter().map(|node| Node::new(node.n_tasks, 0)).collect();
        for (task, &Member { node, .. }) in program.members.iter().enumerate() {
            let demand = program.demand(task);
            let queue = router.queue(node, self.id(node), demand)?;
            self.queues.push(if demand.kind == TaskType::None { NONE } else { queue });
        }
        Ok(())
    }

    /// The error for a task that has the timestamp of none.
    fn refuse(&self, task: TaskId, place: &str, node: u32) -> RunError {
        let (name, id) = (self.names.name(task), self.id(node));
        RunError::Task(format!(
            "{place}task {name}: timestamp -1 means that there is none, and policy bmf refuses it; leave it out to number \
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
            return u32::try_from(id).ok().filter(|&index| (index as usize) < self.n_nodes());
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

    /// What orders the tasks of a node before their ids do: the timestamps, if the trace gives any. Others ascend with the ids.
    #[inline]
    pub fn rank_in_node(&self, task: u32) -> i64 {
        if self.timestamps.is_empty() { 0 } else { self.timestamp(task) }
    }

    /// Number of nodes.
    #[inline]
    pub fn n_nodes(&self) -> usize {
        self.live.len()
    }

    /// The first node of those that feed each other up to this one, each the next. All of them are upstream of it, and what else is
    /// upstream comes before them. Only where every node comes after those upstream.
    #[inline]
    pub fn spine(&self, node: u32) -> u32 {
        match self.spines[..] {
            [only] => only,
            _ => self.spines[self.spines.partition_point(|&first| first <= node) - 1],
        }
    }

    /// Where the inlets of a task stand.
    #[inline]
    pub fn inlets_of(&self, task: usize) -> std::ops::Range<usize> {
        let end = self.tasks.get(task + 1).map_or(self.inlets.len(), |next| next.inlet as usize);
        self.tasks[task].inlet as usize..end
    }

    /// The queue of a task of a node whose queue is `usual`, or [`NONE`] if it takes no worker: then it is never scheduled.
    #[inline]
    pub fn queue(&self, task: u32, usual: u32) -> u32 {
        self.queues.get(task as usize).copied().unwrap_or(usual)
    }

    /// Where the streams into a node stand.
    #[inline]
    pub fn streams_into(&self, node: u32) -> std::ops::Range<usize> {
        let end = if node == 0 { self.streams.len() } else { self.live[node as usize - 1].0 as usize };
        self.live[node as usize].0 as usize..end
    }

    /// The nodes that each node feeds.
    pub fn downstream(&self) -> Adjacency<u32> {
        let mut upstream = Adjacency::default();
        for node in 0..self.n_nodes() as u32 {
            upstream.tasks.extend_from_slice(&self.upstream[self.streams_into(node)]);
            upstream.first.push(upstream.tasks.len() as u32);
        }
        upstream.reversed()
    }

    /// A place for every node such that every node comes after those upstream, and how many places that holds for: nodes on
    /// cycles and behind them come last. Nothing if the indices are such places.
    pub fn places(&mut self) -> (Vec<u32>, u32) {
        let n_nodes = self.n_nodes() as u32;
        if self.is_ordered {
            return (Vec::new(), n_nodes);
        }
        if !self.levels.is_empty() {
            return (sorting::places(std::mem::take(&mut self.levels)), n_nodes);
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
        let tasks = self.tasks.iter().filter(move |task| task.node == node);
        let outlets = tasks.flat_map(|task| self.outlets_of(task));
        declared.chain(outlets.map(|outlet| &self.streams[outlet.stream()]))
    }

    /// By node, whether it is a source: no task of another node feeds it. Nobody sends anything through a stream that only the
    /// configuration knows.
    pub fn sources(&self) -> Vec<bool> {
        let mut sources: Vec<bool> =
            (0..self.n_nodes() as u32).map(|node| self.streams_into(node).is_empty()).collect();
        if !self.declared.is_empty() {
            sources.fill(true);
            for outlet in self.tasks.iter().flat_map(|task| self.outlets_of(task)) {
                sources[self.streams[outlet.stream()].to as usize] = false;
            }
        }
        sources
    }

    /// What a task puts into streams.
    pub fn outlets_of(&self, task: &Member) -> &[Outlet] {
        let from = self.outlets.get(task.outlet as usize..).unwrap_or_default();
        &from[..from.iter().position(|outlet| outlet.is_last()).map_or(0, |last| last + 1)]
    }

    /// Finds what every task puts into streams, one outlet for each node that consumes from it, and the streams: one from each
    /// node to each other that consumes from it. Node by node, so that only what was found last must be looked at, and the last
    /// node first, so that outlets fill the room for them from its end. `by_node` has the tasks of each node one after the other, or
    /// nothing if they follow each other anyway.
    fn find_streams(&mut self, config: &Config, by_node: &[u32]) {
        let (declared, is_usual) = (&config.streams, self.ids.is_empty() && config.nodes.is_empty());
        let index = |id| self.index_of(id).expect("every declared node is listed");
        self.declared = declared.iter().map(|&(from, to)| (index(from), index(to))).collect();
        let mut by_end = self.declared.clone();
        by_end.sort_unstable_by_key(|&(_, to)| to);
        let (n_nodes, mut end, mut marks) = (self.n_nodes(), self.tasks.len(), Vec::new());
        let mut finder = Finder::new(&mut self.tasks, &mut self.inlets, &mut self.outlets, &self.nodes, is_usual);
        for to in (0..n_nodes as u32).rev() {
            finder.begin = finder.streams.len() as u32;
            while let Some((from, _)) = by_end.pop_if(|&mut (_, end)| end == to) {
                finder.stream(from, to);
            }
            let node = &self.nodes[to as usize];
            let first = end - node.left as usize;
            let usual = u32::from(node.queue() != NONE);
            for place in (first..end).rev() {
                let task = if by_node.is_empty() { place } else { finder.foresee(place, by_node) };
                let waiting = self.queues.get(task).map_or(usual, |&queue| u32::from(queue != NONE));
                if finder.may_be_quiet() {
                    finder.find_inlets::<true>(task, to, waiting);
                } else {
                    finder.find_inlets::<false>(task, to, waiting);
                }
            }
            end = first;
            let upstream = &mut finder.upstream[finder.begin as usize..];
            if !upstream.is_sorted() {
                sorting::sort(upstream, &mut marks);
            }
            if to == 0 || upstream.last() != Some(&(to - 1)) {
                self.spines.push(to);
            }
            self.live[to as usize] = (finder.begin, finder.streams.len() as u32);
        }
        self.spines.reverse();
        (self.streams, self.upstream, self.is_ordered) = (finder.streams, finder.upstream, finder.is_ordered);
    }

    /// The place behind the outlet of a task for a node; the outlets of the task begin with `first`. Nothing stands there if that is the
    /// last one.
    pub fn outlet_behind(&self, first: usize, to: u32) -> usize {
        let own = self.outlets.get(first..).unwrap_or_default();
        let found = own.iter().position(|outlet| outlet.is_last() || self.streams[outlet.stream()].to == to);
        found.filter(|&place| !own[place].is_last()).map_or(usize::MAX, |place| first + place + 1)
    }

    /// A task is READY, and most become so about in their order: fetches those that come a while later, what these consume, looked at when
    /// they are scheduled, and what consumes from them, looked at when they are completed. All of it was not looked at since the program
    /// was read.
    #[inline]
    pub fn foresee_tasks(&self, task: usize) {
        const AHEAD: usize = 256;
        let Some(member) = self.tasks.get(task + 2 * AHEAD) else { return };
        prefetch(member);
        let Member { inlet, outlet, .. } = self.tasks[task + AHEAD];
        if let Some(inlet) = self.inlets.get(inlet as usize) {
            prefetch(inlet);
        }
        if let Some(outlet) = self.outlets.get(outlet as usize) {
            prefetch(outlet);
        }
    }

    /// Tasks of each node one after the other.
    fn by_node(&self) -> Vec<u32> {
        let mut total = 0;
        let begin = self.nodes.iter().map(|node| {
            total += node.left;
            total - node.left
        });
        let first: Vec<u32> = begin.collect();
        let mut tasks = large::zeroed(self.tasks.len());
        for (task, member) in self.tasks.iter().enumerate() {
            tasks[(first[member.node as usize] + member.place - 1) as usize] = task as u32;
        }
        tasks
    }
}

//! Finds the streams between nodes and what every task puts into them, node by node and edge by edge.

use super::config::NodeConfig;
use super::graph::{Member, Outlet, Stream, UNUSED};
use super::node::Node;
use super::record::LISTED;
use crate::large;
use crate::window::{NONE, prefetch};
use std::collections::BTreeSet;

/// What is looked at again and again while streams are found.
pub(super) struct Finder<'a> {
    tasks: &'a mut [Member],
    inlets: &'a mut [u32],
    outlets: &'a mut [Outlet],
    nodes: &'a [Node],
    /// From this node on, packets of nodes with few tasks are not counted.
    quiet: Option<u32>,
    pub streams: Vec<Stream>,
    pub upstream: Vec<u32>,
    /// By node, one more than the last stream out of it.
    fed: Vec<u32>,
    /// Where the streams to the node at hand begin.
    pub begin: u32,
    /// Whether every node comes after those upstream.
    pub is_ordered: bool,
}

/// Room for as many outlets as every task has consumers, which is enough. What is not used is never touched.
fn make_room(tasks: &mut [Member], outlets: &mut Vec<Outlet>) {
    let mut end = 0;
    for task in tasks {
        end += task.outlet;
        task.outlet = end | UNUSED;
    }
    *outlets = large::zeroed(end as usize);
}

/// A node with fewer tasks never has a full stream, if the configuration says nothing of limits.
const FEW: u32 = NodeConfig::USUAL_LIMIT as u32;

/// From which node on nobody ever sees how many packets of a node with few tasks wait: behind the nodes whose streams the report lists.
/// None if it would hardly be worth to leave them out.
fn first_quiet(tasks: &[Member], n_nodes: usize) -> Option<u32> {
    const LOOK_AT: usize = 4 * LISTED;
    if n_nodes < tasks.len() / 2 {
        return None;
    }
    let with_streams = tasks.iter().take(LOOK_AT).filter(|task| task.outlet > 0).map(|task| task.node);
    let nodes: BTreeSet<u32> = with_streams.collect();
    nodes.into_iter().nth(LISTED - 1).map(|node| node + 1)
}

impl<'a> Finder<'a> {
    /// Nothing found yet. `is_usual` means that nodes are derived and have the usual limits. The number of its consumers stands in the
    /// place of each task's first outlet.
    pub fn new(
        tasks: &'a mut [Member],
        inlets: &'a mut [u32],
        outlets: &'a mut Vec<Outlet>,
        nodes: &'a [Node],
        is_usual: bool,
    ) -> Finder<'a> {
        let quiet = if is_usual { first_quiet(tasks, nodes.len()) } else { None };
        make_room(tasks, outlets);
        Finder {
            tasks,
            inlets,
            outlets,
            nodes,
            quiet,
            streams: Vec::new(),
            upstream: Vec::new(),
            fed: large::zeroed(nodes.len()),
            begin: 0,
            is_ordered: true,
        }
    }

    /// The task at a place, where the tasks of a node do not follow each other. If they are far from each other, what will be looked at
    /// for those before is fetched.
    #[inline(always)]
    pub fn foresee(&self, place: usize, by_node: &[u32]) -> usize {
        const AHEAD: usize = 24;
        const FAR: u32 = 4096;
        let task = by_node[place];
        if let Some(&ahead) = by_node.get(place.wrapping_sub(AHEAD))
            && task.abs_diff(ahead) > FAR
        {
            self.fetch(place, ahead, by_node);
        }
        task as usize
    }

    #[inline(never)]
    fn fetch(&self, place: usize, ahead: u32, by_node: &[u32]) {
        const NEAR: usize = 16;
        const NEXT: usize = 8;
        const FEW: usize = 4;
        prefetch(&self.tasks[ahead as usize]);
        let before = |distance| &self.tasks[by_node[place - distance] as usize];
        if let Some(inlet) = self.inlets.get(before(NEAR).inlet as usize) {
            prefetch(inlet);
        }
        let producers = self.inlets.iter().skip(before(NEXT).inlet as usize).take(FEW);
        producers.for_each(|&producer| {
            if let Some(task) = self.tasks.get(producer as usize) {
                prefetch(task);
            }
        });
    }

    /// Finds the outlets through which a task of a node gets its packets. It counts as so many consumers.
    #[inline(always)]
    pub fn find_inlets<const MAY_BE_QUIET: bool>(&mut self, task: usize, to: u32, waiting: u32) {
        let begin = self.tasks[task].inlet as usize;
        let end = self.tasks.get(task + 1).map_or(self.inlets.len(), |next| next.inlet as usize);
        for edge in begin..end {
            let producer = self.inlets[edge] as usize;
            let Member { node: from, outlet: first, .. } = self.tasks[producer];
            self.inlets[edge] = if from == to {
                NONE
            } else if MAY_BE_QUIET && self.is_quiet(from) {
                self.find_quiet(edge, from, to);
                NONE
            } else if let Some(outlet) = self.outlets.get_mut(first as usize)
                && outlet.stream() >= self.begin as usize
            {
                outlet.waiting += waiting;
                first
            } else {
                let (place, last) = ((first & !UNUSED) - 1, first & UNUSED);
                self.tasks[producer].outlet = place;
                let stream = self.stream(from, to) | last;
                self.outlets[place as usize] = Outlet { stream, waiting };
                place
            };
        }
    }

    /// Whether packets of any node are not counted.
    #[inline]
    pub fn may_be_quiet(&self) -> bool {
        self.quiet.is_some()
    }

    #[inline]
    fn is_quiet(&self, from: u32) -> bool {
        self.quiet.is_some_and(|first| from >= first) && self.nodes[from as usize].left < FEW
    }

    /// The same for a producer of a node whose packets are not counted.
    #[inline]
    fn find_quiet(&mut self, edge: usize, from: u32, to: u32) {
        let producer = self.inlets[edge] as usize;
        let first = self.tasks[producer].outlet;
        let known = self.outlets.get(first as usize).is_some_and(|outlet| outlet.stream() >= self.begin as usize);
        if !known {
            let place = (first & !UNUSED) - 1;
            self.tasks[producer].outlet = place;
            let stream = self.stream(from, to) | first & UNUSED;
            self.outlets[place as usize] = Outlet { stream, waiting: 0 };
        }
    }

    /// The stream from a node to the one at hand; a new one if it is met for the first time.
    #[inline(always)]
    pub fn stream(&mut self, from: u32, to: u32) -> u32 {
        let n_nodes = self.fed.len();
        let last = &mut self.fed[from as usize];
        if *last <= self.begin {
            let stream = Stream { from, to, waiting: 0, high: 0 };
            large::push_expecting(&mut self.streams, stream, || n_nodes);
            large::push_expecting(&mut self.upstream, from, || n_nodes);
            self.is_ordered &= from < to;
            *last = self.streams.len() as u32;
        }
        *last - 1
    }
}

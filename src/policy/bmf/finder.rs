//! Finds the streams between nodes and what every task puts into them, node by node and edge by edge.

use super::graph::{Member, Outlet, Stream, UNUSED};
use crate::large;
use crate::window::{NONE, prefetch};

/// What is looked at again and again while streams are found.
pub(super) struct Finder<'a> {
    tasks: &'a mut [Member],
    inlets: &'a mut [u32],
    outlets: &'a mut [Outlet],
    pub streams: Vec<Stream>,
    pub upstream: Vec<u32>,
    /// By node, one more than the last stream out of it.
    fed: Vec<u32>,
    /// Where the streams to the node at hand begin.
    pub begin: u32,
    /// Whether every node comes after those upstream.
    pub is_ordered: bool,
}

impl<'a> Finder<'a> {
    pub fn new(
        tasks: &'a mut [Member],
        inlets: &'a mut [u32],
        outlets: &'a mut [Outlet],
        n_nodes: usize,
    ) -> Finder<'a> {
        Finder {
            tasks,
            inlets,
            outlets,
            streams: Vec::new(),
            upstream: Vec::new(),
            fed: large::zeroed(n_nodes),
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
    pub fn find_inlets(&mut self, task: usize, to: u32, waiting: u32) {
        let begin = self.tasks[task].inlet as usize;
        let end = self.tasks.get(task + 1).map_or(self.inlets.len(), |next| next.inlet as usize);
        for edge in begin..end {
            let producer = &mut self.tasks[self.inlets[edge] as usize];
            let (from, first) = (producer.node, producer.outlet);
            self.inlets[edge] = if from == to {
                NONE
            } else if let Some(outlet) = self.outlets.get_mut(first as usize)
                && outlet.stream() >= self.begin as usize
            {
                outlet.waiting += waiting;
                first
            } else {
                let (place, last) = ((first & !UNUSED) - 1, first & UNUSED);
                producer.outlet = place;
                let stream = self.stream(from, to) | last;
                self.outlets[place as usize] = Outlet { stream, waiting };
                place
            };
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

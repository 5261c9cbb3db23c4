//! Passes through the nodes upstream: who may schedule a task when something happens around a node.
//!
//! Every node upstream gets the chance before the node itself, ascending and each once. Most of them can do nothing, so what is
//! known of that is remembered, and passes leave them out.

use super::flow::Flow;
use super::graph::NodeGraph;
use crate::policy::number_set::NumberSet;
use std::ops::Range;
use zerocopy::FromZeros;

/// What passes know.
pub(super) struct Passes {
    /// Places of the nodes that could schedule a task if they were asked. A node comes after those upstream of it.
    able: NumberSet,
    /// Place of every node; nothing if that is its index.
    places: Vec<u32>,
    /// Nodes from this place on may be upstream of each other.
    n_ordered: u32,
    /// For every node upstream of another, in the order of these lists: no node of the list up to this one has a larger place.
    /// Nothing if places are indices, because then it is the node itself.
    bounds: Vec<u32>,
    marks: Vec<Mark>,
    /// How many nodes of the list of each are gone because they will never schedule anything. Those that are left come first.
    forgotten: Vec<u32>,
    pass: u64,
    /// Grows when a node becomes able.
    epoch: u64,
    /// The epoch in which the last pass began.
    began: u64,
    /// Nodes that wait in a pass for a node upstream.
    path: Vec<Visit>,
}

/// What passes know of a node. Only those that a pass visits have anything but zeros here, so most of it is never touched.
#[derive(FromZeros)]
struct Mark {
    /// The last pass that met it.
    met: u64,
    /// When a pass last found nobody able here and upstream; that holds until a node becomes able.
    clear: u64,
    /// How many nodes of its list passes have skipped since it was last tidied.
    skipped: u64,
}

/// A node that a pass is visiting.
#[derive(Clone, Copy)]
struct Visit {
    node: u32,
    /// Where its upstream nodes stand that were not looked at.
    next: u32,
    end: u32,
    /// How many were passed over by their place alone.
    skipped: u32,
    /// Whether one of the others will never schedule anything.
    is_stale: bool,
    /// Whether nobody was found able so far.
    is_clear: bool,
}

impl Passes {
    pub fn new(shape: &NodeGraph) -> Passes {
        let n_nodes = shape.n_tasks.len();
        let (places, n_ordered) = shape.places();
        let mut bounds = Vec::new();
        if !places.is_empty() {
            for node in 0..n_nodes as u32 {
                let mut bound = 0;
                bounds.extend(shape.upstream[shape.streams_into(node)].iter().map(|&node| {
                    bound = places[node as usize].max(bound);
                    bound
                }));
            }
        }
        Passes {
            able: NumberSet::new(n_nodes),
            places,
            n_ordered,
            bounds,
            marks: Mark::new_vec_zeroed(n_nodes).expect("there is memory for the nodes"),
            forgotten: vec![0; n_nodes],
            pass: 0,
            epoch: 1,
            began: 0,
            path: Vec::new(),
        }
    }

    /// A node has become able, or is not any more.
    #[inline]
    pub fn changed(&mut self, node: u32, is_able: bool) {
        let place = self.place(node);
        if is_able {
            self.able.insert(place);
            self.epoch += 1;
        } else {
            self.able.remove(place);
        }
    }

    /// Where the nodes upstream of one stand that may still schedule something, or have such nodes before them.
    #[inline]
    pub fn live(&self, shape: &NodeGraph, node: u32) -> Range<usize> {
        let all = shape.streams_into(node);
        all.start..all.end - self.forgotten[node as usize] as usize
    }

    /// Begins to visit a node. Nodes upstream at places before `first` have nothing to do.
    #[inline(always)]
    fn visit(&self, shape: &NodeGraph, node: u32, first: u32) -> Visit {
        let live = self.live(shape, node);
        let bounds = if self.bounds.is_empty() { &shape.upstream } else { &self.bounds };
        let skipped = bounds[live.clone()].partition_point(|&bound| bound < first);
        Visit {
            node,
            next: (live.start + skipped) as u32,
            end: live.end as u32,
            skipped: u32::from(skipped > 0),
            is_stale: false,
            is_clear: true,
        }
    }

    #[inline]
    fn place(&self, node: u32) -> u32 {
        self.places.get(node as usize).copied().unwrap_or(node)
    }
}

impl Flow {
    /// Something happened that may let a node schedule a task: first every node upstream gets the chance, ascending and
    /// each once, then the node itself.
    #[inline]
    pub fn sched_required(&mut self, index: u32, now: u64) {
        if self.is_open
            && let Some(first) = self.passes.able.first()
        {
            self.ask(index, first, now);
        }
    }

    fn ask(&mut self, index: u32, first: u32, now: u64) {
        // Scheduling is what changes who is able, so if nobody else is, asking the others changes nothing. That goes for
        // nodes before the first that is able: what may make them able comes after they were asked.
        let (place, n_ordered) = (self.passes.place(index), self.passes.n_ordered);
        let first = first.min(n_ordered);
        if place < first {
            return;
        }
        let is_only_one = self.passes.able.len() == 1 && self.nodes[index as usize].is_able;
        if place == first && place < n_ordered || is_only_one {
            self.schedule_node(index, now);
            return;
        }
        if self.passes.marks[index as usize].clear == self.passes.epoch {
            return;
        }
        self.passes.pass += 1;
        self.passes.began = self.passes.epoch;
        self.passes.marks[index as usize].met = self.passes.pass;
        let mut visit = self.passes.visit(&self.shape, index, first);
        loop {
            if let Some(upstream) = self.next_upstream(&mut visit, first) {
                self.passes.path.push(visit);
                visit = self.passes.visit(&self.shape, upstream, first);
                continue;
            }
            self.leave(&visit, now);
            match self.passes.path.pop() {
                Some(asking) => visit = asking,
                None => return,
            }
        }
    }

    /// The next node upstream that is to be visited, if any is left.
    #[inline]
    fn next_upstream(&mut self, visit: &mut Visit, first: u32) -> Option<u32> {
        let passes = &mut self.passes;
        while visit.next < visit.end {
            let upstream = self.shape.upstream[visit.next as usize];
            visit.next += 1;
            if passes.place(upstream) < first {
                visit.skipped += 1;
                continue;
            }
            if self.nodes[upstream as usize].is_exhausted {
                visit.is_stale = true;
                continue;
            }
            let mark = &mut passes.marks[upstream as usize];
            let is_clear = mark.clear == passes.epoch;
            if std::mem::replace(&mut mark.met, passes.pass) == passes.pass {
                visit.is_clear &= is_clear;
            } else if !is_clear {
                return Some(upstream);
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
        let passes = &mut self.passes;
        let length = passes.live(&self.shape, node).len();
        let mark = &mut passes.marks[node as usize];
        if is_clear && !self.nodes[node as usize].is_able {
            // If somebody became able during the pass, this is worth nothing.
            mark.clear = passes.began;
        } else if let Some(asking) = passes.path.last_mut() {
            asking.is_clear = false;
        }
        // Nodes passed over are looked at when that has happened so often that a look costs little in comparison.
        mark.skipped += u64::from(skipped);
        if is_stale || mark.skipped > 4 * length as u64 {
            mark.skipped = 0;
            self.forget_exhausted(node);
        }
        let is_first = self.passes.live(&self.shape, node).is_empty();
        self.nodes[node as usize].is_exhausted = is_first && self.nodes[node as usize].unscheduled == 0;
    }

    /// Drops upstream nodes that will never schedule anything, so that passes stay short.
    fn forget_exhausted(&mut self, index: u32) {
        let live = self.passes.live(&self.shape, index);
        let mut kept = live.start;
        for place in live.clone() {
            let upstream = self.shape.upstream[place];
            if !self.nodes[upstream as usize].is_exhausted {
                self.shape.upstream[kept] = upstream;
                if !self.passes.bounds.is_empty() {
                    self.passes.bounds[kept] = self.passes.bounds[place];
                }
                kept += 1;
            }
        }
        self.passes.forgotten[index as usize] += (live.end - kept) as u32;
    }
}

//! Passes through the nodes upstream: who may schedule a task when something happens around a node.
//!
//! Every node upstream gets the chance before the node itself, ascending and each once. Most of them can do nothing, so what is
//! known of that is remembered, and passes leave them out.

use super::flow::Flow;
use super::graph::NodeGraph;
use super::node::Flag;
use crate::id::TaskId;
use crate::large;
use crate::policy::number_set::NumberSet;
use zerocopy::FromZeros;

/// What passes know.
pub(super) struct Passes {
    /// Places of the nodes that could schedule a task if they were asked. A node comes after those upstream of it.
    able: NumberSet,
    /// Whether the place of every node is its index.
    is_indexed: bool,
    /// Nodes from this place on may be upstream of each other.
    n_ordered: u32,
    /// Nodes by place, unless places are indices.
    by_place: Vec<u32>,
    /// By node, a place such that all nodes before it are upstream of the node. Nothing if places are indices.
    reach: Vec<u32>,
    /// For every node upstream of another, in the order of these lists: no node of the list up to this one has a larger place.
    /// Nothing if places are indices, because then it is the node itself.
    bounds: Vec<u32>,
    marks: Vec<Mark>,
    pass: u64,
    /// Grows when a node becomes able.
    epoch: u64,
    /// The epoch in which the last pass began.
    began: u64,
    /// Nodes that wait in a pass for a node upstream.
    path: Vec<Visit>,
}

/// What passes know of a node. If places are indices, only those that a pass visits have anything but zeros here, so most of it is
/// never touched.
#[derive(FromZeros)]
struct Mark {
    /// The last pass that met it.
    met: u64,
    /// When a pass last found nobody able here and upstream; that holds until a node becomes able, or [`FOR_EVER`].
    clear: u64,
    /// How many nodes of its list passes have skipped since it was last tidied.
    skipped: u32,
    /// Its place, unless that is its index.
    place: u32,
}

/// Neither a node nor any before it can schedule anything any more.
const FOR_EVER: u64 = u64::MAX;

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
    pub fn new(shape: &mut NodeGraph) -> Passes {
        let n_nodes = shape.n_nodes();
        let (places, n_ordered) = shape.places();
        let mut bounds = Vec::new();
        if !places.is_empty() {
            large::reserve(&mut bounds, shape.upstream.len());
            for node in (0..n_nodes as u32).rev() {
                let mut bound = 0;
                bounds.extend(shape.upstream[shape.streams_into(node)].iter().map(|&node| {
                    bound = places[node as usize].max(bound);
                    bound
                }));
            }
        }
        let mut marks: Vec<Mark> = large::zeroed(n_nodes);
        marks.iter_mut().zip(places.iter()).for_each(|(mark, &place)| mark.place = place);
        let mut by_place: Vec<u32> = vec![0; places.len()];
        places.iter().zip(0..).for_each(|(&place, node)| by_place[place as usize] = node);
        let reach = reach(shape, &places, &by_place[..by_place.len().min(n_ordered as usize)]);
        Passes {
            able: NumberSet::new(n_nodes),
            is_indexed: places.is_empty(),
            n_ordered,
            by_place,
            reach,
            bounds,
            marks,
            pass: 0,
            epoch: 1,
            began: 0,
            path: Vec::new(),
        }
    }

    /// A node has become able, or is not any more.
    #[inline(always)]
    pub fn changed(&mut self, node: u32, is_able: bool) {
        let place = self.place(node);
        if is_able {
            self.able.insert(place);
            self.epoch += 1;
        } else {
            self.able.remove(place);
        }
    }

    /// Whether the place of every node is its index.
    #[inline]
    pub fn is_indexed(&self) -> bool {
        self.is_indexed
    }

    /// Whether no node is upstream of itself.
    #[inline]
    pub fn is_acyclic(&self) -> bool {
        self.n_ordered as usize == self.marks.len()
    }

    /// Whether any node is able.
    #[inline]
    pub fn is_any_able(&self) -> bool {
        self.able.first().is_some()
    }

    /// Begins to visit a node with the nodes upstream that stand there. Those at places before `first` have nothing to do.
    #[inline(always)]
    fn visit(&self, upstream: &[u32], (begin, end): (u32, u32), node: u32, first: u32) -> Visit {
        let bounds = if self.bounds.is_empty() { upstream } else { &self.bounds };
        let mut visit = Visit { node, next: begin, end, skipped: 0, is_stale: false, is_clear: true };
        // Mostly there are none.
        if begin < end && bounds[begin as usize] < first {
            visit.next += bounds[begin as usize..end as usize].partition_point(|&bound| bound < first) as u32;
            visit.skipped = 1;
        }
        visit
    }

    #[inline]
    fn place(&self, node: u32) -> u32 {
        if self.is_indexed { node } else { self.marks[node as usize].place }
    }
}

/// By node, a place such that all nodes before it are upstream of the node. `by_place` are those of which that may be known: behind
/// the nodes upstream of them.
fn reach(shape: &NodeGraph, places: &[u32], by_place: &[u32]) -> Vec<u32> {
    let (mut reach, mut near) = (vec![0; places.len()], Vec::new());
    for &node in by_place {
        let upstream = &shape.upstream[shape.streams_into(node)];
        let mut all = upstream.iter().map(|&node| reach[node as usize]).max().unwrap_or(0);
        near.clear();
        near.extend(upstream.iter().map(|&node| places[node as usize]).filter(|&place| place >= all));
        near.sort_unstable();
        near.iter().for_each(|&place| all += u32::from(place == all));
        reach[node as usize] = all;
    }
    reach
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

    /// A task was completed before the start, and perhaps the last of its node: asks for whom its completion asks for.
    pub fn catch_up(&mut self, task: TaskId, has_closed: bool, now: u64) {
        let index = self.node_of(task);
        if has_closed {
            self.close(index, now);
        }
        let outlets = self.shape.outlets_of(&self.shape.tasks[task.0 as usize]);
        let behind: Vec<u32> = outlets.iter().map(|outlet| self.shape.streams[outlet.stream()].to).collect();
        for node in behind {
            self.sched_required(node, now);
        }
        if !has_closed {
            self.sched_required(index, now);
        }
    }

    fn ask(&mut self, index: u32, first: u32, now: u64) {
        // Scheduling is what changes who is able, so if nobody else is, asking the others changes nothing. That goes for
        // nodes before the first that is able: what may make them able comes after they were asked.
        let (place, n_ordered) = (self.passes.place(index), self.passes.n_ordered);
        let mut first = first.min(n_ordered);
        if place < first {
            return;
        }
        let is_only_one = self.passes.able.len() == 1 && self.nodes[index as usize].is(Flag::Able);
        if place == first && place < n_ordered || is_only_one {
            self.schedule_node(index, now);
            return;
        }
        if self.passes.is_indexed && first >= self.shape.spine(index) {
            self.ask_spine(first, index, now);
            return;
        }
        if self.is_only_other(index)
            && let Some(&reach) = self.passes.reach.get(index as usize)
            && first < reach
        {
            self.ask_two(first, index, now);
            return;
        }
        if self.passes.marks[index as usize].clear >= self.passes.epoch {
            return;
        }
        self.passes.pass += 1;
        self.passes.began = self.passes.epoch;
        self.passes.marks[index as usize].met = self.passes.pass;
        let mut visit = self.passes.visit(&self.shape.upstream, self.shape.live[index as usize], index, first);
        loop {
            if let Some(upstream) = self.next_upstream(&mut visit, first) {
                self.passes.path.push(visit);
                visit = self.passes.visit(&self.shape.upstream, self.shape.live[upstream as usize], upstream, first);
                continue;
            }
            self.leave(&visit, now);
            // Who is not able by now does nothing in this pass: what may make a node able comes after it was asked.
            let Some(able) = self.passes.able.first() else { break };
            first = first.max(able.min(n_ordered));
            match self.passes.path.pop() {
                Some(asking) if first <= place => visit = asking,
                _ => break,
            }
        }
        self.passes.path.clear();
    }

    /// Whether only one node beside this one is able.
    #[inline]
    fn is_only_other(&self, index: u32) -> bool {
        let is_able = self.nodes[index as usize].is(Flag::Able);
        self.passes.able.len() == 1 + usize::from(is_able)
    }

    /// The node at a place is the only one that is able, beside `last`, and is upstream of that. It is asked first.
    fn ask_two(&mut self, place: u32, last: u32, now: u64) {
        self.schedule_node(self.passes.by_place[place as usize], now);
        if self.nodes[last as usize].is(Flag::Able) {
            self.schedule_node(last, now);
        }
    }

    /// Nodes that feed each other, each the next, are asked one after the other: whoever of them comes before another is upstream of it.
    fn ask_spine(&mut self, first: u32, last: u32, now: u64) {
        let mut next = Some(first);
        while let Some(node) = next.filter(|&node| node <= last) {
            self.schedule_node(node, now);
            next = self.passes.able.next_after(node);
        }
    }

    /// The next node upstream that is to be visited, if any is left.
    #[inline(always)]
    fn next_upstream(&mut self, visit: &mut Visit, first: u32) -> Option<u32> {
        let Passes { marks, is_indexed, pass, epoch, .. } = &mut self.passes;
        while visit.next < visit.end {
            let upstream = self.shape.upstream[visit.next as usize];
            visit.next += 1;
            let mark = &mut marks[upstream as usize];
            if (if *is_indexed { upstream } else { mark.place }) < first {
                visit.skipped += 1;
                continue;
            }
            if mark.clear >= *epoch {
                visit.is_stale |= mark.clear == FOR_EVER;
                mark.met = *pass;
            } else if std::mem::replace(&mut mark.met, *pass) == *pass {
                visit.is_clear = false;
            } else {
                return Some(upstream);
            }
        }
        None
    }

    /// A node has asked everybody upstream and has its own turn; the one that asked it is the last of the path.
    #[inline(always)]
    fn leave(&mut self, visit: &Visit, now: u64) {
        let Visit { node, skipped, is_stale, is_clear, .. } = *visit;
        if self.nodes[node as usize].is(Flag::Able) {
            self.schedule_node(node, now);
        }
        let (is_able, passes) = (self.nodes[node as usize].is(Flag::Able), &mut self.passes);
        let mark = &mut passes.marks[node as usize];
        if is_clear && !is_able {
            // If somebody became able during the pass, this is worth nothing.
            mark.clear = passes.began;
        } else if let Some(asking) = passes.path.last_mut() {
            asking.is_clear = false;
        }
        if is_stale || skipped > 0 {
            self.look_for_exhausted(visit);
        }
        let (begin, end) = self.shape.live[node as usize];
        if begin == end && self.nodes[node as usize].unscheduled == 0 {
            self.passes.marks[node as usize].clear = FOR_EVER;
        }
    }

    /// Nodes passed over are looked at when that has happened so often that a look costs little in comparison.
    #[inline(never)]
    fn look_for_exhausted(&mut self, visit: &Visit) {
        let (begin, end) = self.shape.live[visit.node as usize];
        let mark = &mut self.passes.marks[visit.node as usize];
        mark.skipped = mark.skipped.saturating_add(visit.skipped);
        if visit.is_stale || u64::from(mark.skipped) > 4 * u64::from(end - begin) {
            mark.skipped = 0;
            self.forget_exhausted(visit.node);
        }
    }

    /// Drops upstream nodes that will never schedule anything, so that passes stay short.
    fn forget_exhausted(&mut self, index: u32) {
        let (begin, end) = self.shape.live[index as usize];
        let mut kept = begin;
        for place in begin..end {
            let upstream = self.shape.upstream[place as usize];
            if self.passes.marks[upstream as usize].clear != FOR_EVER {
                self.shape.upstream[kept as usize] = upstream;
                if !self.passes.bounds.is_empty() {
                    self.passes.bounds[kept as usize] = self.passes.bounds[place as usize];
                }
                kept += 1;
            }
        }
        self.shape.live[index as usize].1 = kept;
    }
}

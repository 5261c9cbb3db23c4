//! What a program keeps alive at the same time whatever the timing, because scopes hold it.
//!
//! A ring retires in order. While a scope is open, the first task it holds in a ring stays, and with it everything that
//! entered the ring later. So for every submission there is a smallest number of slots, bytes and entries in use, and a
//! size below that can never be enough. For the window and the tensor map it is also enough: when nothing can happen any
//! more, everything submitted is complete, and only held tasks are left.

use crate::config::{Hazards, Machine, ScopeHold};
use crate::graph::Graph;
use crate::id::TaskId;
use crate::workload::{Operation, Submit, Workload, WorkloadError};

/// The scopes of a program and what they keep.
#[derive(Debug, Default)]
pub struct Holding {
    /// In the order of their beginnings.
    pub scopes: Vec<Scope>,
    /// The scope that lets go of each task last, if one holds it.
    pub holders: Vec<Option<u32>>,
    /// One for each task.
    pub moments: Vec<Moment>,
    /// The allocations in each ring, in order.
    pub allocations: Vec<Vec<Allocation>>,
    /// Tensor-map entries of all tasks.
    pub all_tensors: u64,
}

/// A scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scope {
    /// Line of its beginning.
    pub begin_line: Option<u64>,
    /// Line of its end; `None` also when the end of the file closes it.
    pub end_line: Option<u64>,
    /// The first task behind its end.
    pub end: TaskId,
    /// How many scopes were open outside it.
    pub depth: u32,
}

/// What is in use for certain when a task is submitted, itself included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// The ring of the task.
    pub ring: u32,
    /// The scope that keeps the oldest of what is in use; `None` when it is the task alone.
    pub scope: Option<u32>,
    /// Slots of the ring.
    pub slots: u64,
    /// Dependency entries of the ring, counting only producers that a scope holds.
    pub deps: u64,
    /// The same, counting all producers: more is never in use when everything that can complete has completed.
    pub most_deps: u64,
    /// Tensor-map entries of all rings.
    pub tensors: u64,
}

/// A piece of a heap ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// The task that makes it.
    pub task: TaskId,
    /// Its size.
    pub bytes: u64,
    /// Position of the oldest allocation of the ring that is in use for certain; its own when there is no older one.
    pub oldest: usize,
}

/// Where the tail of a heap ring stands when only held tasks are left. It depends on the timing: a gap at the end of the
/// ring before the oldest piece in use counts, unless the ring was empty when that piece was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tail {
    /// At the oldest piece in use: the gap is free.
    AtOldest,
    /// Behind the piece before it: the gap counts.
    BehindPrevious,
}

/// Counters of a ring that only grow.
#[derive(Clone, Copy, Default)]
struct Totals {
    tasks: u64,
    deps: u64,
    most_deps: u64,
    tensors: u64,
    allocations: usize,
}

struct OpenScope {
    id: u32,
    /// For each ring the totals before the first task it holds there.
    firsts: Vec<Option<Totals>>,
}

impl Holding {
    /// Walks through a program with the rings and rules of `machine`.
    ///
    /// # Errors
    /// When the program cannot be read.
    pub fn of(workload: &dyn Workload, graph: &Graph, machine: &Machine) -> Result<Holding, WorkloadError> {
        let rings = machine.limits.rings as usize;
        let mut walk = Walk {
            graph,
            machine,
            holding: Holding { allocations: vec![Vec::new(); rings], ..Holding::default() },
            totals: vec![Totals::default(); rings],
            open: Vec::new(),
        };
        let (mut source, mut task) = (workload.open()?, Submit::default());
        while let Some(operation) = source.next(&mut task)? {
            match operation {
                Operation::Buffer { .. } => {}
                Operation::ScopeBegin => walk.begin(source.line()),
                Operation::ScopeEnd => walk.end(source.line()),
                Operation::Submit => walk.submit(&task),
            }
        }
        walk.holding.all_tensors = walk.totals.iter().map(|totals| totals.tensors).sum();
        Ok(walk.holding)
    }

    /// The first allocation of a ring that can never be made in a heap of this size, if there is one.
    #[must_use]
    pub fn misfit(&self, ring: usize, heap: u64, tail: Tail) -> Option<&Allocation> {
        let heap = u128::from(heap);
        let list = &self.allocations[ring];
        let mut bases: Vec<u128> = Vec::with_capacity(list.len());
        // The end of the last piece, and how far it lies behind the last multiple of the heap.
        let (mut top, mut offset) = (0_u128, 0_u128);
        for (index, allocation) in list.iter().enumerate() {
            let bytes = u128::from(allocation.bytes);
            if bytes > heap {
                return Some(allocation);
            }
            if offset + bytes > heap {
                (top, offset) = (top - offset + heap, 0);
            }
            let base = top;
            bases.push(base);
            let oldest = allocation.oldest;
            let free_before = match tail {
                Tail::BehindPrevious if oldest < index && oldest > 0 => {
                    bases[oldest - 1] + u128::from(list[oldest - 1].bytes)
                }
                Tail::AtOldest | Tail::BehindPrevious => bases[oldest],
            };
            (top, offset) = (base + bytes, offset + bytes);
            if top - free_before > heap {
                return Some(allocation);
            }
        }
        None
    }

    /// The smallest size from `from` on, in steps of what all allocations are multiples of, that no allocation of any ring
    /// rules out; after `most` sizes that were, the next one, whatever it is.
    #[must_use]
    pub fn smallest_heap(&self, from: u64, tail: Tail, most: u64) -> u64 {
        let step = self.heap_step();
        let mut heap = from.max(self.most_bytes()).next_multiple_of(step).max(step);
        let is_ruled_out = |heap| (0..self.allocations.len()).any(|ring| self.misfit(ring, heap, tail).is_some());
        let mut ruled_out = 0;
        while ruled_out < most && is_ruled_out(heap) {
            heap += step;
            ruled_out += 1;
        }
        heap
    }

    /// The most bytes of pieces that are in use for certain in a ring, gaps aside.
    fn most_bytes(&self) -> u64 {
        let of_ring = |list: &Vec<Allocation>| {
            let mut ends = Vec::with_capacity(list.len() + 1);
            ends.push(0_u64);
            let mut most = 0;
            for allocation in list {
                let end = ends[ends.len() - 1].saturating_add(allocation.bytes);
                ends.push(end);
                most = most.max(end - ends[allocation.oldest]);
            }
            most
        };
        self.allocations.iter().map(of_ring).max().unwrap_or(0)
    }

    /// What the sizes of all allocations are multiples of. A heap behaves as one of the next smaller multiple: pieces lie at
    /// multiples from the beginning of the ring, so the rest at its end is never used.
    #[must_use]
    pub fn heap_step(&self) -> u64 {
        let sizes = self.allocations.iter().flatten().map(|allocation| allocation.bytes);
        sizes.reduce(greatest_common_divisor).unwrap_or(64)
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

struct Walk<'a> {
    graph: &'a Graph,
    machine: &'a Machine,
    holding: Holding,
    /// By ring.
    totals: Vec<Totals>,
    open: Vec<OpenScope>,
}

impl Walk<'_> {
    fn next_task(&self) -> TaskId {
        TaskId(self.holding.holders.len() as u64)
    }

    fn begin(&mut self, line: Option<u64>) {
        let (id, depth) = (self.holding.scopes.len() as u32, self.open.len() as u32);
        self.holding.scopes.push(Scope { begin_line: line, end_line: None, end: TaskId(u64::MAX), depth });
        self.open.push(OpenScope { id, firsts: vec![None; self.totals.len()] });
    }

    fn end(&mut self, line: Option<u64>) {
        let scope = self.open.pop().expect("sources match every end of a scope with a beginning");
        let end = self.next_task();
        let scope = &mut self.holding.scopes[scope.id as usize];
        (scope.end, scope.end_line) = (end, line);
    }

    fn submit(&mut self, task: &Submit) {
        let id = self.next_task();
        let ring = self.open.len().clamp(1, self.totals.len()) - 1;
        let before = self.totals[ring];
        let held_by = match self.machine.rules.scope_hold {
            ScopeHold::Innermost => self.open.len().saturating_sub(1),
            ScopeHold::Enclosing => 0,
        };
        let holders = &mut self.open[held_by..];
        self.holding.holders.push(holders.first().map(|scope| scope.id));
        holders.iter_mut().for_each(|scope| {
            scope.firsts[ring].get_or_insert(before);
        });
        self.count(id, task, ring);
        let (scope, oldest) = self.oldest(ring).map_or((None, before), |(id, first)| (Some(id), first));
        let (totals, bytes) = (self.totals[ring], task.heap_bytes());
        self.holding.moments.push(Moment {
            ring: ring as u32,
            scope,
            slots: totals.tasks - oldest.tasks,
            deps: totals.deps - oldest.deps,
            most_deps: totals.most_deps - oldest.most_deps,
            tensors: totals.tensors - oldest.tensors + self.tensors_beside(ring),
        });
        if bytes > 0 {
            self.holding.allocations[ring].push(Allocation { task: id, bytes, oldest: oldest.allocations });
            self.totals[ring].allocations += 1;
        }
    }

    fn count(&mut self, id: TaskId, task: &Submit, ring: usize) {
        let holding = &self.holding;
        let is_held = |producer: &&TaskId| {
            let holder = holding.holders[producer.0 as usize];
            holder.is_some_and(|scope| holding.scopes[scope as usize].end > id)
        };
        let producers = self.graph.producers(id);
        let held = producers.iter().filter(is_held).count();
        let read = if self.machine.rules.hazards == Hazards::Full { task.reads.len() } else { 0 };
        let totals = &mut self.totals[ring];
        totals.tasks += 1;
        totals.deps += held as u64;
        totals.most_deps += producers.len() as u64;
        totals.tensors += (task.writes.len() + task.updates.len() + task.allocates.len() + read) as u64;
    }

    /// The scope with the oldest task that cannot retire in a ring, and the totals before that task. An outer scope that
    /// holds anything there began to do so before the scopes inside it.
    fn oldest(&self, ring: usize) -> Option<(u32, Totals)> {
        self.open.iter().find_map(|scope| scope.firsts[ring].map(|first| (scope.id, first)))
    }

    /// Tensor-map entries in use for certain in the other rings.
    fn tensors_beside(&self, ring: usize) -> u64 {
        let others = (0..self.totals.len()).filter(|&other| other != ring);
        let kept = |other: usize| self.oldest(other).map(|(_, first)| self.totals[other].tensors - first.tensors);
        others.filter_map(kept).sum()
    }
}

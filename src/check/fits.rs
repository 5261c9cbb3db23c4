//! Scopes that hold more at once than a ring, a pool or the tensor map has.

use super::holding::{Holding, Moment, Tail};
use crate::config::{Limits, Machine};
use crate::id::TaskId;
use crate::window::Resource;
use std::collections::BTreeMap;

/// More is held at once than there is, so the run can never complete.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Misfit {
    /// The scope that holds it; `None` when one task alone is too large.
    pub scope: Option<u32>,
    /// What is too small.
    pub resource: Resource,
    /// The ring; 0 for the tensor map, which all rings share.
    pub ring: u32,
    /// The first task that cannot be submitted.
    pub task: TaskId,
    /// The smallest size that does not rule the scope out.
    pub needed: u64,
    /// The size there is.
    pub size: u64,
}

/// Every scope that cannot fit, once for each resource.
pub fn misfits(holding: &Holding, machine: &Machine) -> Vec<Misfit> {
    let limits = &machine.limits;
    let mut found: BTreeMap<(Option<u32>, Resource), Misfit> = BTreeMap::new();
    let mut add = |misfit: Misfit| {
        let known = found.entry((misfit.scope, misfit.resource)).or_insert(misfit);
        known.needed = known.needed.max(misfit.needed);
    };
    for (index, moment) in holding.moments.iter().enumerate() {
        for resource in [Resource::Window, Resource::Deps, Resource::Tensors] {
            let (needed, size) = compare(resource, moment, limits);
            if needed > size {
                let (scope, ring, task) = (moment.scope, moment.ring, TaskId(index as u64));
                add(Misfit { scope, resource, ring, task, needed, size });
            }
        }
    }
    for ring in 0..holding.allocations.len() {
        if let Some(allocation) = holding.misfit(ring, limits.heap, Tail::AtOldest) {
            let moment = &holding.moments[allocation.task.0 as usize];
            let needed = holding.smallest_heap(limits.heap, Tail::AtOldest, u64::MAX);
            let scope = moment.scope.filter(|_| allocation.bytes <= limits.heap);
            add(Misfit {
                scope,
                resource: Resource::Heap,
                ring: ring as u32,
                task: allocation.task,
                needed,
                size: limits.heap,
            });
        }
    }
    found.into_values().collect()
}

/// What a moment needs of a resource, and what there is.
fn compare(resource: Resource, moment: &Moment, limits: &Limits) -> (u64, u64) {
    match resource {
        Resource::Window => ((moment.slots + limits.spare).next_power_of_two(), limits.window),
        Resource::Deps => (moment.deps, limits.deps),
        Resource::Tensors => (moment.tensors, limits.tensors),
        Resource::Heap => unreachable!("the heap is a ring of its own"),
    }
}

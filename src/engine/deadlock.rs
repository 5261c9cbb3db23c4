//! Explains a run that got stuck.

use crate::config::{Machine, ScopeHold};
use crate::id::TaskId;
use crate::orchestrator::{Orchestrator, Scope};
use crate::report::{Deadlock, OldestTask, ScopeFact};
use crate::sync::Sharing;
use crate::window::{Resource, SlotRef, State, Window, symbol};
use std::collections::BTreeMap;

/// A run in which nothing can happen and work is left, as an engine leaves it.
pub(super) struct Scene<'a, S: Sharing> {
    pub(super) window: &'a Window<S>,
    pub(super) orchestrator: &'a Orchestrator,
    pub(super) machine: &'a Machine,
    /// What the orchestrator waits for.
    pub(super) blocked: Option<Resource>,
    /// The instant.
    pub(super) at: u64,
    /// Line of the task in a slot.
    pub(super) line: &'a dyn Fn(SlotRef) -> Option<u64>,
}

/// The facts about a run in which nothing can happen and work is left.
pub(super) fn explain<S: Sharing>(scene: &Scene<'_, S>) -> Deadlock {
    let Scene { window, orchestrator, machine, blocked, at, .. } = *scene;
    let ring_index = if blocked.is_some() { orchestrator.ring() } else { stuck_ring(window) };
    let ring = window.ring(ring_index);
    let limits = &machine.limits;
    let needs = orchestrator.needs(window);
    let (size, used, wanted) = match blocked {
        Some(Resource::Window) | None => {
            (limits.window, ring.submitted() - ring.retired(), u64::from(blocked.is_some()))
        }
        Some(Resource::Heap) => (limits.heap, ring.heap_used(), needs.heap),
        Some(Resource::Deps) => (limits.deps, ring.deps_used(), needs.deps),
        Some(Resource::Tensors) => (limits.tensors, window.tensors(), needs.tensors),
    };
    let lives_in = if blocked == Some(Resource::Tensors) { oldest_holder(window) } else { Some(ring_index) };
    let oldest_alive = lives_in.and_then(|ring| oldest_in(window, ring));
    Deadlock {
        resource: blocked.map_or("policy", Resource::name).into(),
        ring: ring_index,
        task: blocked.map(|_| orchestrator.next_task()),
        name: blocked.map(|_| orchestrator.task_name()),
        line: blocked.and_then(|_| orchestrator.line()),
        at,
        current: ring.submitted(),
        last_task_alive: ring.retired(),
        size,
        spare: if blocked == Some(Resource::Window) { limits.spare } else { 0 },
        used,
        wanted,
        oldest: oldest_alive.map(|slot| oldest(scene, slot)),
        needed: BTreeMap::new(),
        is_smallest: false,
    }
}

/// The first ring with a task that is not retired.
fn stuck_ring<S: Sharing>(window: &Window<S>) -> u32 {
    (0..window.n_rings()).find(|&ring| oldest_in(window, ring).is_some()).unwrap_or(0)
}

/// The slot of the oldest task alive in a ring.
fn oldest_in<S: Sharing>(window: &Window<S>, ring: u32) -> Option<SlotRef> {
    let position = window.ring(ring).retired();
    (position < window.ring(ring).submitted()).then(|| window.at(ring, position))
}

/// The ring whose oldest task alive is the oldest of all those that keep tensor-map entries, which all rings share. A ring
/// retires in order, so its oldest task keeps the entries of all others in it.
fn oldest_holder<S: Sharing>(window: &Window<S>) -> Option<u32> {
    let holders = (0..window.n_rings()).filter(|&ring| window.ring(ring).tensors_used() > 0);
    holders.min_by_key(|&ring| oldest_in(window, ring).map(task_in(window)))
}

fn oldest<S: Sharing>(scene: &Scene<'_, S>, slot_ref: SlotRef) -> OldestTask {
    let (window, slot) = (scene.window, scene.window.slot(slot_ref));
    let not_done = |slot: SlotRef| window.slot(slot).state() < State::Completed;
    let mut producers = Vec::new();
    window.each_producer(slot_ref, |producer| {
        if not_done(producer) {
            producers.push(window.slot(producer).task());
        }
    });
    OldestTask {
        task: slot.task(),
        name: name_of(window, scene.orchestrator, slot_ref),
        line: (scene.line)(slot_ref),
        state: slot.state().name().into(),
        held_by_scopes: scopes_holding(scene, slot_ref),
        waits_for_consumers: consumers(window, slot_ref)
            .into_iter()
            .filter(|&s| not_done(s))
            .map(task_in(window))
            .collect(),
        waits_for_producers: producers,
    }
}

/// Name of the task in a slot.
pub(super) fn name_of<S: Sharing>(window: &Window<S>, orchestrator: &Orchestrator, slot: SlotRef) -> String {
    let slot = window.slot(slot);
    let symbols = orchestrator.source().symbols();
    symbol(slot.job.name()).map_or_else(|| format!("task{}", slot.task()), |name| symbols.name(name).to_string())
}

fn task_in<S: Sharing>(window: &Window<S>) -> impl Fn(SlotRef) -> TaskId + '_ {
    |slot| window.slot(slot).task()
}

/// Tasks in flight that are linked to a producer, whatever its state.
fn consumers<S: Sharing>(window: &Window<S>, producer: SlotRef) -> Vec<SlotRef> {
    let mut list = Vec::new();
    for slot in window.tenants() {
        window.each_producer(slot, |other| {
            if other == producer {
                list.push(slot);
            }
        });
    }
    list
}

/// The open scopes that hold the task in a slot.
fn scopes_holding<S: Sharing>(scene: &Scene<'_, S>, slot: SlotRef) -> Vec<ScopeFact> {
    let open = scene.orchestrator.scopes();
    let Some(innermost) = open.iter().position(|scope| scope.holds(scene.window, slot)) else { return Vec::new() };
    let fact = |outer: usize, tasks: u64| ScopeFact { depth: outer as u32 + 1, line: open[outer].line, tasks };
    let own = |scope: &Scope| scope.tasks;
    match scene.machine.rules.scope_hold {
        ScopeHold::Innermost => vec![fact(innermost, own(&open[innermost]))],
        // A scope also holds what is in the lists of the open scopes inside it.
        ScopeHold::Enclosing => (0..=innermost).map(|outer| fact(outer, open[outer..].iter().map(own).sum())).collect(),
    }
}

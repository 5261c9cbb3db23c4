//! Explains a run that got stuck, and finds the sizes with which it would have finished.

use super::RunError;
use crate::config::{Limits, Machine};
use crate::id::{Symbol, TaskId};
use crate::orchestrator::Orchestrator;
use crate::report::{Deadlock, OldestTask, Report, ScopeFact};
use crate::sync::{Sharing, Word};
use crate::window::{NONE, Resource, SlotRef, State, Window};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

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
    Deadlock {
        resource: blocked.map_or("policy", Resource::name).into(),
        ring: ring_index,
        task: blocked.map(|_| orchestrator.next_task()),
        name: blocked.map(|_| orchestrator.task_name()),
        line: blocked.and_then(|_| orchestrator.source().line()),
        at,
        current: ring.submitted(),
        last_task_alive: ring.retired(),
        size,
        used,
        wanted,
        oldest: (ring.retired() < ring.submitted()).then(|| oldest(scene, window.at(ring_index, ring.retired()))),
        needed: BTreeMap::new(),
    }
}

/// The first ring with a task that is not retired.
fn stuck_ring<S: Sharing>(window: &Window<S>) -> u32 {
    let is_stuck = |&ring: &u32| window.ring(ring).retired() < window.ring(ring).submitted();
    (0..window.n_rings()).find(is_stuck).unwrap_or(0)
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
    match slot.job.name.load(Relaxed) {
        NONE => format!("task{}", slot.task()),
        name => symbols.name(Symbol(name)).to_string(),
    }
}

fn task_in<S: Sharing>(window: &Window<S>) -> impl Fn(SlotRef) -> TaskId + '_ {
    |slot| window.slot(slot).task()
}

/// Tasks in flight that are linked to a producer, whatever its state.
fn consumers<S: Sharing>(window: &Window<S>, producer: SlotRef) -> Vec<SlotRef> {
    let mut list = Vec::new();
    for ring in 0..window.n_rings() {
        for position in window.ring(ring).retired()..window.ring(ring).submitted() {
            let slot = window.at(ring, position);
            window.each_producer(slot, |other| {
                if other == producer {
                    list.push(slot);
                }
            });
        }
    }
    list
}

/// The open scopes that hold the task in a slot.
fn scopes_holding<S: Sharing>(scene: &Scene<'_, S>, slot: SlotRef) -> Vec<ScopeFact> {
    let holds = |scope: &&crate::orchestrator::Scope| scope.holds(scene.window, slot);
    let open = scene.orchestrator.scopes().iter();
    let enclosing = scene.machine.rules.scope_hold == crate::config::ScopeHold::Enclosing;
    let innermost = open.clone().position(|scope| holds(&scope));
    let Some(innermost) = innermost else { return Vec::new() };
    let outermost = if enclosing { 0 } else { innermost };
    let fact = |(index, scope): (usize, &crate::orchestrator::Scope)| ScopeFact {
        depth: index as u32 + 1,
        line: scope.line,
        tasks: scope.tasks,
    };
    open.enumerate().take(innermost + 1).skip(outermost).map(fact).collect()
}

/// Runs the same workload under the same policy on another machine.
type Run<'a> = dyn Fn(&Machine) -> Result<Report, RunError> + 'a;

/// The smallest sizes with which the run finishes, found by running it. Whatever lacks beside the first resource is raised
/// too; each answer is the smallest with the ones before it in place. Empty when no size helps.
///
/// # Errors
/// When the workload cannot be read again.
pub(super) fn needed(machine: &Machine, run: &Run<'_>) -> Result<BTreeMap<String, u64>, RunError> {
    let mut roomy = machine.clone();
    let mut raised = Vec::new();
    while let Some(resource) = lacking(&roomy, run)? {
        let Some(kind) = Kind::of(&resource).filter(|kind| kind.can_grow(&roomy.limits)) else {
            return Ok(BTreeMap::new());
        };
        let larger = kind.larger(&roomy.limits);
        kind.set(&mut roomy.limits, larger);
        if !raised.contains(&kind) {
            raised.push(kind);
        }
    }
    // Making one smaller can make less of another enough, so go round until nothing shrinks.
    let mut shrinks = true;
    while shrinks {
        shrinks = false;
        for &kind in &raised {
            let size = smallest(&roomy, kind, kind.value(&machine.limits), run)?;
            shrinks |= raised.len() > 1 && size != kind.value(&roomy.limits);
            kind.set(&mut roomy.limits, size);
        }
    }
    let differs = |kind: &&Kind| kind.value(&roomy.limits) != kind.value(&machine.limits);
    Ok(raised.iter().filter(differs).map(|kind| (kind.key().to_string(), kind.value(&roomy.limits))).collect())
}

/// What a run on `machine` gets stuck on, if it does.
fn lacking(machine: &Machine, run: &Run<'_>) -> Result<Option<String>, RunError> {
    match run(machine) {
        Ok(report) => Ok(report.deadlock.map(|deadlock| deadlock.resource)),
        Err(RunError::TooLarge { resource, .. }) => Ok(Some(resource.name().into())),
        Err(error) => Err(error),
    }
}

/// The smallest size from `given` on with which a run on `machine`, which finishes, still finishes.
fn smallest(machine: &Machine, kind: Kind, given: u64, run: &Run<'_>) -> Result<u64, RunError> {
    let mut trial = machine.clone();
    let mut finishes = |size: u64| -> Result<bool, RunError> {
        kind.set(&mut trial.limits, size);
        Ok(lacking(&trial, run)?.is_none())
    };
    if finishes(given)? {
        return Ok(given);
    }
    let (mut low, mut high) = (kind.steps(given), kind.steps(kind.value(&machine.limits)));
    if high > low + 1 && !finishes(kind.size(high - 1))? {
        return Ok(kind.size(high));
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if finishes(kind.size(middle))? { high = middle } else { low = middle }
    }
    Ok(kind.size(high))
}

/// A size that can be raised.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Window,
    Heap,
    Deps,
    Tensors,
}

impl Kind {
    fn of(resource: &str) -> Option<Kind> {
        match resource {
            "window" => Some(Kind::Window),
            "heap" => Some(Kind::Heap),
            "deps" => Some(Kind::Deps),
            "tensors" => Some(Kind::Tensors),
            _ => None,
        }
    }

    fn key(self) -> &'static str {
        match self {
            Kind::Window => "limits.window",
            Kind::Heap => "limits.heap",
            Kind::Deps => "limits.deps",
            Kind::Tensors => "limits.tensors",
        }
    }

    fn value(self, limits: &Limits) -> u64 {
        match self {
            Kind::Window => limits.window,
            Kind::Heap => limits.heap,
            Kind::Deps => limits.deps,
            Kind::Tensors => limits.tensors,
        }
    }

    fn set(self, limits: &mut Limits, size: u64) {
        match self {
            Kind::Window => limits.window = size,
            Kind::Heap => limits.heap = size,
            Kind::Deps => limits.deps = size,
            Kind::Tensors => limits.tensors = size,
        }
    }

    fn larger(self, limits: &Limits) -> u64 {
        match self {
            Kind::Window => limits.window * 2,
            Kind::Heap | Kind::Deps | Kind::Tensors => self.value(limits).saturating_mul(4).max(64),
        }
    }

    fn can_grow(self, limits: &Limits) -> bool {
        match self {
            Kind::Window => limits.window * u64::from(limits.rings) < 1 << 30,
            Kind::Heap => limits.heap < 1 << 60,
            Kind::Deps | Kind::Tensors => self.value(limits) < 1 << 30,
        }
    }

    /// Position of a size on the scale on which it is searched: powers of two, 64 bytes, or single entries.
    fn steps(self, size: u64) -> u64 {
        match self {
            Kind::Window => u64::from(size.trailing_zeros()),
            Kind::Heap => size / 64,
            Kind::Deps | Kind::Tensors => size,
        }
    }

    fn size(self, steps: u64) -> u64 {
        match self {
            Kind::Window => 1 << steps,
            Kind::Heap => steps * 64,
            Kind::Deps | Kind::Tensors => steps,
        }
    }
}

//! Is a program safe and sensible? Answered without running it.
//!
//! ```text
//! program ─▶ graph (all dependencies) ─▶ holding (what scopes keep) ─▶ survey (every access, byte by byte)
//!                  │                                                        │ conflicts
//!                  └──────────▶ reach (is there a path?) ◀──────────────────┘ ─▶ facts ─▶ findings
//! ```
//!
//! Two accesses to the same bytes, at least one of them a write, race when no path of dependencies leads from one to the
//! other. Only neighbours are asked: for each byte a write and the one before it, and a write and the reads since the one
//! before it. When all neighbours are ordered, everything is; and whoever mends the reported pairs has mended all.

mod accesses;
mod describe;
mod fact;
mod fits;
mod holding;
mod reach;
mod render;
mod survey;

pub use accesses::Span;
pub use describe::{Finding, Party};
pub use fact::{Fact, Kind, Level};
pub use holding::{Allocation, Holding, Moment, Scope, Tail};
pub use reach::Redundant;
pub use render::{render, write_json};
pub use survey::{Conflict, Escape, Hazard};

use crate::config::{Hazards, Machine};
use crate::engine::RunError;
use crate::graph::Graph;
use crate::id::TaskId;
use crate::workload::{Program, Workload};
use reach::Order;
use std::ops::ControlFlow;

/// Conflicts collected before the ordered ones among them are dropped.
const BATCH: usize = 1 << 22;
/// Races after which no more are looked for: half of the pairs of a large program may race, and nobody mends them one by
/// one.
const ENOUGH: usize = 1 << 20;

/// A program that was checked.
pub struct Checked {
    /// Everything found, by kind and then by task.
    pub facts: Vec<Fact>,
    /// The last task whose races were looked for, when there are too many to go on.
    pub races_end: Option<TaskId>,
    program: Program,
    graph: Graph,
    holding: Holding,
    machine: Machine,
}

/// Checks a program for a machine.
///
/// # Errors
/// When the program cannot be read, or a task asks for workers the machine does not have.
pub fn check(workload: &dyn Workload, machine: &Machine) -> Result<Checked, RunError> {
    let program = Program::load(workload)?;
    let graph = Graph::load(&program, machine)?;
    let holding = Holding::of(&program, &graph, machine)?;
    let order = Order::of(&graph);
    let mut races = Races::new(&graph, &order);
    let survey = survey::survey(&program, &holding, |conflicts| races.add(conflicts))?;
    let races = races.finish();
    let races_end = survey.conflicts_end;

    let mut facts: Vec<Fact> = races.into_iter().map(Fact::Race).collect();
    facts.extend(fits::misfits(&holding, machine).into_iter().map(Fact::NeverFits));
    facts.extend(survey.escapes.into_iter().map(Fact::Escape));
    facts.extend(survey.overlaps.into_iter().map(|(task, bytes)| Fact::Overlap { task, bytes }));
    facts.extend(survey.unread.into_iter().map(|(task, buffer)| Fact::Unread { task, buffer }));
    facts.extend(survey.unneeded.into_iter().map(|task| Fact::Unneeded { task }));
    facts.extend(survey.unused.into_iter().map(|(buffer, line)| Fact::Unused { buffer, line }));
    facts.extend(order.redundant.into_iter().map(|edge| {
        let is_named = program.tasks()[edge.consumer.0 as usize].deps.contains(&edge.producer);
        Fact::Redundant { edge, is_named }
    }));
    facts.sort_by_key(Fact::kind);
    Ok(Checked { facts, races_end, program, graph, holding, machine: machine.clone() })
}

impl Checked {
    /// How many findings have this level.
    #[must_use]
    pub fn count(&self, level: Level) -> usize {
        self.facts.iter().filter(|fact| fact.level() == level).count()
    }

    /// The hazards that make dependencies.
    #[must_use]
    pub fn hazards(&self) -> Hazards {
        self.machine.rules.hazards
    }

    /// Number of tasks.
    #[must_use]
    pub fn n_tasks(&self) -> usize {
        self.graph.tasks.len()
    }

    /// Number of dependencies.
    #[must_use]
    pub fn n_edges(&self) -> usize {
        self.graph.n_edges()
    }
}

/// Conflicts met so far that no path orders.
struct Races<'a> {
    graph: &'a Graph,
    order: &'a Order,
    /// For each task the last consumer of it that conflicts were met of.
    consumers: Vec<Option<TaskId>>,
    pending: Vec<Conflict>,
    unordered: Vec<Conflict>,
}

impl<'a> Races<'a> {
    fn new(graph: &'a Graph, order: &'a Order) -> Races<'a> {
        let consumers = vec![None; graph.tasks.len()];
        Races { graph, order, consumers, pending: Vec::new(), unordered: Vec::new() }
    }

    /// Takes all conflicts of one later task; tasks come by ascending number.
    fn add(&mut self, conflicts: &[Conflict]) -> ControlFlow<()> {
        let Some(later) = conflicts.first().map(|conflict| conflict.later) else { return ControlFlow::Continue(()) };
        for producer in self.graph.producers(later) {
            self.consumers[producer.0 as usize] = Some(later);
        }
        let is_open = |conflict: &&Conflict| self.consumers[conflict.earlier.0 as usize] != Some(later);
        self.pending.extend(conflicts.iter().filter(is_open));
        if self.pending.len() >= BATCH {
            self.drain();
        }
        if self.unordered.len() < ENOUGH { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn drain(&mut self) {
        let pairs: Vec<(TaskId, TaskId)> = self.pending.iter().map(|pair| (pair.earlier, pair.later)).collect();
        let ordered = self.order.holds(&pairs);
        let unordered = self.pending.drain(..).zip(ordered).filter(|(_, is_ordered)| !is_ordered);
        self.unordered.extend(unordered.map(|(conflict, _)| conflict));
    }

    fn finish(mut self) -> Vec<Conflict> {
        self.drain();
        self.unordered
    }
}

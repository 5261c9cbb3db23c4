//! Which sizes does a program need? Found by proof where there is one, by running everywhere else.
//!
//! Four sizes are searched: window, heap, dependency pool, tensor map. What scopes hold gives lower bounds that no timing
//! beats (see [`crate::check::Holding`]); from there on sizes are tried in order, so the first that completes is the
//! smallest. How fast a run is at a size is only known by running it, and larger is not always faster.
//!
//! | size | can a run complete? | step |
//! |---|---|---|
//! | window | follows from the scopes alone | powers of two |
//! | tensors | follows from the scopes alone | 1 entry |
//! | heap | where pieces lie follows from the program; a gap at the end of the ring may count or not | what all pieces are multiples of |
//! | deps | how many entries are taken depends on the timing | 1 entry |

mod curve;
mod kind;
mod needed;
mod picture;
mod render;
mod search;
mod smallest;
mod trial;

pub use curve::{Curve, Point};
pub use kind::Kind;
pub use needed::fill_needed;
pub use picture::svg;
pub use render::{render, write_json};

use crate::check::Holding;
use crate::config::{Limits, Machine};
use crate::engine::RunError;
use crate::graph::Graph;
use crate::policy::Choice;
use crate::sync::Shared;
use crate::window::{Entry, Slot};
use crate::workload::{Program, Workload};
use search::Survey;
use serde::Serialize;
use smallest::Searcher;
use std::sync::atomic::AtomicBool;
use trial::{Trials, shortfall};

/// Bytes of a slot of our window.
const SLOT_BYTES: u64 = size_of::<Slot<Shared>>() as u64;
/// Sizes tried one after the other before the search takes larger steps.
const MOST_IN_ORDER: usize = 2_000;
/// Bytes of a dependency entry of our window.
const DEPENDENCY_BYTES: u64 = size_of::<Entry<Shared>>() as u64;

/// What to look for, and who watches.
pub struct Request<'a> {
    /// The policy to run under.
    pub choice: &'a Choice,
    /// How much longer than with unlimited sizes a run may take, as a share: 0.01 is 1 %.
    pub within: f64,
    /// When it becomes true, the search stops and gives what it has.
    pub stop: &'a AtomicBool,
    /// Told about every run: how many are done and how many are known to come.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
}

/// The answer for one size, the others being unlimited.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Answer {
    /// Which size.
    pub kind: Kind,
    /// The smallest with which the run completes; `None` when the search was stopped before.
    pub smallest: Option<Proven>,
    /// The smallest found with which the run is fast enough.
    pub fast: Option<Fast>,
    /// Everything that was tried.
    pub curve: Curve,
    /// Where more begins to help less.
    pub knee: Option<u64>,
    /// Pairs of sizes of which the larger one is slower.
    pub slower_when_larger: Vec<(u64, u64)>,
}

/// The smallest size with which a run completes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Proven {
    /// The size.
    pub size: u64,
    /// No smaller size completes: each was run or is ruled out by what scopes hold.
    pub is_proven: bool,
    /// Why one step less is not enough, as the run there said; `None` when there is no smaller size.
    pub below: Option<String>,
}

/// The smallest size found with which a run is fast enough.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Fast {
    /// The size.
    pub size: u64,
    /// The makespan there.
    pub makespan: u64,
    /// The makespan one step below; `None` when the run does not complete there.
    pub below: Option<u64>,
    /// Every smaller size was run or ruled out; otherwise only those of the curve.
    pub is_proven: bool,
}

/// All sizes at once.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Together {
    /// The sizes.
    pub limits: Sizes,
    /// The makespan with them.
    pub makespan: u64,
    /// Bytes of slots and dependency entries, all rings.
    pub window_bytes: u64,
    /// Bytes of heap, all rings.
    pub heap_bytes: u64,
}

/// The four sizes, each per ring but the tensor map.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Sizes {
    /// Slots.
    pub window: u64,
    /// Bytes.
    pub heap: u64,
    /// Dependency entries.
    pub deps: u64,
    /// Tensor-map entries.
    pub tensors: u64,
}

/// What a search found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sizing {
    /// Name of the workload.
    pub workload: String,
    /// Name of the machine.
    pub machine: String,
    /// Name of the policy.
    pub policy: String,
    /// Number of rings; every size but the tensor map exists once in each.
    pub rings: u32,
    /// Slots of each window that stay unused.
    pub spare: u64,
    /// How much longer a run may take.
    pub within: f64,
    /// Number of tasks.
    pub tasks: u64,
    /// Sizes so large that nothing ever waits for them, and what such a run takes.
    pub unlimited: Together,
    /// The most in use in any ring with unlimited sizes.
    pub high_water: Sizes,
    /// Each size on its own.
    pub answers: Vec<Answer>,
    /// Sizes that complete together, none of which can be smaller with the others in place.
    pub smallest: Option<Together>,
    /// Sizes that are fast enough together.
    pub fast: Option<Together>,
    /// How many runs it took.
    pub runs: u64,
    /// The search was stopped before it was through.
    pub is_interrupted: bool,
}

impl Sizes {
    fn of(limits: &Limits) -> Sizes {
        Sizes { window: limits.window, heap: limits.heap, deps: limits.deps, tensors: limits.tensors }
    }
}

impl Together {
    fn new(limits: &Limits, makespan: u64) -> Together {
        let (window_bytes, heap_bytes) = memory(limits);
        Together { limits: Sizes::of(limits), makespan, window_bytes, heap_bytes }
    }
}

/// Bytes that sizes take in our own layout, all rings together: slots and dependency entries, and the heap.
#[must_use]
pub fn memory(limits: &Limits) -> (u64, u64) {
    let rings = u64::from(limits.rings);
    let slots = limits.window.saturating_mul(SLOT_BYTES);
    let window = slots.saturating_add(limits.deps.saturating_mul(DEPENDENCY_BYTES));
    (window.saturating_mul(rings), limits.heap.saturating_mul(rings))
}

/// Finds the sizes that `workload` needs on `machine`, whose own sizes do not matter.
///
/// # Errors
/// When the workload cannot be read, asks for what no size can give, or does not complete whatever the sizes.
pub fn size(workload: &dyn Workload, machine: &Machine, request: &Request) -> Result<Sizing, RunError> {
    let program = Program::load(workload)?;
    let graph = Graph::load(&program, machine)?;
    let holding = Holding::of(&program, &graph, machine)?;
    let trials = Trials::new(&program, machine, request);
    let mut unlimited = machine.clone();
    unlimited.limits = roomy(&machine.limits, &holding, graph.n_edges() as u64);
    let report = trials.report(&unlimited.limits)?;
    if let Some(reason) = shortfall(&report) {
        return Err(RunError::Stuck(format!(
            "no size helps: with all of them unlimited the run still ends badly: {reason}"
        )));
    }
    let high_water = Sizes {
        window: report.high_water.rings.iter().map(|ring| ring.window).max().unwrap_or(0),
        heap: report.high_water.rings.iter().map(|ring| ring.heap).max().unwrap_or(0),
        deps: report.high_water.rings.iter().map(|ring| ring.deps).max().unwrap_or(0),
        tensors: report.high_water.tensors,
    };
    let mut sizing = Sizing {
        workload: program.name(),
        machine: machine.name.clone(),
        policy: report.policy.clone(),
        rings: machine.limits.rings,
        spare: machine.limits.spare,
        within: request.within,
        tasks: graph.tasks.len() as u64,
        unlimited: Together::new(&unlimited.limits, report.makespan),
        high_water,
        answers: Vec::new(),
        smallest: None,
        fast: None,
        runs: 0,
        is_interrupted: false,
    };
    let searcher = Searcher {
        trials: &trials,
        holding: &holding,
        spare: machine.limits.spare,
        most_in_order: MOST_IN_ORDER,
        most_ruled_out: u64::MAX,
    };
    Survey { searcher, unlimited: &unlimited.limits, high_water }.fill(&mut sizing, request)?;
    sizing.runs = trials.done();
    sizing.is_interrupted = trials.is_stopped();
    Ok(sizing)
}

/// Sizes that nothing ever waits for.
fn roomy(limits: &Limits, holding: &Holding, n_edges: u64) -> Limits {
    let n_tasks = holding.moments.len() as u64;
    let heap: u64 = holding.allocations.iter().flatten().map(|allocation| allocation.bytes).sum();
    Limits {
        window: (n_tasks + limits.spare).next_power_of_two(),
        heap: heap.max(64),
        deps: n_edges.max(1),
        tensors: holding.all_tensors.max(1),
        ..limits.clone()
    }
}

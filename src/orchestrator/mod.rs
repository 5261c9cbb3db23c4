//! The orchestrator: reads the program, finds each task's producers, reserves what it needs, links and publishes it.
//!
//! It knows no time. An engine asks for the next operation, tries to reserve, lets the cost pass and publishes.

mod found;
mod publish;
mod scope;
mod segments;
mod survey;
mod tensor_map;

pub use scope::Scope;

use crate::config::{Hazards, Machine, ScopeHold};
use crate::error::RunError;
use crate::id::{TaskId, TaskType};
use crate::kernel::Costs;
use crate::machine::capacity;
use crate::sync::Sharing;
use crate::window::{Needs, Refusal, Resource, SlotRef, Window};
use crate::workload::{Cost, Operation, Source, Submit, Units};
use found::Producer;
use segments::Access;
use std::collections::BTreeSet;
use tensor_map::TensorMap;

/// Reads a program and puts its tasks into the window.
pub struct Orchestrator {
    source: Box<dyn Source>,
    /// The task being submitted.
    pub task: Submit,
    /// Its type on this machine and its cost.
    pub resolved: (TaskType, Cost),
    costs: Costs,
    map: TensorMap,
    scopes: Vec<Scope>,
    ring: u32,
    producers: Vec<Producer>,
    /// Its producers that were complete before it could wait for them, where threads share the window.
    gone: Vec<Producer>,
    /// What the task at hand needs beside dependency entries, unless it is simple.
    needs: Needs,
    /// Whether the task at hand reads, writes or allocates anything.
    has_regions: bool,
    /// Whether it has neither regions nor a piece of the heap.
    is_simple: bool,
    /// Whether its producers were looked for. That is left until there is a slot for it.
    is_found: bool,
    /// Line of the operation at hand, if the program has lines.
    line: Option<u64>,
    has_lines: bool,
    /// Longest path that ends with the tenant of each slot.
    paths: Vec<u64>,
    /// Where there are several rings: the slot of a recent task, by the last bits of its id.
    homes: Vec<SlotRef>,
    path: u64,
    poisoned: bool,
    /// Tasks that ended badly; what depends on them never runs.
    bad: BTreeSet<TaskId>,
    next: TaskId,
    rules: Rules,
}

/// What the orchestrator needs to know of the machine.
struct Rules {
    machine: Machine,
    /// Whether tasks of a type run on workers of that type without further questions, by task type.
    plain: [bool; 6],
    /// Types that run on VECTOR because the machine has nothing else for them, once met.
    moved: BTreeSet<TaskType>,
}

/// The next thing the program wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Submit the task at hand.
    Submit,
    /// Open a scope.
    ScopeBegin,
    /// Close the innermost scope.
    ScopeEnd,
    /// Nothing: the program is over.
    Done,
}

/// What publishing did.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// Edges linked.
    pub edges: u64,
    /// Cycles of the longest path that ends with the task.
    pub path: u64,
    /// A producer ended badly, so the task must not run.
    pub cancelled: Option<TaskId>,
}

impl Orchestrator {
    /// At the first operation of a program.
    #[must_use]
    pub fn new(source: Box<dyn Source>, costs: Costs, machine: &Machine) -> Orchestrator {
        Orchestrator {
            has_lines: source.has_lines(),
            line: None,
            source,
            task: Submit::default(),
            resolved: (TaskType::Vector, Cost::Cycles(0)),
            costs,
            map: TensorMap::default(),
            scopes: Vec::new(),
            ring: 0,
            producers: Vec::new(),
            gone: Vec::new(),
            needs: Needs::default(),
            has_regions: false,
            is_simple: false,
            is_found: false,
            paths: vec![0; (machine.limits.window * u64::from(machine.limits.rings)) as usize],
            homes: vec![0; if machine.limits.rings > 1 { machine.limits.window as usize } else { 0 }],
            path: 0,
            poisoned: false,
            bad: BTreeSet::new(),
            next: TaskId(0),
            rules: Rules {
                machine: machine.clone(),
                plain: TaskType::ALL
                    .map(|kind| kind != TaskType::Mix && capacity(&machine.workers, kind, Units::default()) > 0),
                moved: BTreeSet::new(),
            },
        }
    }

    /// The program being read.
    pub fn source(&self) -> &dyn Source {
        &*self.source
    }

    /// The id of the task at hand, which is also the number of tasks before it.
    pub fn next_task(&self) -> TaskId {
        self.next
    }

    /// The scopes open now, outermost first.
    pub fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// Types that run on VECTOR because the machine has nothing else for them.
    pub fn moved(&self) -> &BTreeSet<TaskType> {
        &self.rules.moved
    }

    /// What a report should say about [the types that were moved](Orchestrator::moved).
    pub fn notes(&self) -> impl Iterator<Item = String> {
        self.moved().iter().map(|kind| format!("the machine has no {kind} workers: {kind} tasks ran on VECTOR"))
    }

    /// The ring in which a task submitted now lives.
    #[inline]
    pub fn ring(&self) -> u32 {
        self.ring
    }

    /// Scopes were opened or closed.
    fn choose_ring(&mut self) {
        self.ring = (self.scopes.len().max(1) as u32).min(self.rules.machine.limits.rings) - 1;
    }

    /// Line of the operation at hand, if the program has lines.
    #[inline]
    pub fn line(&self) -> Option<u64> {
        self.line
    }

    /// Reads the next operation. A task's cost and type are settled.
    ///
    /// # Errors
    /// When the program is wrong, or asks for what the machine can never give.
    #[inline(always)]
    pub fn read(&mut self) -> Result<Step, RunError> {
        loop {
            let operation = self.next_operation()?;
            if let Some(Operation::Submit) = operation {
                self.resolve()?;
                self.is_found = false;
                return Ok(Step::Submit);
            }
            match operation {
                None | Some(Operation::Submit) => return Ok(Step::Done),
                Some(Operation::Buffer { buffer, .. }) => self.map.bind(buffer),
                Some(Operation::ScopeBegin) => return Ok(Step::ScopeBegin),
                Some(Operation::ScopeEnd) => return Ok(Step::ScopeEnd),
            }
        }
    }

    #[inline(always)]
    fn next_operation(&mut self) -> Result<Option<Operation>, RunError> {
        let operation = self.source.next(&mut self.task)?;
        if self.has_lines {
            self.line = self.source.line();
        }
        Ok(operation)
    }

    /// Settles type, cost and needs of the task at hand.
    #[inline(always)]
    fn resolve(&mut self) -> Result<(), RunError> {
        let task = &self.task;
        self.is_simple = task.is_simple();
        self.has_regions = false;
        let mut heap = 0;
        if !self.is_simple {
            let written = task.writes.len() + task.updates.len() + task.allocates.len();
            let is_full = self.rules.machine.rules.hazards == Hazards::Full;
            let read = if is_full { task.reads.len() } else { 0 };
            self.needs = Needs { heap: task.heap_bytes(), deps: 0, tensors: (written + read) as u64 };
            self.has_regions = written + task.reads.len() > 0;
            heap = self.needs.heap;
        }
        if let Some((kind, cycles)) = self.costs.recall(task, heap) {
            self.resolved = (kind, Cost::Cycles(cycles));
        } else {
            self.resolved = self.look_up()?;
        }
        self.settle_type()
    }

    /// Whether the task at hand has one block, runs on one worker, has no parent and does not fail.
    #[inline(always)]
    pub fn is_usual(&self) -> bool {
        self.is_single() && self.task.parent.is_none()
    }

    /// Whether the task at hand has one block, runs on one worker and does not fail.
    #[inline(always)]
    pub fn is_single(&self) -> bool {
        let task = &self.task;
        let has_one_worker = task.blocks == 1 && !matches!(self.resolved.0, TaskType::Mix | TaskType::None);
        has_one_worker && !(task.sync_start | task.fault)
    }

    #[inline(never)]
    fn look_up(&mut self) -> Result<(TaskType, Cost), RunError> {
        let resolved = self.costs.resolve(&self.task, self.source.symbols());
        resolved.map_err(|message| RunError::Task(self.blame(&message)))
    }

    /// Reads what comes after the task at hand only to find what is wrong with it.
    ///
    /// # Errors
    /// As [`Orchestrator::read`].
    pub fn validate_rest(&mut self) -> Result<(), RunError> {
        self.skip_rest(true).map(drop)
    }

    /// What to say of a program whose run has ended in `error`: what is wrong with the rest of it comes first.
    #[cold]
    pub fn first_wrong(&mut self, error: RunError) -> RunError {
        let rest = match error {
            // What could be seen before the run.
            RunError::TooLarge { .. } => self.validate_rest(),
            // A line that is no operation.
            RunError::Task(_) => self.read_rest(),
            _ => Ok(()),
        };
        rest.err().unwrap_or(error)
    }

    fn read_rest(&mut self) -> Result<(), RunError> {
        while self.next_operation()?.is_some() {}
        Ok(())
    }

    /// Gives up what comes now, the task at hand included if there is one; returns how many tasks that are.
    ///
    /// # Errors
    /// As [`Orchestrator::read`].
    pub fn skip_rest(&mut self, is_at_hand: bool) -> Result<u64, RunError> {
        let first = self.next.0;
        self.next.0 += u64::from(is_at_hand);
        while let Some(operation) = self.next_operation()? {
            if operation == Operation::Submit {
                self.resolve()?;
                self.next.0 += 1;
            }
        }
        Ok(self.next.0 - first)
    }

    /// Types the machine lacks run on VECTOR or are an error; so are blocks that could never be placed together.
    #[inline]
    fn settle_type(&mut self) -> Result<(), RunError> {
        if self.rules.plain[self.resolved.0 as usize] && !self.task.sync_start {
            return Ok(());
        }
        self.settle_unusual_type()
    }

    fn settle_unusual_type(&mut self) -> Result<(), RunError> {
        let workers = &self.rules.machine.workers;
        let kind = self.resolved.0;
        if matches!(kind, TaskType::AiCpu | TaskType::Accelerator) && capacity(workers, kind, self.task.units) == 0 {
            self.rules.moved.insert(kind);
            self.resolved.0 = TaskType::Vector;
        }
        let workers = &self.rules.machine.workers;
        let kind = self.resolved.0;
        let room = capacity(workers, kind, self.task.units);
        if room == 0 {
            let Units { cube, vector } = self.task.units;
            if kind == TaskType::Mix && workers.clusters > 0 {
                let message = format!("units of {cube} cubes and {vector} vectors; a cluster has 1 cube and 2 vectors");
                return Err(RunError::Task(self.blame(&message)));
            }
            let remedy = match kind {
                TaskType::Mix => "set workers.clusters",
                TaskType::Cube => "set workers.cube",
                _ => "set workers.vector",
            };
            return Err(RunError::Task(
                self.blame(&format!("needs a {kind} worker and the machine has none; {remedy}")),
            ));
        }
        if self.task.sync_start && self.task.blocks > room && kind != TaskType::None {
            let message = format!(
                "sync_start with {} blocks, but at most {room} {kind} blocks can ever run at once; use fewer blocks or more workers",
                self.task.blocks
            );
            return Err(RunError::Task(self.blame(&message)));
        }
        Ok(())
    }

    /// A message about the task at hand.
    #[must_use]
    pub fn blame(&self, message: &str) -> String {
        format!("{}task {} `{}`: {message}", self.place(), self.next, self.task_name())
    }

    /// Where the operation at hand stands, as the beginning of a message.
    #[must_use]
    pub fn place(&self) -> String {
        self.place_of(self.line)
    }

    /// A line of the program, as the beginning of a message.
    #[must_use]
    pub fn place_of(&self, line: Option<u64>) -> String {
        match (self.source.origin(), line) {
            (Some(file), Some(line)) => format!("{file}:{line}: "),
            (Some(file), None) => format!("{file}: "),
            (None, Some(line)) => format!("line {line}: "),
            (None, None) => String::new(),
        }
    }

    /// Name of the task at hand.
    pub fn task_name(&self) -> String {
        self.task.name.map_or_else(|| format!("task{}", self.next), |name| self.source.symbols().name(name).to_string())
    }

    /// Has the producers of the task at hand looked for again, after more tasks turned out to have ended badly.
    #[cold]
    pub fn look_again<S: Sharing>(&mut self, window: &Window<S>) {
        if self.is_found {
            self.producers.iter().for_each(|producer| window.slot(producer.slot).unmark());
            self.find_producers(window);
        }
    }

    /// What the task at hand needs now; producers consumed in the meantime no longer count.
    #[inline(never)]
    pub fn needs<S: Sharing>(&self, window: &Window<S>) -> Needs {
        let alive = |producer: &&Producer| window.is_alive(producer.slot, producer.task);
        Needs { deps: self.producers.iter().filter(alive).count() as u64, ..self.needs_but_deps() }
    }

    /// The same without dependency entries.
    #[inline]
    fn needs_but_deps(&self) -> Needs {
        if self.is_simple { Needs::default() } else { self.needs }
    }

    /// Takes what the task at hand needs; returns its slot and what that was.
    ///
    /// # Errors
    /// What lacks, now or for ever.
    #[inline(always)]
    pub fn try_reserve<S: Sharing>(&mut self, window: &Window<S>) -> Result<(SlotRef, Needs), Refusal> {
        if window.is_full(self.ring) {
            return Err(Refusal::Full(Resource::Window));
        }
        let needs = if self.is_found {
            self.needs(window)
        } else {
            self.find_producers(window);
            // None of them is consumed yet, unless others do that at the same time.
            Needs { deps: self.producers.len() as u64, ..self.needs_but_deps() }
        };
        let slot = window.take(self.ring, self.next, &needs, self.holds())?;
        Ok((slot, needs))
    }

    /// How many scopes hold the task at hand.
    #[inline]
    fn holds(&self) -> u32 {
        match self.rules.machine.rules.scope_hold {
            ScopeHold::Innermost => self.scopes.len().min(1) as u32,
            ScopeHold::Enclosing => self.scopes.len() as u32,
        }
    }

    /// The error for a task that asks for more than the whole of something.
    pub fn too_large<S: Sharing>(&self, resource: Resource, window: &Window<S>) -> RunError {
        let (needs, limits) = (self.needs(window), &self.rules.machine.limits);
        let message = match resource {
            Resource::Window => unreachable!("a slot is never too large"),
            Resource::Heap => {
                format!("asks for {} bytes of a heap of {}; set limits.heap to at least that", needs.heap, limits.heap)
            }
            Resource::Deps => format!(
                "needs {} dependency entries of a pool of {}; set limits.deps to at least that",
                needs.deps, limits.deps
            ),
            Resource::Tensors => format!(
                "needs {} tensor-map entries of a map of {}; set limits.tensors to at least that",
                needs.tensors, limits.tensors
            ),
        };
        RunError::TooLarge { resource, message: self.blame(&message) }
    }

    /// Producers of the last task published that it did not have to wait for, and where they lived. Only where threads share the
    /// window.
    pub fn gone(&self) -> impl Iterator<Item = (TaskId, SlotRef)> + '_ {
        self.gone.iter().map(|producer| (producer.task, producer.slot))
    }

    /// Cycles of the longest path that ends with the task in a slot.
    #[inline]
    pub fn path_of(&self, slot: SlotRef) -> u64 {
        self.paths[slot as usize]
    }

    /// Whether nothing known comes before the task at hand.
    #[inline]
    pub fn is_root(&self) -> bool {
        self.path == 0
    }
}

/// Visits the earlier accesses to bytes that make a task wait; one may come several times.
#[inline(always)]
fn each_conflict(task: &Submit, map: &TensorMap, hazards: Hazards, mut visit: impl FnMut(&Access)) {
    let written = if hazards == Hazards::Raw { &[][..] } else { &task.writes };
    for regions in [&task.reads, &task.updates, written] {
        for region in regions {
            map.overlapping(region, |segment| visit(&segment.writer));
        }
    }
    if hazards == Hazards::Full {
        for region in task.writes.iter().chain(&task.updates) {
            map.overlapping(region, |segment| segment.readers.iter().for_each(&mut visit));
        }
    }
}

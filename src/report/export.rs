//! A run as tracks of slices and counters, handed to forms while the run goes on; [`super::Chrome`] and [`super::Perfetto`]
//! are such forms.
//!
//! ```text
//! journal ─▶ Export ── slices, counters ──▶ Sheet: a form and its file
//!                                     └───▶ Sheet: …
//! ```
//!
//! One cycle is written as one nanosecond, so that every moment in the file is exact; the clock stands beside it.

use super::arrows::Arrows;
use super::counters::Counters;
use super::pen::Pen;
use crate::config::Machine;
use crate::engine::journal::{Names, Needs, Occupancy, Reader};
use crate::engine::{BlockRow, JobKind, JobStep, Phase, Placed, SchedulerJob};
use crate::id::{Symbol, TaskId, TaskType, WorkerId, WorkerType};
use crate::window::{Resource, SlotRef};
use std::io::{self, Write};

/// Task types that have a ready queue.
const READY_QUEUES: usize = TaskType::ALL.len() - 1;

/// Where slices lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// A worker.
    Worker(WorkerId),
    /// The orchestrator.
    Orchestrator,
    /// A thread of the scheduler.
    Scheduler(u32),
}

/// A number over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counter {
    /// Tasks in a ready queue.
    Ready(TaskType),
    /// Slots in use in a ring.
    Window(u32),
    /// Bytes in use in the heap of a ring.
    Heap(u32),
    /// Dependency entries in use in a ring.
    Deps(u32),
}

impl Counter {
    /// The name of its track.
    #[must_use]
    pub fn name(self, rings: u32) -> String {
        let of_ring =
            |what: &str, ring: u32| if rings == 1 { what.to_owned() } else { format!("{what} of ring {ring}") };
        match self {
            Counter::Ready(kind) => format!("ready {kind}"),
            Counter::Window(ring) => of_ring("window", ring),
            Counter::Heap(ring) => of_ring("heap", ring),
            Counter::Deps(ring) => of_ring("dependency entries", ring),
        }
    }

    /// Its place in [`Counter::all`].
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        let of_ring = |ring: u32, which: usize| READY_QUEUES + 3 * ring as usize + which;
        match self {
            Counter::Ready(kind) => kind as usize,
            Counter::Window(ring) => of_ring(ring, 0),
            Counter::Heap(ring) => of_ring(ring, 1),
            Counter::Deps(ring) => of_ring(ring, 2),
        }
    }

    /// All counters of a machine, in the order in which they are shown.
    #[must_use]
    pub fn all(machine: &Machine) -> Vec<Counter> {
        let ready = TaskType::ALL.into_iter().filter(|kind| *kind != TaskType::None).map(Counter::Ready);
        let rings = (0..machine.limits.rings)
            .flat_map(|ring| [Counter::Window(ring), Counter::Heap(ring), Counter::Deps(ring)]);
        ready.chain(rings).collect()
    }
}

/// A span on a lane.
#[derive(Clone, Debug)]
pub struct Slice<'a> {
    /// Where.
    pub lane: Lane,
    /// What; the same text always has the same `name_id`.
    pub name: &'a str,
    /// Number of the name.
    pub name_id: u64,
    /// First cycle.
    pub from: u64,
    /// End.
    pub to: u64,
    /// The task it is about.
    pub task: Option<TaskId>,
    /// More about a block.
    pub block: Option<BlockFacts<'a>>,
    /// Edges that leave the slice.
    pub flows_out: &'a [u64],
    /// Edges that arrive at it.
    pub flows_in: &'a [u64],
}

/// What is told of a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockFacts<'a> {
    /// Label of the task.
    pub label: Option<&'a str>,
    /// Its number.
    pub block: u32,
    /// When the task was published.
    pub submit: u64,
    /// When it became READY.
    pub ready: u64,
}

/// The slice of the first block of a task that has no label and no arrows.
#[derive(Clone, Copy, Debug)]
pub struct PlainBlock {
    /// Where.
    pub worker: WorkerId,
    /// Number of its name.
    pub name_id: u64,
    /// First cycle.
    pub from: u64,
    /// End.
    pub to: u64,
    /// Its task.
    pub task: TaskId,
    /// When the task was published.
    pub submit: u64,
    /// When it became READY.
    pub ready: u64,
}

/// A form of file.
pub trait Form: Send + 'static {
    /// The beginning of the file: all lanes and counters of the machine.
    fn open(&mut self, workload: &str, machine: &Machine) -> Vec<u8>;
    /// A slice; those of a lane come in the order of time.
    fn slice<W: Write>(&mut self, pen: &mut Pen<W>, slice: &Slice<'_>);
    /// A block as a slice like others before it; false if it is to be told as a [`Slice`].
    fn like_before<W: Write>(&mut self, pen: &mut Pen<W>, block: &PlainBlock) -> bool;
    /// The counter at this place of [`Counter::all`] has this value from now on.
    fn counter<W: Write>(&mut self, pen: &mut Pen<W>, counter: usize, value: u64, now: u64);
    /// The end of the file.
    fn close<W: Write>(&mut self, pen: &mut Pen<W>);
}

/// A file in the making: its form, and the pen that writes it.
pub struct Sheet<F, W> {
    form: F,
    pen: Pen<W>,
}

impl<F: Form, W: Write> Sheet<F, W> {
    /// Starts the file.
    pub fn new(mut form: F, writer: W, workload: &str, machine: &Machine) -> Sheet<F, W> {
        let mut pen = Pen::new(writer);
        pen.text(&form.open(workload, machine));
        Sheet { form, pen }
    }

    /// Writes what is left and gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer during the whole run.
    pub fn finish(mut self) -> io::Result<W> {
        self.form.close(&mut self.pen);
        self.pen.finish()
    }
}

/// Files that get the same slices and counters, each in its own form; see [`Form`].
pub trait Sheets: Send + 'static {
    /// A slice.
    fn slice(&mut self, slice: &Slice<'_>);
    /// A block that may be like others before it, and how to make a slice of it.
    fn block<'a>(&mut self, block: &PlainBlock, slice: impl Copy + Fn() -> Slice<'a>);
    /// A value of a counter.
    fn counter(&mut self, counter: usize, value: u64, now: u64);
}

impl<F: Form, W: Write + Send + 'static> Sheets for Sheet<F, W> {
    #[inline(never)]
    fn slice(&mut self, slice: &Slice<'_>) {
        self.form.slice(&mut self.pen, slice);
    }

    #[inline(always)]
    fn block<'a>(&mut self, block: &PlainBlock, slice: impl Copy + Fn() -> Slice<'a>) {
        if !self.form.like_before(&mut self.pen, block) {
            self.slice(&slice());
        }
    }

    #[inline(always)]
    fn counter(&mut self, counter: usize, value: u64, now: u64) {
        self.form.counter(&mut self.pen, counter, value, now);
    }
}

impl<S: Sheets> Sheets for Option<S> {
    #[inline(always)]
    fn slice(&mut self, slice: &Slice<'_>) {
        if let Some(sheets) = self {
            sheets.slice(slice);
        }
    }

    #[inline(always)]
    fn block<'a>(&mut self, block: &PlainBlock, slice: impl Copy + Fn() -> Slice<'a>) {
        if let Some(sheets) = self {
            sheets.block(block, slice);
        }
    }

    #[inline(always)]
    fn counter(&mut self, counter: usize, value: u64, now: u64) {
        if let Some(sheets) = self {
            sheets.counter(counter, value, now);
        }
    }
}

impl<A: Sheets, B: Sheets> Sheets for (A, B) {
    #[inline(always)]
    fn slice(&mut self, slice: &Slice<'_>) {
        self.0.slice(slice);
        self.1.slice(slice);
    }

    #[inline(always)]
    fn block<'a>(&mut self, block: &PlainBlock, slice: impl Copy + Fn() -> Slice<'a>) {
        self.0.block(block, slice);
        self.1.block(block, slice);
    }

    #[inline(always)]
    fn counter(&mut self, counter: usize, value: u64, now: u64) {
        self.0.counter(counter, value, now);
        self.1.counter(counter, value, now);
    }
}

/// A reader of a journal that fills sheets.
pub struct Export<S> {
    sheets: S,
    arrows: Option<Arrows>,
    counters: Counters,
    /// When each scheduler thread is free again.
    threads: Vec<u64>,
    wait: Wait,
}

/// The wait of the orchestrator that may still go on: one that is only interrupted by a submission that takes no time is one slice.
#[derive(Default)]
struct Wait(Option<(Phase, u64, u64)>);

impl Wait {
    /// Takes in a phase; returns what is over and to be written.
    #[inline]
    fn then(&mut self, phase: Phase, from: u64, to: u64) -> Option<(Phase, u64, u64)> {
        match &mut self.0 {
            Some((same @ Phase::Blocked(_), _, end)) if *same == phase && *end == from => {
                *end = to;
                None
            }
            before => before.replace((phase, from, to)),
        }
    }
}

impl<S: Sheets> Export<S> {
    /// For sheets that have just been started, with arrows or without.
    pub fn new(sheets: S, machine: &Machine, arrows: Option<Arrows>) -> Export<S> {
        let counters = Counters::new(Counter::all(machine).len());
        let threads = vec![0; machine.scheduler.threads as usize];
        Export { sheets, arrows, counters, threads, wait: Wait::default() }
    }

    /// Hands on what is left and gives the sheets back.
    pub fn finish(mut self) -> S {
        if let Some(last) = self.wait.0.take() {
            self.orchestrator_slice(last);
        }
        self.counters.write(&mut self.sheets);
        self.sheets
    }

    /// Values that are set from here on are those of `now`.
    #[inline]
    fn advance(&mut self, now: u64) {
        self.counters.advance(now, &mut self.sheets);
    }

    #[inline]
    fn change_ready(&mut self, kind: TaskType, now: u64, change: impl FnOnce(u64) -> u64) {
        if kind != TaskType::None {
            self.advance(now);
            self.counters.change(kind as usize, |[ready]| [change(ready)]);
        }
    }

    /// A block with a label or arrows, or one of many. It is copied for this, so that others need not be in memory.
    #[inline(never)]
    fn unusual_block(&mut self, row: BlockRow, names: &Names) {
        let Some(arrows) = &mut self.arrows else { return self.sheets.slice(&slice(row, names, (&[], &[]))) };
        let (leaving, arriving) = arrows.of(row.task, row.block);
        self.sheets.slice(&slice(row, names, (leaving, arriving)));
    }

    fn orchestrator_slice(&mut self, (phase, from, to): (Phase, u64, u64)) {
        self.runtime_slice(Lane::Orchestrator, phase_name(phase), (from, to), None);
    }

    #[inline]
    fn runtime_slice(&mut self, lane: Lane, name: (&'static str, u64), span: (u64, u64), task: Option<TaskId>) {
        let (name, name_id) = name;
        let (from, to) = span;
        let slice = Slice { lane, name, name_id, from, to, task, block: None, flows_out: &[], flows_in: &[] };
        self.sheets.slice(&slice);
    }
}

/// Name ids below this belong to the runtime; kernels follow.
const FIRST_KERNEL: u64 = 32;
/// Name id of tasks without kernel and label.
const UNNAMED: u64 = 7;

#[inline]
fn phase_name(phase: Phase) -> (&'static str, u64) {
    match phase {
        Phase::Working => ("submit", 1),
        Phase::Waiting => ("waits for submit_at", 2),
        Phase::Blocked(Resource::Window) => ("window full", 3),
        Phase::Blocked(Resource::Heap) => ("heap full", 4),
        Phase::Blocked(Resource::Deps) => ("dependency entries used up", 5),
        Phase::Blocked(Resource::Tensors) => ("tensor-map entries used up", 6),
    }
}

impl<S: Sheets> Reader for Export<S> {
    fn needs(&self) -> Needs {
        Needs { levels: true, ..Needs::default() }
    }

    #[inline(always)]
    fn block(&mut self, row: &BlockRow, names: &Names) {
        match &mut self.arrows {
            None if row.name.is_none() && row.block == 0 => {
                let &BlockRow { worker, task, submit, ready, start, end, .. } = row;
                let name_id = name_id(row.kernel);
                let block = PlainBlock { worker, name_id, from: start, to: end, task, submit, ready };
                self.sheets.block(&block, || slice(*row, names, (&[], &[])));
            }
            _ => self.unusual_block(*row, names),
        }
    }

    #[inline]
    fn ready(&mut self, _slot: SlotRef, kind: TaskType, now: u64) {
        self.change_ready(kind, now, |ready| ready + 1);
    }

    #[inline]
    fn placed(&mut self, placed: &Placed<'_>, now: u64) {
        if placed.is_last {
            self.change_ready(placed.kind, now, |ready| ready.saturating_sub(1));
        }
    }

    fn withdrawn(&mut self, kind: TaskType, now: u64) {
        self.change_ready(kind, now, |ready| ready.saturating_sub(1));
    }

    #[inline]
    fn job(&mut self, job: &SchedulerJob, step: JobStep, now: u64) {
        let JobStep::Begun(cost @ 1..) = step else { return };
        let to = now.saturating_add(cost);
        let thread = self.threads.iter().position(|&free_at| free_at <= now).expect("a thread took the job");
        self.threads[thread] = to;
        let name = match job.kind {
            JobKind::Admit => ("admit", 8),
            JobKind::Complete => ("complete", 9),
            JobKind::Dispatch => ("dispatch", 10),
        };
        self.runtime_slice(Lane::Scheduler(thread as u32), name, (now, to), Some(job.task));
    }

    #[inline]
    fn orchestrator(&mut self, phase: Phase, from: u64, now: u64) {
        if let Some(over) = self.wait.then(phase, from, now) {
            self.orchestrator_slice(over);
        }
    }

    #[inline]
    fn occupied(&mut self, ring: u32, occupancy: &Occupancy, now: u64) {
        self.advance(now);
        let first = Counter::Window(ring).index();
        self.counters.change(first, |_| [occupancy.window, occupancy.heap, occupancy.deps]);
    }
}

/// The number of a name.
#[inline(always)]
fn name_id(title: Option<Symbol>) -> u64 {
    title.map_or(UNNAMED, |title| FIRST_KERNEL + u64::from(title.0))
}

/// A block as a slice with arrows that leave it and arrive at it.
fn slice<'a>(row: BlockRow, names: &'a Names, (flows_out, flows_in): (&'a [u64], &'a [u64])) -> Slice<'a> {
    let title = row.kernel.or(row.name);
    Slice {
        lane: Lane::Worker(row.worker),
        name: title.map_or("task", |title| names.name(title)),
        name_id: name_id(title),
        from: row.start,
        to: row.end,
        task: Some(row.task),
        block: Some(BlockFacts {
            label: row.name.map(|name| names.name(name)),
            block: row.block,
            submit: row.submit,
            ready: row.ready,
        }),
        flows_out,
        flows_in,
    }
}

/// The name of a worker in a list of its machine: `CUBE 3`.
pub(super) fn worker_names(machine: &Machine) -> Vec<(WorkerType, String)> {
    let of = |kind: WorkerType| (0..machine.workers.count(kind)).map(move |nth| (kind, format!("{kind} {nth}")));
    WorkerType::ALL.into_iter().flat_map(of).collect()
}

//! A run as tracks of slices and counters, handed to a form while the run goes on; [`super::Chrome`] and [`super::Perfetto`]
//! are such forms.
//!
//! One cycle is written as one nanosecond, so that every moment in the file is exact; the clock stands beside it.

use crate::config::Machine;
use crate::engine::{BlockRow, JobKind, JobStep, Observer, Phase, Placed, SchedulerJob};
use crate::graph::Graph;
use crate::id::{Symbol, TaskId, TaskType, WorkerId, WorkerType};
use crate::sync::Local;
use crate::window::{Resource, SlotRef, Window};
use crate::workload::Symbols;
use std::io::{self, Write};

const BUFFER_BYTES: usize = 1 << 16;
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

/// A form of file. It appends to a buffer, which somebody else writes.
pub trait Form {
    /// The beginning of the file: all lanes and counters of the machine.
    fn open(&mut self, out: &mut Vec<u8>, workload: &str, machine: &Machine);
    /// A slice; those of a lane come in the order of time.
    fn slice(&mut self, out: &mut Vec<u8>, slice: &Slice<'_>);
    /// A counter has this value from now on.
    fn counter(&mut self, out: &mut Vec<u8>, counter: Counter, value: u64, now: u64);
    /// The end of the file.
    fn close(&mut self, out: &mut Vec<u8>);
}

/// An observer that writes a form.
pub struct Export<F, W> {
    form: F,
    writer: W,
    out: Vec<u8>,
    error: Option<io::Error>,
    flows: Option<Flows>,
    counters: Counters,
    /// When each scheduler thread is free again.
    threads: Vec<u64>,
}

/// Arrows from producers to consumers.
struct Flows {
    graph: Graph,
    /// Number of the first edge that leaves a task.
    first: Vec<u64>,
    arriving: Vec<u64>,
    leaving: Vec<u64>,
    /// The block told last: a MIX block is told once for each of its workers.
    previous: Option<TaskId>,
}

impl Flows {
    fn new(graph: Graph) -> Flows {
        let mut next = 1;
        let first = (0..graph.tasks.len() as u64).map(|task| {
            let first = next;
            next += graph.consumers(TaskId(task)).len() as u64;
            first
        });
        Flows { first: first.collect(), graph, arriving: Vec::new(), leaving: Vec::new(), previous: None }
    }

    /// Finds the arrows of a task for its first row, and none for the others. Tasks without workers have no ends to join.
    fn collect(&mut self, task: TaskId, block: u32) {
        let Flows { graph, first, arriving, leaving, previous } = self;
        arriving.clear();
        leaving.clear();
        if block != 0 || previous.replace(task) == Some(task) {
            return;
        }
        let runs = |task: &TaskId| graph.tasks[task.0 as usize].kind != TaskType::None;
        for &producer in graph.producers(task).iter().filter(|producer| runs(producer)) {
            let place = graph.consumers(producer).binary_search(&task).expect("edges have two ends");
            arriving.push(first[producer.0 as usize] + place as u64);
        }
        let numbers = first[task.0 as usize]..;
        let numbered = numbers.zip(graph.consumers(task));
        leaving.extend(numbered.filter(|(_, consumer)| runs(consumer)).map(|(number, _)| number));
    }
}

/// Values of the present instant, written when time moves on.
struct Counters {
    all: Vec<Counter>,
    values: Vec<u64>,
    written: Vec<Option<u64>>,
    now: u64,
    /// Places of those that may differ from what was written.
    changed: Vec<usize>,
}

impl<F: Form, W: Write> Export<F, W> {
    /// Starts the file; with `graph`, arrows lead from producers to consumers.
    pub fn new(mut form: F, writer: W, workload: &str, machine: &Machine, graph: Option<Graph>) -> Export<F, W> {
        let mut out = Vec::with_capacity(BUFFER_BYTES + 4096);
        form.open(&mut out, workload, machine);
        let all = Counter::all(machine);
        let (values, written, changed) = (vec![0; all.len()], vec![None; all.len()], (0..all.len()).collect());
        let counters = Counters { all, values, written, now: 0, changed };
        let threads = vec![0; machine.scheduler.threads as usize];
        Export { form, writer, out, error: None, flows: graph.map(Flows::new), counters, threads }
    }

    /// Writes what is left and gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer during the whole run.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_counters();
        self.form.close(&mut self.out);
        self.drain();
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.writer),
        }
    }

    fn drain(&mut self) {
        if self.error.is_none() {
            self.error = self.writer.write_all(&self.out).err();
        }
        self.out.clear();
    }

    fn drain_if_full(&mut self) {
        if self.out.len() >= BUFFER_BYTES {
            self.drain();
        }
    }

    #[inline]
    fn set(&mut self, index: usize, value: u64, now: u64) {
        if now != self.counters.now {
            self.write_counters();
            self.counters.now = now;
        }
        if self.counters.values[index] != value {
            self.counters.values[index] = value;
            self.counters.changed.push(index);
        }
    }

    fn write_counters(&mut self) {
        let Counters { all, values, written, now, changed } = &mut self.counters;
        for index in changed.drain(..) {
            let value = values[index];
            if written[index].replace(value) != Some(value) {
                self.form.counter(&mut self.out, all[index], value, *now);
            }
        }
        self.drain_if_full();
    }

    fn change_ready(&mut self, kind: TaskType, now: u64, change: impl FnOnce(u64) -> u64) {
        if kind != TaskType::None {
            let value = change(self.counters.values[kind as usize]);
            self.set(kind as usize, value, now);
        }
    }

    fn runtime_slice(&mut self, lane: Lane, name: (&'static str, u64), span: (u64, u64), task: Option<TaskId>) {
        let (name, name_id) = name;
        let (from, to) = span;
        let slice = Slice { lane, name, name_id, from, to, task, block: None, flows_out: &[], flows_in: &[] };
        self.form.slice(&mut self.out, &slice);
        self.drain_if_full();
    }
}

/// Name ids below this belong to the runtime; kernels follow.
const FIRST_KERNEL: u64 = 32;

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

impl<F: Form, W: Write> Observer for Export<F, W> {
    fn block(&mut self, row: &BlockRow, names: &Symbols) {
        let title: Option<Symbol> = row.kernel.or(row.name);
        let (mut flows_out, mut flows_in): (&[u64], &[u64]) = (&[], &[]);
        if let Some(flows) = &mut self.flows {
            flows.collect(row.task, row.block);
            (flows_out, flows_in) = (&flows.leaving, &flows.arriving);
        }
        let slice = Slice {
            lane: Lane::Worker(row.worker),
            name: title.map_or("task", |title| names.name(title)),
            name_id: title.map_or(7, |title| FIRST_KERNEL + u64::from(title.0)),
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
        };
        self.form.slice(&mut self.out, &slice);
        self.drain_if_full();
    }

    fn ready(&mut self, _task: TaskId, _slot: SlotRef, kind: TaskType, now: u64) {
        self.change_ready(kind, now, |ready| ready + 1);
    }

    fn placed(&mut self, placed: &Placed<'_>, now: u64) {
        if placed.is_last {
            self.change_ready(placed.kind, now, |ready| ready.saturating_sub(1));
        }
    }

    fn withdrawn(&mut self, kind: TaskType, now: u64) {
        self.change_ready(kind, now, |ready| ready.saturating_sub(1));
    }

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

    fn orchestrator(&mut self, phase: Phase, from: u64, now: u64) {
        self.runtime_slice(Lane::Orchestrator, phase_name(phase), (from, now), None);
    }

    fn occupied(&mut self, ring: u32, window: &Window<Local>, now: u64) {
        let (first, state) = (Counter::Window(ring).index(), window.ring(ring));
        self.set(first, state.submitted() - state.retired(), now);
        self.set(first + 1, state.heap_used(), now);
        self.set(first + 2, state.deps_used(), now);
    }
}

/// The name of a worker in a list of its machine: `CUBE 3`.
pub(super) fn worker_names(machine: &Machine) -> Vec<(WorkerType, String)> {
    let of = |kind: WorkerType| (0..machine.workers.count(kind)).map(move |nth| (kind, format!("{kind} {nth}")));
    WorkerType::ALL.into_iter().flat_map(of).collect()
}

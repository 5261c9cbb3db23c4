//! Records what ran when, for the forms of the report that people look at.
//!
//! Everything is packed while the run goes on: about ten bytes a block and five a task. What would take more room than a browser
//! likes is kept in bins only, so that memory is bounded whatever the length of the run.

use super::spread::Curve;
use super::tracks::{Span, Track};
use super::varint::{Packed, pop, zigzag};
use crate::engine::journal::{Names, Needs, Occupancy, Reader, Started, Submitted};
use crate::engine::{BlockRow, JobKind, JobStep, Phase, Placed, SchedulerJob};
use crate::id::{Symbol, TaskId, TaskType};
use crate::window::SlotRef;

/// Blocks on workers, and tasks, that are kept one by one.
const DETAILED_BLOCKS: u64 = 2_000_000;
/// Spans of the orchestrator and of all scheduler threads that are kept one by one.
const DETAILED_SPANS: u64 = 100_000;
/// Bytes spent on producers; tasks beyond that are shown without.
const PRODUCER_BYTES: usize = 8 << 20;
/// Producers that are written in one piece.
const FEW_PRODUCERS: usize = 4;
/// Buckets of a histogram: 0, then one for each number of binary digits.
const N_BUCKETS: usize = 65;

/// A reader of a journal that packs a timeline.
#[derive(Default)]
pub struct Timeline {
    /// One a worker, by id.
    pub(super) workers: Vec<Track>,
    /// A worker that never worked.
    pub(super) idle: Track,
    pub(super) orchestrator: Track,
    /// One a scheduler thread that ever worked.
    pub(super) scheduler: Vec<Track>,
    pub(super) tasks: Tasks,
    pub(super) rings: Vec<RingCurves>,
    pub(super) tensors: Curve,
    /// Ready queues by task type.
    pub(super) ready: [Curve; 5],
    pub(super) waits: Waits,
    pub(super) end: u64,
    ready_now: [u64; 5],
    n_blocks: u64,
    n_jobs: u64,
    /// When each scheduler thread is free again.
    threads: Vec<u64>,
    previous: Option<(TaskId, u32)>,
}

/// Occupancy of one ring.
#[derive(Clone, Default)]
pub(super) struct RingCurves {
    pub(super) window: Curve,
    pub(super) heap: Curve,
    pub(super) deps: Curve,
}

/// All tasks in the order of their ids.
///
/// ```text
/// bytes of a task: kind | has name × 8 | has blocks × 16 ; submit difference ; kernel + 1 ; [name difference] ; [blocks] ;
///                  producers + 1, or 0 when they were not kept ; id difference of each
/// ```
#[derive(Default)]
pub(super) struct Tasks {
    pub(super) packed: Packed,
    pub(super) count: u64,
    producer_bytes: usize,
    submit: u64,
    name: u64,
}

/// Waiting times by powers of two.
#[derive(Clone)]
pub(super) struct Waits {
    pub(super) submit_to_ready: [u64; N_BUCKETS],
    pub(super) ready_to_start: [u64; N_BUCKETS],
}

impl Default for Waits {
    fn default() -> Waits {
        Waits { submit_to_ready: [0; N_BUCKETS], ready_to_start: [0; N_BUCKETS] }
    }
}

impl Timeline {
    /// Before the run.
    #[must_use]
    pub fn new() -> Timeline {
        Timeline::default()
    }

    /// Whether every block was kept.
    #[must_use]
    #[inline]
    pub fn is_detailed(&self) -> bool {
        self.n_blocks <= DETAILED_BLOCKS && self.tasks.count <= DETAILED_BLOCKS
    }

    /// Whether every span of orchestrator and scheduler was kept.
    #[inline]
    pub(super) fn runtime_is_detailed(&self) -> bool {
        self.n_jobs <= DETAILED_SPANS
    }

    fn runtime_span(&mut self, thread: Option<usize>, span: &Span) {
        self.n_jobs += 1;
        let in_detail = self.runtime_is_detailed();
        if !in_detail && self.n_jobs == DETAILED_SPANS + 1 {
            let tracks = std::iter::once(&mut self.orchestrator).chain(&mut self.scheduler);
            tracks.for_each(|track| track.coarsen(|_, label| label as u32));
        }
        let track = match thread {
            Some(thread) => &mut self.scheduler[thread],
            None => &mut self.orchestrator,
        };
        track.add(span, in_detail);
    }

    /// A scheduler thread that is free from `now` on; it takes a job until `end`.
    fn thread(&mut self, now: u64, end: u64) -> usize {
        let free = self.threads.iter().position(|&free_at| free_at <= now).unwrap_or_else(|| {
            self.threads.push(0);
            self.scheduler.push(Track::default());
            self.threads.len() - 1
        });
        self.threads[free] = end;
        free
    }

    /// Keeps blocks in bins from here on.
    #[cold]
    fn coarsen(&mut self) {
        let kernels = self.tasks.give_up();
        self.workers.iter_mut().for_each(|track| track.coarsen(|task, _| kernels[task as usize]));
    }

    fn set_ready(&mut self, kind: TaskType, now: u64, change: impl FnOnce(u64) -> u64) {
        if let Some(value) = self.ready_now.get_mut(kind as usize) {
            *value = change(*value);
            self.ready[kind as usize].set(*value, now);
        }
    }
}

impl Tasks {
    #[inline(always)]
    fn add(&mut self, submitted: &Submitted<'_>, now: u64) {
        let number = |symbol: Option<Symbol>| symbol.map_or(0, |symbol| u64::from(symbol.0) + 1);
        let has_blocks = submitted.blocks != 1;
        let producers = if self.producer_bytes > PRODUCER_BYTES { None } else { Some(submitted.producers) };
        let listed = producers.unwrap_or_default();
        let (few, many) = listed.split_at(listed.len().min(FEW_PRODUCERS));
        let n_producers = producers.map_or(0, |producers| producers.len() as u64 + 1);
        let (wait, kernel, is_named) = (now - self.submit, number(submitted.kernel), submitted.name.is_some());
        let mut line = self.packed.room();
        let flags = submitted.kind as u8 | u8::from(is_named) << 3 | u8::from(has_blocks) << 4;
        if wait | kernel | n_producers < 0x80 && !is_named && !has_blocks {
            line.literal(&[flags, wait as u8, kernel as u8, n_producers as u8]);
        } else {
            line.byte(flags);
            line.varint(wait);
            line.varint(kernel);
            if let Some(name) = submitted.name {
                line.varint(zigzag(name.0.into(), self.name));
                self.name = name.0.into();
            }
            if has_blocks {
                line.varint(submitted.blocks.into());
            }
            line.varint(n_producers);
        }
        let before = line.length();
        few.iter().for_each(|producer| line.varint(submitted.task.0 - producer));
        let length = line.length();
        self.packed.advance(length);
        self.producer_bytes += length - before;
        if !many.is_empty() {
            self.add_producers(submitted.task, many);
        }
        self.submit = now;
        self.count += 1;
    }

    /// Adds the rest of the producers of the last task.
    #[inline(never)]
    fn add_producers(&mut self, task: TaskId, producers: &[u64]) {
        let before = self.packed.length();
        for few in producers.chunks(FEW_PRODUCERS) {
            let mut line = self.packed.room();
            few.iter().for_each(|producer| line.varint(task.0 - producer));
            let length = line.length();
            self.packed.advance(length);
        }
        self.producer_bytes += self.packed.length() - before;
    }
}

impl Tasks {
    /// Gives up all tasks so far; returns their kernels, as [`Tasks::add`] numbers them.
    #[cold]
    fn give_up(&mut self) -> Vec<u32> {
        let packed = std::mem::take(&mut self.packed);
        let (mut kernels, mut left) = (Vec::new(), 0);
        for mut bytes in packed.pieces() {
            while !bytes.is_empty() {
                // Producers may lie in the piece behind that of their task.
                if left > 0 {
                    pop(&mut bytes);
                    left -= 1;
                    continue;
                }
                let flags = pop(&mut bytes);
                pop(&mut bytes);
                kernels.push(pop(&mut bytes) as u32);
                (0..(flags >> 3 & 1) + (flags >> 4 & 1)).for_each(|_| {
                    pop(&mut bytes);
                });
                left = pop(&mut bytes).saturating_sub(1);
            }
        }
        kernels
    }
}

impl Timeline {
    /// Adds a block to the track of its worker.
    #[inline(always)]
    fn add(&mut self, row: &BlockRow) {
        self.n_blocks += 1;
        let in_detail = self.is_detailed();
        if !in_detail && self.tasks.packed.length() > 0 {
            self.coarsen();
        }
        let worker = row.worker.0 as usize;
        if worker >= self.workers.len() {
            self.workers.resize(worker + 1, Track::default());
        }
        let span = Span {
            from: row.start,
            to: row.end,
            task: row.task.0,
            part: row.block,
            label: row.kernel.map_or(0, |kernel| kernel.0 + 1),
            extra: row.start - row.ready,
        };
        self.workers[worker].add(&span, in_detail);
    }

    /// Counts how long a block waited, and its task before.
    #[inline(always)]
    fn count_waits(&mut self, row: &BlockRow) {
        self.waits.ready_to_start[bucket(row.start - row.ready)] += 1;
        if row.block == 0 {
            self.waits.submit_to_ready[bucket(row.ready - row.submit)] += 1;
        }
    }
}

/// The bucket of a value: 0 for 0, else the number of its binary digits.
#[inline]
fn bucket(value: u64) -> usize {
    (u64::BITS - value.leading_zeros()) as usize
}

impl Reader for Timeline {
    fn needs(&self) -> Needs {
        Needs { tasks: true, levels: true, causes: false }
    }

    #[inline(always)]
    fn block(&mut self, row: &BlockRow, _names: &Names) {
        self.add(row);
        // A MIX block is told once for each of its workers.
        if self.previous.replace((row.task, row.block)) != Some((row.task, row.block)) {
            self.count_waits(row);
        }
    }

    #[inline(always)]
    fn started(&mut self, started: &Started, _names: &Names, now: u64) {
        let Started { is_last, ref row, .. } = *started;
        if is_last {
            self.set_ready(row.kind, now, |ready| ready.saturating_sub(1));
        }
        self.add(row);
        self.count_waits(row);
    }

    #[inline(always)]
    fn submitted(&mut self, submitted: &Submitted<'_>, now: u64) {
        if self.is_detailed() {
            self.tasks.add(submitted, now);
        }
    }

    #[inline]
    fn ready(&mut self, _slot: SlotRef, kind: TaskType, now: u64) {
        self.set_ready(kind, now, |ready| ready + 1);
    }

    #[inline]
    fn placed(&mut self, placed: &Placed<'_>, now: u64) {
        if placed.is_last {
            self.set_ready(placed.kind, now, |ready| ready.saturating_sub(1));
        }
    }

    fn withdrawn(&mut self, kind: TaskType, now: u64) {
        self.set_ready(kind, now, |ready| ready.saturating_sub(1));
    }

    #[inline]
    fn job(&mut self, job: &SchedulerJob, step: JobStep, now: u64) {
        let JobStep::Begun(cost @ 1..) = step else { return };
        let label = match job.kind {
            JobKind::Admit => 0,
            JobKind::Complete => 1,
            JobKind::Dispatch => 2,
        };
        let to = now.saturating_add(cost);
        let thread = self.thread(now, to);
        let span = Span { from: now, to, task: job.task.0, part: 0, label, extra: label.into() };
        self.runtime_span(Some(thread), &span);
    }

    #[inline]
    fn orchestrator(&mut self, phase: Phase, from: u64, now: u64) {
        let label = phase.number();
        let span = Span { from, to: now, task: self.tasks.count, part: 0, label, extra: label.into() };
        self.runtime_span(None, &span);
    }

    #[inline]
    fn occupied(&mut self, ring: u32, occupancy: &Occupancy, now: u64) {
        let ring = ring as usize;
        if ring >= self.rings.len() {
            self.rings.resize(ring + 1, RingCurves::default());
        }
        let curves = &mut self.rings[ring];
        curves.window.set(occupancy.window, now);
        curves.heap.set(occupancy.heap, now);
        curves.deps.set(occupancy.deps, now);
        self.tensors.set(occupancy.tensors, now);
    }

    fn finished(&mut self, now: u64) {
        self.end = now;
    }
}

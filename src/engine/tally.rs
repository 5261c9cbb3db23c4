//! Counts and distributions collected while a run goes on.

use crate::config::{Machine, WorkerCosts};
use crate::id::{TaskType, WorkerType};
use crate::machine::own_type;
use crate::report::{Bounds, Ended, HighWater, KernelReport, Latency, RingHighWater};
use crate::sync::Sharing;
use crate::window::{NONE, Window};
use crate::workload::{Cost, Submit, Symbols, Units};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// What the report needs and the engine does not.
pub(super) struct Tally {
    pub(super) edges: u64,
    pub(super) blocks: u64,
    pub(super) ended: Ended,
    pub(super) critical_path: u64,
    pub(super) submit_to_ready: Distribution,
    pub(super) ready_to_start: Distribution,
    pub(super) start_to_end: Distribution,
    pub(super) end_to_completed: Distribution,
    kernels: Vec<KernelRun>,
    rings: Vec<RingHighWater>,
    tensors: u64,
}

/// Blocks of one kernel.
#[derive(Clone, Copy, Default)]
pub(super) struct KernelCount {
    pub(super) count: u64,
    pub(super) total: u64,
    pub(super) max: u64,
}

/// Blocks of one kernel, the last equal ones not yet entered.
#[derive(Clone, Copy, Default)]
struct KernelRun {
    cycles: u64,
    run: u64,
    entered: KernelCount,
}

/// Values are kept to this many leading bits, which is two digits.
const DIGITS: u32 = 8;

/// Counts of values, cheap to add to; a histogram is made of them at the end.
pub(super) struct Distribution {
    /// By [`bucket`].
    counts: Box<[u64]>,
    sum: u128,
    max: u64,
    /// The last value, and how often it came in a row without being entered.
    last: u64,
    run: u64,
}

impl Distribution {
    fn new() -> Distribution {
        Distribution { counts: vec![0; bucket(u64::MAX) + 1].into(), sum: 0, max: 0, last: 0, run: 0 }
    }

    #[inline]
    pub(super) fn record(&mut self, value: u64) {
        if value != self.last {
            self.enter(self.last, self.run);
            (self.last, self.run) = (value, 0);
        }
        self.run += 1;
    }

    #[inline]
    fn enter(&mut self, value: u64, count: u64) {
        self.counts[bucket(value)] += count;
        self.sum += u128::from(value) * u128::from(count);
        self.max = self.max.max(value);
    }

    fn summary(&mut self) -> Latency {
        let run = std::mem::take(&mut self.run);
        self.enter(self.last, run);
        let mut histogram = Histogram::<u64>::new_with_max(u64::MAX >> 1, 2).expect("valid bounds and precision");
        for (bucket, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            histogram.saturating_record_n(smallest(bucket), count);
        }
        let count = histogram.len();
        // Within a bucket the histogram answers with its upper end; the true largest value is known.
        let quantile = |q| histogram.value_at_quantile(q).min(self.max);
        Latency {
            count,
            mean: if count == 0 { 0.0 } else { self.sum as f64 / count as f64 },
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            max: self.max,
        }
    }
}

/// Small values have a bucket each; larger ones share it with those of the same leading bits.
#[inline]
fn bucket(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(DIGITS);
    ((u64::from(shift) << (DIGITS - 1)) + (value >> shift)) as usize
}

/// The smallest value of a bucket.
fn smallest(bucket: usize) -> u64 {
    let shift = (bucket >> (DIGITS - 1)).saturating_sub(1);
    ((bucket - (shift << (DIGITS - 1))) as u64) << shift
}

impl Tally {
    pub(super) fn new(machine: &Machine) -> Tally {
        Tally {
            edges: 0,
            blocks: 0,
            ended: Ended::default(),
            critical_path: 0,
            submit_to_ready: Distribution::new(),
            ready_to_start: Distribution::new(),
            start_to_end: Distribution::new(),
            end_to_completed: Distribution::new(),
            kernels: Vec::new(),
            rings: vec![RingHighWater::default(); machine.limits.rings as usize],
            tensors: 0,
        }
    }

    /// Looks how full a ring is. What is in use shrinks only when tasks retire, so that it is enough to look before that.
    #[inline]
    pub(super) fn look_at<S: Sharing>(&mut self, window: &Window<S>, ring: u32) {
        let (high, state) = (&mut self.rings[ring as usize], window.ring(ring));
        let window_used = state.submitted() - state.retired();
        if window_used > high.window {
            high.window = window_used;
        }
        if state.deps_used() > high.deps {
            high.deps = state.deps_used();
        }
        if state.heap_used() > high.heap {
            high.heap = state.heap_used();
        }
        // The map is shared by all rings; another ring is looked at for itself.
        if state.tensors_used() > 0 {
            self.tensors = self.tensors.max(window.tensors());
        }
    }

    /// A block of a kernel (symbol or [`NONE`]) runs on a worker.
    #[inline]
    pub(super) fn ran(&mut self, kernel: u32, cycles: u64) {
        let index = kernel.wrapping_add(1) as usize;
        match self.kernels.get_mut(index) {
            Some(kernel) if kernel.cycles == cycles => kernel.run += 1,
            _ => self.ran_differently(index, cycles),
        }
    }

    /// A block that takes other cycles than the last one of its kernel.
    #[inline(never)]
    fn ran_differently(&mut self, index: usize, cycles: u64) {
        if index >= self.kernels.len() {
            self.kernels.resize(index + 1, KernelRun::default());
        }
        self.enter_run(index);
        let kernel = &mut self.kernels[index];
        (kernel.cycles, kernel.run) = (cycles, 1);
    }

    fn enter_run(&mut self, index: usize) {
        let KernelRun { cycles, run, entered } = &mut self.kernels[index];
        let run = std::mem::take(run);
        entered.count += run;
        entered.total = entered.total.saturating_add(cycles.saturating_mul(run));
        entered.max = entered.max.max(*cycles);
        self.start_to_end.enter(*cycles, run);
    }

    /// Tables and distributions are complete from here on. Without costs every end was completed at once.
    pub(super) fn close(&mut self, has_costs: bool) {
        (0..self.kernels.len()).for_each(|index| self.enter_run(index));
        if !has_costs {
            self.end_to_completed.enter(0, self.blocks);
        }
    }

    pub(super) fn kernels(&self, symbols: &Symbols) -> Vec<KernelReport> {
        kernel_list(&self.kernels.iter().map(|kernel| kernel.entered).collect::<Vec<_>>(), symbols)
    }

    pub(super) fn latencies(&mut self) -> BTreeMap<String, Latency> {
        [
            ("submit_to_ready", &mut self.submit_to_ready),
            ("ready_to_start", &mut self.ready_to_start),
            ("start_to_end", &mut self.start_to_end),
            ("end_to_completed", &mut self.end_to_completed),
        ]
        .into_iter()
        .map(|(name, distribution)| (name.to_string(), distribution.summary()))
        .collect()
    }

    pub(super) fn high_water(&self) -> HighWater {
        HighWater { rings: self.rings.clone(), tensors: self.tensors, ..HighWater::default() }
    }
}

/// Kernels by total cycles, descending. Index 0 is no kernel, the others are symbols plus one.
pub(super) fn kernel_list(kernels: &[KernelCount], symbols: &Symbols) -> Vec<KernelReport> {
    let all: u64 = kernels.iter().map(|kernel| kernel.total).sum();
    let used = kernels.iter().enumerate().filter(|(_, kernel)| kernel.count > 0);
    let mut list: Vec<_> = used
        .map(|(index, kernel)| KernelReport {
            name: match index as u32 {
                0 => "(unnamed)".into(),
                index => symbols.name(crate::id::Symbol(index - 1)).into(),
            },
            count: kernel.count,
            total: kernel.total,
            share: if all == 0 { 0.0 } else { kernel.total as f64 / all as f64 },
            mean: kernel.total as f64 / kernel.count as f64,
            max: kernel.max,
        })
        .collect();
    debug_assert_eq!(NONE.wrapping_add(1), 0, "no kernel is index 0");
    list.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.name.cmp(&b.name)));
    list
}

/// Cycles a task adds to every path through it, and what comes before the first.
pub(super) struct PathCosts {
    /// From READY to the start.
    before: u64,
    /// From the end to the release of consumers.
    pub(super) after: u64,
    /// From the beginning of the run to READY.
    pub(super) first: u64,
}

impl PathCosts {
    pub(super) fn new(machine: &Machine) -> PathCosts {
        let WorkerCosts { pickup } = machine.worker;
        PathCosts {
            before: machine.scheduler.dispatch.saturating_add(pickup),
            after: machine.scheduler.complete,
            first: machine.orchestrator.submit.saturating_add(machine.scheduler.admit),
        }
    }

    /// What a task with this many cycles adds; `None` takes no worker.
    #[inline]
    pub(super) fn of(&self, cycles: Option<u64>) -> u64 {
        self.after.saturating_add(cycles.map_or(0, |cycles| self.before.saturating_add(cycles)))
    }
}

/// Cycles of the longest part of a task's blocks, if it has any.
#[inline]
pub(super) fn longest_part(task: &Submit, kind: TaskType, cost: Cost) -> Option<u64> {
    let (cube, vector) = per_unit(cost);
    match kind {
        TaskType::None => None,
        TaskType::Mix => {
            let Units { cube: cubes, vector: vectors } = task.units;
            Some(if cubes == 0 { 0 } else { cube }.max(if vectors == 0 { 0 } else { vector }))
        }
        _ => Some(cube),
    }
}

/// Cycles on the cube and on the vectors.
#[inline]
fn per_unit(cost: Cost) -> (u64, u64) {
    match cost {
        Cost::Cycles(cycles) => (cycles, cycles),
        Cost::PerKind { cube, vector } => (cube, vector),
    }
}

/// Work per worker type, for the lower bound.
#[derive(Default)]
pub(super) struct Work {
    /// Cycles that only workers of this type, or ANY, can do.
    by_type: [u128; 5],
}

impl Work {
    /// Enters cycles of a block on a worker of this type, or on one of ANY that stands in for it.
    #[inline]
    pub(super) fn add(&mut self, kind: WorkerType, cycles: u64) {
        self.by_type[kind as usize] += u128::from(cycles);
    }

    /// Enters all the work of a task.
    pub(super) fn book(&mut self, task: &Submit, kind: TaskType, cost: Cost) {
        let (cube, vector) = per_unit(cost);
        let times = |cycles: u64, units: u8| u128::from(cycles) * u128::from(task.blocks) * u128::from(units);
        if let Some(own) = own_type(kind) {
            self.by_type[own as usize] += times(cube, 1);
        } else if kind == TaskType::Mix {
            self.by_type[WorkerType::Cube as usize] += times(cube, task.units.cube);
            self.by_type[WorkerType::Vector as usize] += times(vector, task.units.vector);
        }
    }

    /// The bounds of a run.
    pub(super) fn bounds(&self, machine: &Machine, critical_path: u64, makespan: u64) -> Bounds {
        let count = |kind| u128::from(machine.workers.count(kind));
        let any = count(WorkerType::Any);
        let mut work = 0;
        for kind in WorkerType::ALL {
            let workers = if kind == WorkerType::Any { any } else { count(kind) + any };
            if workers > 0 {
                work = work.max(self.by_type[kind as usize].div_ceil(workers));
            }
        }
        let all = u128::from(machine.workers.total());
        if all > 0 {
            work = work.max(self.by_type.iter().sum::<u128>().div_ceil(all));
        }
        let work = u64::try_from(work).unwrap_or(u64::MAX);
        let lower_bound = critical_path.max(work);
        let efficiency = if makespan == 0 { 1.0 } else { lower_bound as f64 / makespan as f64 };
        Bounds { critical_path, work, lower_bound, efficiency }
    }
}

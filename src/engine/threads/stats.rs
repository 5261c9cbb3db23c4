//! What every thread counts for itself; added up at the end, so that counting shares nothing.

use crate::engine::BlockRow;
use crate::engine::tally::KernelCount;
use crate::report::{Ended, Latency};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// One task in this many has its moments measured: reading the host's clock costs as much as a short task.
pub(super) const SAMPLED: u64 = 64;

/// Counters and distributions of one thread.
pub(super) struct Stats {
    pub(super) blocks: u64,
    pub(super) ended: Ended,
    /// End of the last block, in cycles.
    pub(super) makespan: u64,
    /// Blocks and busy cycles by worker.
    pub(super) workers: Vec<(u64, u64)>,
    /// By kernel symbol plus one; 0 is no kernel.
    pub(super) kernels: Vec<KernelCount>,
    pub(super) contention: u64,
    pub(super) wake_ups: u64,
    pub(super) parks: u64,
    pub(super) handed_on: u64,
    pub(super) submit_to_ready: Moments,
    pub(super) ready_to_start: Moments,
    pub(super) start_to_end: Moments,
    pub(super) end_to_completed: Moments,
    pub(super) submit: Moments,
    /// The schedule, if it is wanted.
    pub(super) rows: Vec<BlockRow>,
}

/// A distribution of nanoseconds; it grows with what it holds.
pub(super) struct Moments(Histogram<u64>);

impl Moments {
    pub(super) fn record(&mut self, nanoseconds: u64) {
        self.0.record(nanoseconds).expect("a histogram that grows takes every value");
    }
}

impl Stats {
    pub(super) fn new(n_workers: usize) -> Stats {
        let histogram = || Moments(Histogram::new(2).expect("a valid precision"));
        Stats {
            blocks: 0,
            ended: Ended::default(),
            makespan: 0,
            workers: vec![(0, 0); n_workers],
            kernels: Vec::new(),
            contention: 0,
            wake_ups: 0,
            parks: 0,
            handed_on: 0,
            submit_to_ready: histogram(),
            ready_to_start: histogram(),
            start_to_end: histogram(),
            end_to_completed: histogram(),
            submit: histogram(),
            rows: Vec::new(),
        }
    }

    /// A block ran on a worker.
    #[inline]
    pub(super) fn ran(&mut self, worker: u32, cycles: u64, end: u64) {
        let (blocks, busy) = &mut self.workers[worker as usize];
        *blocks += 1;
        *busy += cycles;
        self.makespan = self.makespan.max(end);
    }

    /// A block of a kernel ran.
    #[inline]
    pub(super) fn ran_kernel(&mut self, kernel: u32, cycles: u64) {
        let index = kernel.wrapping_add(1) as usize;
        if index >= self.kernels.len() {
            self.kernels.resize(index + 1, KernelCount::default());
        }
        let kernel = &mut self.kernels[index];
        kernel.count += 1;
        kernel.total += cycles;
        kernel.max = kernel.max.max(cycles);
    }

    /// Adds what another thread counted.
    pub(super) fn add(&mut self, other: Stats) {
        self.blocks += other.blocks;
        self.ended.completed += other.ended.completed;
        self.ended.failed += other.ended.failed;
        self.ended.cancelled += other.ended.cancelled;
        self.ended.dropped += other.ended.dropped;
        self.ended.consumed += other.ended.consumed;
        self.makespan = self.makespan.max(other.makespan);
        for (mine, theirs) in self.workers.iter_mut().zip(other.workers) {
            *mine = (mine.0 + theirs.0, mine.1 + theirs.1);
        }
        if self.kernels.len() < other.kernels.len() {
            self.kernels.resize(other.kernels.len(), KernelCount::default());
        }
        for (mine, theirs) in self.kernels.iter_mut().zip(other.kernels) {
            mine.count += theirs.count;
            mine.total += theirs.total;
            mine.max = mine.max.max(theirs.max);
        }
        self.contention += other.contention;
        self.wake_ups += other.wake_ups;
        self.parks += other.parks;
        self.handed_on += other.handed_on;
        let pairs = [
            (&mut self.submit_to_ready, other.submit_to_ready),
            (&mut self.ready_to_start, other.ready_to_start),
            (&mut self.start_to_end, other.start_to_end),
            (&mut self.end_to_completed, other.end_to_completed),
            (&mut self.submit, other.submit),
        ];
        for (mine, theirs) in pairs {
            mine.0.add(theirs.0).expect("histograms of the same precision that grow");
        }
        self.rows.extend(other.rows);
    }

    /// The distributions in nanoseconds, by name.
    pub(super) fn latencies(&self) -> BTreeMap<String, Latency> {
        let named = [
            ("submit", &self.submit),
            ("submit_to_ready", &self.submit_to_ready),
            ("ready_to_start", &self.ready_to_start),
            ("start_to_end", &self.start_to_end),
            ("end_to_completed", &self.end_to_completed),
        ];
        named.into_iter().map(|(name, histogram)| (name.to_string(), summary(&histogram.0))).collect()
    }
}

fn summary(histogram: &Histogram<u64>) -> Latency {
    let max = histogram.max();
    let quantile = |q| histogram.value_at_quantile(q).min(max);
    Latency {
        count: histogram.len(),
        mean: histogram.mean(),
        p50: quantile(0.5),
        p90: quantile(0.9),
        p99: quantile(0.99),
        max,
    }
}

//! The workers of a report, summed by type.

use super::words::share;
use super::{Accounts, Report};
use crate::id::WorkerType;

/// All workers of one type.
#[derive(Clone, PartialEq, Debug)]
pub struct TypeReport {
    /// The type.
    pub kind: WorkerType,
    /// How many there are.
    pub workers: u64,
    /// Blocks they ran.
    pub blocks: u64,
    /// Their cycles by cause; in larger units if their sum were beyond 2^64.
    pub accounts: Accounts,
    /// Busy cycles of the worker that has least.
    pub least_busy: u64,
    /// Busy cycles of the worker that has most.
    pub most_busy: u64,
}

impl TypeReport {
    /// Part of their time they run blocks.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        share(self.accounts.busy, self.accounts.total())
    }
}

impl Report {
    /// One entry for each type that has workers, in the order in which workers are numbered.
    #[must_use]
    pub fn by_type(&self) -> Vec<TypeReport> {
        WorkerType::ALL.into_iter().filter_map(|kind| self.workers_of(kind)).collect()
    }

    fn workers_of(&self, kind: WorkerType) -> Option<TypeReport> {
        let mut sum = TypeReport {
            kind,
            workers: 0,
            blocks: 0,
            accounts: Accounts::default(),
            least_busy: u64::MAX,
            most_busy: 0,
        };
        // The cycles of all workers together may be more than a number holds; then they are counted in larger units.
        let unit = ((u128::from(self.makespan) * self.workers.len() as u128) >> u64::BITS) as u64 + 1;
        for worker in self.workers.iter().filter(|worker| worker.kind == kind) {
            sum.workers += 1;
            sum.blocks += worker.blocks;
            sum.accounts.add(&worker.accounts, unit);
            sum.least_busy = sum.least_busy.min(worker.busy);
            sum.most_busy = sum.most_busy.max(worker.busy);
        }
        (sum.workers > 0).then_some(sum)
    }
}

impl Accounts {
    /// Adds the cycles of `other`, cause by cause, in units of so many cycles.
    pub fn add(&mut self, other: &Accounts, unit: u64) {
        let Accounts { busy, overhead, held, dependency, window, heap, deps, tensors, orchestrator, drained } = *other;
        self.busy += busy / unit;
        self.overhead += overhead / unit;
        self.held += held / unit;
        self.dependency += dependency / unit;
        self.window += window / unit;
        self.heap += heap / unit;
        self.deps += deps / unit;
        self.tensors += tensors / unit;
        self.orchestrator += orchestrator / unit;
        self.drained += drained / unit;
    }
}

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
    /// Their cycles by cause.
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
        let mut workers = self.workers.iter().filter(|worker| worker.kind == kind);
        let first = workers.next()?;
        let mut sum = TypeReport {
            kind,
            workers: 1,
            blocks: first.blocks,
            accounts: first.accounts,
            least_busy: first.busy,
            most_busy: first.busy,
        };
        for worker in workers {
            sum.workers += 1;
            sum.blocks += worker.blocks;
            sum.accounts.add(&worker.accounts);
            sum.least_busy = sum.least_busy.min(worker.busy);
            sum.most_busy = sum.most_busy.max(worker.busy);
        }
        Some(sum)
    }
}

impl Accounts {
    /// Adds the cycles of `other`, cause by cause.
    pub fn add(&mut self, other: &Accounts) {
        let Accounts { busy, overhead, held, dependency, window, heap, deps, tensors, orchestrator, drained } = *other;
        self.busy += busy;
        self.overhead += overhead;
        self.held += held;
        self.dependency += dependency;
        self.window += window;
        self.heap += heap;
        self.deps += deps;
        self.tensors += tensors;
        self.orchestrator += orchestrator;
        self.drained += drained;
    }
}

//! Runs at given sizes, each at most once, side by side.

use super::{Kind, Request, Sizes};
use crate::config::{Limits, Machine};
use crate::engine::{RunError, simulate_with};
use crate::policy::Choice;
use crate::report::{Outcome, Report};
use crate::workload::Workload;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Trial {
    /// With this makespan.
    Completes(u64),
    /// Not at all: what lacks, if it is a size, and why in words.
    Stuck(Option<Kind>, String),
}

impl Trial {
    pub(super) fn makespan(&self) -> Option<u64> {
        match self {
            Trial::Completes(makespan) => Some(*makespan),
            Trial::Stuck(..) => None,
        }
    }
}

/// Why a search gives up.
pub(super) enum Halt {
    /// It was asked to.
    Stopped,
    /// Running makes no sense.
    Failed(RunError),
}

/// All runs of a search.
pub(super) struct Trials<'a> {
    workload: &'a dyn Workload,
    machine: &'a Machine,
    choice: &'a Choice,
    stop: &'a AtomicBool,
    progress: &'a (dyn Fn(u64, u64) + Sync),
    done: AtomicU64,
    known: AtomicU64,
    results: Mutex<BTreeMap<[u64; 4], Trial>>,
    /// A run is fine if this many tasks were submitted and nothing got stuck, however the tasks ended.
    submits: Option<u64>,
}

impl<'a> Trials<'a> {
    pub(super) fn new(workload: &'a dyn Workload, machine: &'a Machine, request: &Request<'a>) -> Trials<'a> {
        let Request { choice, stop, progress, .. } = *request;
        let (done, known, results) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::default());
        Trials { workload, machine, choice, stop, progress, done, known, results, submits: None }
    }

    /// Only asks of a run that all `n_tasks` are submitted and none of them gets stuck.
    pub(super) fn until_submitted(self, n_tasks: u64) -> Trials<'a> {
        Trials { submits: Some(n_tasks), ..self }
    }

    /// A run at these sizes is known to get stuck.
    pub(super) fn know_stuck(&self, limits: &Limits, kind: Kind) {
        self.results().insert(key(limits), Trial::Stuck(Some(kind), format!("deadlock on {}", kind.key())));
    }

    /// Runs done so far.
    pub(super) fn done(&self) -> u64 {
        self.done.load(Relaxed) // Ordering: a number to show.
    }

    /// Whether the search was asked to stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed) // Ordering: a wish that may come a run later.
    }

    /// The whole report of a run that completes.
    pub(super) fn report(&self, limits: &Limits) -> Result<Report, RunError> {
        let report = simulate_with(self.workload, &self.with(limits), self.choice, &mut ())?;
        self.results().insert(key(limits), Trial::Completes(report.makespan));
        Ok(report)
    }

    /// One run.
    pub(super) fn run(&self, limits: &Limits) -> Result<Trial, Halt> {
        if let Some(known) = self.results().get(&key(limits)) {
            return Ok(known.clone());
        }
        if self.is_stopped() {
            return Err(Halt::Stopped);
        }
        let trial = match simulate_with(self.workload, &self.with(limits), self.choice, &mut ()) {
            Ok(report) => self.judge(&report),
            Err(RunError::TooLarge { resource, message }) => Trial::Stuck(Kind::named(resource.name()), message),
            Err(error) => return Err(Halt::Failed(error)),
        };
        self.results().insert(key(limits), trial.clone());
        self.tell();
        Ok(trial)
    }

    fn judge(&self, report: &Report) -> Trial {
        let is_through = self.submits == Some(report.tasks) && report.deadlock.is_none();
        let lacks = report.deadlock.as_ref().and_then(|stuck| Kind::named(&stuck.resource));
        match shortfall(report).filter(|_| !is_through) {
            Some(reason) => Trial::Stuck(lacks, reason),
            None => Trial::Completes(report.makespan),
        }
    }

    /// Many runs of one kind at the same time, in the order asked for.
    pub(super) fn at(&self, kind: Kind, others: &Limits, sizes: &[u64]) -> Result<Vec<Trial>, Halt> {
        self.known.fetch_add(sizes.len() as u64, Relaxed); // Ordering: a number to show.
        sizes.par_iter().map(|&size| self.run(&kind.with(others, size))).collect()
    }

    /// Everything known about a kind with the others at these sizes.
    pub(super) fn known(&self, kind: Kind, others: &Limits) -> Vec<(u64, Trial)> {
        let wanted = key(&kind.with(others, 0));
        let index = Kind::ALL.iter().position(|&other| other == kind).expect("all kinds are listed");
        let rest = |key: &[u64; 4]| {
            let mut key = *key;
            key[index] = 0;
            key == wanted
        };
        let results = self.results();
        let mut known: Vec<_> =
            results.iter().filter(|(key, _)| rest(key)).map(|(key, trial)| (key[index], trial.clone())).collect();
        known.sort_by_key(|(size, _)| *size);
        known
    }

    fn results(&self) -> std::sync::MutexGuard<'_, BTreeMap<[u64; 4], Trial>> {
        self.results.lock().expect("nobody panics while holding the results")
    }

    fn with(&self, limits: &Limits) -> Machine {
        Machine { limits: limits.clone(), ..self.machine.clone() }
    }

    fn tell(&self) {
        // Ordering: numbers to show.
        let done = self.done.fetch_add(1, Relaxed) + 1;
        (self.progress)(done, self.known.load(Relaxed).max(done));
    }
}

/// Why a run did not complete, if it did not.
pub(super) fn shortfall(report: &Report) -> Option<String> {
    let ended = &report.ended;
    match report.outcome {
        Outcome::Completed => None,
        Outcome::Deadlock => Some(match report.deadlock.as_ref().map(|stuck| (stuck, stuck.task)) {
            Some((stuck, Some(task))) => {
                format!("deadlock on {} of ring {} at task {task}", stuck.resource, stuck.ring)
            }
            Some((stuck, None)) => format!("deadlock at cycle {}: the {} keeps tasks back", stuck.at, stuck.resource),
            None => format!("deadlock at cycle {}", report.finish),
        }),
        Outcome::Failed => Some(format!(
            "of {} tasks {} fail, {} are dropped and {} cancelled",
            report.tasks, ended.failed, ended.dropped, ended.cancelled
        )),
        Outcome::Timeout => Some(format!("time-out at cycle {}", report.finish)),
    }
}

fn key(limits: &Limits) -> [u64; 4] {
    let Sizes { window, heap, deps, tensors } = Sizes::of(limits);
    [window, heap, deps, tensors]
}

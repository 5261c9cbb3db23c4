//! The threaded engine: the real lock-free runtime on host threads.
//!
//! The orchestrator is the same as in virtual time, and so is the window, now made of atomics. READY tasks pass through
//! bounded lock-free queues to executors: host threads that run the blocks of all the machine's workers. In free mode the host
//! decides what runs when, and the report tells nanoseconds; every task still gets cycles, from clocks that follow
//! `start = max(end of producers, clock of the worker)`. `deterministic` gives the schedule of the virtual engine.

mod clocks;
mod core;
mod deterministic;
mod executor;
mod feed;
mod inject;
mod kernels;
#[cfg(all(target_os = "linux", not(loom)))]
pub mod mapped;
mod outcome;
mod progress;
mod ring;
pub mod runtime;
mod sleep;
mod stats;
mod submit;

pub use deterministic::run_deterministic;
pub use inject::Inject;
pub use kernels::{Call, Draft, KernelError, Kernels, Noop, Spin};
pub use progress::{Counts, Progress};

use self::core::Core;
use super::{Observer, RunError};
use crate::config::Machine;
use crate::kernel::{Costs, Table};
use crate::orchestrator::Orchestrator;
use crate::report::Report;
use crate::workload::Workload;
use executor::Executor;
use inject::Faults;
use stats::Stats;
use std::time::Instant;
use submit::Submitter;

/// Rounds of looking for work before a thread sleeps: about as long as a sleep costs. Miri runs one thread at a time, and a round
/// costs it as much as a task.
const SPIN: u32 = if cfg!(miri) { 4 } else { 400 };

/// Most scheduler threads; a machine that asks for more gets these.
const MOST_SCHEDULERS: usize = 16;

/// Most executors: with the orchestrator and the schedulers there are no more threads than [`sleep::MOST_THREADS`].
const MOST_EXECUTORS: usize = sleep::MOST_THREADS - 1 - MOST_SCHEDULERS;

/// How to run on threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Threads that run blocks; `None` takes what the host has left beside orchestrator and schedulers.
    pub executors: Option<usize>,
    /// Collect the schedule and tell it to the observer at the end.
    pub rows: bool,
    /// Faults on purpose.
    pub inject: Inject,
    /// Tell how far the run is; free mode only.
    pub progress: Option<Progress>,
}

/// The threads of a run.
#[derive(Clone, Copy, Debug)]
struct Setup {
    schedulers: usize,
    executors: usize,
    rows: bool,
    /// Count by kernel; not where the numbers of kernels come from a file that anybody may have written to.
    by_kernel: bool,
    spin: u32,
    /// Completions for which retiring may wait; 0 where another process looks at the rings.
    deferred: u32,
    progress: Option<Progress>,
}

impl Setup {
    fn new(machine: &Machine, options: &Options) -> Setup {
        let schedulers = (machine.scheduler.threads as usize).min(MOST_SCHEDULERS);
        let executors = n_executors(machine, options, 1 + schedulers);
        let deferred = (machine.limits.window / 16).min(32) as u32;
        Setup {
            schedulers,
            executors,
            rows: options.rows,
            by_kernel: true,
            spin: SPIN,
            deferred,
            progress: options.progress,
        }
    }
}

/// Ends a run when the thread that holds it panics, so that the others do not wait for it.
struct EndOnPanic<F: Fn()>(F);

impl<F: Fn()> Drop for EndOnPanic<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)();
        }
    }
}

/// A thread of the runtime itself panicked.
fn panicked(panic: &(dyn std::any::Any + Send)) -> RunError {
    RunError::Panic(executor::panic_message(panic))
}

/// Threads that run blocks: as many as asked for, or those that `others` leave of the host's CPUs; no more than there are workers.
fn n_executors(machine: &Machine, options: &Options, others: usize) -> usize {
    let most = (machine.workers.total() as usize).clamp(1, MOST_EXECUTORS);
    options.executors.unwrap_or_else(|| host_cpus().saturating_sub(others)).clamp(1, most)
}

/// Nanoseconds of the host since a moment.
fn nanoseconds_since(moment: Instant) -> u64 {
    u64::try_from(moment.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// CPUs of the host.
fn host_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs `workload` on host threads in free mode.
///
/// # Errors
/// When the workload cannot be read, asks for something the machine can never give, or a kernel fails. A deadlock is not an
/// error but an outcome.
pub fn run<K: Kernels, O: Observer>(
    workload: &dyn Workload,
    machine: &Machine,
    kernels: &K,
    options: &Options,
    observer: &mut O,
) -> Result<Report, RunError> {
    let table = Table::load(&machine.kernels)?;
    let source = workload.open()?;
    let faults = Faults::new(options.inject, machine.workers.total());
    let core = Core::new(machine, kernels, Setup::new(machine, options), faults)?;
    let orchestrator = Orchestrator::new(source, Costs::new(&table), machine);
    let mut submitter = Submitter::new(&core, orchestrator);
    let result = host(&core, &mut submitter, Submitter::run);
    let wall = core.nanoseconds();
    outcome::conclude(submitter, result, wall, workload, observer)
}

/// Starts the threads of a run, lets `body` submit on the calling thread, and ends them; their counts go to the submitter.
fn host<'c, 'a, K: Kernels, T>(
    core: &'c Core<'a, K>,
    submitter: &mut Submitter<'c, 'a, K>,
    body: impl FnOnce(&mut Submitter<'c, 'a, K>) -> Result<T, RunError>,
) -> Result<T, RunError> {
    let (value, threads) = spawn_all(core, || body(submitter))?;
    threads.into_iter().for_each(|stats| submitter.hands.stats.add(stats));
    Ok(value)
}

/// Runs `body` while schedulers and executors work; returns what they counted.
fn spawn_all<K: Kernels, T>(
    core: &Core<'_, K>,
    body: impl FnOnce() -> Result<T, RunError>,
) -> Result<(T, Vec<Stats>), RunError> {
    std::thread::scope(|scope| {
        let _guard = EndOnPanic(|| core.end());
        let named = |name: String| std::thread::Builder::new().name(name);
        let schedulers = (0..core.setup.schedulers).map(|nth| {
            named(format!("scheduler {nth}")).spawn_scoped(scope, move || {
                let _guard = EndOnPanic(|| core.end());
                executor::schedule(core, 1 + nth)
            })
        });
        let executors = (0..core.setup.executors).map(|nth| {
            named(format!("executor {nth}")).spawn_scoped(scope, move || {
                let _guard = EndOnPanic(|| core.end());
                Executor::new(core, nth).run()
            })
        });
        let threads: Result<Vec<_>, _> = schedulers.chain(executors).collect();
        let started = threads.map_err(|error| RunError::Threads(format!("a thread cannot be started: {error}")));
        if let Some(progress) = core.setup.progress {
            let watcher = scope.spawn(move || progress::watch(core, progress));
            let _ = core.watcher.set(watcher.thread().clone());
        }
        let result = started.map(|threads| (body(), threads));
        core.end();
        let (value, threads) = result?;
        // All are joined before anything is told: a panic that nobody joined would go on from here.
        let joined: Vec<_> = threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        let counted = joined.into_iter().map(|stats| stats.map_err(|panic| panicked(panic.as_ref())));
        let counted = counted.collect::<Result<_, _>>()?;
        Ok((value?, counted))
    })
}

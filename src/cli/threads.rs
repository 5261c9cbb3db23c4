//! The options of `run` that only the threaded engines read.

use super::{Failure, progress};
use clap::ValueEnum;
use ptosim::config::Machine;
use ptosim::engine::execute::{Numbers, verify};
use ptosim::engine::threads::{Inject, Noop, Options, Progress, Spin, run, run_deterministic};
use ptosim::engine::{Journal, Observer};
use ptosim::policy::{Choice, Name};
use ptosim::report::{Outcome, Report};
use ptosim::workload::Workload;
use std::sync::Arc;
use std::time::Duration;

/// How to run on host threads.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Engines threads and execute")]
pub struct ThreadArgs {
    /// Who decides what runs when
    #[arg(long, value_enum, default_value_t = Mode::Free)]
    mode: Mode,
    /// What a block does
    #[arg(long, value_enum, default_value_t = Kernel::Noop)]
    kernel: Kernel,
    /// Threads that run blocks, as many as there are workers at most, and 47 [default: the CPUs that orchestrator and schedulers
    /// leave, at least 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = executors)]
    executors: Option<usize>,
    /// With --engine execute: compute the program again directly and compare the numbers
    #[arg(long)]
    verify: bool,
    /// Make faults on purpose: `slow_worker`, `stopped_worker`, `lost_wakeup`, `delayed_completion`, `paused_scheduler`, `seed=N`
    #[arg(long, value_name = "FAULT,...")]
    inject: Option<Inject>,
    /// Tell on standard error every so many seconds how many tasks are submitted, completed, consumed and past `last_task_alive`
    #[arg(long, value_name = "S", value_parser = seconds)]
    progress_seconds: Option<Duration>,
}

/// A number of threads that run blocks.
pub fn executors(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&threads| threads > 0).ok_or_else(|| "must be a number from 1; try 1".into())
}

/// A time of at least a millisecond.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds
        .filter(|time| *time >= Duration::from_millis(1))
        .ok_or_else(|| "must be a time from 0.001 to 1e18; try 2".into())
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// The host: as fast as it goes, reported in nanoseconds
    Free,
    /// Virtual clocks: kernels run on threads, the schedule is that of the virtual engine
    Deterministic,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Kernel {
    /// Nothing: what is left is the cost of the runtime
    Noop,
    /// Spins for its cycles at the machine's clock
    Spin,
}

impl ThreadArgs {
    /// Refuses options that do not go together.
    pub fn check(&self, on_threads: bool, executes: bool) -> Result<(), Failure> {
        if executes && (self.mode != Mode::Free || self.kernel != Kernel::Noop) {
            return Err(Failure::Usage(
                "--engine execute runs real kernels in free mode; leave --mode and --kernel out".into(),
            ));
        }
        if self.verify && !executes {
            return Err(Failure::Usage("--verify compares numbers that only --engine execute computes; add it".into()));
        }
        let option = match self {
            ThreadArgs { mode: Mode::Deterministic, .. } => "--mode deterministic",
            ThreadArgs { kernel: Kernel::Spin, .. } => "--kernel spin",
            ThreadArgs { executors: Some(_), .. } => "--executors",
            ThreadArgs { inject: Some(_), .. } => "--inject",
            ThreadArgs { progress_seconds: Some(_), .. } => "--progress-seconds",
            _ => return Ok(()),
        };
        if !on_threads {
            return Err(Failure::Usage(format!("{option} needs host threads; add --engine threads")));
        }
        if self.mode == Mode::Deterministic && self.inject.is_some() {
            return Err(Failure::Usage("--inject changes what the host does; use it with --mode free".into()));
        }
        if self.mode == Mode::Deterministic && self.progress_seconds.is_some() {
            return Err(Failure::Usage("--progress-seconds looks at the window of free mode; leave --mode out".into()));
        }
        Ok(())
    }

    /// Whether no virtual clocks are asked for.
    pub fn is_free(&self) -> bool {
        self.mode == Mode::Free
    }

    fn options(&self, rows: bool) -> Options {
        let progress = self.progress_seconds.map(|every| Progress { every, tell: progress::tell });
        Options { executors: self.executors, rows, inject: self.inject.unwrap_or_default(), progress }
    }

    /// Runs `workload` on host threads and computes its numbers.
    pub fn execute(
        &self,
        workload: &dyn Workload,
        machine: &Machine,
        choice: &Choice,
        journal: &mut Journal,
    ) -> Result<Report, Failure> {
        only_pto(choice)?;
        let numbers = Arc::new(Numbers::new(&workload.name(), machine)?);
        let mut report = run(&numbers.tap(workload), machine, &*numbers, &self.options(journal.watches()), journal)?;
        report.engine = "execute".into();
        if self.verify && report.outcome == Outcome::Completed {
            report.notes.extend(verify(workload, &numbers)?);
        }
        Ok(report)
    }

    /// Runs `workload` on host threads.
    pub fn run(
        &self,
        workload: &dyn Workload,
        machine: &Machine,
        choice: &Choice,
        journal: &mut Journal,
    ) -> Result<Report, Failure> {
        let options = self.options(journal.watches());
        if self.mode == Mode::Free {
            only_pto(choice)?;
        }
        let spin = Spin { clock_mhz: machine.clock_mhz };
        let report = match (self.mode, self.kernel) {
            (Mode::Free, Kernel::Noop) => run(workload, machine, &Noop, &options, journal),
            (Mode::Free, Kernel::Spin) => run(workload, machine, &spin, &options, journal),
            (Mode::Deterministic, Kernel::Noop) => {
                run_deterministic(workload, machine, choice, (&Noop, &options), journal)
            }
            (Mode::Deterministic, Kernel::Spin) => {
                run_deterministic(workload, machine, choice, (&spin, &options), journal)
            }
        };
        Ok(report?)
    }
}

/// In free mode the host decides, so no policy but the queues themselves can be followed.
fn only_pto(choice: &Choice) -> Result<(), Failure> {
    if choice.name == Name::Pto {
        return Ok(());
    }
    let name = choice.name;
    Err(Failure::Usage(format!(
        "policy `{name}` decides in virtual time; free mode knows pto only: leave --policy out, or use --engine threads --mode deterministic"
    )))
}

//! The commands and what they have in common: settings of a machine, failures, exit codes, standard output.

mod check;
mod compare;
mod convert;
#[cfg(target_os = "linux")]
mod device;
mod diff;
mod files;
mod generate;
mod kernels;
mod machines;
mod observe;
mod progress;
mod report;
mod reports;
mod run;
mod size;
mod stat;
mod sweep;
mod threads;

use clap::{Parser, Subcommand};
use files::Files;
use ptosim::config::{Builtin, ConfigError, Machine};
use ptosim::engine::RunError;
use ptosim::kernel::Table;
use ptosim::policy::{Choice, Config};
use ptosim::report::{Output, OutputError};
use ptosim::sweep::SweepError;
use ptosim::workload::import::{Edges, Options, Rules};
use ptosim::workload::{self, Workload, WorkloadError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  ptosim run bgemm                              a generated workload on the ideal machine
  ptosim run trace.jsonl.gz --machine a2a3      your own trace on a real device's sizes and costs
  ptosim run bgemm:batch=2,m=8,n=8,k=8 --set limits.window=64 --json result.json
  ptosim compare trace.jsonl --policies all     the same trace under every policy, side by side

Exit codes:
  0  completed
  1  the run ended badly: deadlock, failed, cancelled or dropped tasks, time-out
  2  bad arguments, settings or input, or an output that cannot be written; nothing is written then";

/// A simulator of NPU task-graph runtimes.
#[derive(Parser, Debug)]
#[command(version, about, after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Run(run::Args),
    Check(check::Args),
    Size(size::Args),
    Sweep(sweep::Args),
    Compare(compare::Args),
    Gen(generate::Args),
    Convert(convert::Args),
    Stat(stat::Args),
    Kernels(kernels::Args),
    Diff(diff::Args),
    Report(report::Args),
    Machines(machines::Args),
    #[cfg(target_os = "linux")]
    Device(device::DeviceArgs),
    #[cfg(target_os = "linux")]
    Submit(device::SubmitArgs),
    #[cfg(target_os = "linux")]
    Inspect(device::InspectArgs),
}

impl Cli {
    /// Does what was asked for.
    ///
    /// # Errors
    /// When it cannot be done; the message says why and what to do.
    pub fn run(self) -> Result<Ending, Failure> {
        match self.command {
            Command::Run(args) => run::run(&args),
            Command::Check(args) => check::run(&args),
            Command::Size(args) => size::run(&args),
            Command::Sweep(args) => sweep::run(&args),
            Command::Compare(args) => compare::run(&args),
            Command::Gen(args) => generate::run(&args),
            Command::Convert(args) => convert::run(&args),
            Command::Stat(args) => stat::run(&args),
            Command::Kernels(args) => kernels::run(&args),
            Command::Diff(args) => diff::run(&args),
            Command::Report(args) => report::run(&args),
            Command::Machines(args) => machines::run(&args),
            #[cfg(target_os = "linux")]
            Command::Device(args) => device::device(&args),
            #[cfg(target_os = "linux")]
            Command::Submit(args) => device::submit(&args),
            #[cfg(target_os = "linux")]
            Command::Inspect(args) => device::inspect(&args),
        }
    }
}

/// Prints what the arguments ask for themselves, help or the version; ends the program when they are wrong.
///
/// # Errors
/// When standard output cannot be written.
pub fn tell(answer: &clap::Error) -> Result<Ending, Failure> {
    if answer.use_stderr() {
        answer.exit();
    }
    let printed = answer.print().and_then(|()| std::io::stdout().flush());
    printed.map_err(|source| Output::error("standard output", source))?;
    Ok(Ending::Good)
}

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// As it should.
    Good,
    /// A run ended in a deadlock or with tasks that did not complete.
    Bad,
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> ExitCode {
        match ending {
            Ending::Good => ExitCode::SUCCESS,
            Ending::Bad => ExitCode::FAILURE,
        }
    }
}

/// Why a command could not be carried out.
#[derive(thiserror::Error, Debug)]
pub enum Failure {
    /// Machine or settings.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Trace or generator.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// Found by the engine.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A sweep.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// A file or standard output.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Arguments that do not go together or ask for what is not there.
    #[error("{0}")]
    Usage(String),
}

impl Failure {
    /// 1 when a run ended badly, 2 when it could not be done.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Run(RunError::Kernel(_) | RunError::Stuck(_) | RunError::Panic(_) | RunError::Threads(_)) => 1,
            _ => 2,
        }
    }

    /// Whether the reader of a pipe has gone.
    #[must_use]
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Failure::Output(error) if error.is_closed_pipe())
    }
}

/// The options that describe a machine.
#[derive(clap::Args, Debug)]
struct MachineArgs {
    /// Built-in machine (`ptosim machines` lists them) or a machine file [default: ideal]
    #[arg(long, short, value_name = "NAME|FILE")]
    machine: Option<String>,
    /// Change a setting of the machine by its dotted key, such as limits.heap=1MiB; may be repeated
    #[arg(long = "set", short, value_name = "KEY=VALUE")]
    settings: Vec<String>,
}

impl MachineArgs {
    /// The machine with all settings, checked.
    fn load(&self) -> Result<Machine, ConfigError> {
        let mut machine = Machine::load(self.machine.as_deref().unwrap_or("ideal"))?;
        machine.apply(&self.settings)?;
        machine.validate()?;
        Ok(machine)
    }

    /// The files it was loaded from.
    fn files(&self, files: Files, machine: &Machine) -> Files {
        let own = self.machine.as_deref().filter(|name| Builtin::find(name).is_none());
        let is_built_in = Table::builtin_names().any(|name| name == machine.kernels);
        files.reads("the machine file", own).reads("the kernel table", (!is_built_in).then_some(&machine.kernels))
    }

    /// The machine for a policy, whose settings may count the workers.
    fn fit(&self, machine: Machine, choice: &Choice) -> Result<Machine, ConfigError> {
        choice.fit(machine, self.machine.is_some())
    }
}

/// The options that choose a policy.
#[derive(clap::Args, Debug)]
struct PolicyArgs {
    /// Scheduling policy, such as pto, predictive or ray; wins over the one in the configuration
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    #[command(flatten)]
    config: PolicyConfigArgs,
}

impl PolicyArgs {
    fn load(&self, machine: &Machine) -> Result<Choice, ConfigError> {
        Choice::new(self.policy.as_deref(), self.config.load(machine)?)
    }
}

/// The options that configure policies.
#[derive(clap::Args, Debug)]
struct PolicyConfigArgs {
    /// Configuration of policies: TOML, a Cyber `.conf` or a BMF graph `.json`
    #[arg(long, visible_alias = "sched-conf", value_name = "FILE")]
    policy_config: Option<String>,
    /// Process group of Cyber: without --policy-config, reads conf/GROUP.conf or cyber/conf/GROUP.conf
    #[arg(long, value_name = "GROUP")]
    process_group: Option<String>,
}

impl PolicyConfigArgs {
    fn load(&self, machine: &Machine) -> Result<Config, ConfigError> {
        match (&self.policy_config, &self.process_group) {
            (Some(path), _) => Config::load(path, machine),
            (None, Some(group)) => Config::of_process_group(group, Path::new(""), machine),
            (None, None) => Ok(Config::default()),
        }
    }

    /// The files that may be read.
    fn files(&self, files: Files) -> Files {
        let group = self.process_group.as_deref().filter(|_| self.policy_config.is_none());
        let places = group.map(Config::places_of_process_group).into_iter().flatten();
        let files = files.reads("the policy configuration", self.policy_config.as_ref());
        places.fold(files, |files, path| files.reads("the policy configuration", Some(path)))
    }
}

/// `2%`, `2 %` or `2` as 0.02.
fn percent(text: &str) -> Result<f64, String> {
    let text = text.trim();
    match text.strip_suffix('%').unwrap_or(text).trim_end().parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent / 100.0),
        _ => Err("must be a percentage from 0; try 2%".into()),
    }
}

/// Where the options about workloads that other programs wrote stand in a help text.
const IMPORT: &str = "Traces of other programs";

/// The options about workloads that other programs wrote.
#[derive(clap::Args, Clone, Debug)]
struct ImportArgs {
    /// Format of the workload, instead of recognising it; `ptosim convert --list` shows them
    #[arg(long, value_name = "FORMAT", help_heading = IMPORT)]
    from: Option<String>,
    /// Where dependencies come from: recorded, infer (from regions), files (as buffers), all (control ones too)
    #[arg(long, value_name = "CHOICE", value_parser = Edges::parse, help_heading = IMPORT)]
    edges: Option<Edges>,
    /// Mapping rules: worker types, clock and cycles by kernel name
    #[arg(long, value_name = "FILE.toml", help_heading = IMPORT)]
    rules: Option<String>,
    /// A file that belongs to the workload, such as measured times; may be repeated
    #[arg(long, value_name = "FILE", help_heading = IMPORT)]
    with: Vec<PathBuf>,
}

impl ImportArgs {
    /// Opens a workload; times become cycles by the clock of `machine`.
    fn open(&self, spec: &str, machine: &Machine) -> Result<Box<dyn Workload>, WorkloadError> {
        workload::open_with(spec, &self.options(machine)?)
    }

    /// What was chosen about files of other programs; times become cycles by the clock of `machine`.
    fn options(&self, machine: &Machine) -> Result<Options, WorkloadError> {
        Ok(Options {
            from: self.from.clone(),
            edges: self.edges,
            rules: self.rules.as_deref().map(Rules::load).transpose()?.unwrap_or_default(),
            clock_mhz: machine.clock_mhz as f64,
            with: self.with.clone(),
        })
    }

    /// The files that are read for a workload.
    fn files(&self, files: Files, spec: &str) -> Files {
        let files = files.reads_workload(spec, self.from.as_deref()).reads("the rules", self.rules.as_ref());
        self.with.iter().fold(files, |files, path| files.reads("a file of --with", Some(path)))
    }
}

/// Prints to standard output, with colours only where they are wanted.
fn print(text: &str) -> Result<(), OutputError> {
    let mut stdout = anstream::stdout();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|source| Output::error("standard output", source))
}

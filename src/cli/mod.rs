//! The commands and what they have in common: settings of a machine, failures, exit codes, standard output.

mod generate;
mod kernels;
mod machines;
mod observe;
mod run;
mod threads;

use clap::{Parser, Subcommand};
use ptosim::config::{ConfigError, Machine};
use ptosim::engine::RunError;
use ptosim::report::{Output, OutputError};
use ptosim::workload::WorkloadError;
use std::io::Write;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  ptosim run bgemm                              a generated workload on the ideal machine
  ptosim run trace.jsonl.gz --machine a2a3      your own trace on a real device's sizes and costs
  ptosim run bgemm:batch=2,m=8,n=8,k=8 --set limits.window=64 --json result.json

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
    Gen(generate::Args),
    Kernels(kernels::Args),
    Machines(machines::Args),
}

impl Cli {
    /// Does what was asked for.
    ///
    /// # Errors
    /// When it cannot be done; the message says why and what to do.
    pub fn run(self) -> Result<Ending, Failure> {
        match self.command {
            Command::Run(args) => run::run(&args),
            Command::Gen(args) => generate::run(&args),
            Command::Kernels(args) => kernels::run(&args),
            Command::Machines(args) => machines::run(&args),
        }
    }
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
            Failure::Run(RunError::Kernel(_) | RunError::Stuck(_) | RunError::Threads(_)) => 1,
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
    /// Built-in machine (`ptosim machines` lists them) or a machine file
    #[arg(long, short, value_name = "NAME|FILE", default_value = "ideal")]
    machine: String,
    /// Change a setting of the machine by its dotted key, such as limits.heap=1MiB; may be repeated
    #[arg(long = "set", short, value_name = "KEY=VALUE")]
    settings: Vec<String>,
}

impl MachineArgs {
    /// The machine with all settings, checked.
    fn load(&self) -> Result<Machine, ConfigError> {
        let mut machine = Machine::load(&self.machine)?;
        machine.apply(&self.settings)?;
        machine.validate()?;
        Ok(machine)
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

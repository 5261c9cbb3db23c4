//! `ptosim kernels`: what kernels cost when a trace does not say.

use super::files::Files;
use super::{Ending, Failure, MachineArgs, print};
use ptosim::kernel::{Rule, Table, from_msprof};
use ptosim::report::{Output, columns};
use std::io::Write;

/// Show a kernel table: what a kernel of a given name costs and where it runs
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The first rule one of whose words is contained in the kernel's name applies; cycles given in a trace always win.

Examples:
  ptosim kernels                 the table that machines use by default
  ptosim kernels mine.toml       a table of your own; `--set kernels=mine.toml` runs with it
  ptosim kernels import op_summary.csv -o mine.toml       a table from measured times")]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Built-in table or a file
    #[arg(value_name = "NAME|FILE", default_value = "reference")]
    table: String,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    Import(Import),
}

/// Make a kernel table of measured times: msprof's `op_summary` or `task_time` as CSV
#[derive(clap::Args, Debug)]
struct Import {
    /// The measured times
    #[arg(value_name = "FILE.csv")]
    input: String,
    /// Where to write the table
    #[arg(long, short, value_name = "FILE|-", default_value = "-")]
    output: String,
    #[command(flatten)]
    machine: MachineArgs,
}

impl Import {
    fn run(&self) -> Result<(), Failure> {
        let machine = self.machine.load()?;
        let read = self.machine.files(Files::default().reads("the measured times", Some(&self.input)), &machine);
        read.writes("--output", Some(&self.output)).check()?;
        let table = from_msprof(&self.input, machine.clock_mhz as f64)?;
        let mut output = Output::open(&self.output)?;
        output.fill(|writer| writer.write_all(table.as_bytes()))?;
        Ok(output.commit()?)
    }
}

pub fn run(args: &Args) -> Result<Ending, Failure> {
    if let Some(Command::Import(import)) = &args.command {
        return import.run().map(|()| Ending::Good);
    }
    let table = Table::load(&args.table)?;
    let rows: Vec<Vec<String>> = table.rules().iter().map(row).collect();
    let built_in: Vec<&str> = Table::builtin_names().collect();
    print(&format!(
        "{}: {}\n\n{}\nBuilt in: {}\n",
        table.name(),
        table.description(),
        columns(&["name contains", "runs on", "cycles"], &rows),
        built_in.join(", ")
    ))?;
    Ok(Ending::Good)
}

fn row(rule: &Rule) -> Vec<String> {
    let worker = rule.worker.map_or("as the trace says".into(), |kind| kind.to_string());
    vec![rule.patterns.join(", "), worker, rule.model.to_string()]
}

//! `ptosim compare`: one workload under several policies, side by side.

use super::files::Files;
use super::run::{text_width, unless_pipe_closed};
use super::{Ending, Failure, ImportArgs, MachineArgs, PolicyConfigArgs, print};
use ptosim::config::{ConfigError, Machine};
use ptosim::engine::{self, RunError};
use ptosim::policy::{Choice, Name};
use ptosim::report::{Comparison, Output, Row, write_comparison};
use ptosim::workload::{Program, Workload, WorkloadError};
use rayon::prelude::*;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Run a workload under several policies and show the results side by side
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  ptosim compare bgemm:batch=4 --policies all
  ptosim compare trace.jsonl --policies pto,predictive,steal --set workers.any=8
  ptosim compare trace.jsonl --policy-config policies.toml --json - | jq .verdict
  ptosim compare bgemm --policies all --html policies.html")]
pub struct Args {
    /// Trace file (plain or gzip), `-` for standard input, or a generator such as bgemm:batch=2,m=8
    workload: String,
    /// Names of policies with commas between them, or `all`
    #[arg(long, short, value_name = "A,B,…|all", default_value = "all", value_delimiter = ',')]
    policies: Vec<String>,
    #[command(flatten)]
    config: PolicyConfigArgs,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    import: ImportArgs,
    /// Write the comparison as JSON; `-` writes it to standard output instead of the text
    #[arg(long, value_name = "FILE|-")]
    json: Option<String>,
    /// Write one row a policy as CSV; `-` writes it to standard output instead of the text
    #[arg(long, value_name = "FILE|-")]
    csv: Option<String>,
    /// Write a page with bars of the makespans as one HTML file, to be opened in any browser
    #[arg(long, value_name = "FILE")]
    html: Option<String>,
}

pub fn run(args: &Args) -> Result<Ending, Failure> {
    let machine = args.machine.load()?;
    args.check_files(&machine)?;
    let choices = args.choices(&machine)?;
    let machine = choices.iter().fold(machine, |machine, choice| args.machine.fit(machine, choice));
    choices.iter().try_for_each(|choice| choice.check(&machine))?;
    let workload = args.open(&machine)?;
    let json = args.json.as_deref().map(Output::open).transpose()?;
    let csv = args.csv.as_deref().map(Output::open).transpose()?;
    let html = args.html.as_deref().map(Output::open).transpose()?;
    let rows: Vec<_> = choices.par_iter().map(|choice| row(workload.as_ref(), &machine, choice)).collect();
    let rows = rows.into_iter().collect::<Result<_, _>>()?;
    let comparison = Comparison::new(workload.name(), &machine, rows);
    let write_json = |output: &mut Output| {
        let mut writer = BufWriter::new(output);
        serde_json::to_writer_pretty(&mut writer, &comparison)?;
        writer.write_all(b"\n")?;
        writer.flush()
    };
    let written = [
        write(json, &args.json, write_json)?,
        write(csv, &args.csv, |output| comparison.write_csv(output))?,
        write(html, &args.html, |output| write_comparison(&comparison, output))?,
    ];
    for output in written.into_iter().flatten() {
        unless_pipe_closed(output.commit())?;
    }
    if ![&args.json, &args.csv, &args.html].into_iter().any(|path| path.as_deref() == Some("-")) {
        unless_pipe_closed(print(&comparison.render(text_width())))?;
    }
    Ok(if comparison.is_good() { Ending::Good } else { Ending::Bad })
}

impl Args {
    /// Refuses to write what is read, and to write anything twice.
    fn check_files(&self, machine: &Machine) -> Result<(), Failure> {
        let read = self.import.files(Files::default(), &self.workload);
        let read = self.config.files(self.machine.files(read, machine));
        read.writes("--json", self.json.as_ref())
            .writes("--csv", self.csv.as_ref())
            .writes("--html", self.html.as_ref())
            .check()
    }

    /// The workload; a file or standard input is read once and kept.
    fn open(&self, machine: &Machine) -> Result<Box<dyn Workload>, WorkloadError> {
        let workload = self.import.open(&self.workload, machine)?;
        if self.workload == "-" || Path::new(&self.workload).exists() {
            return Ok(Box::new(Program::load(workload.as_ref())?));
        }
        Ok(workload)
    }

    /// The policies asked for, each once, with the configuration they share.
    fn choices(&self, machine: &Machine) -> Result<Vec<Choice>, ConfigError> {
        let config = self.config.load(machine)?;
        let mut names: Vec<Name> = Vec::new();
        for name in &self.policies {
            let more = if name == "all" { Name::ALL.to_vec() } else { vec![name.trim().parse()?] };
            names.extend(more);
        }
        let mut seen = Vec::new();
        names.retain(|name| {
            !seen.contains(name) && {
                seen.push(*name);
                true
            }
        });
        Ok(names.into_iter().map(|name| Choice { name, config: config.clone() }).collect())
    }
}

/// What comes of one policy. A task that it can never run is told in its row; settings that are wrong end the command.
fn row(workload: &dyn Workload, machine: &Machine, choice: &Choice) -> Result<Row, Failure> {
    match engine::simulate_with(workload, machine, choice, &mut ()) {
        Ok(report) => Ok(Row::of(&report)),
        Err(RunError::Config(error)) => Err(error.into()),
        Err(error) => Ok(Row::failed(choice.name.name(), error.to_string())),
    }
}

/// Fills an output that was asked for.
fn write(
    output: Option<Output>,
    path: &Option<String>,
    fill: impl FnOnce(&mut Output) -> io::Result<()>,
) -> Result<Option<Output>, Failure> {
    let Some(mut output) = output else { return Ok(None) };
    let written = fill(&mut output).map_err(|source| Output::error(path.as_deref().unwrap_or("-"), source));
    unless_pipe_closed(written)?;
    Ok(Some(output))
}

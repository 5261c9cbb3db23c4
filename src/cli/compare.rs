//! `ptosim compare`: one workload under several policies, side by side.

use super::files::Files;
use super::run::{text_width, unless_pipe_closed};
use super::{Ending, Failure, ImportArgs, MachineArgs, PolicyConfigArgs, print};
use ptosim::config::{ConfigError, Machine};
use ptosim::engine::{self, RunError};
use ptosim::policy::{Choice, Name};
use ptosim::report::{Comparison, Output, Row, write_comparison, write_pretty};
use ptosim::workload::{Program, Workload, WorkloadError};
use rayon::prelude::*;
use std::io::{self, BufWriter};
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
    let runs: Vec<Run> = args.runs(&machine)?;
    runs.iter().try_for_each(|run| run.choice.check(&run.machine))?;
    let workload = args.open(&machine)?;
    let json = args.json.as_deref().map(Output::open).transpose()?;
    let csv = args.csv.as_deref().map(Output::open).transpose()?;
    let html = args.html.as_deref().map(Output::open).transpose()?;
    let rows: Vec<_> = runs.par_iter().map(|run| run.row(workload.as_ref(), &machine)).collect();
    let rows: Vec<Row> = rows.into_iter().collect::<Result<_, _>>()?;
    refuse_wrong_for_all(&rows)?;
    let comparison = Comparison::new(workload.name(), &machine, rows);
    let written = [
        write(json, |writer| write_pretty(&comparison, writer))?,
        write(csv, |writer| comparison.write_csv(writer))?,
        write(html, |writer| write_comparison(&comparison, writer))?,
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

    /// The policies asked for, each once, with the configuration they share and the machine that each would have alone.
    fn runs(&self, machine: &Machine) -> Result<Vec<Run>, ConfigError> {
        let config = self.config.load(machine)?;
        let mut runs: Vec<Run> = Vec::new();
        for text in &self.policies {
            let is_named = text != "all";
            let names = if is_named { vec![text.trim().parse()?] } else { Name::ALL.to_vec() };
            for name in names {
                if let Some(run) = runs.iter_mut().find(|run| run.choice.name == name) {
                    run.is_named |= is_named;
                    continue;
                }
                let choice = Choice { name, config: config.clone() };
                runs.push(Run { machine: self.machine.fit(machine.clone(), &choice)?, choice, is_named });
            }
        }
        Ok(runs)
    }
}

/// One policy of the comparison.
struct Run {
    choice: Choice,
    /// The machine, with the workers that the policy's settings count if nothing else was said about workers.
    machine: Machine,
    /// Whether it was asked for by its own name, and not as one of all.
    is_named: bool,
}

impl Run {
    /// What comes of it. Settings that are wrong end the command. A workload that is wrong for this policy, such as a group that does
    /// not exist, does so if the policy was asked for by name, and is told in its row if all were.
    fn row(&self, workload: &dyn Workload, machine: &Machine) -> Result<Row, Failure> {
        let name = self.choice.name.name();
        let row = match engine::simulate_with(workload, &self.machine, &self.choice, &mut ()) {
            Ok(report) => Row::of(&report),
            Err(RunError::Config(error)) => return Err(error.into()),
            Err(error) if self.is_named => return Err(Failure::Usage(format!("policy {name}: {error}"))),
            Err(error) => Row::failed(name, error.to_string()),
        };
        Ok(row.on(&self.machine.workers, machine))
    }
}

/// A workload that no policy can run is wrong: the first of them says why.
fn refuse_wrong_for_all(rows: &[Row]) -> Result<(), Failure> {
    match rows.first() {
        Some(Row { policy, error: Some(error), .. }) if rows.iter().all(|row| row.error.is_some()) => {
            Err(Failure::Usage(format!("policy {policy}: {error}")))
        }
        _ => Ok(()),
    }
}

/// Fills an output that was asked for.
fn write(
    output: Option<Output>,
    content: impl FnOnce(&mut BufWriter<&mut Output>) -> io::Result<()>,
) -> Result<Option<Output>, Failure> {
    let Some(mut output) = output else { return Ok(None) };
    unless_pipe_closed(output.fill(content))?;
    Ok(Some(output))
}

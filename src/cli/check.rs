//! `ptosim check`: is a program safe and sensible, without running it.

use super::files::Files;
use super::{Ending, Failure, ImportArgs, MachineArgs, print};
use ptosim::check::{self, Level};
use ptosim::report::Output;

/// Findings of one kind that the text shows.
const SHOWN: usize = 10;

/// Check a workload for races, buffers used too late, scopes that never fit, and needless work
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Nothing is run. Errors: write-after-read and write-after-write pairs without order, buffers used after their scope has \
closed, scopes that no timing fits into the machine. Warnings: heap buffers outside any scope, outputs of one task that \
overlap, buffers nobody reads, tasks nobody needs. Notes: unused buffers, dependencies that others imply.

Examples:
  ptosim check trace.jsonl
  ptosim check trace.jsonl --set rules.hazards=raw         what if only reads wait for writes?
  ptosim check trace.jsonl --machine a2a3 --set limits.window=64 --json - | jq .findings

Exit codes: 0 no errors, 1 errors, 2 it cannot be checked or written")]
pub struct Args {
    /// Trace file (plain or gzip), `-` for standard input, or a generator such as bgemm:batch=2,m=8
    workload: String,
    #[command(flatten)]
    import: ImportArgs,
    #[command(flatten)]
    machine: MachineArgs,
    /// Write the findings as JSON; `-` writes them to standard output instead of the text
    #[arg(long, value_name = "FILE|-")]
    json: Option<String>,
    /// Findings of each kind to show [default: 10 in the text, all in JSON]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<usize>,
}

pub fn run(args: &Args) -> Result<Ending, Failure> {
    let machine = args.machine.load()?;
    let read = args.machine.files(args.import.files(Files::default(), &args.workload), &machine);
    read.writes("--json", args.json.as_ref()).check()?;
    let workload = args.import.open(&args.workload, &machine)?;
    let output = args.json.as_deref().map(Output::open).transpose()?;
    let checked = check::check(workload.as_ref(), &machine)?;
    if let Some(mut output) = output {
        output.fill(|writer| check::write_json(&checked, args.limit.unwrap_or(usize::MAX), writer))?;
        output.commit()?;
    }
    if args.json.as_deref() != Some("-") {
        print(&check::render(&checked, args.limit.unwrap_or(SHOWN)))?;
    }
    Ok(if checked.count(Level::Error) == 0 { Ending::Good } else { Ending::Bad })
}

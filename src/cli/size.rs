//! `ptosim size`: which window, heap, dependency pool and tensor map a program needs.

use super::files::Files;
use super::{Ending, Failure, ImportArgs, MachineArgs, PolicyArgs, percent, print};
use indicatif::{ProgressBar, ProgressStyle};
use ptosim::report::Output;
use ptosim::size::{self, Request, Sizing};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Find the smallest sizes with which a workload completes, and those with which it is fast
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Workers, costs, rings and rules are those of the machine; its sizes do not matter. Each size is searched with the others \
unlimited, then all together. Ctrl-C ends the search and shows what was found.

Examples:
  ptosim size bgemm --machine a2a3
  ptosim size trace.jsonl --machine a2a3 --within 5% --svg sizes.svg
  ptosim size trace.jsonl --json - | jq .smallest.limits

Exit codes: 0 all sizes found, 1 stopped by Ctrl-C or no size completes, 2 it cannot be run or written")]
pub struct Args {
    /// Trace file (plain or gzip), `-` for standard input, or a generator such as bgemm:batch=2,m=8
    workload: String,
    #[command(flatten)]
    import: ImportArgs,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    /// How much longer than with unlimited sizes a run may take
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent, allow_hyphen_values = true)]
    within: f64,
    /// Write the answer as JSON; `-` writes it to standard output instead of the text
    #[arg(long, value_name = "FILE|-")]
    json: Option<String>,
    /// Write the curves as a picture
    #[arg(long, value_name = "FILE")]
    svg: Option<String>,
}

pub fn run(args: &Args) -> Result<Ending, Failure> {
    let machine = args.machine.load()?;
    let read = args.import.files(Files::default(), &args.workload);
    let read = args.policy.config.files(args.machine.files(read, &machine));
    read.writes("--json", args.json.as_ref()).writes("--svg", args.svg.as_ref()).check()?;
    let choice = args.policy.load(&machine)?;
    let machine = args.machine.fit(machine, &choice)?;
    choice.check(&machine)?;
    let workload = args.import.open(&args.workload, &machine)?;
    let json = args.json.as_deref().map(Output::open).transpose()?;
    let svg = args.svg.as_deref().map(Output::open).transpose()?;
    let stop = stop_on_interrupt()?;
    let bar = progress_bar();
    let progress = |done: u64, known: u64| {
        bar.set_length(known);
        bar.set_position(done);
    };
    let request = Request { choice: &choice, within: args.within, stop: &stop, progress: &progress };
    let sizing = size::size(workload.as_ref(), &machine, &request)?;
    bar.finish_and_clear();
    if let Some(mut output) = svg {
        output.fill(|writer| writer.write_all(size::svg(&sizing).as_bytes()))?;
        output.commit()?;
    }
    if let Some(mut output) = json {
        output.fill(|writer| size::write_json(&sizing, writer))?;
        output.commit()?;
    }
    tell(args, &sizing)
}

fn tell(args: &Args, sizing: &Sizing) -> Result<Ending, Failure> {
    if args.json.as_deref() != Some("-") {
        print(&size::render(sizing))?;
    }
    Ok(if sizing.is_interrupted { Ending::Bad } else { Ending::Good })
}

/// A flag that the first Ctrl-C sets; the second one ends the program.
pub fn stop_on_interrupt() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let handler = move || {
        // Ordering: Relaxed; the flag is a wish and carries nothing.
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::Usage(format!("cannot watch for Ctrl-C: {error}")))?;
    Ok(stop)
}

/// A bar with an estimate on a terminal, nothing in a pipe.
pub fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} runs  {elapsed}  about {eta} left");
    ProgressBar::new(0).with_style(style.expect("the template is right"))
}

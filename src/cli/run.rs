//! `ptosim run`: one workload on one machine, and its report.

use super::files::Files;
use super::observe;
use super::progress::Progress;
use super::reports::{ReportArgs, Reports};
use super::threads::ThreadArgs;
use super::{Ending, Failure, ImportArgs, MachineArgs, PolicyArgs, print};
use clap::ValueEnum;
use ptosim::config::Machine;
use ptosim::engine::journal::Names;
use ptosim::engine::{self, Journal, Watch};
use ptosim::policy::Choice;
use ptosim::report::{Outcome, Output, OutputError, Report, render, verdict, what_if, wrap, write_json};
use ptosim::workload::Workload;
use rayon::prelude::*;
use std::io::{self, BufWriter, Write};

/// Run a workload and report where the cycles went
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  ptosim run bgemm                  24 cube and 48 vector workers, no runtime costs
  ptosim run bgemm:batch=8,m=8,n=8,k=16 --machine a2a3
  ptosim run trace.jsonl --set workers.cube=4 --set limits.heap=1MiB
  ptosim run trace.jsonl --policy predictive
  zcat trace.gz | ptosim run - --json - | jq .makespan
  ptosim run bgemm --machine a2a3 --progress-cycles 100000
  ptosim run chain:n=1000 --quiet --json result.json --schedule schedule.csv
  ptosim run bgemm --machine a2a3 --html report.html --what-if")]
pub struct Args {
    /// Trace file (plain or gzip), `-` for standard input, or a generator such as bgemm:batch=2,m=8
    workload: String,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    import: ImportArgs,
    /// How to run it
    #[arg(long, value_enum, default_value_t = Engine::Virtual)]
    engine: Engine,
    /// Write the result as JSON; `-` writes it to standard output instead of the text
    #[arg(long, value_name = "FILE|-")]
    json: Option<String>,
    /// Write when and where each block ran as CSV
    #[arg(long, value_name = "FILE")]
    schedule: Option<String>,
    #[command(flatten)]
    reports: ReportArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Tell on standard error every N cycles how many tasks are submitted, completed, consumed and past `last_task_alive`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    progress_cycles: Option<u64>,
    /// Print no report; a run that ends badly is still told on standard error
    #[arg(long, short)]
    quiet: bool,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Engine {
    /// Deterministic simulation in cycles
    Virtual,
    /// The lock-free runtime on host threads
    Threads,
    /// The same, and kernels compute real numbers
    Execute,
}

pub fn run(args: &Args) -> Result<Ending, Failure> {
    args.check()?;
    let machine = args.machine.load()?;
    args.check_files(&machine)?;
    let choice = args.policy.load(&machine)?;
    let machine = args.machine.fit(machine, &choice)?;
    choice.check(&machine)?;
    let workload = args.import.open(&args.workload, &machine)?;
    let mut outputs = Outputs::open(args, workload.as_ref(), &machine)?;
    let (mut report, names) = simulate(args, workload.as_ref(), &machine, &choice, &mut outputs)?;
    if args.reports.what_if {
        report.what_if = what_if(&report, |other| engine::simulate_with(workload.as_ref(), other, &choice, &mut ()))?;
        if report.what_if.is_empty() {
            report.notes.push("--what-if: the configuration of the policy allows none of the changes".into());
        }
    }
    outputs.commit(args, &report, &names)?;
    args.tell(&report)
}

fn simulate(
    args: &Args,
    workload: &dyn Workload,
    machine: &Machine,
    choice: &Choice,
    outputs: &mut Outputs,
) -> Result<(Report, Names), Failure> {
    let mut report = outputs.reports.watch(workload, machine, |journal| match args.engine {
        Engine::Virtual => args.run_virtual(workload, machine, choice, journal),
        Engine::Threads => args.threads.run(workload, machine, choice, journal),
        Engine::Execute => args.threads.execute(workload, machine, choice, journal),
    })?;
    let names = outputs.reports.complete(&mut report);
    report.notes.extend(workload.notes());
    report.notes.extend(machine.notes());
    if args.reports.wants_path() && args.is_free() {
        report.notes.push(
            "--critical-path: free threads observe no path in cycles, so that only the static one is written".into(),
        );
    }
    report.verdict = verdict(&report);
    Ok((report, names))
}

impl Args {
    fn check(&self) -> Result<(), Failure> {
        self.threads.check(self.engine != Engine::Virtual, self.engine == Engine::Execute)?;
        if self.progress_cycles.is_some() && self.engine != Engine::Virtual {
            return Err(Failure::Usage(
                "--progress-cycles counts virtual cycles; on threads use --progress-seconds".into(),
            ));
        }
        if self.reports.what_if && self.is_free() {
            return Err(Failure::Usage(
                "--what-if compares virtual cycles, which free threads do not have; use --engine virtual or --mode deterministic"
                    .into(),
            ));
        }
        self.reports.check()
    }

    /// Whether the host decides what runs when, so that nothing is known in cycles.
    fn is_free(&self) -> bool {
        self.engine != Engine::Virtual && self.threads.is_free()
    }

    /// Refuses to write what is read, and to write anything twice.
    fn check_files(&self, machine: &Machine) -> Result<(), Failure> {
        let read = self.import.files(Files::default(), &self.workload);
        let read = self.policy.config.files(self.machine.files(read, machine));
        self.files().into_iter().fold(read, |files, (option, path)| files.writes(option, Some(path))).check()
    }

    fn run_virtual(
        &self,
        workload: &dyn Workload,
        machine: &Machine,
        choice: &Choice,
        journal: &mut Journal,
    ) -> Result<Report, Failure> {
        let Some(every) = self.progress_cycles else {
            return Ok(engine::run_with(workload, machine, choice, journal)?);
        };
        let mut progress = Progress::new(every, machine.limits.rings);
        Ok(engine::run_with(workload, machine, choice, &mut Watch(&mut [journal, &mut progress]))?)
    }

    /// All files that are written, with the options that name them.
    fn files(&self) -> Vec<(&'static str, &str)> {
        let own = [("--json", &self.json), ("--schedule", &self.schedule)];
        let own = own.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?)));
        own.chain(self.reports.files()).collect()
    }

    /// Whether standard output carries data, so that no text may go there.
    fn data_on_stdout(&self) -> bool {
        self.files().iter().any(|(_, path)| *path == "-")
    }

    /// Prints the report, unless standard output has other work or silence is wanted.
    fn tell(&self, report: &Report) -> Result<Ending, Failure> {
        let ending = if report.outcome == Outcome::Completed { Ending::Good } else { Ending::Bad };
        if !self.quiet && !self.data_on_stdout() {
            unless_pipe_closed(print(&render(report, text_width())))?;
        } else if ending == Ending::Bad {
            // The exit code tells too, so nothing is lost when this cannot be written.
            let _ = writeln!(anstream::stderr(), "{}", wrap(&report.verdict, text_width()));
        }
        Ok(ending)
    }
}

/// Takes it as done when the reader of a pipe has gone: the run itself is not worse for it.
pub(super) fn unless_pipe_closed(written: Result<(), OutputError>) -> Result<(), OutputError> {
    written.or_else(|error| if error.is_closed_pipe() { Ok(()) } else { Err(error) })
}

/// The width of the terminal within what suits the report, or a comfortable one.
pub(super) fn text_width() -> usize {
    comfy_table::Table::new().width().map_or(100, |width| usize::from(width).clamp(80, 120))
}

/// The files a run writes: opened before it, put into place together after it.
struct Outputs {
    json: Option<Output>,
    reports: Reports,
}

impl Outputs {
    fn open(args: &Args, workload: &dyn Workload, machine: &Machine) -> Result<Outputs, Failure> {
        let json = args.json.as_deref().map(Output::open).transpose()?;
        let schedule = args.schedule.as_deref().map(Output::open).transpose()?;
        let mut reports = Reports::open(&args.reports, schedule, workload, machine)?;
        if !args.quiet && args.progress_cycles.is_none() {
            observe::on_terminal().into_iter().for_each(|sign| reports.journal().show_life(sign));
        }
        Ok(Outputs { json, reports })
    }

    /// Writes what is left to write, and only when all of it is written puts the files into place.
    fn commit(self, args: &Args, report: &Report, names: &Names) -> Result<(), Failure> {
        let mut complete = Vec::new();
        let mut finish = |path: &Option<String>, written: io::Result<Output>| {
            let path = path.as_deref().unwrap_or_default();
            unless_pipe_closed(
                written.map(|output| complete.push(output)).map_err(|source| Output::error(path, source)),
            )
        };
        self.reports.write((&args.reports, &args.schedule), (report, names), &mut finish)?;
        if let Some(mut output) = self.json {
            finish(&args.json, write_json(report, BufWriter::new(&mut output)).map(|()| output))?;
        }
        // Old files go away with this, which takes a while when they are large.
        let committed: Vec<_> = complete.into_par_iter().map(|output| unless_pipe_closed(output.commit())).collect();
        committed.into_iter().collect::<Result<(), OutputError>>()?;
        Ok(())
    }
}

//! `ptosim sweep`: many runs, kept on disk as they come, and what they say.

use super::files::Files;
use super::size::{progress_bar, stop_on_interrupt};
use super::{Ending, Failure, print};
use ptosim::report::group;
use ptosim::sweep::{self, Key, MANY_RUNS, Plan, Shard, Spec, Store};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Run a workload over many settings, policies and workloads, and compare
#[derive(clap::Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
A specification in TOML, every combination of which is run:
  workload = [\"bgemm:batch=2,m=8,n=8\", \"bgemm:scope=batch\"]    # generators or trace files
  machine = \"a2a3\"
  policy = [\"pto\", \"heft\"]
  [generator]
  k = [4, 8]                                         # parameters of generators
  [set]
  \"limits.window\" = { from = 64, to = 4096, times = 2 }
  \"workers.clusters\" = { from = 4, to = 24, step = 4 }

With samples = 100 and seed = 1 at the top it is a random sample of them; with a table [[list]] for each point it is those \
points.

The folder gets results.jsonl and results.csv while it runs, and summary.txt and report.html at the end. A sweep that was \
stopped with Ctrl-C or killed goes on where it was when it is started again.

Examples:
  ptosim sweep windows.toml --out windows
  ptosim sweep windows.toml --out part1 --shard 1/2    on one host, and 2/2 on another
  ptosim sweep merge windows.toml part1 part2 --out windows

Exit codes: 0 all runs are there, however they ended; 1 some are missing; 2 it cannot be run or written"
)]
pub struct Args {
    #[command(subcommand)]
    merge: Option<Command>,
    /// What to run
    #[arg(value_name = "SPEC.toml", required = true)]
    spec: Option<String>,
    /// Only every n-th point, the i-th part
    #[arg(long, value_name = "i/n", default_value = "1/1")]
    shard: Shard,
    /// Folder for the results [default: the name of the specification without its ending]
    #[arg(long, value_name = "DIR")]
    out: Option<String>,
    /// Start even a very large sweep
    #[arg(long)]
    yes: bool,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Put the results of shards together
    Merge {
        /// The specification that all of them ran
        #[arg(value_name = "SPEC.toml")]
        spec: String,
        /// Folders of the shards
        #[arg(value_name = "DIR", required = true)]
        folders: Vec<String>,
        /// Folder for the whole
        #[arg(long, value_name = "DIR")]
        out: String,
    },
}

pub fn run(args: &Args) -> Result<Ending, Failure> {
    match &args.merge {
        Some(Command::Merge { spec, folders, out }) => merge(spec, folders, out),
        None => all(args, args.spec.as_deref().unwrap_or_default()),
    }
}

fn all(args: &Args, path: &str) -> Result<Ending, Failure> {
    let spec = Spec::load(path)?;
    let points = spec.n_points();
    if points > MANY_RUNS && !args.yes {
        let points = u64::try_from(points).map_or("more than 2^64".into(), group);
        return Err(Failure::Usage(format!(
            "{path}: a sweep of {points} runs; --yes starts it, samples = 1000 draws some of them"
        )));
    }
    let out = args.out.clone().unwrap_or_else(|| path.trim_end_matches(".toml").to_owned());
    check_files(path, &spec, &out)?;
    let stop = stop_on_interrupt()?;
    let plan = Plan::new(spec)?;
    let identities = plan.identities();
    let mut store = Store::open(&out, &plan, &identities)?;
    let missing = plan.missing(&identities, args.shard, &store.done());
    let bar = progress_bar();
    bar.set_length(missing.len() as u64);
    let progress = || {
        bar.inc(1);
        // Ordering: Relaxed; a wish that may come a run later.
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    sweep::run(&plan, &identities, &missing, &mut store, &progress)?;
    bar.finish_and_clear();
    let left = plan.missing(&identities, args.shard, &store.done()).len();
    let summary = conclude(&plan, &identities, store)?;
    print(&format!("{summary}\nresults.jsonl, results.csv, summary.txt and report.html are in {out}\n"))?;
    if left == 0 {
        return Ok(Ending::Good);
    }
    let (left, of) = (group(left as u64), group(missing.len() as u64));
    print(&format!("stopped before the end: {left} of {of} runs were not made; start it again to go on\n"))?;
    Ok(Ending::Bad)
}

/// Refuses a folder in which a file of the specification would be replaced by one of the results.
fn check_files(path: &str, spec: &Spec, out: &str) -> Result<(), Failure> {
    let mut files = Files::default()
        .reads("the specification", Some(path))
        .reads("the policy configuration", spec.policy_config.as_ref());
    for axis in &spec.axes {
        for value in &axis.values {
            files = match axis.key {
                Key::Workload => files.reads_workload(value, spec.import.from.as_deref()),
                Key::Machine => files.reads("the machine file", Some(value)),
                _ => files,
            };
        }
    }
    let written = sweep::FILES.iter().map(|name| Path::new(out).join(name));
    written.fold(files, |files, path| files.writes("--out", Some(path))).check()
}

fn merge(spec: &str, folders: &[String], out: &str) -> Result<Ending, Failure> {
    let plan = Plan::new(Spec::load(spec)?)?;
    let identities = plan.identities();
    let rows = sweep::merge(&plan, &identities, folders)?;
    let mut store = Store::open(out, &plan, &identities)?;
    let done = store.done();
    for row in rows.into_iter().filter(|row| !done.contains(&row.id)) {
        store.append(row)?;
    }
    let left = plan.missing(&identities, Shard::ALL, &store.done()).len();
    print(&conclude(&plan, &identities, store)?)?;
    Ok(if left == 0 { Ending::Good } else { Ending::Bad })
}

/// Writes everything that the results say into their folder, and gives the summary.
fn conclude(plan: &Plan, identities: &[String], store: Store) -> Result<String, Failure> {
    let left = plan.missing(identities, Shard::ALL, &store.done()).len();
    let (rows, keys, name) = (store.in_order(identities), plan.keys(), &plan.spec.name);
    let coloured = sweep::render(name, &rows, &sweep::summarize(&rows, &keys), left as u64);
    let summary = anstream::adapter::strip_str(&coloured).to_string();
    store.finish(identities, &summary, &sweep::page(name, &rows, &keys))?;
    Ok(summary)
}

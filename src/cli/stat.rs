//! `ptosim stat`: what a workload looks like, before anything runs.

use super::{Ending, Failure, ImportArgs, MachineArgs, print};
use ptosim::config::Machine;
use ptosim::graph::Graph;
use ptosim::id::TaskId;
use ptosim::report::{Statistics, group, plain};
use ptosim::workload::import::Edges;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Dependencies that a comparison names.
const NAMED: usize = 10;

/// Show what a workload looks like: counts, fan-in and fan-out, levels, critical path, work, memory
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  ptosim stat trace.jsonl.gz
  ptosim stat graph.stg --json | jq .width
  ptosim stat deps.json --compare-edges        recorded dependencies against those that regions imply")]
pub struct Args {
    /// File, `-` for standard input, or a generator
    workload: String,
    /// Print the numbers as JSON
    #[arg(long)]
    json: bool,
    /// Compare the dependencies that the file lists with those found from its regions or files
    #[arg(long, conflicts_with_all = ["json", "edges"])]
    compare_edges: bool,
    #[command(flatten)]
    import: ImportArgs,
    #[command(flatten)]
    machine: MachineArgs,
}

pub fn run(args: &Args) -> Result<Ending, Failure> {
    let machine = args.machine.load()?;
    if args.compare_edges {
        print(&args.compare(&machine)?)?;
        return Ok(Ending::Good);
    }
    let workload = args.import.open(&args.workload, &machine)?;
    let statistics = Statistics::of(workload.as_ref(), &machine)?;
    print(&if args.json { statistics.json() } else { statistics.to_string() })?;
    Ok(Ending::Good)
}

impl Args {
    fn compare(&self, machine: &Machine) -> Result<String, Failure> {
        let load = |edges: Edges| {
            let import = ImportArgs { edges: Some(edges), ..self.import.clone() };
            import.open(&self.workload, machine).map_err(Failure::from)
        };
        let recorded = load(Edges::Recorded)?;
        let (choice, found) = match load(Edges::Infer) {
            Ok(found) => (Edges::Infer, found),
            Err(_) => (Edges::Files, load(Edges::Files)?),
        };
        let recorded = Graph::survey(recorded.as_ref(), machine)?;
        let found = Graph::survey(found.as_ref(), machine)?;
        Ok(comparison(&recorded, &found, choice.name()))
    }
}

/// Both sets of dependencies by names, because the order of the tasks may differ.
fn comparison(recorded: &Graph, found: &Graph, choice: &str) -> String {
    let (left, right) = (named(recorded), named(found));
    let both = left.intersection(&right).count() as u64;
    let mut text = format!(
        "{} recorded dependencies, {} by --edges {choice}, {} in both\n",
        group(left.len() as u64),
        group(right.len() as u64),
        group(both)
    );
    let sides = [("only recorded", left.difference(&right)), ("only by regions", right.difference(&left))];
    for (side, edges) in sides {
        let edges: Vec<_> = edges.collect();
        if edges.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{side}: {}", group(edges.len() as u64));
        for (producer, consumer) in edges.iter().take(NAMED) {
            let _ = writeln!(text, "  {producer} -> {consumer}");
        }
    }
    text
}

fn named(graph: &Graph) -> BTreeSet<(String, String)> {
    let tasks = (0..graph.tasks.len() as u64).map(TaskId);
    let edges = tasks.flat_map(|task| graph.producers(task).iter().map(move |&producer| (producer, task)));
    edges.map(|(producer, consumer)| (plain(&graph.name(producer)), plain(&graph.name(consumer)))).collect()
}

//! `ptosim stat`: what a workload looks like, before anything runs.

use super::{Ending, Failure, ImportArgs, MachineArgs, print};
use ptosim::config::Machine;
use ptosim::graph::Graph;
use ptosim::id::TaskId;
use ptosim::report::{Statistics, group, plain};
use ptosim::workload::import::{Edges, formats};
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
    /// Compare the dependencies that the file lists with those that --edges finds otherwise
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
        let choice = self.other_edges(machine)?;
        let load = |edges: Edges| {
            let import = ImportArgs { edges: Some(edges), ..self.import.clone() };
            let workload = import.open(&self.workload, machine)?;
            Graph::survey(workload.as_ref(), machine).map_err(Failure::from)
        };
        Ok(comparison(&load(Edges::Recorded)?, &load(choice)?, choice.name()))
    }

    /// Where the format has dependencies from, other than recorded ones.
    fn other_edges(&self, machine: &Machine) -> Result<Edges, Failure> {
        let workload = &self.workload;
        if workload == "-" {
            let message = "--compare-edges reads the workload twice; save standard input as a file and name that";
            return Err(Failure::Usage(message.into()));
        }
        let known = ptosim::workload::edges(workload, &self.import.options(machine)?)?;
        known.iter().copied().find(|&edges| edges != Edges::Recorded).ok_or_else(|| {
            let formats = formats().iter().filter(|format| format.edges().len() > 1);
            let formats: Vec<&str> = formats.map(|format| format.name()).collect();
            Failure::Usage(format!(
                "{workload}: --compare-edges is for formats that give dependencies in two ways ({}), and this is none; \
                 leave it out",
                formats.join(", ")
            ))
        })
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
    let by_choice = format!("only by --edges {choice}");
    let sides = [("only recorded", left.difference(&right)), (by_choice.as_str(), right.difference(&left))];
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

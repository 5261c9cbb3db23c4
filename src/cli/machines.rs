//! `ptosim machines`: the built-in machines, their files, and the memory they take.

use super::{Ending, Failure, print};
use ptosim::config::{BUILTINS, Builtin, Machine, format_bytes};
use ptosim::id::WorkerType;
use ptosim::report::{Memory, columns, group};
use std::fmt::Write;

/// List the built-in machines, or show one
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  ptosim machines                     sizes and costs of all built-in machines
  ptosim machines a2a3 > mine.toml    a machine file to start from
  ptosim machines --memory            what their shared memory takes")]
pub struct Args {
    /// Print this machine as a machine file: the text of a built-in one, or all settings that result from a file
    #[arg(value_name = "NAME|FILE")]
    machine: Option<String>,
    /// Print the memory that descriptors, dependency pool and ready queues take in the layout of the C reference
    #[arg(long)]
    memory: bool,
}

pub fn run(args: &Args) -> Result<Ending, Failure> {
    let text = match &args.machine {
        Some(name) if args.memory => memory(&load(name)?),
        Some(name) => file(name)?,
        None if args.memory => {
            let machines: Result<Vec<Machine>, Failure> = BUILTINS.iter().map(|builtin| load(builtin.name)).collect();
            machines?.iter().map(memory).collect::<Vec<_>>().join("\n")
        }
        None => list()?,
    };
    print(&text)?;
    Ok(Ending::Good)
}

fn load(name: &str) -> Result<Machine, Failure> {
    let machine = Machine::load(name)?;
    machine.validate()?;
    Ok(machine)
}

fn file(name: &str) -> Result<String, Failure> {
    if let Some(builtin) = Builtin::find(name) {
        return Ok(builtin.toml.to_owned());
    }
    toml::to_string(&load(name)?).map_err(|error| Failure::Usage(format!("{name}: {error}")))
}

fn list() -> Result<String, Failure> {
    let header = [
        "machine", "MHz", "cube", "vector", "window", "rings", "heap", "deps", "threads", "submit", "dispatch",
        "complete", "pickup",
    ];
    let rows: Result<Vec<_>, Failure> =
        BUILTINS.iter().map(|builtin| load(builtin.name).map(|machine| row(&machine))).collect();
    let mut text = columns(&header, &rows?);
    text.push('\n');
    for builtin in BUILTINS {
        let _ = writeln!(text, "{:9}  {}", builtin.name, builtin.summary());
    }
    text.push_str(
        "\nCosts are in cycles; window, heap and deps are per ring. `ptosim machines NAME` shows the rest.\n",
    );
    Ok(text)
}

fn row(machine: &Machine) -> Vec<String> {
    let Machine { workers, limits, orchestrator, scheduler, worker, .. } = machine;
    let mut row = vec![machine.name.clone(), machine.clock_mhz.to_string()];
    row.extend([WorkerType::Cube, WorkerType::Vector].map(|kind| workers.count(kind).to_string()));
    row.extend([
        limits.window.to_string(),
        limits.rings.to_string(),
        format_bytes(limits.heap),
        limits.deps.to_string(),
    ]);
    row.push(scheduler.threads.to_string());
    row.extend(
        [orchestrator.submit, scheduler.dispatch, scheduler.complete, worker.pickup].map(|cost| cost.to_string()),
    );
    row
}

fn memory(machine: &Machine) -> String {
    let memory = Memory::of(machine);
    let mut rows: Vec<Vec<String>> = memory
        .parts
        .iter()
        .map(|part| vec![part.name.into(), group(part.entries), part.entry_bytes.to_string(), group(part.bytes())])
        .collect();
    rows.push(vec!["total".into(), String::new(), String::new(), group(memory.bytes())]);
    let table = columns(&["", "entries", "bytes each", "bytes"], &rows);
    format!(
        "{}: {} and a heap of {} a ring\n{table}",
        machine.name,
        format_bytes(memory.bytes()),
        format_bytes(machine.limits.heap)
    )
}

//! `ptosim kernels`: what kernels cost when a trace does not say.

use super::{Ending, Failure, print};
use ptosim::kernel::{Rule, Table};
use ptosim::report::columns;

/// Show a kernel table: what a kernel of a given name costs and where it runs
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The first rule one of whose words is contained in the kernel's name applies; cycles given in a trace always win.

Examples:
  ptosim kernels                 the table that machines use by default
  ptosim kernels mine.toml       a table of your own; `--set kernels=mine.toml` runs with it")]
pub struct Args {
    /// Built-in table or a file
    #[arg(value_name = "NAME|FILE", default_value = "reference")]
    table: String,
}

pub fn run(args: &Args) -> Result<Ending, Failure> {
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

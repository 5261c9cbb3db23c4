//! `ptosim gen`: generated workloads as trace files, and the list of generators.

use super::convert::write_native;
use super::{Ending, Failure, print};
use ptosim::report::columns;
use ptosim::workload::generate::{Generator, catalogue, generator};
use std::fmt::Write;
use std::path::Path;

/// Write a generated workload as a trace, or list the generators
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  ptosim gen --list                                   generators, parameters and their defaults
  ptosim gen bgemm batch=2 m=8 n=8 k=8 -o bgemm.jsonl
  ptosim gen chain:n=1000 -o chain.jsonl.gz           compressed, by the name
  ptosim gen random n=100 fanin=3 seed=7 | head       to standard output")]
pub struct Args {
    /// Generator, with or without parameters: bgemm or bgemm:batch=2,m=8
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// Parameters of the generator
    #[arg(value_name = "PARAM=VALUE")]
    parameters: Vec<String>,
    /// Where to write the trace; a name that ends in .gz is compressed
    #[arg(long, short, value_name = "FILE|-", default_value = "-")]
    output: String,
    /// List all generators with their parameters
    #[arg(long)]
    list: bool,
}

pub fn run(args: &Args) -> Result<Ending, Failure> {
    match &args.name {
        Some(name) if !args.list => {
            let workload = generator(&spec(name, &args.parameters))?;
            write_native(workload.as_ref(), Path::new(&args.output))?;
        }
        name => print(&list(name.as_deref())?)?,
    }
    Ok(Ending::Good)
}

/// `name:a=1` and `b=2` as `name:a=1,b=2`.
fn spec(name: &str, parameters: &[String]) -> String {
    if parameters.is_empty() {
        return name.to_owned();
    }
    let separator = if name.contains(':') { ',' } else { ':' };
    format!("{name}{separator}{}", parameters.join(","))
}

fn list(name: Option<&str>) -> Result<String, Failure> {
    // An unknown name is refused by the generators themselves, with the nearest one.
    name.map(generator).transpose()?;
    let wanted = |generator: &&Generator| name.is_none_or(|name| name.split(':').next() == Some(generator.name));
    let mut text = String::new();
    for generator in catalogue().iter().filter(wanted) {
        let _ = writeln!(text, "{}: {}", generator.name, generator.description);
        let rows: Vec<Vec<String>> = generator
            .parameters
            .iter()
            .map(|parameter| vec![format!("  {}={}", parameter.name, parameter.default), parameter.description.into()])
            .collect();
        let _ = writeln!(text, "{}", columns(&[], &rows));
    }
    Ok(text)
}

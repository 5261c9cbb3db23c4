//! `ptosim diff`: what changed between two results, or between two folders of them.

use super::{Ending, Failure, print};
use ptosim::report::{Diff, Report, columns, group};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Tell what changed between two results, and fail when it got slower
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  ptosim diff before.json after.json
  ptosim diff before.json after.json --fail-over 2%     exit code 1 if more than 2 % slower
  ptosim diff main/ branch/ --fail-over 5%              results of the same name in two folders")]
pub struct Args {
    /// Result of `run --json`, or a folder of results
    before: String,
    /// The later one
    after: String,
    /// End with exit code 1 when a makespan grew by more than this, or a run no longer completes
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    fail_over: Option<f64>,
}

/// `2%` or `2` as 0.02.
fn percentage(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim();
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent / 100.0),
        _ => Err(format!("\"{text}\" is no percentage; try 2%")),
    }
}

pub fn run(args: &Args) -> Result<Ending, Failure> {
    let (before, after) = (Path::new(&args.before), Path::new(&args.after));
    match (before.is_dir(), after.is_dir()) {
        (true, true) => folders(before, after, args.fail_over),
        (false, false) => files(before, after, args.fail_over),
        _ => Err(Failure::Usage(format!(
            "{} and {}: compare two results or two folders, not one of each",
            args.before, args.after
        ))),
    }
}

fn files(before: &Path, after: &Path, limit: Option<f64>) -> Result<Ending, Failure> {
    let (before, after) = (load(before)?, load(after)?);
    let diff = Diff::new(&before, &after);
    print(&diff.render())?;
    Ok(ending(limit.is_some_and(|limit| diff.exceeds(limit))))
}

fn ending(is_bad: bool) -> Ending {
    if is_bad { Ending::Bad } else { Ending::Good }
}

/// Reads a result file.
pub fn load(path: &Path) -> Result<Report, Failure> {
    let name = path.display();
    let text = fs::read(path).map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
    let report: Report = serde_json::from_slice(&text)
        .map_err(|error| Failure::Usage(format!("{name}: not a result of `run --json`: {error}")))?;
    if report.format != "ptosim-result" || report.version != 1 {
        let (format, version) = (&report.format, report.version);
        return Err(Failure::Usage(format!(
            "{name}: format \"{format}\" version {version}: must be \"ptosim-result\" version 1"
        )));
    }
    Ok(report)
}

fn names(folder: &Path) -> Result<BTreeSet<String>, Failure> {
    let failed = |error| Failure::Usage(format!("{}: {error}", folder.display()));
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        if Path::new(&name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
            names.insert(name);
        }
    }
    Ok(names)
}

fn folders(before: &Path, after: &Path, limit: Option<f64>) -> Result<Ending, Failure> {
    let (old, new) = (names(before)?, names(after)?);
    if old.intersection(&new).next().is_none() {
        let (before, after) = (before.display(), after.display());
        return Err(Failure::Usage(format!("{before} and {after} have no result file of the same name")));
    }
    let mut rows = Vec::new();
    let (mut slower, mut faster, mut over, mut logs) = (0, 0, 0, 0.0);
    for name in old.intersection(&new) {
        let (a, b) = (load(&before.join(name))?, load(&after.join(name))?);
        let diff = Diff::new(&a, &b);
        let slowdown = diff.slowdown();
        slower += usize::from(slowdown > 0.0);
        faster += usize::from(slowdown < 0.0);
        logs += if slowdown.is_finite() && slowdown > -1.0 { slowdown.ln_1p() } else { 0.0 };
        let is_over = limit.is_some_and(|limit| diff.exceeds(limit));
        over += usize::from(is_over);
        let words = diff.words();
        let reason = words.get(1..).unwrap_or_default().join(" ");
        let mark = if is_over { "over the limit" } else { "" };
        let change = format!("{:+.2} %", 100.0 * slowdown);
        rows.push(vec![name.clone(), group(a.makespan), group(b.makespan), change, mark.into(), reason]);
    }
    let compared = rows.len();
    let mut text = columns(&["result", "before", "after", "change", "", "why"], &rows);
    let mean = 100.0 * (logs / compared as f64).exp_m1();
    let _ = writeln!(
        text,
        "\n{compared} compared: {slower} slower, {faster} faster, {} the same; geometric mean {mean:+.2} %",
        compared - slower - faster
    );
    let missing: Vec<&String> = old.difference(&new).collect();
    for name in &missing {
        let _ = writeln!(text, "only in {}: {name}", before.display());
    }
    for name in new.difference(&old) {
        let _ = writeln!(text, "only in {}: {name}", after.display());
    }
    print(&text)?;
    Ok(ending(over > 0 || limit.is_some() && !missing.is_empty()))
}

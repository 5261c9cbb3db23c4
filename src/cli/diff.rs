//! `ptosim diff`: what changed between two results, or between two folders of them.

use super::files;
use super::{Ending, Failure, percent, print};
use ptosim::report::{Diff, Report, columns, group};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::io::Read;
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
    /// End with exit code 1 when a makespan grew by more than this, or a run no longer completes or is missing
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_hyphen_values = true)]
    fail_over: Option<f64>,
}

pub fn run(args: &Args) -> Result<Ending, Failure> {
    let (before, after) = (Path::new(&args.before), Path::new(&args.after));
    for path in [before, after] {
        fs::metadata(path).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    }
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
    let mut text = Vec::new();
    let read = files::open(path).and_then(|mut file| file.read_to_end(&mut text));
    read.map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
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
        let plain = name.strip_suffix(".gz").unwrap_or(&name);
        if Path::new(plain).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
            names.insert(name);
        }
    }
    Ok(names)
}

/// The results in a folder by name; a JSON file that is none is told and passed over.
fn results(folder: &Path, skipped: &mut Vec<String>) -> Result<BTreeMap<String, Report>, Failure> {
    let mut results = BTreeMap::new();
    for name in names(folder)? {
        match load(&folder.join(&name)) {
            Ok(report) => _ = results.insert(name, report),
            Err(error) => skipped.push(format!("skipped {error}")),
        }
    }
    Ok(results)
}

fn folders(before: &Path, after: &Path, limit: Option<f64>) -> Result<Ending, Failure> {
    let mut skipped = Vec::new();
    let (old, new) = (results(before, &mut skipped)?, results(after, &mut skipped)?);
    let missing: Vec<&String> = old.keys().filter(|name| !new.contains_key(*name)).collect();
    // With a limit, results that are gone are what it is to find; without one there is nothing to say.
    if old.is_empty() || missing.len() == old.len() && limit.is_none() {
        let (before, after) = (before.display(), after.display());
        let mut lines = vec![format!("{before} and {after} have no result file of the same name")];
        lines.extend(skipped);
        return Err(Failure::Usage(lines.join("\n")));
    }
    let mut summary = Summary::default();
    for (name, a) in &old {
        if let Some(b) = new.get(name) {
            summary.add(name, &Diff::new(a, b), limit);
        }
    }
    let mut text = summary.render();
    let only = |folder: &Path, name: &String| format!("only in {}: {name}", folder.display());
    let added = new.keys().filter(|name| !old.contains_key(*name));
    for line in missing.iter().map(|name| only(before, name)).chain(added.map(|name| only(after, name))).chain(skipped)
    {
        let _ = writeln!(text, "{line}");
    }
    print(&text)?;
    Ok(ending(summary.over > 0 || limit.is_some() && !missing.is_empty()))
}

/// Pairs of results, counted.
#[derive(Default)]
struct Summary {
    rows: Vec<Vec<String>>,
    slower: usize,
    faster: usize,
    same: usize,
    over: usize,
    /// Sum of the logarithms of all slowdowns.
    logs: f64,
}

impl Summary {
    fn add(&mut self, name: &str, diff: &Diff<'_>, limit: Option<f64>) {
        let slowdown = diff.slowdown();
        if diff.is_comparable() {
            self.slower += usize::from(slowdown > 0.0);
            self.faster += usize::from(slowdown < 0.0);
            self.same += usize::from(slowdown == 0.0);
            self.logs += if slowdown.is_finite() && slowdown > -1.0 { slowdown.ln_1p() } else { 0.0 };
        }
        let is_over = limit.is_some_and(|limit| diff.exceeds(limit));
        self.over += usize::from(is_over);
        let mark = if is_over { "over the limit" } else { "" };
        let change = match diff.is_comparable() {
            true if slowdown.is_finite() => format!("{:+.2} %", 100.0 * slowdown),
            // From a makespan of 0.
            true => "new".into(),
            false => "–".into(),
        };
        let [before, after] = diff.makespans().map(group);
        self.rows.push(vec![name.to_owned(), before, after, change, mark.into(), diff.reasons().join(" ")]);
    }

    fn render(&self) -> String {
        let Summary { rows, slower, faster, same, .. } = self;
        let (all, completed) = (rows.len(), slower + faster + same);
        let mut text = columns(&["result", "before", "after", "change", "", "why"], rows);
        let _ = write!(text, "\n{all} compared: {slower} slower, {faster} faster, {same} the same");
        if completed < all {
            let _ = write!(text, ", {} not completed", all - completed);
        }
        if completed > 0 {
            let _ = write!(text, "; geometric mean {:+.2} %", 100.0 * (self.logs / completed as f64).exp_m1());
        }
        text + "\n"
    }
}

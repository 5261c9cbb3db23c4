//! What changed between two results, in words and tables.

use super::table::columns;
use super::words::{count, duration, group, list, percent, share, short};
use super::{Deadlock, Outcome, Report};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Changes of a share below this are not worth a row.
const SMALLEST_SHARE: f64 = 0.0005;
/// Kernels and settings listed; the rest is only counted.
const LISTED: usize = 12;

/// Two results side by side: the one before, and the one after.
pub struct Diff<'a> {
    before: &'a Report,
    after: &'a Report,
}

impl<'a> Diff<'a> {
    /// Compares `after` with `before`.
    #[must_use]
    pub fn new(before: &'a Report, after: &'a Report) -> Diff<'a> {
        Diff { before, after }
    }

    /// The makespans, before and after.
    #[must_use]
    pub fn makespans(&self) -> [u64; 2] {
        [self.before.makespan, self.after.makespan]
    }

    /// How much longer the later run takes, as a part of the earlier: 0.02 is 2 % slower, negative is faster.
    #[must_use]
    pub fn slowdown(&self) -> f64 {
        match (self.before.makespan, self.after.makespan) {
            (before, after) if before == after => 0.0,
            (0, _) => f64::INFINITY,
            (before, after) => after as f64 / before as f64 - 1.0,
        }
    }

    /// Whether both runs completed, so that one can be slower than the other: what is left undone takes no time.
    #[must_use]
    pub fn is_comparable(&self) -> bool {
        self.before.outcome == Outcome::Completed && self.after.outcome == Outcome::Completed
    }

    /// Whether the later run is slower by more than `limit`, or does not complete although the earlier one did.
    #[must_use]
    pub fn exceeds(&self, limit: f64) -> bool {
        let is_worse = self.before.outcome == Outcome::Completed && self.after.outcome != Outcome::Completed;
        let is_same = self.before.outcome == self.after.outcome;
        is_worse || is_same && self.slowdown() > limit
    }

    /// The whole comparison, for people.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = self.words().join("\n");
        text.push('\n');
        let mut section = |title: &str, header: &[&str], rows: Vec<Vec<String>>| {
            if !rows.is_empty() {
                let _ = write!(text, "\n{title}\n{}", columns(header, &rows));
            }
        };
        section("Settings that differ", &["", "before", "after"], limited(self.settings()));
        section("Figures", &["", "before", "after", "change"], self.figures());
        section("Critical path, cycles by cause", &["", "before", "after", "change"], self.blame());
        section("Worker cycles, share by type and account", &["", "before", "after", "change"], self.accounts());
        section("Kernels, cycles of all blocks", &["", "before", "after", "change", "blocks"], limited(self.kernels()));
        text
    }

    /// How the runs ended if one did not complete, the change of the makespan, and what it comes from.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = self.endings();
        words.push(self.headline());
        words.extend(self.changes());
        words
    }

    /// The same without the change of the makespan, for tables that show it as a number.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let mut words = self.endings();
        words.extend(self.changes());
        words
    }

    /// What is different, and where that shows.
    fn changes(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.before.workload != self.after.workload {
            let (before, after) = (short(&self.before.workload), short(&self.after.workload));
            words.push(format!("The workloads differ: {before} before, {after} after."));
        }
        let settings: Vec<String> =
            self.settings().iter().take(4).map(|row| format!("{} from {} to {}", row[0], row[1], row[2])).collect();
        if !settings.is_empty() {
            words.push(format!("Settings changed: {}.", list(&settings)));
        }
        words.extend(self.cause());
        words
    }

    /// How the runs ended, unless both completed.
    fn endings(&self) -> Vec<String> {
        if self.is_comparable() {
            return Vec::new();
        }
        let (before, after) = (outcome(self.before.outcome), outcome(self.after.outcome));
        let mut words = if self.before.outcome == self.after.outcome {
            vec![format!("Both {after}.")]
        } else {
            vec![format!("It {before} before and {after} now.")]
        };
        let full = |report: &Report| report.deadlock.as_ref().map(what_is_full);
        match (full(self.before), full(self.after)) {
            (Some(before), Some(after)) if before == after => {
                words.push(format!("They are stuck on the same: {after}."));
            }
            (Some(before), Some(after)) => words.push(format!("Stuck on {before} before, and on {after} now.")),
            (None, Some(after)) => words.push(format!("It is stuck on {after}.")),
            (Some(before), None) => words.push(format!("It was stuck on {before}.")),
            (None, None) => {}
        }
        words
    }

    fn headline(&self) -> String {
        let (before, after) = (self.before.makespan, self.after.makespan);
        if !self.is_comparable() {
            let (before, after) = (group(before), group(after));
            return format!("The last block ended at cycle {before} before and at cycle {after} now.");
        }
        let time = duration(before.abs_diff(after), self.after.machine.clock_mhz);
        // Nothing is a part of nothing.
        let part = if before == 0 { "from 0".into() } else { percent(share(before.abs_diff(after), before)) };
        let cycles = count(before.abs_diff(after), "cycle");
        match before.cmp(&after) {
            std::cmp::Ordering::Equal => format!("The makespan is the same: {}.", count(after, "cycle")),
            std::cmp::Ordering::Less => format!("Slower by {cycles} ({part}, {time})."),
            std::cmp::Ordering::Greater => format!("Faster by {cycles} ({part}, {time})."),
        }
    }

    /// Where the larger part of the change lies: on the critical path if both results have one, else in the accounts.
    fn cause(&self) -> Option<String> {
        if !self.is_comparable() {
            return None;
        }
        let is_slower = match self.before.makespan.cmp(&self.after.makespan) {
            std::cmp::Ordering::Equal => return None,
            order => order == std::cmp::Ordering::Less,
        };
        let largest = |changes: Vec<(String, i128)>| {
            let towards = |(_, change): &(String, i128)| if is_slower { *change > 0 } else { *change < 0 };
            changes.into_iter().filter(towards).max_by_key(|(_, change)| change.unsigned_abs())
        };
        let sign = if is_slower { "more" } else { "fewer" };
        if let (Some(before), Some(after)) = (&self.before.path, &self.after.path) {
            let (cause, change) = largest(changes(&before.blame, &after.blame))?;
            let cycles = group(change.unsigned_abs() as u64);
            return Some(format!("Most of it on the critical path: {cycles} {sign} cycles of {cause}."));
        }
        let (account, change) = largest(changes(&totals(self.before), &totals(self.after)))?;
        let cycles = group(change.unsigned_abs() as u64);
        Some(format!("Most of it in the workers' accounts: {cycles} {sign} cycles of {account}."))
    }

    fn settings(&self) -> Vec<Vec<String>> {
        let (before, after) = (settings(self.before), settings(self.after));
        let keys: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let value = |of: &BTreeMap<String, String>, key: &String| of.get(key).cloned().unwrap_or_else(|| "–".into());
        keys.into_iter()
            .filter(|key| before.get(*key) != after.get(*key))
            .map(|key| vec![key.clone(), value(&before, key), value(&after, key)])
            .collect()
    }

    fn figures(&self) -> Vec<Vec<String>> {
        let numbers = |report: &Report| {
            [
                ("makespan", report.makespan),
                ("lower bound", report.bounds.lower_bound),
                ("critical path", report.bounds.critical_path),
                ("work per worker", report.bounds.work),
                ("tasks", report.tasks),
                ("blocks", report.blocks),
                ("edges", report.edges),
                ("orchestrator working", report.orchestrator.working),
                ("blocked on the window", report.orchestrator.blocked.window),
                ("blocked on the heap", report.orchestrator.blocked.heap),
                ("blocked on dependency entries", report.orchestrator.blocked.deps),
                ("blocked on tensor-map entries", report.orchestrator.blocked.tensors),
            ]
        };
        let pairs = numbers(self.before).into_iter().zip(numbers(self.after));
        pairs
            .filter(|((name, before), (_, after))| *name == "makespan" || before != after)
            .map(|((name, before), (_, after))| row(name, before, after))
            .collect()
    }

    fn blame(&self) -> Vec<Vec<String>> {
        let (Some(before), Some(after)) = (&self.before.path, &self.after.path) else { return Vec::new() };
        ranked(&before.blame, &after.blame)
    }

    fn accounts(&self) -> Vec<Vec<String>> {
        let (before, after) = (shares(self.before), shares(self.after));
        let keys: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let value = |of: &BTreeMap<String, f64>, key: &String| of.get(key).copied().unwrap_or(0.0);
        let mut rows: Vec<(f64, Vec<String>)> = keys
            .into_iter()
            .map(|key| (value(&before, key), value(&after, key), key))
            .filter(|(before, after, _)| (before - after).abs() >= SMALLEST_SHARE)
            .map(|(before, after, key)| {
                let change = format!("{:+.1} points", 100.0 * (after - before));
                ((after - before).abs(), vec![key.clone(), percent(before), percent(after), change])
            })
            .collect();
        rows.sort_by(|a, b| b.0.total_cmp(&a.0));
        rows.into_iter().map(|(_, row)| row).collect()
    }

    fn kernels(&self) -> Vec<Vec<String>> {
        let of = |report: &Report, value: fn(&super::KernelReport) -> u64| -> BTreeMap<String, u64> {
            report.kernels.iter().map(|kernel| (kernel.name.clone(), value(kernel))).collect()
        };
        let (before, after) = (of(self.before, |kernel| kernel.count), of(self.after, |kernel| kernel.count));
        let mut rows = ranked(&of(self.before, |kernel| kernel.total), &of(self.after, |kernel| kernel.total));
        for row in &mut rows {
            let blocks = |of: &BTreeMap<String, u64>| of.get(&row[0]).copied().unwrap_or(0);
            let (before, after) = (blocks(&before), blocks(&after));
            row.push(if before == after { group(after) } else { format!("{} → {}", group(before), group(after)) });
            row[0] = short(&row[0]);
        }
        rows
    }
}

/// What a deadlock waits for.
fn what_is_full(deadlock: &Deadlock) -> String {
    let ring = deadlock.ring;
    match deadlock.resource.as_str() {
        "window" => format!("the window of ring {ring}"),
        "heap" => format!("the heap of ring {ring}"),
        "deps" => format!("the dependency entries of ring {ring}"),
        "tensors" => "the tensor-map entries".into(),
        other => format!("the {other}"),
    }
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::Deadlock => "ended in a deadlock",
        Outcome::Failed => "failed",
        Outcome::Timeout => "timed out",
    }
}

/// Names whose numbers differ, with the difference.
fn changes(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> Vec<(String, i128)> {
    let keys: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let value = |of: &BTreeMap<String, u64>, key: &String| i128::from(of.get(key).copied().unwrap_or(0));
    let all = keys.into_iter().map(|key| (key.clone(), value(after, key) - value(before, key)));
    all.filter(|(_, change)| *change != 0).collect()
}

/// A row for each name whose number differs, the largest change first.
fn ranked(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> Vec<Vec<String>> {
    let mut changes = changes(before, after);
    changes.sort_by_key(|(_, change)| std::cmp::Reverse(change.unsigned_abs()));
    let value = |of: &BTreeMap<String, u64>, key: &String| of.get(key).copied().unwrap_or(0);
    changes.iter().map(|(key, _)| row(key, value(before, key), value(after, key))).collect()
}

fn row(name: &str, before: u64, after: u64) -> Vec<String> {
    let change = match (before, after) {
        (before, after) if before == after => "same".into(),
        (0, _) => "new".into(),
        (before, after) => format!("{:+.1} %", 100.0 * (after as f64 / before as f64 - 1.0)),
    };
    vec![name.to_owned(), group(before), group(after), change]
}

fn limited(mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let more = rows.len().saturating_sub(LISTED);
    rows.truncate(LISTED);
    if more > 0 {
        rows.push(vec![format!("{more} more")]);
    }
    rows
}

/// Cycles of all workers by account.
fn totals(report: &Report) -> BTreeMap<String, u64> {
    let mut totals = BTreeMap::new();
    for of in report.by_type() {
        for (name, cycles) in of.accounts.entries() {
            *totals.entry(name.to_owned()).or_default() += cycles;
        }
    }
    totals
}

/// Part of the time of a type's workers in each account.
fn shares(report: &Report) -> BTreeMap<String, f64> {
    let mut shares = BTreeMap::new();
    for of in report.by_type() {
        for (name, cycles) in of.accounts.entries() {
            shares.insert(format!("{} {name}", of.kind), share(cycles, of.accounts.total()));
        }
    }
    shares
}

/// Every setting of the machine, the policy and the engine by dotted key.
fn settings(report: &Report) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let machine = serde_json::to_value(&report.machine).expect("a machine is a table");
    flatten(&mut settings, String::new(), &machine);
    let name = settings.remove("name").unwrap_or_default();
    settings.insert("machine".into(), name);
    settings.insert("policy".into(), report.policy.clone());
    settings.insert("engine".into(), report.engine.clone());
    settings
}

fn flatten(settings: &mut BTreeMap<String, String>, prefix: String, value: &serde_json::Value) {
    match value {
        serde_json::Value::Object(table) => {
            for (key, value) in table {
                let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                flatten(settings, key, value);
            }
        }
        serde_json::Value::String(text) => drop(settings.insert(prefix, text.clone())),
        other => drop(settings.insert(prefix, other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{PathReport, sample};

    fn slower() -> Report {
        let mut report = sample::waits_for_dependencies();
        report.makespan = 1100;
        report.machine.limits.window = 64;
        report.kernels[0].total = 800;
        report.workers[0].accounts.dependency += 100;
        report
    }

    #[test]
    fn equal_results_have_nothing_to_tell() {
        let report = sample::waits_for_dependencies();
        let diff = Diff::new(&report, &report);
        assert!(!diff.exceeds(0.0));
        assert_eq!(diff.words(), ["The makespan is the same: 1 000 cycles."]);
    }

    #[test]
    fn a_slower_run_is_told_with_its_cause_and_its_settings() {
        let (before, after) = (sample::waits_for_dependencies(), slower());
        let diff = Diff::new(&before, &after);
        let words = diff.words().join(" ");
        assert!(words.starts_with("Slower by 100 cycles (10.0 %, 54 ns)."), "{words}");
        assert!(words.contains("limits.window from 16384 to 64"), "{words}");
        assert!(words.contains("100 more cycles of dependency"), "{words}");
        let text = diff.render();
        assert!(text.contains("tile_add") && !text.contains("gemm_tile"), "{text}");
        assert!(diff.exceeds(0.05) && !diff.exceeds(0.15) && !Diff::new(&after, &before).exceeds(0.0));
    }

    #[test]
    fn nothing_has_no_part_that_something_could_be() {
        let (mut before, after) = (sample::waits_for_dependencies(), slower());
        before.makespan = 0;
        let words = Diff::new(&before, &after).words().join(" ");
        assert!(words.starts_with("Slower by 1 100 cycles (from 0, 595 ns)."), "{words}");
    }

    #[test]
    fn the_critical_path_names_the_cause_when_both_have_one() {
        let (mut before, mut after) = (sample::waits_for_dependencies(), slower());
        let path = |compute, worker| PathReport {
            blame: [("compute".into(), compute), ("worker".into(), worker)].into(),
            ..PathReport::default()
        };
        (before.path, after.path) = (Some(path(900, 100)), Some(path(880, 220)));
        let words = Diff::new(&before, &after).words().join(" ");
        assert!(words.ends_with("Most of it on the critical path: 120 more cycles of worker."), "{words}");
    }

    #[test]
    fn a_run_that_no_longer_completes_exceeds_every_limit() {
        let (before, after) = (sample::waits_for_dependencies(), sample::deadlock());
        let diff = Diff::new(&before, &after);
        assert!(diff.exceeds(10.0) && !Diff::new(&after, &before).exceeds(0.0));
        let told = diff.words().join(" ");
        let wanted = "It completed before and ended in a deadlock now. It is stuck on the window of ring 1. The last block ended";
        assert!(told.starts_with(wanted) && !told.contains("aster by"), "{told}");
    }

    #[test]
    fn two_deadlocks_are_told_with_what_they_are_stuck_on() {
        let before = sample::deadlock();
        let mut after = before.clone();
        let told = |after: &Report| Diff::new(&before, after).words().join(" ");
        let same = "Both ended in a deadlock. They are stuck on the same: the window of ring 1.";
        assert!(told(&after).starts_with(same), "{}", told(&after));
        if let Some(deadlock) = &mut after.deadlock {
            deadlock.resource = "heap".into();
        }
        let other = "Stuck on the window of ring 1 before, and on the heap of ring 1 now.";
        assert!(told(&after).contains(other), "{}", told(&after));
    }
}

//! The same workload under several policies, side by side: values, a table, and in words which wins and why.

use super::table::{numbers, plain};
use super::words::{about, count, group, list, short};
use super::{Accounts, Latency, Outcome, Report, wrap};
use crate::config::{Machine, Workers};
use crate::id::WorkerType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write;

/// What a comparison has to tell. Serialises to the `--json` form.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// Always `ptosim-comparison`.
    pub format: String,
    /// Version of this form.
    pub version: u32,
    /// Name of the workload.
    pub workload: String,
    /// The machine, with everything that was set.
    pub machine: Machine,
    /// One row a policy, in the order asked for.
    pub policies: Vec<Row>,
    /// Which policy wins and why.
    pub verdict: String,
}

/// One policy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub policy: String,
    /// The workers it runs on, where its settings count them and they are not those of the machine.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub workers: Option<Workers>,
    /// Why it could not run the workload at all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
    /// What came of it otherwise.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub result: Option<Figures>,
}

/// The figures of one run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// How it ended.
    pub outcome: Outcome,
    /// End of the last block.
    pub makespan: u64,
    /// No policy can end earlier.
    pub lower_bound: u64,
    /// Makespan divided by the lower bound; 1 when both are 0.
    pub ratio: f64,
    /// Tasks completed.
    pub completed: u64,
    /// Tasks submitted.
    pub tasks: u64,
    /// One entry a worker type.
    pub types: Vec<TypeFigures>,
    /// From READY to the start of a block.
    pub ready_to_start: Latency,
    /// Smallest fairness of the worker types.
    pub fairness: f64,
    /// The policy's own counters.
    pub counters: serde_json::Value,
}

/// The workers of one type.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TypeFigures {
    /// The type.
    #[serde(rename = "type")]
    pub kind: WorkerType,
    /// Part of their time they run blocks.
    pub utilisation: f64,
    /// Jain's index of their busy cycles: 1 when all are equal, one over their number when one does everything.
    pub fairness: f64,
    /// Busy cycles of the worker that has least.
    pub least_busy: u64,
    /// Busy cycles of the worker that has most.
    pub most_busy: u64,
    /// Their cycles by cause.
    pub accounts: Accounts,
}

impl Row {
    /// The row of a run.
    #[must_use]
    pub fn of(report: &Report) -> Row {
        Row { policy: report.policy.clone(), workers: None, error: None, result: Some(Figures::of(report)) }
    }

    /// The row of a policy that could not run the workload.
    pub fn failed(policy: &str, error: String) -> Row {
        Row { policy: policy.into(), workers: None, error: Some(error), result: None }
    }

    /// The row with a word about its workers, if they are not those of the machine of the others.
    #[must_use]
    pub fn on(self, workers: &Workers, machine: &Machine) -> Row {
        Row { workers: (*workers != machine.workers).then(|| workers.clone()), ..self }
    }

    /// Whether every task was completed.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.completed().is_some()
    }

    fn completed(&self) -> Option<&Figures> {
        self.result.as_ref().filter(|figures| figures.outcome == Outcome::Completed)
    }
}

impl Figures {
    fn of(report: &Report) -> Figures {
        let types = report.by_type().into_iter().map(|of| TypeFigures {
            kind: of.kind,
            utilisation: of.utilisation(),
            fairness: jain(report.workers.iter().filter(|worker| worker.kind == of.kind).map(|worker| worker.busy)),
            least_busy: of.least_busy,
            most_busy: of.most_busy,
            accounts: of.accounts,
        });
        let types: Vec<TypeFigures> = types.collect();
        let bound = report.bounds.lower_bound;
        Figures {
            outcome: report.outcome,
            makespan: report.makespan,
            lower_bound: bound,
            ratio: if bound == 0 { 1.0 } else { report.makespan as f64 / bound as f64 },
            completed: report.ended.completed,
            tasks: report.tasks,
            fairness: types.iter().map(|of| of.fairness).fold(1.0, f64::min),
            types,
            ready_to_start: report.latency.get("ready_to_start").copied().unwrap_or_default(),
            counters: report.policy_report.clone(),
        }
    }

    fn of_type(&self, kind: WorkerType) -> Option<&TypeFigures> {
        self.types.iter().find(|of| of.kind == kind)
    }
}

/// Workers by type: `24 CUBE and 48 VECTOR`.
fn in_words(workers: &Workers) -> String {
    let kinds = WorkerType::ALL.into_iter().map(|kind| (kind, workers.count(kind))).filter(|(_, number)| *number > 0);
    list(&kinds.map(|(kind, number)| format!("{number} {kind}")).collect::<Vec<_>>())
}

/// Tells which policies run on other workers than the rest, because a comparison of their makespans means less then.
fn other_workers(rows: &[Row], machine: &Machine) -> Option<String> {
    let others = rows.iter().filter_map(|row| Some(format!("{} on {}", row.policy, in_words(row.workers.as_ref()?))));
    let others: Vec<String> = others.collect();
    let rest =
        if others.len() < rows.len() { format!("; the rest on {}", in_words(&machine.workers)) } else { String::new() };
    (!others.is_empty()).then(|| format!("Workers differ where settings count them: {}{rest}.", list(&others)))
}

/// Jain's index of some numbers; 1 when all are 0.
fn jain(numbers: impl Iterator<Item = u64> + Clone) -> f64 {
    let (n, sum) = numbers.clone().fold((0.0, 0.0), |(n, sum), number| (n + 1.0, sum + number as f64));
    let squares: f64 = numbers.map(|number| (number as f64).powi(2)).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (n * squares) }
}

impl Comparison {
    /// Puts rows together and finds the winner.
    #[must_use]
    pub fn new(workload: String, machine: &Machine, policies: Vec<Row>) -> Comparison {
        let verdict = [Some(verdict(&policies)), other_workers(&policies, machine)].into_iter().flatten();
        let verdict = verdict.collect::<Vec<_>>().join(" ");
        let format = "ptosim-comparison".into();
        Comparison { format, version: 1, workload, machine: machine.clone(), policies, verdict }
    }

    /// Whether every policy completed every task.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.policies.iter().all(Row::is_good)
    }

    /// The text people read, in lines of about `width` characters.
    #[must_use]
    pub fn render(&self, width: usize) -> String {
        let workload = short(&self.workload);
        let mut text = format!("{workload} on {}, {}\n\n", self.machine.name, count_policies(self.policies.len()));
        text += &self.table();
        for row in &self.policies {
            if let Some(error) = &row.error {
                let _ = write!(text, "\n{}\n", wrap(&format!("{}: {error}", row.policy), width));
            }
        }
        let _ = write!(text, "\n{}\n", wrap(&self.verdict, width));
        text
    }

    fn kinds(&self) -> Vec<WorkerType> {
        let others = self.policies.iter().filter_map(|row| row.workers.as_ref());
        let workers: Vec<&Workers> = std::iter::once(&self.machine.workers).chain(others).collect();
        WorkerType::ALL.into_iter().filter(|&kind| workers.iter().any(|of| of.count(kind) > 0)).collect()
    }

    fn table(&self) -> String {
        let mut header: Vec<String> = ["policy", "ended", "makespan", "× bound"].map(str::to_owned).into();
        header.extend(self.kinds().iter().map(|kind| format!("{kind} busy")));
        header.extend(["wait p50", "wait p99", "wait max", "fairness", "counters"].map(str::to_owned));
        let mut table = plain(&header.iter().map(String::as_str).collect::<Vec<_>>());
        for row in &self.policies {
            table.add_row(row.cells(&self.kinds(), header.len()));
        }
        let last = header.len() - 1;
        let Some(mut table) = numbers(table) else { return String::new() };
        for index in [1, last] {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(comfy_table::CellAlignment::Left);
            }
        }
        table.trim_fmt() + "\n"
    }

    /// Rows of comma-separated values under a header. Behind the figures that all have, every counter of any of the policies has a
    /// column, which is empty for the others.
    ///
    /// # Errors
    /// Those of `writer`.
    pub fn write_csv(&self, writer: impl std::io::Write) -> std::io::Result<()> {
        let mut csv = csv::Writer::from_writer(writer);
        let kinds = self.kinds();
        let mut header: Vec<String> =
            ["policy", "outcome", "makespan", "lower_bound", "ratio"].map(str::to_owned).into();
        header.extend(kinds.iter().map(|kind| format!("utilisation_{}", kind.name().to_lowercase())));
        header.extend(["wait_p50", "wait_p99", "wait_max", "fairness", "error", "workers"].map(str::to_owned));
        let counters: BTreeSet<&String> = self.policies.iter().flat_map(Row::counters).map(|(name, _)| name).collect();
        let first_counter = header.len();
        header.extend(counters.iter().map(|name| format!("counter_{name}")));
        csv.write_record(&header)?;
        for row in &self.policies {
            let mut record = vec![row.policy.clone()];
            if let Some(of) = &row.result {
                record.extend([of.outcome.name().into(), of.makespan.to_string(), of.lower_bound.to_string()]);
                record.push(if row.is_good() { format!("{:.6}", of.ratio) } else { String::new() });
                let utilisation =
                    |&kind| of.of_type(kind).map(|of| format!("{:.6}", of.utilisation)).unwrap_or_default();
                record.extend(kinds.iter().map(utilisation));
                let Latency { p50, p99, max, .. } = of.ready_to_start;
                record.extend([p50, p99, max].map(|cycles| cycles.to_string()));
                record.extend([format!("{:.6}", of.fairness), String::new()]);
            } else {
                record.push("error".into());
                record.resize(first_counter - 2, String::new());
                record.push(row.error.clone().unwrap_or_default());
            }
            record.push(in_words(row.workers.as_ref().unwrap_or(&self.machine.workers)));
            let counter = |name: &&String| row.counters().find(|(own, _)| own == name).map(|(_, number)| number);
            record.extend(counters.iter().map(|name| counter(name).map_or(String::new(), |number| number.to_string())));
            csv.write_record(&record)?;
        }
        csv.flush()
    }
}

impl Row {
    /// The plain numbers among the policy's counters.
    fn counters(&self) -> impl Iterator<Item = (&String, u64)> {
        let counters = self.result.as_ref().and_then(|figures| figures.counters.as_object());
        counters.into_iter().flatten().filter_map(|(name, value)| value.as_u64().map(|number| (name, number)))
    }

    fn cells(&self, kinds: &[WorkerType], width: usize) -> Vec<String> {
        let mut cells = vec![self.policy.clone()];
        if let Some(of) = &self.result {
            // What a run left undone makes its makespan short: no ratio tells how good it is.
            let ratio = if self.is_good() { format!("{:.3}", of.ratio) } else { "–".into() };
            cells.extend([of.outcome.name().into(), group(of.makespan), ratio]);
            let utilisation = |of: &TypeFigures| format!("{:.1} %", of.utilisation * 100.0);
            cells.extend(kinds.iter().map(|&kind| of.of_type(kind).map_or("–".into(), utilisation)));
            let Latency { p50, p99, max, .. } = of.ready_to_start;
            cells.extend([p50, p99, max].map(group));
            cells.extend([format!("{:.3}", of.fairness), counters(&of.counters)]);
        } else {
            cells.push("error".into());
            cells.resize(width, "–".into());
        }
        cells
    }
}

/// The plain numbers among a policy's counters that are not 0: `stolen 12, longest_queue 4`.
pub(super) fn counters(value: &serde_json::Value) -> String {
    let entries = value.as_object().into_iter().flatten();
    let numbers = entries.filter_map(|(key, value)| value.as_u64().filter(|&number| number > 0).map(|n| (key, n)));
    numbers.take(4).map(|(key, number)| format!("{key} {}", group(number))).collect::<Vec<_>>().join(", ")
}

fn count_policies(number: usize) -> String {
    if number == 1 { "1 policy".into() } else { format!("{number} policies") }
}

/// Which policy wins, by how much, and what its workers do less of.
fn verdict(rows: &[Row]) -> String {
    let mut finished: Vec<(&Row, &Figures)> =
        rows.iter().filter_map(|row| row.completed().map(|figures| (row, figures))).collect();
    finished.sort_by_key(|(_, figures)| figures.makespan);
    let Some(&(first_row, best)) = finished.first() else {
        return "No policy completed every task.".into();
    };
    let winner = &first_row.policy;
    let mut sentences = Vec::new();
    let first: Vec<String> = finished
        .iter()
        .take_while(|(_, figures)| figures.makespan == best.makespan)
        .map(|(row, _)| row.policy.clone())
        .collect();
    let cycles = count(best.makespan, "cycle");
    if first.len() == finished.len() && first.len() > 1 {
        sentences.push(format!("All {} end after {cycles}: the order does not matter here.", first.len()));
    } else if let [_] = first[..] {
        sentences.push(format!("{winner} wins with {cycles}."));
    } else {
        sentences.push(format!("{} share the first place with {cycles}.", list(&first)));
    }
    // Cycles of other workers are no reason.
    let is_rival = |(row, of): &&(&Row, &Figures)| of.makespan > best.makespan && row.workers == first_row.workers;
    let rival = finished.iter().filter(is_rival).find(|(row, _)| row.policy == "pto");
    let rival = rival.or_else(|| finished.iter().rev().find(is_rival));
    if let Some(&(other, figures)) = rival {
        sentences.push(reason(winner, best, &other.policy, figures));
    }
    if best.makespan == best.lower_bound {
        sentences.push("That is the lower bound: no policy can be better on this machine.".into());
    } else if best.lower_bound > 0 {
        let over = about(best.ratio - 1.0);
        sentences.push(format!("It is {over} over the lower bound of {}.", group(best.lower_bound)));
    }
    sentences.extend(unfinished(rows));
    sentences.join(" ")
}

/// The policies under which something was left undone, and how that ended.
fn unfinished(rows: &[Row]) -> Option<String> {
    let bad = rows.iter().filter(|row| !row.is_good()).map(|row| {
        let how = row.result.as_ref().map_or("error", |figures| figures.outcome.name());
        format!("{} ({how})", row.policy)
    });
    let bad: Vec<String> = bad.collect();
    (!bad.is_empty()).then(|| format!("Not completed under {}.", list(&bad)))
}

/// How much later the other one ends, and the account that shrank most, over all workers.
fn reason(winner: &str, best: &Figures, other: &str, figures: &Figures) -> String {
    let later = about((figures.makespan - best.makespan) as f64 / figures.makespan as f64);
    let mut sentence = format!("That is {later} less than {other} needs ({}).", group(figures.makespan));
    let total = |figures: &Figures| {
        let mut sum = Accounts::default();
        figures.types.iter().for_each(|of| sum.add(&of.accounts, 1));
        sum
    };
    let (ours, theirs) = (total(best), total(figures));
    let saved = ours.entries().into_iter().zip(theirs.entries()).skip(1);
    let saved = saved.map(|((name, ours), (_, theirs))| (theirs.saturating_sub(ours), name));
    if let Some((cycles, name)) = saved.max_by_key(|&(cycles, _)| cycles).filter(|&(cycles, _)| cycles > 0) {
        let _ = write!(sentence, " Under {winner} workers spend {} less {}.", count(cycles, "cycle"), cause(name));
    }
    sentence
}

/// An idle account as the end of a sentence.
fn cause(account: &str) -> &'static str {
    match account {
        "overhead" => "waiting for the scheduler",
        "held" => "next to READY tasks that are kept back",
        "dependency" => "waiting for producers: what others wait for runs earlier",
        "window" => "waiting for a slot of the window: old tasks retire earlier",
        "heap" => "waiting for heap: old tasks retire earlier",
        "deps" => "waiting for dependency entries: old tasks retire earlier",
        "tensors" => "waiting for tensor-map entries: old tasks retire earlier",
        "orchestrator" => "waiting for the orchestrator",
        _ => "with nothing left to do: the work ends more evenly",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn row(policy: &str, makespan: u64, dependency: u64) -> Row {
        let mut report = sample::waits_for_dependencies();
        report.policy = policy.into();
        report.makespan = makespan;
        report.bounds.lower_bound = 100;
        report.workers.truncate(1);
        report.workers[0].accounts = Accounts { busy: 50, dependency, ..Accounts::default() };
        Row::of(&report)
    }

    #[test]
    fn the_winner_is_named_with_the_account_it_saves() {
        let told = verdict(&[row("pto", 200, 150), row("heft", 100, 50), Row::failed("bmf", "no nodes".into())]);
        assert_eq!(
            told,
            "heft wins with 100 cycles. That is 50 % less than pto needs (200). Under heft workers spend 100 cycles \
             less waiting for producers: what others wait for runs earlier. That is the lower bound: no policy can be better \
             on this machine. Not completed under bmf (error)."
        );
    }

    #[test]
    fn equals_share_the_first_place_and_nobody_wins_nothing() {
        let told = verdict(&[row("pto", 150, 0), row("lifo", 150, 0)]);
        assert!(told.starts_with("All 2 end after 150 cycles"), "{told}");
        assert!(told.ends_with("It is 50 % over the lower bound of 100."), "{told}");
        assert_eq!(verdict(&[Row::failed("bmf", "no".into())]), "No policy completed every task.");
    }

    #[test]
    fn fairness_is_1_for_equals_and_1_over_n_for_one_who_does_all() {
        assert!((jain([5, 5, 5].into_iter()) - 1.0).abs() < 1e-12);
        assert!((jain([8, 0, 0, 0].into_iter()) - 0.25).abs() < 1e-12);
        assert!((jain([0, 0].into_iter()) - 1.0).abs() < 1e-12);
    }
}

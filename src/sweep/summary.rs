//! What a sweep says: the best run of each workload, the trade-offs, and which parameter matters how much.

use super::row::Row;
use crate::config::format_bytes;
use crate::report::{columns, count, group};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// Rows of a table that the text shows.
const SHOWN: usize = 12;

/// What a sweep says.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// Runs by how they ended.
    pub outcomes: BTreeMap<String, usize>,
    /// Why runs could not begin, in order of appearance, and how many runs each reason kept from it.
    pub reasons: Vec<(String, usize)>,
    /// One for each workload with a run that completed.
    pub best: Vec<Best>,
    /// One for each parameter with several values and a run that completed, the one that matters most first.
    pub effects: Vec<Effect>,
}

/// The best of one workload.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Best {
    /// The workload.
    pub workload: String,
    /// Position of the run with the smallest makespan; of equals the one with fewer workers, then less memory.
    pub run: usize,
    /// Runs that no other run beats in makespan, workers and memory at once, by makespan.
    pub front: Vec<usize>,
}

/// How much a parameter matters.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Effect {
    /// The parameter.
    pub key: String,
    /// Mean slowdown of its worst value ÷ that of its best.
    pub range: f64,
    /// Its values, in order of appearance.
    pub values: Vec<Level>,
}

/// The runs with one value of a parameter.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Level {
    /// The value.
    pub value: String,
    /// How many runs.
    pub runs: usize,
    /// How many of them completed.
    pub completed: usize,
    /// Geometric mean of makespan ÷ best makespan of the same workload, over those that completed.
    pub slowdown: f64,
}

/// Reads rows, which are in the order of the points.
#[must_use]
pub fn summarize(rows: &[Row], keys: &[String]) -> Summary {
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    rows.iter().for_each(|row| *outcomes.entry(row.outcome.clone()).or_default() += 1);
    let mut workloads: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate().filter(|(_, row)| row.is_complete()) {
        workloads.entry(&row.workload).or_default().push(index);
    }
    let best: Vec<Best> = workloads.into_iter().map(|(workload, runs)| best_of(rows, workload, runs)).collect();
    let fastest: BTreeMap<&str, u64> =
        best.iter().map(|best| (best.workload.as_str(), rows[best.run].makespan)).collect();
    let names = ["machine", "policy"].map(ToOwned::to_owned);
    let mut effects: Vec<Effect> = names.iter().chain(keys).filter_map(|key| effect(rows, key, &fastest)).collect();
    effects.sort_by(|a, b| b.range.total_cmp(&a.range));
    Summary { outcomes, reasons: reasons(rows), best, effects }
}

fn reasons(rows: &[Row]) -> Vec<(String, usize)> {
    let mut found: Vec<(String, usize)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for row in rows.iter().filter(|row| row.outcome == "error") {
        let place = *places.entry(&row.error).or_insert_with(|| {
            found.push((row.error.clone(), 0));
            found.len() - 1
        });
        found[place].1 += 1;
    }
    found
}

fn measures(row: &Row) -> (u64, u32, u64) {
    (row.makespan, row.workers, row.memory)
}

fn best_of(rows: &[Row], workload: &str, mut runs: Vec<usize>) -> Best {
    runs.sort_by_key(|&run| measures(&rows[run]));
    let mut front: Vec<usize> = Vec::new();
    // By ascending memory for each number of workers: the least memory of any run so far with at most as many workers.
    let mut stairs: BTreeMap<u32, u64> = BTreeMap::new();
    for &run in &runs {
        let (_, workers, memory) = measures(&rows[run]);
        let is_beaten = stairs.range(..=workers).next_back().is_some_and(|(_, &least)| least <= memory);
        if !is_beaten {
            front.push(run);
            stairs.insert(workers, memory);
            let dearer: Vec<u32> =
                stairs.range(workers + 1..).take_while(|&(_, &least)| least >= memory).map(|(&more, _)| more).collect();
            stairs.retain(|more, _| !dearer.contains(more));
        }
    }
    Best { workload: workload.to_owned(), run: runs[0], front }
}

fn value<'a>(row: &'a Row, key: &str) -> Option<&'a str> {
    match key {
        "machine" => Some(&row.machine),
        "policy" => Some(&row.policy),
        key => row.settings.get(key).map(String::as_str),
    }
}

/// How a parameter with several values matters; nothing for one with a single value.
fn effect(rows: &[Row], key: &str, fastest: &BTreeMap<&str, u64>) -> Option<Effect> {
    let mut values: Vec<Level> = Vec::new();
    let mut logs: Vec<f64> = Vec::new();
    for row in rows {
        let Some(value) = value(row, key) else { continue };
        let at = values.iter().position(|level| level.value == value).unwrap_or_else(|| {
            values.push(Level { value: value.to_owned(), runs: 0, completed: 0, slowdown: 0.0 });
            logs.push(0.0);
            values.len() - 1
        });
        values[at].runs += 1;
        if row.is_complete() {
            values[at].completed += 1;
            logs[at] += (row.makespan.max(1) as f64 / fastest[row.workload.as_str()].max(1) as f64).ln();
        }
    }
    for (level, log) in values.iter_mut().zip(logs) {
        level.slowdown = if level.completed == 0 { 0.0 } else { (log / level.completed as f64).exp() };
    }
    let means = || values.iter().filter(|level| level.completed > 0).map(|level| level.slowdown);
    let range = means().fold(0.0, f64::max) / means().fold(f64::INFINITY, f64::min);
    let range = if range.is_finite() && range > 0.0 { range } else { 1.0 };
    (values.len() > 1 && means().next().is_some()).then(|| Effect { key: key.to_owned(), range, values })
}

/// What a sweep says, as people read it.
#[must_use]
pub fn render(name: &str, rows: &[Row], summary: &Summary, missing: u64) -> String {
    let outcomes: Vec<String> =
        summary.outcomes.iter().map(|(outcome, count)| format!("{} {outcome}", group(*count as u64))).collect();
    let left = if missing == 0 { String::new() } else { format!("; {} still missing", count(missing, "run")) };
    let mut text = format!("{name}: {}: {}{left}\n", count(rows.len() as u64, "run"), outcomes.join(", "));
    text.push_str(&told_reasons(&summary.reasons));
    for best in &summary.best {
        let row = &rows[best.run];
        let _ = write!(text, "\n{}: best {} cycles: {}\n", best.workload, group(row.makespan), told(row));
        let cells = |&run: &usize| {
            let row = &rows[run];
            vec![group(row.makespan), row.workers.to_string(), format_bytes(row.memory), told(row)]
        };
        let front: Vec<Vec<String>> = best.front.iter().take(SHOWN).map(cells).collect();
        let _ = writeln!(text, "trade-offs that nothing beats ({}):", count(best.front.len() as u64, "run"));
        text.push_str(&columns(&["cycles", "workers", "memory", "with"], &front));
    }
    for effect in &summary.effects {
        let completed = effect.values.iter().filter(|level| level.completed > 0).count();
        let _ = match completed {
            1 => writeln!(text, "\n{}: runs completed with one value only", effect.key),
            _ => writeln!(text, "\n{}: worst value ÷ best value {:.3}", effect.key, effect.range),
        };
        let cells = |level: &Level| {
            let slowdown = if level.completed == 0 { String::new() } else { format!("{:.3}", level.slowdown) };
            vec![level.value.clone(), slowdown, level.completed.to_string(), level.runs.to_string()]
        };
        let levels: Vec<Vec<String>> = effect.values.iter().take(SHOWN).map(cells).collect();
        text.push_str(&columns(&["value", "of the best", "completed", "runs"], &levels));
    }
    text
}

fn told_reasons(reasons: &[(String, usize)]) -> String {
    let mut text = String::new();
    for (reason, runs) in reasons.iter().take(SHOWN) {
        let _ = write!(text, "\nerror in {}: {reason}\n", count(*runs as u64, "run"));
    }
    if reasons.len() > SHOWN {
        let _ = write!(text, "\n{} more; results.csv has all\n", count((reasons.len() - SHOWN) as u64, "reason"));
    }
    text
}

fn told(row: &Row) -> String {
    let settings = row.settings.iter().map(|(key, value)| format!("{key}={value}"));
    let start = [row.machine.clone(), row.policy.clone()];
    start.into_iter().chain(settings).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::rolls;

    fn row(makespan: u64, workers: u32, memory: u64, window: &str) -> Row {
        Row {
            id: String::new(),
            workload: "w".into(),
            machine: "m".into(),
            policy: "pto".into(),
            settings: BTreeMap::from([("limits.window".into(), window.into())]),
            outcome: "completed".into(),
            makespan,
            finish: makespan,
            tasks: 1,
            edges: 0,
            workers,
            memory,
            efficiency: 1.0,
            error: String::new(),
        }
    }

    #[test]
    fn the_front_holds_exactly_the_runs_that_nothing_beats() {
        let mut random = rolls(7);
        let rows: Vec<Row> = (0..300).map(|_| row(random(20), random(8) as u32, random(12), "1")).collect();
        let summary = summarize(&rows, &[]);
        let at_least = |a: &Row, b: &Row| a.makespan <= b.makespan && a.workers <= b.workers && a.memory <= b.memory;
        let beats = |a: &Row, b: &Row| at_least(a, b) && measures(a) != measures(b);
        let mut found: Vec<_> = summary.best[0].front.iter().map(|&run| measures(&rows[run])).collect();
        let mut expected: Vec<_> =
            rows.iter().filter(|row| !rows.iter().any(|other| beats(other, row))).map(measures).collect();
        expected.sort_unstable();
        expected.dedup();
        found.sort_unstable();
        assert_eq!(found, expected);
        assert_eq!(measures(&rows[summary.best[0].run]), rows.iter().map(measures).min().expect("rows"));
    }

    #[test]
    fn the_effect_of_a_parameter_is_the_mean_slowdown_of_its_values() {
        let mut rows = vec![row(100, 1, 1, "8"), row(200, 1, 1, "4"), row(400, 1, 1, "4")];
        rows[2].outcome = "deadlock".into();
        let summary = summarize(&rows, &["limits.window".into()]);
        assert_eq!(summary.effects.len(), 1);
        assert!((summary.effects[0].range - 2.0).abs() < 1e-9);
        assert_eq!((summary.effects[0].values[1].runs, summary.effects[0].values[1].completed), (2, 1));
        assert!(render("s", &rows, &summary, 1).contains("1 run still missing"));
    }
}

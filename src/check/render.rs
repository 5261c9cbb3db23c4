//! A check as text and as JSON.

use super::fact::{Kind, Level};
use super::{Checked, Finding};
use crate::report::group;
use crate::workload::Workload;
use owo_colors::OwoColorize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

/// The findings as people read them, the worst first; at most `limit` of each kind, and how many there are.
#[must_use]
pub fn render(checked: &Checked, limit: usize) -> String {
    let mut text = format!(
        "{} on {}: {} tasks, {} dependencies ({} hazards)\n",
        checked.program.name(),
        checked.machine.name,
        group(checked.n_tasks() as u64),
        group(checked.n_edges() as u64),
        hazards(checked)
    );
    for facts in checked.facts.chunk_by(|a, b| a.kind() == b.kind()) {
        text.push('\n');
        facts.iter().take(limit).for_each(|fact| text.push_str(&told(&checked.describe(fact))));
        if facts.len() > limit {
            let (more, kind) = (group((facts.len() - limit) as u64), facts[0].kind().name());
            let _ = writeln!(text, "… and {more} more of {kind}; --limit shows more");
        }
    }
    if !checked.facts.is_empty() {
        text.push('\n');
    }
    let _ = writeln!(text, "{}", totals(checked));
    text
}

/// The findings as JSON, at most `limit` of each kind.
///
/// # Errors
/// When they cannot be written.
pub fn write_json(checked: &Checked, limit: usize, mut writer: impl Write) -> io::Result<()> {
    let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
    checked.facts.iter().for_each(|fact| *counts.entry(fact.kind()).or_default() += 1);
    let counts: serde_json::Map<_, _> =
        counts.into_iter().map(|(kind, count)| (kind.name().to_owned(), count.into())).collect();
    let shown = checked.facts.chunk_by(|a, b| a.kind() == b.kind()).flat_map(|facts| facts.iter().take(limit));
    let findings: Vec<Finding> = shown.map(|fact| checked.describe(fact)).collect();
    let value = json!({
        "format": "ptosim-check",
        "version": 1,
        "workload": checked.program.name(),
        "machine": checked.machine.name,
        "hazards": hazards(checked),
        "tasks": checked.n_tasks(),
        "edges": checked.n_edges(),
        "errors": checked.count(Level::Error),
        "warnings": checked.count(Level::Warning),
        "notes": checked.count(Level::Note),
        "counts": counts,
        "findings": findings,
    });
    serde_json::to_writer_pretty(&mut writer, &value)?;
    writer.write_all(b"\n")?;
    writer.flush()
}

fn hazards(checked: &Checked) -> String {
    let word = serde_json::to_value(checked.hazards()).expect("a word");
    word.as_str().unwrap_or_default().to_owned()
}

fn told(finding: &Finding) -> String {
    let level = match finding.level {
        Level::Error => "error".red().bold().to_string(),
        Level::Warning => "warning".yellow().bold().to_string(),
        Level::Note => "note".cyan().bold().to_string(),
    };
    let mut text = format!("{level}: {}\n", finding.message);
    for party in finding.tasks.iter().filter(|party| !party.regions.is_empty()) {
        let kernel = party.kernel.as_ref().map_or_else(String::new, |kernel| format!(" ({kernel})"));
        let _ = writeln!(text, "    task {}{kernel}: {}", party.task, party.regions.join(", "));
    }
    let _ = writeln!(text, "    {}", finding.remedy);
    text
}

fn totals(checked: &Checked) -> String {
    let count = |level: Level| {
        let number = checked.count(level);
        format!("{} {}{}", group(number as u64), level.name(), if number == 1 { "" } else { "s" })
    };
    [Level::Error, Level::Warning, Level::Note].map(count).join(", ")
}

//! A check as text and as JSON.

use super::fact::{Kind, Level};
use super::{Checked, Finding};
use crate::config::Hazards;
use crate::id::TaskId;
use crate::report::{count, group, plain, write_pretty};
use crate::workload::Workload;
use owo_colors::OwoColorize;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

/// The findings as people read them, the worst first; at most `limit` of each kind, and how many there are.
#[must_use]
pub fn render(checked: &Checked, limit: usize) -> String {
    let mut text = format!(
        "{} on {}: {}, {} ({} hazards)\n",
        plain(&checked.program.name()),
        checked.machine.name,
        count(checked.n_tasks() as u64, "task"),
        count(checked.n_edges() as u64, "edge"),
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
    if let Some(end) = checked.races_end {
        let _ = writeln!(text, "there are more races: none were looked for behind task {end}");
    }
    text
}

/// The findings as JSON, at most `limit` of each kind.
///
/// # Errors
/// When they cannot be written.
pub fn write_json(checked: &Checked, limit: usize, writer: impl Write) -> io::Result<()> {
    let mut counts = BTreeMap::new();
    checked.facts.iter().for_each(|fact| *counts.entry(fact.kind()).or_default() += 1);
    let document = Document {
        format: "ptosim-check",
        version: 1,
        workload: checked.program.name(),
        machine: &checked.machine.name,
        hazards: checked.hazards(),
        tasks: checked.n_tasks(),
        edges: checked.n_edges(),
        errors: checked.count(Level::Error),
        warnings: checked.count(Level::Warning),
        notes: checked.count(Level::Note),
        counts,
        races_end: checked.races_end,
        findings: Findings { checked, limit },
    };
    write_pretty(&document, writer)
}

/// A check as it stands in a file.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    workload: String,
    machine: &'a str,
    hazards: Hazards,
    tasks: usize,
    edges: usize,
    errors: usize,
    warnings: usize,
    notes: usize,
    /// All findings, shown or not.
    counts: BTreeMap<Kind, usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    races_end: Option<TaskId>,
    findings: Findings<'a>,
}

/// The first findings of each kind, told one after the other while they are written.
struct Findings<'a> {
    checked: &'a Checked,
    limit: usize,
}

impl Serialize for Findings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of_each_kind = self.checked.facts.chunk_by(|a, b| a.kind() == b.kind());
        let shown = of_each_kind.flat_map(|facts| facts.iter().take(self.limit));
        serializer.collect_seq(shown.map(|fact| self.checked.describe(fact)))
    }
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
    let of_level = |level: Level| count(checked.count(level) as u64, level.name());
    [Level::Error, Level::Warning, Level::Note].map(of_level).join(", ")
}

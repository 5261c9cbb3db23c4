//! The result of one run, as a line of JSON and as a row of CSV.

use super::plan::{Inputs, Point};
use super::spec::DEFAULT_MACHINE;
use crate::engine::RunError;
use crate::report::Report;
use crate::size;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;

/// What a run came to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Hash of everything that decides the result.
    pub id: String,
    /// Trace file or generator with all its parameters.
    pub workload: String,
    /// The machine that settings start from.
    pub machine: String,
    /// The policy.
    pub policy: String,
    /// Settings and generator parameters that the sweep gives.
    pub settings: BTreeMap<String, String>,
    /// `completed`, `deadlock`, `failed`, `timeout`, or `error` when the run could not begin.
    pub outcome: String,
    /// End of the last block.
    pub makespan: u64,
    /// The last instant.
    pub finish: u64,
    /// Tasks submitted.
    pub tasks: u64,
    /// Edges linked.
    pub edges: u64,
    /// Workers of the machine.
    pub workers: u32,
    /// Bytes of slots, dependency entries and heap, all rings.
    pub memory: u64,
    /// Lower bound ÷ makespan.
    pub efficiency: f64,
    /// What was wrong.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub error: String,
}

impl Row {
    /// The row of a run.
    #[must_use]
    pub fn new(id: String, point: Point, inputs: &Inputs, result: Result<Report, RunError>) -> Row {
        let machine = inputs.machine.as_ref().ok();
        let mut row = Row {
            id,
            workload: point.workload,
            machine: point.machine.unwrap_or_else(|| DEFAULT_MACHINE.into()),
            policy: point.policy,
            settings: point.settings.into_iter().collect(),
            outcome: "error".into(),
            makespan: 0,
            finish: 0,
            tasks: 0,
            edges: 0,
            workers: machine.map_or(0, |machine| machine.workers.total()),
            memory: machine.map_or(0, |machine| {
                let (window, heap) = size::memory(&machine.limits);
                window.saturating_add(heap)
            }),
            efficiency: 0.0,
            error: String::new(),
        };
        match result {
            Ok(report) => {
                row.outcome = report.outcome.name().into();
                (row.makespan, row.finish) = (report.makespan, report.finish);
                (row.tasks, row.edges) = (report.tasks, report.edges);
                row.efficiency = report.bounds.efficiency;
                if let Some(stuck) = report.deadlock {
                    row.error = format!("{} of ring {} at cycle {}", stuck.resource, stuck.ring, stuck.at);
                }
            }
            Err(error) => row.error = error.to_string(),
        }
        row
    }

    /// Whether the run went as it should.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.outcome == "completed"
    }

    /// The row as a line of JSON.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = serde_json::to_string(self).expect("a row is plain data");
        line.push('\n');
        line
    }
}

/// The header of a table whose settings are `keys`.
pub(super) fn header(keys: &[String]) -> Vec<String> {
    let fixed = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut header = fixed(&["id", "workload", "machine", "policy"]);
    header.extend_from_slice(keys);
    header.extend(fixed(&[
        "outcome",
        "makespan",
        "finish",
        "tasks",
        "edges",
        "workers",
        "memory",
        "efficiency",
        "error",
    ]));
    header
}

pub(super) fn cells(row: &Row, keys: &[String]) -> Vec<String> {
    let mut cells = vec![row.id.clone(), row.workload.clone(), row.machine.clone(), row.policy.clone()];
    cells.extend(keys.iter().map(|key| row.settings.get(key).cloned().unwrap_or_default()));
    let numbers = [row.makespan, row.finish, row.tasks, row.edges, row.workers.into(), row.memory];
    cells.push(row.outcome.clone());
    cells.extend(numbers.map(|number| number.to_string()));
    cells.extend([row.efficiency.to_string(), row.error.clone()]);
    cells
}

/// Rows as a table with a header; `keys` are the settings to show.
///
/// # Errors
/// When they cannot be written.
pub fn write_csv<'a>(rows: impl Iterator<Item = &'a Row>, keys: &[String], writer: impl Write) -> std::io::Result<()> {
    let mut table = csv::Writer::from_writer(writer);
    table.write_record(header(keys))?;
    for row in rows {
        table.write_record(cells(row, keys))?;
    }
    table.flush()
}

//! Workloads in the formats of other programs.
//!
//! A [`Target`] is one format: what it can hold, what it needs, and the files it makes. Formats of timelines need a run. What
//! a format cannot hold is told by [`losses`], one line each.

mod chrome;
mod csv;
mod dot;
mod feature;
mod json;
#[cfg(feature = "parquet")]
mod parquet;
mod perfetto;
mod recording;
mod simpler;
mod wfformat;

pub use feature::{Feature, losses};
pub use recording::Recording;

use crate::config::Machine;
use crate::graph::Graph;
use crate::workload::Program;
use std::io::{self, Write};

/// What is written.
pub struct Subject<'a> {
    /// The program.
    pub program: &'a Program,
    /// The same with all dependencies found.
    pub graph: &'a Graph,
    /// Where it runs; gives the clock.
    pub machine: &'a Machine,
    /// What ran when, for formats that show it.
    pub recording: Option<&'a Recording>,
}

impl Subject<'_> {
    /// The run; a program without one is shown as if nothing ran.
    fn recording(&self) -> &Recording {
        const EMPTY: &Recording = &Recording::EMPTY;
        self.recording.unwrap_or(EMPTY)
    }

    /// A moment in microseconds.
    fn micros(&self, cycle: u64) -> f64 {
        cycle as f64 / self.machine.clock_mhz as f64
    }
}

/// Writes one file of a format.
pub type WriteFile = fn(&Subject<'_>, &mut dyn Write) -> io::Result<()>;

/// A format that can be written.
pub struct Target {
    /// What `--to` calls it.
    pub name: &'static str,
    /// What it is, in a few words.
    pub description: &'static str,
    /// How names of such files end.
    pub endings: &'static [&'static str],
    /// What it can hold beyond tasks, their types and cycles, and dependencies.
    pub holds: &'static [Feature],
    /// Whether it shows what ran when.
    pub needs_run: bool,
    /// Its files: one without a name, or several that stand in one folder.
    pub files: &'static [(&'static str, WriteFile)],
}

/// All formats that can be written, besides our own.
#[must_use]
pub fn targets() -> &'static [Target] {
    TARGETS
}

const TARGETS: &[Target] = {
    use Feature::{Blocks, Heap, MixShape, Scopes};
    &[
        Target {
            name: "dot",
            description: "Graphviz DOT",
            endings: &[".dot", ".gv"],
            holds: &[Blocks],
            needs_run: false,
            files: &[("", dot::write)],
        },
        Target {
            name: "csv",
            description: "one row a task, with its producers",
            endings: &[".csv"],
            holds: &[Blocks],
            needs_run: false,
            files: &[("", csv::write)],
        },
        Target {
            name: "wfformat",
            description: "WfCommons WfFormat 1.5 (JSON)",
            endings: &[".wf.json"],
            holds: &[Blocks],
            needs_run: false,
            files: &[("", wfformat::write)],
        },
        Target {
            name: "chrome",
            description: "timeline of a run as Chrome trace JSON",
            endings: &[".chrome.json", ".trace.json"],
            holds: &[Blocks],
            needs_run: true,
            files: &[("", chrome::write)],
        },
        Target {
            name: "perfetto",
            description: "timeline of a run for Perfetto (protobuf)",
            endings: &[".pftrace", ".perfetto-trace"],
            holds: &[Blocks],
            needs_run: true,
            files: &[("", perfetto::write)],
        },
        #[cfg(feature = "parquet")]
        Target {
            name: "parquet",
            description: "a folder with tasks, blocks and edges of a run as Parquet tables",
            endings: &[],
            holds: &[Blocks],
            needs_run: true,
            files: &[
                ("tasks.parquet", parquet::tasks),
                ("blocks.parquet", parquet::blocks),
                ("edges.parquet", parquet::edges),
            ],
        },
        Target {
            name: "simpler",
            description: "a folder with deps.json, name_map.json, chip_swimlane_records.json, scope_stats.jsonl of a run",
            endings: &[],
            holds: &[Blocks, MixShape, Scopes, Heap],
            needs_run: true,
            files: &[
                ("deps.json", simpler::deps),
                ("name_map.json", simpler::names),
                ("chip_swimlane_records.json", simpler::records),
                ("scope_stats.jsonl", simpler::scopes),
            ],
        },
    ]
};

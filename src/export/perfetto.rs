//! The timeline of a run for Perfetto, with an arrow a dependency; one cycle is one nanosecond.

use super::Subject;
use crate::engine::simulate;
use crate::graph::Graph;
use crate::report::{Export, Perfetto};
use crate::workload::Workload;
use std::io::{self, Write};

/// Writes the timeline. The run is made again, because the file also tells what the scheduler does.
pub fn write(subject: &Subject<'_>, output: &mut dyn Write) -> io::Result<()> {
    let Subject { program, machine, .. } = subject;
    let graph = Graph::load(*program, machine).map_err(io::Error::other)?;
    let mut export = Export::new(Perfetto::default(), output, &program.name(), machine, Some(graph));
    simulate(*program, machine, &mut export).map_err(io::Error::other)?;
    export.finish().map(drop)
}

//! The timeline of a run for Perfetto, with an arrow a dependency; one cycle is one nanosecond.

use super::Subject;
use crate::engine::{read_along, simulate};
use crate::report::{Arrows, Export, Perfetto, Sheet};
use crate::workload::Workload;
use std::io::{self, Write};

/// Writes the timeline. The run is made again, because the file also tells what the scheduler does.
pub fn write(subject: &Subject<'_>, output: &mut dyn Write) -> io::Result<()> {
    let Subject { program, machine, .. } = subject;
    let arrows = Arrows::load(*program, machine).map_err(io::Error::other)?;
    let sheet = Sheet::new(Perfetto::default(), Vec::new(), &program.name(), machine);
    let export = Export::new(sheet, machine, Some(arrows));
    let (run, export, _) = read_along(export, |journal| simulate(*program, machine, journal));
    run.map_err(io::Error::other)?;
    output.write_all(&export.finish().finish()?)
}

//! The native trace format: JSON Lines, one operation a line, plain or gzip, from a file or standard input.
//!
//! ```text
//! input ─▶ lines (gzip, large pieces) ─▶ reader (one line, one operation) ─▶ json, fields, submit, policy
//!                                                   └─ resolve: names of tasks and buffers to ids and bytes
//! ```

mod fields;
mod json;
mod lines;
mod policy;
mod reader;
pub(super) mod resolve;
mod scan;
mod stdin;
mod submit;
#[cfg(test)]
mod tests;
pub(crate) mod time;
mod usual;

pub(super) use lines::unpacked;
pub(super) use policy::WORK_ITEMS;
pub use reader::{MAX_SCOPES, Reader};
pub use stdin::Stdin;

use super::{Control, Source, Workload, WorkloadError};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A trace in a file.
#[derive(Clone, Debug)]
pub struct TraceFile {
    /// Where it is.
    pub path: PathBuf,
}

impl TraceFile {
    /// The trace at `path`, which is read when the workload is opened.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> TraceFile {
        TraceFile { path: path.into() }
    }

    fn input(&self) -> Result<(Box<dyn Read + Send>, String), WorkloadError> {
        let path = self.path.display().to_string();
        match File::open(&self.path) {
            Ok(file) => Ok((Box::new(file), path)),
            Err(source) => Err(WorkloadError::Io { path, source }),
        }
    }

    fn reader(&self) -> Result<Reader, WorkloadError> {
        let (input, path) = self.input()?;
        Reader::new(input, &path)
    }
}

impl Workload for TraceFile {
    /// The name in its header, or that of the file.
    fn name(&self) -> String {
        let title = self.reader().ok().and_then(|reader| reader.title().map(String::from));
        title.unwrap_or_else(|| file_name(&self.path))
    }

    fn open(&self) -> Result<Box<dyn Source>, WorkloadError> {
        Ok(Box::new(self.reader()?))
    }

    fn controls(&self) -> Result<Vec<Control>, WorkloadError> {
        let (input, path) = self.input()?;
        reader::controls(input, &path)
    }
}

/// The name of a file without folder and endings.
fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.strip_suffix(".jsonl").unwrap_or(name).into()
}

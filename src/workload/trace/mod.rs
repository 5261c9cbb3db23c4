//! The native trace format: JSON Lines, one operation a line, plain or gzip, from a file or standard input.
//!
//! ```text
//! input ─▶ lines (gzip, large pieces) ─▶ reader (one line, one operation) ─▶ usual, or else json, fields, submit, policy
//!                                            │      └─ resolve: names of tasks and buffers to ids and bytes
//!                                            └─ ahead: large files are read by threads of their own
//! ```

mod ahead;
mod fields;
pub(super) mod json;
mod lines;
mod policy;
mod pump;
mod reader;
pub(super) mod resolve;
mod scan;
mod stdin;
mod submit;
#[cfg(test)]
mod tests;
pub(crate) mod time;
mod usual;

pub use lines::unpacked;
pub(super) use lines::{BYTE_ORDER_MARK, GZIP, gzip_fault, is_gzip};
pub(super) use policy::WORK_ITEMS;
pub use reader::{MAX_SCOPES, Reader};
pub use stdin::Stdin;

use super::{Control, Source, Workload, WorkloadError};
use ahead::Ahead;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::thread;

/// Files of so many bytes are worth threads that read ahead, if there is a processor for them.
const LARGE: u64 = 1 << 18;

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

    /// The name in its header.
    fn title(&self) -> Result<Option<String>, WorkloadError> {
        let (input, path) = self.input()?;
        Ok(Reader::new(input, &path)?.title().map(String::from))
    }
}

impl Workload for TraceFile {
    /// The name in its header, or that of the file.
    fn name(&self) -> String {
        self.title().ok().flatten().unwrap_or_else(|| file_name(&self.path))
    }

    fn open(&self) -> Result<Box<dyn Source>, WorkloadError> {
        let (input, path) = self.input()?;
        let is_large = self.path.metadata().is_ok_and(|file| file.len() >= LARGE);
        if is_large && thread::available_parallelism().is_ok_and(|processors| processors.get() > 1) {
            return Ok(Box::new(Ahead::new(input, &path)?));
        }
        Ok(Box::new(Reader::new(input, &path)?))
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

//! Workloads: where the operations of a run come from.
//!
//! A [`Workload`] can be opened any number of times; opening it yields a [`Source`], a stream of operations in program
//! order. Every name is already resolved: a dependency is a [`TaskId`](crate::id::TaskId), a buffer a [`BufferId`], a
//! region a range of bytes inside its buffer. Nothing is held in memory but the operation at hand and the tables of names.

pub mod binary;
pub mod builder;
pub mod generate;
pub mod import;
mod program;
mod symbols;
pub mod task;
pub mod trace;
mod write;

pub use builder::Builder;
pub use program::Program;
pub use symbols::Symbols;
pub use task::{Cost, NewBuffer, PolicyFields, Region, ScheduleAt, Submit, Units, WorkItem};
pub use trace::{Stdin, TraceFile};
pub use write::{WriteError, write_trace};

use crate::id::BufferId;
use crate::nearest::nearest;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The workload that a user names: a file in any known format, `-` for standard input, or a generator such as `chain:n=1M`.
///
/// # Errors
/// When there is neither such a file nor such a generator, or its parameters are wrong.
pub fn open(spec: &str) -> Result<Box<dyn Workload>, WorkloadError> {
    open_with(spec, &import::Options::default())
}

/// As [`open`], with choices about formats that are not ours.
///
/// # Errors
/// As [`open`].
pub fn open_with(spec: &str, options: &import::Options) -> Result<Box<dyn Workload>, WorkloadError> {
    if spec == "-" {
        return import::open_stream("<stdin>", Box::new(std::io::stdin()), options);
    }
    if let Some(path) = file_of(spec) {
        return import::open_file(&path, options);
    }
    match std::fs::metadata(spec) {
        Ok(found) if !found.is_dir() => {
            let file = File::open(spec).map_err(|source| WorkloadError::Io { path: spec.into(), source })?;
            return import::open_stream(spec, Box::new(file), options);
        }
        Err(source) if source.kind() == ErrorKind::PermissionDenied => {
            return Err(WorkloadError::Io { path: spec.into(), source });
        }
        _ => {}
    }
    let name = spec.split(':').next().unwrap_or(spec);
    let mut known = generate::catalogue().iter().map(|generator| generator.name);
    if known.clone().any(|known| known == name) {
        options.check_generator(spec)?;
        return generate::generator(spec);
    }
    if Path::new(spec).is_dir() {
        return Err(WorkloadError::Input(format!("\"{spec}\" is a folder without deps.json; name a file in it")));
    }
    let remedy = match nearest(name, &mut known) {
        Some(near) => format!("nearest: \"{near}\""),
        None => "`gen --list` shows the generators".into(),
    };
    Err(WorkloadError::Input(format!("\"{spec}\": no such file and no such generator; {remedy}")))
}

/// Where the dependencies of a workload can come from; nothing for those that leave no choice, or that can be read only once.
///
/// # Errors
/// When it is a file that cannot be read or whose format is unknown.
pub fn edges(spec: &str, options: &import::Options) -> Result<&'static [import::Edges], WorkloadError> {
    file_of(spec).map_or(Ok(&[]), |path| import::edges(&path, options))
}

/// The file that a user names, in a folder of simpler the main one; `None` when it is no plain file.
fn file_of(spec: &str) -> Option<PathBuf> {
    let path = Path::new(spec);
    [path.to_owned(), path.join("deps.json")].into_iter().find(|path| path.is_file())
}

/// The files that [`open_with`] reads for a workload in a format that may be named: the file itself, and behind it those that belong
/// to it by their names. None for a generator or a stream.
#[must_use]
pub fn files(spec: &str, from: Option<&str>) -> Vec<PathBuf> {
    let Some(path) = file_of(spec) else { return Vec::new() };
    let beside = import::beside(&path, from);
    [path].into_iter().chain(beside).collect()
}

/// A program that can be opened again and again, each time giving the same operations.
pub trait Workload: Send + Sync {
    /// Its name, for reports.
    fn name(&self) -> String;

    /// Starts reading from the first operation.
    ///
    /// # Errors
    /// When a file cannot be opened or its first line is not a header of ours.
    fn open(&self) -> Result<Box<dyn Source>, WorkloadError>;

    /// The timed commands of the program, wherever they stand in it, in file order.
    ///
    /// # Errors
    /// When the file cannot be read.
    fn controls(&self) -> Result<Vec<Control>, WorkloadError> {
        Ok(Vec::new())
    }

    /// What the reader of a report should know about the way it was read, such as mapping rules of a foreign format.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A stream of operations in program order.
pub trait Source {
    /// Moves to the next operation; a submission fills `task`, whose old content is overwritten.
    ///
    /// # Errors
    /// When the text of the operation is wrong; the error names file, line, value and remedy.
    fn next(&mut self, task: &mut Submit) -> Result<Option<Operation>, WorkloadError>;

    /// How many tasks it gives in all, if that is known without reading them.
    fn n_tasks(&self) -> Option<u64> {
        None
    }

    /// Names of kernels and tasks met so far.
    fn symbols(&self) -> &Symbols;

    /// Names of buffers met so far, by [`BufferId`].
    fn buffers(&self) -> &Symbols;

    /// The file it comes from, for messages.
    fn origin(&self) -> Option<&str> {
        None
    }

    /// Whether its operations stand in lines of a text.
    fn has_lines(&self) -> bool {
        false
    }

    /// Line of the operation last returned, counted from 1; `None` when the program is not a text.
    fn line(&self) -> Option<u64> {
        None
    }
}

/// One step of a program. The data of a submission stand in the [`Submit`] given to [`Source::next`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Device memory that outlives the run; declaring a name again makes a new buffer.
    Buffer {
        /// The name being bound.
        buffer: BufferId,
        /// Its size.
        bytes: u64,
    },
    /// A task.
    Submit,
    /// Opens a scope inside the innermost open one.
    ScopeBegin,
    /// Closes the innermost open scope. Sources close what the text leaves open, so begins and ends always match.
    ScopeEnd,
}

/// A timed command to the policy (`control` operation).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Control {
    /// Cycle at which it acts, before anything else of that cycle.
    pub at: u64,
    /// The command, such as `pause`.
    pub command: String,
    /// Its arguments by name (`node`, `queue`, `routine`, `activation`).
    pub arguments: serde_json::Map<String, serde_json::Value>,
    /// Line in the trace, if it has lines.
    pub line: Option<u64>,
}

/// Why a workload cannot be read. The message names the place, the value and the remedy.
#[derive(thiserror::Error, Debug)]
pub enum WorkloadError {
    /// The file system said no.
    #[error("{path}: {source}")]
    Io {
        /// File.
        path: String,
        /// Its answer.
        source: std::io::Error,
    },
    /// A text is wrong in one place.
    #[error("{path}:{line}: {message}")]
    Line {
        /// File, or `<stdin>`.
        path: String,
        /// Line, from 1.
        line: u64,
        /// Field, value and remedy.
        message: String,
    },
    /// The whole input or a generator's parameters are wrong.
    #[error("{0}")]
    Input(String),
}

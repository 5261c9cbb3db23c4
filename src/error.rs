//! Why a run did not come to a report.

use crate::config::ConfigError;
use crate::window::Resource;
use crate::workload::WorkloadError;

/// Why a run did not come to a report.
#[derive(thiserror::Error, Debug)]
pub enum RunError {
    /// The workload cannot be read.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The settings cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A task asks for something the machine can never give; the message names task, line, value and remedy.
    #[error("{0}")]
    Task(String),
    /// A task asks for more than the whole of a resource.
    #[error("{message}")]
    TooLarge {
        /// What is too small.
        resource: Resource,
        /// Task, line, value and remedy.
        message: String,
    },
    /// A kernel failed or panicked; the message names task and kernel.
    #[error("{0}")]
    Kernel(String),
    /// Something stays full for ever.
    #[error("{0}")]
    Stuck(String),
    /// A file that is no window one could use; the message names file and remedy.
    #[error("{0}")]
    Window(String),
    /// A thread of the runtime itself panicked.
    #[error("a thread of the runtime {0}")]
    Panic(String),
    /// The host's threads do not do as they should.
    #[error("{0}")]
    Threads(String),
}

//! Many runs: a grid, a list or a random sample of settings, policies and workloads.
//!
//! ```text
//! SPEC.toml ─▶ spec (axes) ─▶ points, numbered ─▶ identity (hash of all inputs) ─▶ runs, side by side ─▶ store (one line each)
//!                                                                                        summary, page ◀─┘
//! ```
//!
//! A point is computed from its number, so a sweep needs no memory for points. A run is known by the hash of everything
//! that decides its result; what the store has is never run again.

mod axis;
mod hash;
mod page;
mod plan;
mod row;
mod run;
mod spec;
mod store;
mod summary;

pub use axis::Key;
pub use page::page;
pub use plan::{Plan, Shard};
pub use row::{Row, write_csv};
pub use run::run;
pub use spec::Spec;
pub use store::{FILES, Store, merge};
pub use summary::{Best, Effect, Summary, render, summarize};

use crate::config::ConfigError;
use crate::report::OutputError;
use crate::workload::WorkloadError;

/// Sweeps larger than this need a confirmation.
pub const MANY_RUNS: u128 = 100_000;

/// Why a sweep cannot be done.
#[derive(thiserror::Error, Debug)]
pub enum SweepError {
    /// The specification is wrong; the message names file, line, value and remedy.
    #[error("{0}")]
    Spec(String),
    /// A machine or policy cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A workload cannot be read.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A result file cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

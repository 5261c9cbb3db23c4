//! Validated settings of the machine. The tables are those of a machine file, by the same names.

mod builtin;
mod bytes;
mod load;
pub mod machine;
mod places;
mod preset;
#[cfg(test)]
mod tests;
mod toml_file;
mod validate;

pub use builtin::{BUILTINS, Builtin};
pub use bytes::{format_bytes, parse_bytes};
pub(crate) use load::line_of;
pub use machine::{
    ConfigError, FanoutOrder, Hazards, Limits, Machine, OnReadyFull, OrchestratorCosts, Rules, SchedulerCosts,
    ScopeHold, Wake, WorkerCosts, Workers,
};
pub use places::Places;
pub use toml_file::from_toml;
pub(crate) use toml_file::{number, unknown_field};
pub use validate::MOST_WORKERS;

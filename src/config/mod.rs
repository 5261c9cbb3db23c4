//! Validated settings of the machine. The tables are those of a machine file, by the same names.

pub mod machine;

pub use machine::{
    ConfigError, FanoutOrder, Hazards, Limits, Machine, OnReadyFull, OrchestratorCosts, Rules, SchedulerCosts,
    ScopeHold, WorkerCosts, Workers,
};

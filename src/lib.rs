//! ptosim: a simulator of NPU task-graph runtimes in the style of PTO-ISA.
//!
//! The modules stand in the order in which a task walks through them.

#[cfg(test)]
mod dice;
mod fifo;
pub mod id;
pub mod large;
mod nearest;
pub mod sync;

pub mod kernel;

pub mod config;

pub mod workload;

pub mod error;

pub mod orchestrator;

pub mod window;

pub mod graph;

pub mod policy;

pub mod machine;
mod worker_set;

pub mod ledger;

pub mod engine;

pub mod report;

pub mod check;

pub mod size;

pub mod sweep;

pub mod export;

pub use engine::threads::runtime;

//! ptosim: a simulator of NPU task-graph runtimes in the style of PTO-ISA.
//!
//! The modules stand in the order in which a task walks through them.

pub mod config;
pub mod engine;
pub mod id;
pub mod kernel;
pub mod report;
pub mod workload;

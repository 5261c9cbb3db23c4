//! Integration tests: the engine against a naive model of the semantics, and against cases worked out by hand.

mod acceptance;
mod bmf_model;
mod bmf_ray_properties;
mod by_hand;
mod check;
mod deadlocks;
mod differential;
mod execute;
mod exports;
mod formats;
mod invariants;
mod model;
mod notation;
mod pages;
mod policies;
mod policy_bmf;
mod policy_cases;
mod policy_cyber;
mod policy_docs;
mod policy_model;
mod policy_more;
mod policy_orleans;
mod policy_properties;
mod policy_ray;
mod policy_run;
mod policy_threads;
mod program;
mod programs;
mod reports;
mod size;
mod sweep;
mod threads;
mod tidy;
mod units_pto;
#[expect(dead_code, reason = "deterministic mode is watched in the other crate")]
#[path = "../races/witness.rs"]
mod witness;

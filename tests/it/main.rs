//! Integration tests: the engine against a naive model of the semantics, and against cases worked out by hand.

mod acceptance;
mod by_hand;
mod check;
mod differential;
mod formats;
mod invariants;
mod model;
mod notation;
mod policies;
mod policy_cases;
mod policy_cyber;
mod policy_orleans;
mod policy_properties;
mod policy_run;
mod program;
mod programs;
mod reports;
mod size;
mod sweep;
mod tidy;
mod units_pto;

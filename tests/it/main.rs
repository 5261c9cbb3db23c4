//! Integration tests: the engine against a naive model of the semantics, and against cases worked out by hand.

mod acceptance;
mod bmf_model;
mod by_hand;
mod differential;
mod invariants;
mod model;
mod policy_bmf;
mod policy_cases;
mod policy_properties;
mod policy_ray;
mod policy_run;
mod program;
mod programs;

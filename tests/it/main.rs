//! Integration tests: the engine against a naive model of the semantics, and against cases worked out by hand.

mod acceptance;
mod by_hand;
mod differential;
mod invariants;
mod model;
mod policies;
mod program;
mod programs;
mod tidy;
mod units_pto;

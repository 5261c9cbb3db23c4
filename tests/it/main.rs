//! Integration tests: the engine against a naive model of the semantics, and against cases worked out by hand.

mod acceptance;
mod by_hand;
mod check;
mod differential;
mod execute;
mod formats;
mod invariants;
mod model;
mod policies;
mod program;
mod programs;
mod reports;
mod threads;
mod tidy;

//! Integration tests: the engine against a naive model of the semantics, and against cases worked out by hand.

mod acceptance;
mod by_hand;
mod differential;
mod execute;
mod invariants;
mod model;
mod program;
mod programs;
mod threads;

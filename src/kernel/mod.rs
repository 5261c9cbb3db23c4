//! Kernel tables: what a kernel of a given name costs and on which type of worker it runs.
//!
//! A table is an ordered list of rules in TOML. Level 0 gives fixed cycles, level 1 an expression or a roofline over the
//! task's parameters and bytes. [`Costs`] answers for the tasks of one run and remembers the rule of every kernel.

mod costs;
mod expr;
mod msprof;
mod table;

pub use costs::Costs;
pub use expr::Expr;
pub use msprof::from_msprof;
pub use table::{Combine, Model, Roofline, Rule, Table};
pub(crate) use table::{patterns, task_type};

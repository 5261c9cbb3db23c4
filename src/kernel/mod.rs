//! Kernel table: what a kernel of a given name costs and on which type of worker it runs.
use crate::config::ConfigError;
use crate::id::TaskType;
use crate::workload::{Cost, Submit, Symbols};
/// t
pub struct Table;
/// c
pub struct Costs;
impl Table {
    /// l
    pub fn load(_: &str) -> Result<Table, ConfigError> {
        Ok(Table)
    }
}
impl Costs {
    /// n
    pub fn new(_: &Table) -> Costs {
        Costs
    }
    /// r
    pub fn resolve(&mut self, task: &Submit, _: &Symbols) -> Result<(TaskType, Cost), String> {
        Ok((task.kind.unwrap_or(TaskType::Vector), task.cost.unwrap_or(Cost::Cycles(50))))
    }
}

//! What attributes say of a node.

use super::super::file::shown;
use super::super::number::Real;
use super::super::sketch::{Sketch, cycles};
use crate::id::{Symbol, TaskType};
use crate::workload::{Cost, Submit};

/// The attributes of a node that matter here.
#[derive(Clone, Default)]
pub struct Attributes {
    cycles: Option<u64>,
    /// Cycles of its `size`.
    size: Option<u64>,
    blocks: Option<u32>,
    kind: Option<TaskType>,
    kernel: Option<Symbol>,
    name: Option<Symbol>,
}

impl Attributes {
    /// Takes in an attribute, instead of one of this key before it; a unit of size is `unit` cycles.
    ///
    /// # Errors
    /// When the value is none of this key.
    pub fn set(&mut self, (key, value): (&str, &str), unit: f64, sketch: &mut Sketch) -> Result<(), String> {
        match key {
            "cycles" => {
                let whole =
                    value.parse().map_err(|_| format!("cycles = \"{}\" is not a whole number", shown(value)))?;
                self.cycles = Some(whole);
            }
            "size" => {
                let wrong = || format!("size = \"{}\" is not a number", shown(value));
                let Real(size) = Real::parse(value).ok_or_else(wrong)?;
                self.size = Some(cycles(size * unit, format!("size {value}"))?);
            }
            "blocks" => {
                let blocks = value.parse().ok().filter(|&blocks| blocks > 0);
                self.blocks = Some(blocks.ok_or("blocks must be a whole number above 0")?);
            }
            "worker_type" => {
                let wrong = || format!("unknown worker_type \"{}\"", shown(value));
                self.kind = Some(TaskType::parse(value).ok_or_else(wrong)?);
            }
            "kernel" => self.kernel = Some(sketch.symbol(value)),
            "name" => self.name = Some(sketch.symbol(value)),
            _ => {}
        }
        Ok(())
    }

    /// Makes a task what the attributes say. Cycles win over a size.
    pub fn apply(&self, task: &mut Submit) {
        task.cost = self.cycles.or(self.size).map(Cost::Cycles);
        task.blocks = self.blocks.unwrap_or(1);
        task.kind = self.kind;
        task.kernel = self.kernel.or(task.kernel);
        task.name = self.name.or(task.name);
    }
}

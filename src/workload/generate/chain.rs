//! A chain: every task waits for the one before.

use super::indexed::{Kernel, Shape, depend, indexed};
use super::{Generator, Values, parameter};
use crate::id::TaskType;
use crate::workload::{Source, Submit, Symbols};

/// `chain:n=`.
pub const GENERATOR: Generator = Generator {
    name: "chain",
    description: "every task depends on the one before; gemm_tile on CUBE and tile_add on VECTOR in turn",
    parameters: &[parameter("n", "10k", "number of tasks")],
    open,
};

struct Chain {
    tasks: u64,
    kernels: [Kernel; 2],
}

fn open(values: &Values) -> Result<Box<dyn Source>, String> {
    let mut symbols = Symbols::default();
    let gemm = Kernel::new(&mut symbols, "gemm_tile", TaskType::Cube);
    let add = Kernel::new(&mut symbols, "tile_add", TaskType::Vector);
    Ok(indexed(Chain { tasks: values.number("n")?, kernels: [gemm, add] }, symbols))
}

impl Shape for Chain {
    fn tasks(&self) -> u64 {
        self.tasks
    }

    fn fill(&self, id: u64, task: &mut Submit) {
        self.kernels[(id & 1) as usize].call(task);
        if id > 0 {
            depend(task, id - 1);
        }
    }
}

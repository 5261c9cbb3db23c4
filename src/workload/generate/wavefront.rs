//! A grid in which every cell waits for the one above and the one to the left.

use super::indexed::{Kernel, Shape, depend, indexed};
use super::{Generator, Values, parameter};
use crate::id::TaskType;
use crate::workload::{Source, Submit, Symbols};

/// `wavefront:n=,width=`.
pub const GENERATOR: Generator = Generator {
    name: "wavefront",
    description: "a grid, row by row; every cell depends on the one above and the one to the left; wave_vector on VECTOR",
    parameters: &[
        parameter("n", "10k", "number of tasks"),
        parameter("width", "0", "cells of one row; 0 makes the grid square"),
    ],
    open,
};

struct Wavefront {
    tasks: u64,
    width: u64,
    kernel: Kernel,
}

fn open(values: &Values) -> Result<Box<dyn Source>, String> {
    let mut symbols = Symbols::default();
    let kernel = Kernel::new(&mut symbols, "wave_vector", TaskType::Vector);
    let tasks = values.number("n")?;
    let width = match values.number("width")? {
        0 => tasks.isqrt() + u64::from(tasks.isqrt().pow(2) < tasks),
        width => width,
    };
    Ok(indexed(Wavefront { tasks, width: width.max(1), kernel }, symbols))
}

impl Shape for Wavefront {
    fn tasks(&self) -> u64 {
        self.tasks
    }

    fn fill(&self, id: u64, task: &mut Submit) {
        self.kernel.call(task);
        if id >= self.width {
            depend(task, id - self.width);
        }
        if !id.is_multiple_of(self.width) {
            depend(task, id - 1);
        }
    }
}

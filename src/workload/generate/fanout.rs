//! One task, many that wait for it, and one that waits for those.

use super::indexed::{Kernel, Shape, depend, indexed};
use super::{Generator, Values, parameter};
use crate::id::TaskType;
use crate::workload::{Source, Submit, Symbols};

/// `fanout:n=`.
pub const GENERATOR: Generator = Generator {
    name: "fanout",
    description: "one to many to one: gemm_tile on CUBE, n - 2 times tile_add on VECTOR, reduce_sum on VECTOR",
    parameters: &[parameter("n", "4096", "number of tasks; the last has n - 2 dependencies")],
    open,
};

struct Fanout {
    tasks: u64,
    first: Kernel,
    middle: Kernel,
    last: Kernel,
}

fn open(values: &Values) -> Result<Box<dyn Source>, String> {
    let mut symbols = Symbols::default();
    let shape = Fanout {
        tasks: values.number_in("n", 3..=1 << 32)?,
        first: Kernel::new(&mut symbols, "gemm_tile", TaskType::Cube),
        middle: Kernel::new(&mut symbols, "tile_add", TaskType::Vector),
        last: Kernel::new(&mut symbols, "reduce_sum", TaskType::Vector),
    };
    Ok(indexed(shape, symbols))
}

impl Shape for Fanout {
    fn tasks(&self) -> u64 {
        self.tasks
    }

    fn fill(&self, id: u64, task: &mut Submit) {
        if id == 0 {
            self.first.call(task);
        } else if id < self.tasks - 1 {
            self.middle.call(task);
            depend(task, 0);
        } else {
            self.last.call(task);
            (1..id).for_each(|producer| depend(task, producer));
        }
    }
}

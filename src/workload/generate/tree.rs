//! A reduction tree: leaves load, every further task sums up the results of a few.

use super::indexed::{Kernel, Shape, depend, indexed};
use super::{Generator, Values, parameter};
use crate::id::TaskType;
use crate::workload::{Source, Submit, Symbols};

/// `tree:leaves=,arity=`.
pub const GENERATOR: Generator = Generator {
    name: "tree",
    description: "a reduction tree: load_copy on the leaves, reduce_sum above them, all on VECTOR",
    parameters: &[
        parameter("leaves", "4096", "number of leaves"),
        parameter("arity", "2", "results that one reduction takes"),
    ],
    open,
};

struct Tree {
    arity: u64,
    /// The first task of each level, the leaves first; the last entry is the number of tasks.
    starts: Vec<u64>,
    load: Kernel,
    reduce: Kernel,
}

fn open(values: &Values) -> Result<Box<dyn Source>, String> {
    let mut symbols = Symbols::default();
    let arity = values.number_in("arity", 2..=1 << 20)?;
    let mut width = values.number_in("leaves", 1..=1 << 50)?;
    let mut starts = vec![0, width];
    while width > 1 {
        width = width.div_ceil(arity);
        starts.push(starts[starts.len() - 1] + width);
    }
    let load = Kernel::new(&mut symbols, "load_copy", TaskType::Vector);
    let reduce = Kernel::new(&mut symbols, "reduce_sum", TaskType::Vector);
    Ok(indexed(Tree { arity, starts, load, reduce }, symbols))
}

impl Shape for Tree {
    fn tasks(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    fn fill(&self, id: u64, task: &mut Submit) {
        if id < self.starts[1] {
            return self.load.call(task);
        }
        self.reduce.call(task);
        let level = self.starts.partition_point(|&start| start <= id) - 1;
        let (below, own) = (self.starts[level - 1], self.starts[level]);
        let first = below + (id - own) * self.arity;
        (first..own.min(first + self.arity)).for_each(|producer| depend(task, producer));
    }
}

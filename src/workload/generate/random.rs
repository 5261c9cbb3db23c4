//! A random graph: every task waits for some of the tasks shortly before it.

use super::indexed::{Kernel, Shape, depend, indexed};
use super::{Generator, Values, parameter};
use crate::id::{TaskId, TaskType};
use crate::workload::{Source, Submit, Symbols};

/// `random:n=,fanin=,reach=,seed=`.
pub const GENERATOR: Generator = Generator {
    name: "random",
    description: "every task depends on up to fanin of the tasks before it; gemm_tile on CUBE and tile_add on VECTOR in turn",
    parameters: &[
        parameter("n", "10k", "number of tasks"),
        parameter("fanin", "3", "most dependencies of a task"),
        parameter("reach", "256", "how far back they go"),
        parameter("seed", "1", "another seed, another graph"),
    ],
    open,
};

struct Random {
    tasks: u64,
    fanin: u64,
    reach: u64,
    seed: u64,
    kernels: [Kernel; 2],
}

fn open(values: &Values) -> Result<Box<dyn Source>, String> {
    let mut symbols = Symbols::default();
    let gemm = Kernel::new(&mut symbols, "gemm_tile", TaskType::Cube);
    let add = Kernel::new(&mut symbols, "tile_add", TaskType::Vector);
    let shape = Random {
        tasks: values.number("n")?,
        fanin: values.number_in("fanin", 0..=1 << 20)?,
        reach: values.count("reach")?,
        seed: values.number("seed")?,
        kernels: [gemm, add],
    };
    Ok(indexed(shape, symbols))
}

impl Shape for Random {
    fn tasks(&self) -> u64 {
        self.tasks
    }

    fn fill(&self, id: u64, task: &mut Submit) {
        self.kernels[(id & 1) as usize].call(task);
        let reach = self.reach.min(id);
        if reach <= self.fanin {
            (id - reach..id).for_each(|producer| depend(task, producer));
            return;
        }
        let mut dice = Dice::new(self.seed, id);
        for _ in 0..self.fanin {
            let producer = id - 1 - dice.below(reach);
            if !task.deps.contains(&TaskId(producer)) {
                depend(task, producer);
            }
        }
    }
}

/// Random numbers (splitmix64) that depend on a seed and a place only.
pub struct Dice(u64);

impl Dice {
    /// The numbers of one place.
    pub fn new(seed: u64, place: u64) -> Dice {
        Dice(mix(seed ^ mix(place)))
    }

    /// The next number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        ((u128::from(mix(self.0)) * u128::from(bound)) >> 64) as u64
    }
}

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

//! The butterflies of a fast Fourier transform.

use super::indexed::{Kernel, Shape, depend, indexed};
use super::values::product;
use super::{Generator, Values, parameter};
use crate::id::TaskType;
use crate::workload::{Source, Submit, Symbols};

/// `fft:width=`.
pub const GENERATOR: Generator = Generator {
    name: "fft",
    description: "load_copy, then log2(width) stages of butterfly_mul, each on two points of the stage before; all on VECTOR",
    parameters: &[parameter("width", "256", "points; a power of two")],
    open,
};

struct Fft {
    width: u64,
    tasks: u64,
    load: Kernel,
    butterfly: Kernel,
}

fn open(values: &Values) -> Result<Box<dyn Source>, String> {
    let mut symbols = Symbols::default();
    let width = values.number_in("width", 1..=1 << 40)?;
    if !width.is_power_of_two() {
        return Err(format!("width={width} is no power of two; try {}", width.next_power_of_two()));
    }
    let tasks = product(&[width, u64::from(width.ilog2()) + 1])?;
    let load = Kernel::new(&mut symbols, "load_copy", TaskType::Vector);
    let butterfly = Kernel::new(&mut symbols, "butterfly_mul", TaskType::Vector);
    Ok(indexed(Fft { width, tasks, load, butterfly }, symbols))
}

impl Shape for Fft {
    fn tasks(&self) -> u64 {
        self.tasks
    }

    fn fill(&self, id: u64, task: &mut Submit) {
        let Some(before) = id.checked_sub(self.width) else { return self.load.call(task) };
        self.butterfly.call(task);
        let stage = before / self.width;
        let (row, point) = (stage * self.width, before % self.width);
        let partner = point ^ (1 << stage);
        depend(task, row + point.min(partner));
        depend(task, row + point.max(partner));
    }
}

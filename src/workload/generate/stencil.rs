//! Steps over a line or a square of points; every point waits for its neighbours of the step before.

use super::indexed::{Kernel, Shape, depend, indexed};
use super::{Generator, Values, parameter};
use crate::id::{TaskId, TaskType};
use crate::workload::{Source, Submit, Symbols};

/// `stencil:n=,width=,dims=`.
pub const GENERATOR: Generator = Generator {
    name: "stencil",
    description: "steps over a line (3 neighbours) or a square (5 neighbours) of points; stencil_vector on VECTOR",
    parameters: &[
        parameter("n", "10k", "number of tasks"),
        parameter("width", "256", "points of one step; for dims=2 a square number"),
        parameter("dims", "1", "1 or 2 dimensions"),
    ],
    open,
};

struct Line {
    tasks: u64,
    width: u64,
    kernel: Kernel,
}

struct Square {
    tasks: u64,
    side: u64,
    kernel: Kernel,
}

fn open(values: &Values) -> Result<Box<dyn Source>, String> {
    let mut symbols = Symbols::default();
    let kernel = Kernel::new(&mut symbols, "stencil_vector", TaskType::Vector);
    let (tasks, width) = (values.number("n")?, values.number_in("width", 1..=1 << 40)?);
    if values.number_in("dims", 1..=2)? == 1 {
        return Ok(indexed(Line { tasks, width, kernel }, symbols));
    }
    let side = width.isqrt();
    if side * side != width {
        return Err(format!(
            "width={width} is no square number; for dims=2 try {} or {}",
            side * side,
            (side + 1).pow(2)
        ));
    }
    Ok(indexed(Square { tasks, side, kernel }, symbols))
}

impl Shape for Line {
    fn tasks(&self) -> u64 {
        self.tasks
    }

    fn fill(&self, id: u64, task: &mut Submit) {
        self.kernel.call(task);
        let Some(before) = id.checked_sub(self.width) else { return };
        let point = id % self.width;
        let first = before - u64::from(point > 0);
        let end = before + 1 + u64::from(point + 1 < self.width);
        task.deps.extend((first..end).map(TaskId));
    }
}

impl Shape for Square {
    fn tasks(&self) -> u64 {
        self.tasks
    }

    fn fill(&self, id: u64, task: &mut Submit) {
        self.kernel.call(task);
        let side = self.side;
        let Some(before) = id.checked_sub(side * side) else { return };
        let (row, column) = (id % (side * side) / side, id % side);
        let neighbours = [
            (row > 0).then(|| before - side),
            (column > 0).then(|| before - 1),
            Some(before),
            (column + 1 < side).then(|| before + 1),
            (row + 1 < side).then(|| before + side),
        ];
        neighbours.into_iter().flatten().for_each(|producer| depend(task, producer));
    }
}

//! The dependence patterns of Task Bench: `steps` rows of `width` points, each point waits for points of the row before.

use super::indexed::{Kernel, Shape, depend, indexed};
use super::random::Dice;
use super::values::product;
use super::{Generator, Parameter, Values, parameter};
use crate::id::TaskType;
use crate::workload::{Cost, Source, Submit, Symbols};

const WIDTH: Parameter = parameter("width", "64", "points of one step");
const STEPS: Parameter = parameter("steps", "256", "number of steps");
const CYCLES: Parameter = parameter("cycles", "100", "cost of a task");
const RADIX: Parameter = parameter("radix", "3", "nearest, spread, random_nearest: number of points");
const FRACTION: Parameter = parameter("fraction", "25", "random_nearest: percent of the points that are taken");
const SEED: Parameter = parameter("seed", "1", "random_nearest: another seed, another graph");

/// `taskbench:pattern=`.
pub const ANY: Generator = Generator {
    name: "taskbench",
    description: "Task Bench: steps over a row of points; every point depends on points of the step before, as the pattern says",
    parameters: &[
        parameter("pattern", "stencil_1d", "one of the Task Bench patterns below (tree and fft without tb_)"),
        WIDTH,
        STEPS,
        CYCLES,
        RADIX,
        FRACTION,
        SEED,
    ],
    open,
};

/// The generator that has one pattern only.
pub const fn pattern(name: &'static str, description: &'static str) -> Generator {
    Generator { name, description, parameters: &[WIDTH, STEPS, CYCLES, RADIX, FRACTION, SEED], open }
}

const PATTERNS: [(&str, Pattern); 11] = [
    ("trivial", Pattern::Trivial),
    ("no_comm", Pattern::NoComm),
    ("stencil_1d", Pattern::Stencil),
    ("stencil_1d_periodic", Pattern::StencilPeriodic),
    ("dom", Pattern::Dom),
    ("tree", Pattern::Tree),
    ("fft", Pattern::Fft),
    ("all_to_all", Pattern::AllToAll),
    ("nearest", Pattern::Nearest),
    ("spread", Pattern::Spread),
    ("random_nearest", Pattern::RandomNearest),
];

#[derive(Clone, Copy)]
enum Pattern {
    Trivial,
    NoComm,
    Stencil,
    StencilPeriodic,
    Dom,
    Tree,
    Fft,
    AllToAll,
    Nearest,
    Spread,
    RandomNearest,
}

struct Rows {
    pattern: Pattern,
    width: u64,
    tasks: u64,
    cycles: u64,
    radix: u64,
    fraction: u64,
    seed: u64,
    kernel: Kernel,
}

fn open(values: &Values) -> Result<Box<dyn Source>, String> {
    let pattern = match values.generator_name() {
        "taskbench" => PATTERNS[values.choice("pattern", &PATTERNS.map(|(name, _)| name))?].1,
        own => {
            let own = own.strip_prefix("tb_").unwrap_or(own);
            PATTERNS.into_iter().find(|(name, _)| *name == own).expect("every such generator is a pattern").1
        }
    };
    let mut symbols = Symbols::default();
    let width = values.number_in("width", 1..=1 << 40)?;
    let rows = Rows {
        pattern,
        width,
        tasks: product(&[width, values.number("steps")?])?,
        cycles: values.number("cycles")?,
        radix: values.number("radix")?.min(width),
        fraction: values.number_in("fraction", 0..=100)?,
        seed: values.number("seed")?,
        kernel: Kernel::new(&mut symbols, "compute_vector", TaskType::Vector),
    };
    Ok(indexed(rows, symbols))
}

impl Shape for Rows {
    fn tasks(&self) -> u64 {
        self.tasks
    }

    fn fill(&self, id: u64, task: &mut Submit) {
        self.kernel.call(task);
        task.cost = Some(Cost::Cycles(self.cycles));
        let (step, point) = (id / self.width, id % self.width);
        if step > 0 {
            self.producers(step, point, task);
        }
    }
}

impl Rows {
    fn producers(&self, step: u64, point: u64, task: &mut Submit) {
        let (width, row) = (self.width, (step - 1) * self.width);
        let mut range = |from: u64, to: u64| (row + from..=row + to).for_each(|id| depend(task, id));
        let last = width - 1;
        match self.pattern {
            Pattern::Trivial => {}
            Pattern::NoComm => range(point, point),
            Pattern::Stencil => range(point.saturating_sub(1), last.min(point + 1)),
            Pattern::StencilPeriodic => {
                let mut points = [(point + last) % width, point, (point + 1) % width];
                points.sort_unstable();
                each_once(&points, |point| range(point, point));
            }
            Pattern::Dom => range(point.saturating_sub(1), point),
            Pattern::Tree => range(point / 2, point / 2),
            Pattern::Fft => {
                let distance = 1 << ((step - 1) % u64::from(width.next_power_of_two().ilog2()).max(1));
                let left = point.checked_sub(distance);
                let right = Some(point + distance).filter(|&right| right <= last);
                [left, Some(point), right].into_iter().flatten().for_each(|point| range(point, point));
            }
            Pattern::AllToAll => range(0, last),
            Pattern::Nearest => {
                if let Some((from, to)) = self.nearest(point) {
                    range(from, to);
                }
            }
            Pattern::Spread => self.spread(step, point, |point| range(point, point)),
            Pattern::RandomNearest => self.random_nearest(step, point, |point| range(point, point)),
        }
    }

    /// The `radix` points around a point, cut at the ends of the row.
    fn nearest(&self, point: u64) -> Option<(u64, u64)> {
        let right = self.radix.checked_sub(1)? / 2;
        Some((point.saturating_sub(self.radix / 2), (self.width - 1).min(point + right)))
    }

    /// `radix` points at equal distances; all but the first move on by one each step.
    fn spread(&self, step: u64, point: u64, mut take: impl FnMut(u64)) {
        let width = u128::from(self.width);
        let sets = self.width.div_ceil(self.radix.max(1));
        let shift = (step - 1) % sets;
        for part in 0..self.radix {
            let distance = u128::from(part) * width / u128::from(self.radix) + u128::from(shift * u64::from(part > 0));
            take(((u128::from(point) + distance) % width) as u64);
        }
    }

    /// The point itself and a random part of its nearest points.
    fn random_nearest(&self, step: u64, point: u64, mut take: impl FnMut(u64)) {
        let Some((from, to)) = self.nearest(point) else { return };
        let mut dice = Dice::new(self.seed, step * self.width + point);
        for other in from..=to {
            if dice.below(100) < self.fraction || other == point {
                take(other);
            }
        }
    }
}

/// Calls `take` for every different value of a sorted list.
fn each_once(sorted: &[u64], mut take: impl FnMut(u64)) {
    let mut before = None;
    for &value in sorted {
        if before.replace(value) != Some(value) {
            take(value);
        }
    }
}

//! Workloads made on the fly, by name and parameters: `bgemm:batch=2,m=8,n=8,k=8`.
//!
//! A generator needs no memory that grows with the number of its tasks. Simple graphs are a function from the number of
//! a task to its dependencies (`indexed`); loop nests with buffers and scopes come in small parts (`parts`).

mod attention;
mod bgemm;
mod chain;
mod cholesky;
mod fanout;
mod fft;
mod flash_attention;
mod indexed;
mod lu;
mod moe;
mod paged_attention;
mod parts;
mod random;
mod stencil;
mod task_bench;
#[cfg(test)]
mod tests;
mod tiled;
mod transformer;
mod tree;
mod values;
mod wavefront;

use super::{Source, Workload, WorkloadError};
use crate::nearest::suggestion;
pub use values::Values;

/// One way to make a workload.
#[derive(Debug)]
pub struct Generator {
    /// How it is called.
    pub name: &'static str,
    /// What it makes, in one sentence.
    pub description: &'static str,
    /// What can be chosen.
    pub parameters: &'static [Parameter],
    /// Starts it.
    open: fn(&Values) -> Result<Box<dyn Source>, String>,
}

/// Something that can be chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// How it is called.
    pub name: &'static str,
    /// Its value when nothing is said.
    pub default: &'static str,
    /// What it means.
    pub description: &'static str,
}

const fn parameter(name: &'static str, default: &'static str, description: &'static str) -> Parameter {
    Parameter { name, default, description }
}

/// Every generator, in the order of the listing.
static CATALOGUE: [Generator; 26] = [
    bgemm::GENERATOR,
    chain::GENERATOR,
    fanout::GENERATOR,
    random::GENERATOR,
    stencil::GENERATOR,
    wavefront::GENERATOR,
    tree::GENERATOR,
    fft::GENERATOR,
    cholesky::GENERATOR,
    lu::GENERATOR,
    flash_attention::GENERATOR,
    paged_attention::GENERATOR,
    transformer::GENERATOR,
    moe::GENERATOR,
    task_bench::ANY,
    task_bench::pattern("trivial", "Task Bench: no dependencies"),
    task_bench::pattern("no_comm", "Task Bench: every point depends on itself one step before"),
    task_bench::pattern("stencil_1d", "Task Bench: three neighbours"),
    task_bench::pattern("stencil_1d_periodic", "Task Bench: three neighbours, the ends meet"),
    task_bench::pattern("dom", "Task Bench: the left neighbour and itself"),
    task_bench::pattern("tb_tree", "Task Bench: point p depends on p/2"),
    task_bench::pattern("tb_fft", "Task Bench: neighbours at distances 1, 2, 4, … in turn"),
    task_bench::pattern("all_to_all", "Task Bench: all points of the step before"),
    task_bench::pattern("nearest", "Task Bench: the radix nearest points"),
    task_bench::pattern("spread", "Task Bench: radix points spread over the step"),
    task_bench::pattern("random_nearest", "Task Bench: a random part of the radix nearest points"),
];

/// Every generator, in the order of the listing.
#[must_use]
pub fn catalogue() -> &'static [Generator] {
    &CATALOGUE
}

/// The workload that `name:key=value,…` describes.
///
/// # Errors
/// When there is no such generator or parameter, or a value does not fit; the message names the nearest known one.
pub fn generator(spec: &str) -> Result<Box<dyn Workload>, WorkloadError> {
    let (name, parameters) = spec.split_once(':').unwrap_or((spec, ""));
    let Some(generator) = catalogue().iter().find(|generator| generator.name == name) else {
        let known = suggestion(name, catalogue().iter().map(|generator| generator.name));
        return Err(WorkloadError::Input(format!("no such generator \"{name}\"; {known}")));
    };
    let values = Values::parse(generator, parameters).map_err(WorkloadError::Input)?;
    let generated = Generated { spec: spec.into(), generator, values };
    generated.open()?;
    Ok(Box::new(generated))
}

/// A generator with its parameters.
struct Generated {
    spec: String,
    generator: &'static Generator,
    values: Values,
}

impl Workload for Generated {
    fn name(&self) -> String {
        self.spec.clone()
    }

    fn open(&self) -> Result<Box<dyn Source>, WorkloadError> {
        let refuse = |message: String| WorkloadError::Input(format!("{}: {message}", self.generator.name));
        (self.generator.open)(&self.values).map_err(refuse)
    }
}

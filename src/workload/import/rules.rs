//! Mapping rules: what a foreign format does not say, or says differently from what the user wants.
//!
//! ```toml
//! clock_mhz = 1000          # cycles a microsecond; otherwise the machine's clock
//! cycles_per_unit = 1.0     # for formats whose times have no unit (STG, DOT)
//! worker_type = "VECTOR"    # where nothing else says
//! [[rule]]                  # the first that matches applies
//! match = ["gemm", "mProject"]
//! worker_type = "CUBE"
//! scale = 0.5               # of the file's cycles
//! # cycles = 100            # instead of the file's
//! # out_bytes = 4096        # heap allocation
//! ```

use crate::config;
use crate::id::{Symbol, TaskType};
use crate::kernel::{patterns, task_type};
use crate::workload::{Cost, Submit, Symbols, WorkloadError};
use serde::{Deserialize, Deserializer};

/// Words in kernel names that mean a matrix product.
const MATRIX: [&str; 7] = ["gemm", "matmul", "::mm", "addmm", "bmm", "conv2d", "convolution"];

/// How a foreign file becomes a program where the file leaves a choice.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Cycles a microsecond.
    #[serde(default, deserialize_with = "clock")]
    pub clock_mhz: Option<f64>,
    /// Cycles of one unit of a time without a unit.
    #[serde(default, deserialize_with = "factor")]
    pub cycles_per_unit: Option<f64>,
    #[serde(default)]
    worker_type: Option<Worker>,
    #[serde(default)]
    rule: Vec<Rule>,
}

/// A rule for kernels of certain names.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(rename = "match", deserialize_with = "patterns")]
    patterns: Vec<String>,
    worker_type: Option<Worker>,
    cycles: Option<u64>,
    #[serde(default, deserialize_with = "factor")]
    scale: Option<f64>,
    out_bytes: Option<u64>,
}

/// A task type by its name.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Worker(TaskType);

impl TryFrom<String> for Worker {
    type Error = String;

    fn try_from(name: String) -> Result<Worker, String> {
        task_type(&name).map(Worker)
    }
}

fn clock<'de, D: Deserializer<'de>>(input: D) -> Result<Option<f64>, D::Error> {
    config::number(input, |clock| clock > 0.0, "a number above 0, such as 1850").map(Some)
}

fn factor<'de, D: Deserializer<'de>>(input: D) -> Result<Option<f64>, D::Error> {
    config::number(input, |factor| factor >= 0.0, "a finite number that is not negative").map(Some)
}

impl Rules {
    /// Reads a rule file.
    ///
    /// # Errors
    /// When it cannot be read or is no rule file.
    pub fn load(path: &str) -> Result<Rules, WorkloadError> {
        let text = std::fs::read_to_string(path).map_err(|source| WorkloadError::Io { path: path.into(), source })?;
        Rules::from_toml(&text, path)
    }

    /// Reads rules from a text; `origin` is for messages.
    ///
    /// # Errors
    /// When a field is unknown or a value is out of range.
    pub fn from_toml(text: &str, origin: &str) -> Result<Rules, WorkloadError> {
        config::from_toml(text, origin).map_err(|error| WorkloadError::Input(error.to_string()))
    }

    /// Changes tasks by the rules, and gives a type to those that have none.
    pub(super) fn apply(&self, tasks: &mut [Submit], symbols: &Symbols) -> Result<(), String> {
        let mut of_kernels: Vec<Option<(Option<&Rule>, TaskType)>> = vec![None; symbols.len()];
        let mut of_kernel = |kernel: Symbol| {
            let look_up = || self.of_kernel(&symbols.name(kernel).to_ascii_lowercase());
            *of_kernels[kernel.0 as usize].get_or_insert_with(look_up)
        };
        for task in tasks {
            let (rule, usual) = task.kernel.map_or((None, TaskType::Vector), &mut of_kernel);
            let usual = self.worker_type.map_or(usual, |Worker(kind)| kind);
            let ruled = rule.and_then(|rule| rule.worker_type).map(|Worker(kind)| kind);
            task.kind = Some(ruled.or(task.kind).unwrap_or(usual));
            if let Some(rule) = rule {
                rule.change(task)?;
            }
            if let (Some(Cost::PerKind { cube, vector }), true) = (task.cost, task.kind != Some(TaskType::Mix)) {
                task.cost = Some(Cost::Cycles(cube.max(vector)));
            }
        }
        Ok(())
    }

    /// The rule for a kernel, and the type that its name suggests.
    fn of_kernel(&self, name: &str) -> (Option<&Rule>, TaskType) {
        let matches = |pattern: &String| pattern == "*" || name.contains(pattern.as_str());
        let rule = self.rule.iter().find(|rule| rule.patterns.iter().any(matches));
        let is_matrix = MATRIX.iter().any(|word| name.contains(word));
        (rule, if is_matrix { TaskType::Cube } else { TaskType::Vector })
    }
}

impl Rule {
    fn change(&self, task: &mut Submit) -> Result<(), String> {
        let scale = self.scale.unwrap_or(1.0);
        let scaled = |cycles: u64| super::sketch::cycles(cycles as f64 * scale, "scale");
        task.cost = match (self.cycles, task.cost) {
            (Some(cycles), _) => Some(Cost::Cycles(cycles)),
            (None, cost) if self.scale.is_none() => cost,
            (None, None) => None,
            (None, Some(Cost::Cycles(cycles))) => Some(Cost::Cycles(scaled(cycles)?)),
            (None, Some(Cost::PerKind { cube, vector })) => {
                Some(Cost::PerKind { cube: scaled(cube)?, vector: scaled(vector)? })
            }
        };
        if let Some(bytes) = self.out_bytes {
            task.out_bytes = bytes;
        }
        Ok(())
    }
}

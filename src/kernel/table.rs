//! Tables of kernels, read from TOML.

use super::expr::Expr;
use crate::config::{self, ConfigError, line_of};
use crate::id::TaskType;
use crate::nearest::suggestion;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use toml::Spanned;

/// The tables that come with the program.
const BUILT_IN: [(&str, &str); 2] =
    [("reference", include_str!("../../kernels/reference.toml")), ("a2a3", include_str!("../../kernels/a2a3.toml"))];

/// An ordered list of rules; the first that matches a kernel's name applies.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    name: String,
    description: String,
    rules: Vec<Rule>,
}

/// What kernels of certain names cost.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// Words in lower case; a kernel matches when its name contains one. `*` matches every name.
    pub patterns: Vec<String>,
    /// Where such kernels run when the trace does not say.
    pub worker: Option<TaskType>,
    /// How their cycles are found.
    pub model: Model,
    /// Values of parameters that a task does not have.
    pub defaults: BTreeMap<String, i128>,
}

/// How cycles are found. An instruction-level model would be one more variant.
#[derive(Clone, PartialEq, Debug)]
pub enum Model {
    /// Level 0: always the same.
    Fixed(u64),
    /// Level 1: an expression.
    Expression(Expr),
    /// Level 1: arithmetic and memory traffic against what the worker can do.
    Roofline(Roofline),
}

/// `c0 + max(flops / F, bytes / B)`, or the sum; both quotients rounded up.
#[derive(Clone, PartialEq, Debug)]
pub struct Roofline {
    /// Cycles that every call takes.
    pub c0: u64,
    /// Operations, and how many of them fit into a cycle.
    pub flops: Option<(Expr, f64)>,
    /// Bytes moved, and how many of them fit into a cycle.
    pub bytes: Option<(Expr, f64)>,
    /// How the two times make one.
    pub combine: Combine,
}

/// Whether arithmetic and memory traffic overlap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Combine {
    /// They do: the longer counts.
    #[default]
    Max,
    /// They do not: both count.
    Sum,
}

impl Table {
    /// The names of the tables that come with the program.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.into_iter().map(|(name, _)| name)
    }

    /// The built-in table of this name.
    #[must_use]
    pub fn builtin(name: &str) -> Option<Table> {
        let (_, text) = BUILT_IN.into_iter().find(|(known, _)| *known == name)?;
        Some(Table::from_toml(text, name).expect("built-in tables are valid, as a test shows"))
    }

    /// A built-in table, or one from a file.
    ///
    /// # Errors
    /// When there is neither, or the file is no table.
    pub fn load(name_or_path: &str) -> Result<Table, ConfigError> {
        if let Some(table) = Table::builtin(name_or_path) {
            return Ok(table);
        }
        if !Path::new(name_or_path).exists() {
            let known = suggestion(name_or_path, Table::builtin_names());
            return Err(ConfigError::Setting(format!("no kernel table and no file \"{name_or_path}\"; {known}")));
        }
        let text = std::fs::read_to_string(name_or_path)
            .map_err(|source| ConfigError::Io { path: name_or_path.into(), source })?;
        Table::from_toml(&text, name_or_path)
    }

    /// Reads a table; `origin` is for messages.
    ///
    /// # Errors
    /// When the text is not TOML, a field is unknown or missing, or an expression is wrong.
    pub fn from_toml(text: &str, origin: &str) -> Result<Table, ConfigError> {
        let file: File = config::from_toml(text, origin)?;
        if file.kernel.is_empty() {
            let message = "no [[kernel]]; a table has at least one, such as match = [\"*\"], cycles = 100";
            return Err(ConfigError::Setting(format!("{origin}: {message}")));
        }
        let number = |(index, entry): (usize, Spanned<Entry>)| {
            let line = line_of(text, entry.span().start);
            let wrong =
                |message: &str| ConfigError::Setting(format!("{origin}:{line}: kernel {}: {message}", index + 1));
            entry.into_inner().rule().map_err(wrong)
        };
        let rules = file.kernel.into_iter().enumerate().map(number).collect::<Result<_, _>>()?;
        Ok(Table { name: file.name, description: file.description, rules })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is, in a sentence.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Its rules, in the order in which they are tried.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The place of the first rule that matches a kernel's name.
    #[must_use]
    pub fn find(&self, kernel: &str) -> Option<usize> {
        let kernel = kernel.to_ascii_lowercase();
        let matches = |pattern: &String| pattern == "*" || kernel.contains(pattern.as_str());
        self.rules.iter().position(|rule| rule.patterns.iter().any(matches))
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Model::Fixed(cycles) => write!(f, "{cycles}"),
            Model::Expression(expr) => write!(f, "{expr}"),
            Model::Roofline(roofline) => write!(f, "{roofline}"),
        }
    }
}

impl fmt::Display for Roofline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |part: &Option<(Expr, f64)>| part.as_ref().map(|(expr, rate)| format!("({expr})/{rate}"));
        match (part(&self.flops), part(&self.bytes), self.combine) {
            (Some(flops), Some(bytes), Combine::Max) => write!(f, "{} + max({flops}, {bytes})", self.c0),
            (Some(flops), Some(bytes), Combine::Sum) => write!(f, "{} + {flops} + {bytes}", self.c0),
            (Some(only), None, _) | (None, Some(only), _) => write!(f, "{} + {only}", self.c0),
            (None, None, _) => write!(f, "{}", self.c0),
        }
    }
}

/// A table as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    kernel: Vec<Spanned<Entry>>,
}

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(rename = "match", deserialize_with = "patterns")]
    patterns: Vec<String>,
    #[serde(default, deserialize_with = "worker")]
    worker: Option<TaskType>,
    cycles: Option<u64>,
    #[serde(default, deserialize_with = "expression")]
    cost: Option<Expr>,
    c0: Option<u64>,
    #[serde(default, deserialize_with = "expression")]
    flops: Option<Expr>,
    #[serde(default, deserialize_with = "expression")]
    bytes: Option<Expr>,
    #[serde(default, deserialize_with = "rate")]
    flops_per_cycle: Option<f64>,
    #[serde(default, deserialize_with = "rate")]
    bytes_per_cycle: Option<f64>,
    combine: Option<Combine>,
    #[serde(default)]
    defaults: BTreeMap<String, i64>,
}

impl Entry {
    fn rule(mut self) -> Result<Rule, &'static str> {
        let (patterns, worker) = (std::mem::take(&mut self.patterns), self.worker);
        let defaults = self.defaults.iter().map(|(name, &value)| (name.clone(), i128::from(value))).collect();
        Ok(Rule { patterns, worker, model: self.model()?, defaults })
    }

    fn model(self) -> Result<Model, &'static str> {
        let is_roofline = self.c0.is_some() || self.flops.is_some() || self.bytes.is_some();
        let leftover = self.flops_per_cycle.is_some() || self.bytes_per_cycle.is_some() || self.combine.is_some();
        match (self.cycles, self.cost, is_roofline) {
            (Some(cycles), None, false) if !leftover => Ok(Model::Fixed(cycles)),
            (None, Some(cost), false) if !leftover => Ok(Model::Expression(cost)),
            (None, None, true) => Ok(Model::Roofline(Roofline {
                c0: self.c0.unwrap_or(0),
                flops: both(self.flops, self.flops_per_cycle, ROOFLINE_FLOPS)?,
                bytes: both(self.bytes, self.bytes_per_cycle, ROOFLINE_BYTES)?,
                combine: self.combine.unwrap_or_default(),
            })),
            (None, None, false) => {
                Err("no cost; give cycles = N, cost = \"…\", or c0 with flops and flops_per_cycle, bytes and \
                     bytes_per_cycle")
            }
            _ => Err("more than one cost; give either cycles, or cost, or c0 with flops and bytes"),
        }
    }
}

/// What to say when one half of a pair is missing.
const ROOFLINE_FLOPS: &str = "flops and flops_per_cycle belong together; give both or none";
const ROOFLINE_BYTES: &str = "bytes and bytes_per_cycle belong together; give both or none";

/// An expression and what a cycle can do of it; both or none.
fn both(amount: Option<Expr>, rate: Option<f64>, wrong: &'static str) -> Result<Option<(Expr, f64)>, &'static str> {
    match (amount, rate) {
        (None, None) => Ok(None),
        (Some(amount), Some(rate)) => Ok(Some((amount, rate))),
        _ => Err(wrong),
    }
}

/// The words of a rule, in lower case.
///
/// # Errors
/// When there are none, or one is empty and would match everything.
pub(crate) fn patterns<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<String>, D::Error> {
    let patterns = Vec::<String>::deserialize(input)?;
    if patterns.is_empty() || patterns.iter().any(String::is_empty) {
        return Err(D::Error::custom("needs at least one word, and no empty one; \"*\" matches every kernel"));
    }
    Ok(patterns.iter().map(|pattern| pattern.to_ascii_lowercase()).collect())
}

fn worker<'de, D: Deserializer<'de>>(input: D) -> Result<Option<TaskType>, D::Error> {
    task_type(&String::deserialize(input)?).map(Some).map_err(D::Error::custom)
}

fn expression<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Expr>, D::Error> {
    Expr::parse(&String::deserialize(input)?).map(Some).map_err(D::Error::custom)
}

fn rate<'de, D: Deserializer<'de>>(input: D) -> Result<Option<f64>, D::Error> {
    config::number(input, |rate| rate > 0.0, "a number above 0").map(Some)
}

/// The task type of this name, as files write it.
///
/// # Errors
/// When there is none, with the nearest one.
pub(crate) fn task_type(name: &str) -> Result<TaskType, String> {
    TaskType::parse(name).ok_or_else(|| {
        format!("unknown worker type \"{name}\"; {}", suggestion(name, TaskType::ALL.map(TaskType::name)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(rule: &str) -> String {
        let text = format!("name = \"t\"\n[[kernel]]\nmatch = [\"x\"]\n{rule}");
        Table::from_toml(&text, "t.toml").expect_err("a refusal").to_string()
    }

    #[test]
    fn built_in_tables_are_valid_and_match_every_kernel() {
        for name in Table::builtin_names() {
            let table = Table::builtin(name).expect("built in");
            assert_eq!(table.name(), name);
            assert!(table.find("anything at all").is_some());
        }
    }

    #[test]
    fn the_first_rule_that_matches_wins_whatever_the_case() {
        let table = Table::builtin("reference").expect("built in");
        let rule = |kernel: &str| table.find(kernel).expect("a rule");
        let found = ["GEMM", "tile_Conv2d", "copy_add", "online_softmax", "matmul_reduce", "silu", ""].map(rule);
        assert_eq!(found, [0, 0, 1, 3, 0, 4, 4]);
    }

    #[test]
    fn models_show_as_formulas() {
        let shown: Vec<String> =
            Table::builtin("a2a3").expect("built in").rules().iter().map(|r| r.model.to_string()).collect();
        assert_eq!(shown[0], "400 + max((2*m*n*k)/8192, (read_bytes + write_bytes)/86.5)");
        assert_eq!(shown[2], "600 + (m*m*m/3)/64");
        assert_eq!(shown[5], "0");
    }

    #[test]
    fn mistakes_are_named() {
        assert!(refusal("").contains("t.toml:2: kernel 1: no cost; give cycles = N"));
        assert!(refusal("cycles = 1\ncost = \"2\"").contains("more than one cost"));
        assert!(refusal("cycles = 1\ncombine = \"max\"").contains("more than one cost"));
        assert!(refusal("cost = \"2 +\"").contains("expected a number"));
        let told = "t.toml:4: `worker` = \"CUBA\": unknown worker type \"CUBA\"; did you mean \"CUBE\"?";
        assert_eq!(refusal("worker = \"CUBA\"\ncycles = 1"), told);
        assert!(refusal("flops = \"2\"").contains("flops and flops_per_cycle belong together"));
        let told = "t.toml:5: `bytes_per_cycle` = 0: must be a number above 0";
        assert_eq!(refusal("bytes = \"2\"\nbytes_per_cycle = 0"), told);
        assert_eq!(refusal("cycels = 1"), "t.toml:4: unknown field `cycels`; did you mean `cycles`?");
        assert_eq!(refusal("woker = \"CUBE\""), "t.toml:4: unknown field `woker`; did you mean `worker`?");
        let empty = Table::from_toml("name = \"t\"\n[[kernel]]\nmatch = []\n", "t").expect_err("no word").to_string();
        assert!(empty.starts_with("t:3: `match` = []: needs at least one word"), "{empty}");
        assert!(Table::from_toml("name = \"t\"", "t").expect_err("empty").to_string().contains("no [[kernel]]"));
        assert!(Table::load("referense").expect_err("unknown").to_string().contains("did you mean \"reference\"?"));
    }
}

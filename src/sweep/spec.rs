//! The text of a sweep: which parameters, which values, and how they are combined.

use super::SweepError;
use super::axis::{Axis, Key, is_range};
use crate::config::{Machine, line_of};
use crate::nearest::nearest;
use crate::policy::{Config, Name};
use crate::workload::generate;
use crate::workload::import::{Edges, Options, Rules};
use std::collections::BTreeSet;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The machine of points that name none.
pub(super) const DEFAULT_MACHINE: &str = "ideal";
/// Position of a point on an axis that it says nothing about.
pub(super) const UNSET: usize = usize::MAX;

const KEYS: [&str; 13] = [
    "name",
    "workload",
    "from",
    "edges",
    "rules",
    "machine",
    "policy",
    "policy_config",
    "set",
    "generator",
    "samples",
    "seed",
    "list",
];

/// A sweep as its file describes it.
#[derive(Clone, Debug)]
pub struct Spec {
    /// For reports.
    pub name: String,
    /// Every parameter, the ones that change slowest first: workload, generator, machine, policy, settings.
    pub axes: Vec<Axis>,
    /// How the values are combined.
    pub mode: Mode,
    /// Settings of the policies.
    pub policy_config: Option<String>,
    /// How traces of other programs are read; times become cycles by the clock of each machine.
    pub import: Options,
}

/// How the values of the axes are combined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Every combination.
    Grid,
    /// This many combinations, thrown with this seed.
    Random {
        /// How many.
        samples: u64,
        /// What decides them.
        seed: u64,
    },
    /// These values of each axis, by position.
    List(Vec<Vec<usize>>),
}

/// A text in the reading.
struct Reader<'a> {
    text: &'a str,
    origin: &'a str,
}

impl Spec {
    /// Reads a specification from a file.
    ///
    /// # Errors
    /// When it cannot be read or is wrong.
    pub fn load(path: &str) -> Result<Spec, SweepError> {
        let text = std::fs::read_to_string(path).map_err(|error| SweepError::Spec(format!("{path}: {error}")))?;
        Spec::parse(&text, path)
    }

    /// Reads a specification; `origin` is the file's name, for messages.
    ///
    /// # Errors
    /// When the text is wrong; the message names line, value and remedy.
    pub fn parse(text: &str, origin: &str) -> Result<Spec, SweepError> {
        let reader = Reader { text, origin };
        let document = DeTable::parse(text)
            .map_err(|error| reader.wrong(error.span().map_or(0, |span| span.start), error.message().trim_end()))?;
        reader.spec(document.get_ref())
    }

    /// How many points there are.
    #[must_use]
    pub fn n_points(&self) -> u128 {
        match &self.mode {
            Mode::Grid => self.axes.iter().fold(1, |product, axis| product.saturating_mul(axis.n_choices().into())),
            Mode::Random { samples, .. } => u128::from(*samples),
            Mode::List(points) => points.len() as u128,
        }
    }

    /// The values of a parameter.
    pub(super) fn values(&self, key: &Key) -> &[String] {
        self.axes.iter().find(|axis| axis.key == *key).map_or(&[], |axis| &axis.values)
    }

    /// The workloads and the values of an axis that are run together, by position.
    fn pairs(&self, axis: usize) -> BTreeSet<(usize, usize)> {
        let n = |axis: usize| 0..self.axes[axis].values.len();
        match &self.mode {
            Mode::List(points) => {
                points.iter().map(|point| (point[0], point[axis])).filter(|pair| pair.1 != UNSET).collect()
            }
            Mode::Grid | Mode::Random { .. } => {
                n(0).flat_map(|workload| n(axis).map(move |value| (workload, value))).collect()
            }
        }
    }

    /// The machines that settings start from, that of points which name none included.
    pub(super) fn machines(&self) -> impl Iterator<Item = &str> {
        self.values(&Key::Machine).iter().map(String::as_str).chain([DEFAULT_MACHINE])
    }
}

impl Reader<'_> {
    fn wrong(&self, offset: usize, message: &str) -> SweepError {
        let line = line_of(self.text, offset);
        SweepError::Spec(format!("{}:{line}: {message}", self.origin))
    }

    fn spec(&self, document: &DeTable) -> Result<Spec, SweepError> {
        for (key, _) in document {
            let name = key.get_ref().as_ref();
            if !KEYS.contains(&name) {
                let hint = nearest(name, KEYS)
                    .map_or(format!("the keys are {}", KEYS.join(", ")), |near| format!("did you mean `{near}`?"));
                return Err(self.wrong(key.span().start, &format!("unknown key `{name}`; {hint}")));
            }
        }
        if !document.contains_key("workload") && !document.contains_key("list") {
            return Err(self.wrong(0, "no workload; write workload = \"bgemm\" or a list of them"));
        }
        let stem =
            Path::new(self.origin).file_stem().map_or("sweep".into(), |stem| stem.to_string_lossy().into_owned());
        let mut axes = vec![
            self.axis(document, "workload", Key::Workload, None)?,
            self.axis(document, "machine", Key::Machine, None)?,
            self.axis(document, "policy", Key::Policy, Some("pto"))?,
        ];
        axes.splice(1..1, self.group(document, "generator", &Key::Generator)?);
        axes.extend(self.group(document, "set", &Key::Set)?);
        let mode = self.mode(document, &mut axes)?;
        let spec = Spec {
            name: self.text_of(document, "name")?.unwrap_or(stem),
            axes,
            mode,
            policy_config: self.text_of(document, "policy_config")?,
            import: self.import(document)?,
        };
        self.check_values(document, &spec)?;
        Ok(spec)
    }

    fn import(&self, document: &DeTable) -> Result<Options, SweepError> {
        let edges = self.text_of(document, "edges")?.map(|name| Edges::parse(&name)).transpose();
        let place = || document.get("edges").map_or(0, |value| value.span().start);
        let edges = edges.map_err(|message| self.wrong(place(), &format!("edges: {message}")))?;
        let rules = self.text_of(document, "rules")?.map(|path| Rules::load(&path)).transpose()?;
        let from = self.text_of(document, "from")?;
        Ok(Options { from, edges, rules: rules.unwrap_or_default(), ..Options::default() })
    }

    /// What is said for all points; without a default that may be nothing.
    fn axis(&self, document: &DeTable, name: &str, key: Key, default: Option<&str>) -> Result<Axis, SweepError> {
        match document.get(name) {
            Some(value) => Axis::read(key, value.get_ref()).map_err(|message| self.wrong(value.span().start, &message)),
            None => Ok(Axis { key, values: default.map(ToOwned::to_owned).into_iter().collect() }),
        }
    }

    /// The axes of a table; tables in it are groups, so that `[set.limits]` works as well as `"limits.window"`.
    fn group(&self, document: &DeTable, name: &str, key: &dyn Fn(String) -> Key) -> Result<Vec<Axis>, SweepError> {
        let Some(value) = document.get(name) else { return Ok(Vec::new()) };
        let table = value
            .get_ref()
            .as_table()
            .ok_or_else(|| self.wrong(value.span().start, &format!("{name} must be a table: [{name}]")))?;
        let mut found = Vec::new();
        leaves(table, "", &mut found);
        found.sort_by_key(|(_, value)| value.span().start);
        let read = |(path, value): (String, &Spanned<DeValue>)| {
            Axis::read(key(path), value.get_ref()).map_err(|message| self.wrong(value.span().start, &message))
        };
        found.into_iter().map(read).collect()
    }

    fn mode(&self, document: &DeTable, axes: &mut Vec<Axis>) -> Result<Mode, SweepError> {
        let number = |name: &str| {
            let value = document.get(name)?;
            let axis = Axis::read(Key::Set(name.into()), value.get_ref());
            let number = axis.ok().and_then(|axis| axis.values[0].parse::<u64>().ok());
            Some(number.ok_or_else(|| self.wrong(value.span().start, &format!("{name}: must be a whole number"))))
        };
        let (samples, seed) = (number("samples").transpose()?, number("seed").transpose()?.unwrap_or(1));
        match (document.get("list"), samples) {
            (Some(list), Some(_)) => {
                Err(self.wrong(list.span().start, "a sweep has samples or a list, not both; remove one"))
            }
            (Some(list), None) => self.list(list, axes),
            (None, Some(0)) => Err(self.wrong(0, "samples = 0: must be at least 1")),
            (None, Some(samples)) => Ok(Mode::Random { samples, seed }),
            (None, None) => Ok(Mode::Grid),
        }
    }

    /// Points given one by one. What a point does not say is the first value of an axis given for all points, and as the
    /// machine has it for an axis that only other points name.
    fn list(&self, list: &Spanned<DeValue>, axes: &mut Vec<Axis>) -> Result<Mode, SweepError> {
        let entries = list.get_ref().as_array().filter(|entries| !entries.is_empty());
        let entries =
            entries.ok_or_else(|| self.wrong(list.span().start, "list has no points; write [[list]] for each"))?;
        let common: Vec<usize> = axes.iter().map(|axis| if axis.values.is_empty() { UNSET } else { 0 }).collect();
        let mut points = Vec::new();
        for (nth, entry) in entries.iter().enumerate() {
            let table = entry.get_ref().as_table();
            let table =
                table.ok_or_else(|| self.wrong(entry.span().start, "a point of the list is a table: [[list]]"))?;
            let mut found = Vec::new();
            leaves(table, "", &mut found);
            let mut point = Vec::new();
            for (path, value) in found {
                let wrong = |message: String| self.wrong(value.span().start, &message);
                let axis = Axis::read(point_key(&path), value.get_ref()).map_err(wrong)?;
                let [value] = <[String; 1]>::try_from(axis.values).map_err(|_| {
                    self.wrong(value.span().start, &format!("{path}: one value for a point of the list"))
                })?;
                point.push(place(axes, axis.key, value));
            }
            if common[0] == UNSET && point.iter().all(|&(axis, _)| axis != 0) {
                let message = format!(
                    "point {} of the list has no workload; give it one, or all of them with workload = \"bgemm\" at the top",
                    nth + 1
                );
                return Err(self.wrong(entry.span().start, &message));
            }
            points.push(point);
        }
        let complete = |point: Vec<(usize, usize)>| {
            let mut indices = common.clone();
            indices.resize(axes.len(), UNSET);
            point.into_iter().for_each(|(axis, value)| indices[axis] = value);
            indices
        };
        Ok(Mode::List(points.into_iter().map(complete).collect()))
    }

    /// Finds wrong names and values before anything runs; each value is looked at by itself.
    fn check_values(&self, document: &DeTable, spec: &Spec) -> Result<(), SweepError> {
        let machines: Vec<Machine> = spec.machines().map(Machine::load).collect::<Result<_, _>>()?;
        for name in spec.values(&Key::Policy) {
            name.parse::<Name>()?;
        }
        spec.policy_config.as_deref().map(|path| Config::load(path, &machines[0])).transpose()?;
        for (place, axis) in spec.axes.iter().enumerate() {
            if let Key::Generator(key) = &axis.key {
                for (workload, value) in spec.pairs(place) {
                    self.check_parameter(document, key, &axis.values[value], &spec.axes[0].values[workload])?;
                }
            }
            for value in &axis.values {
                match &axis.key {
                    Key::Set(key) => {
                        for machine in &machines {
                            let set = machine.clone().set(key, value);
                            let at = || offset(document, &axis.key.name(), value);
                            set.map_err(|error| self.wrong(at(), &error.to_string()))?;
                        }
                    }
                    Key::Workload if value == "-" => {
                        let message = "a sweep cannot read standard input; save the trace as a file";
                        return Err(self.wrong(0, message));
                    }
                    Key::Workload => drop(crate::workload::open_with(value, &spec.import)?),
                    Key::Generator(_) | Key::Machine | Key::Policy => {}
                }
            }
        }
        Ok(())
    }

    fn check_parameter(&self, document: &DeTable, key: &str, value: &str, workload: &str) -> Result<(), SweepError> {
        let wrong = |message: &str| self.wrong(offset(document, &Key::Generator(key.into()).name(), value), message);
        if Path::new(workload).exists() || workload == "-" {
            return Err(wrong(&format!("generator.{key} means nothing to the file {workload}; leave one of them out")));
        }
        generate::generator(&with_parameter(workload, key, value)).map_err(|error| wrong(&error.to_string()))?;
        Ok(())
    }

    fn text_of(&self, document: &DeTable, name: &str) -> Result<Option<String>, SweepError> {
        let Some(value) = document.get(name) else { return Ok(None) };
        let text = value.get_ref().as_str().map(ToOwned::to_owned);
        text.map(Some).ok_or_else(|| self.wrong(value.span().start, &format!("{name} must be a text in quotes")))
    }
}

/// Where a value of a key stands, in the tables or in the list.
fn offset(document: &DeTable, name: &str, value: &str) -> usize {
    let table = |name: &str| document.get(name).and_then(|table| table.get_ref().as_table());
    let points = document.get("list").and_then(|list| list.get_ref().as_array()).into_iter().flatten();
    let mut found = Vec::new();
    table("set").into_iter().for_each(|table| leaves(table, "", &mut found));
    table("generator").into_iter().for_each(|table| leaves(table, "generator.", &mut found));
    points.filter_map(|point| point.get_ref().as_table()).for_each(|point| leaves(point, "", &mut found));
    let has_value = |found: &DeValue| {
        Axis::read(Key::Set(name.into()), found).is_ok_and(|axis| axis.values.iter().any(|known| known == value))
    };
    let place = found.iter().find(|(path, found)| path == name && has_value(found.get_ref()));
    place.map_or(0, |(_, found)| found.span().start)
}

/// A generator with one more parameter.
pub(super) fn with_parameter(spec: &str, key: &str, value: &str) -> String {
    let (name, parameters) = spec.split_once(':').unwrap_or((spec, ""));
    let parts = parameters.split(',').filter(|part| !part.is_empty()).map(ToOwned::to_owned);
    format!("{name}:{}", parts.chain([format!("{key}={value}")]).collect::<Vec<_>>().join(","))
}

/// What a key of a point means.
fn point_key(path: &str) -> Key {
    match path {
        "workload" => Key::Workload,
        "machine" => Key::Machine,
        "policy" => Key::Policy,
        path => match path.strip_prefix("generator.") {
            Some(parameter) => Key::Generator(parameter.into()),
            None => Key::Set(path.into()),
        },
    }
}

/// Position of a value among all axes, added when it is new.
fn place(axes: &mut Vec<Axis>, key: Key, value: String) -> (usize, usize) {
    let axis = axes.iter().position(|axis| axis.key == key).unwrap_or_else(|| {
        axes.push(Axis { key, values: Vec::new() });
        axes.len() - 1
    });
    let values = &mut axes[axis].values;
    let index = values.iter().position(|known| *known == value).unwrap_or_else(|| {
        values.push(value);
        values.len() - 1
    });
    (axis, index)
}

/// Dotted keys and values of everything in a table that is not a group.
fn leaves<'a>(table: &'a DeTable<'a>, prefix: &str, found: &mut Vec<(String, &'a Spanned<DeValue<'a>>)>) {
    for (key, value) in table {
        let path = format!("{prefix}{}", key.get_ref());
        match value.get_ref() {
            DeValue::Table(group) if !is_range(value.get_ref()) => leaves(group, &format!("{path}."), found),
            _ => found.push((path, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        Spec::parse(text, "s.toml").expect_err("it is wrong").to_string()
    }

    #[test]
    fn a_grid_multiplies_and_a_list_does_not() {
        let grid =
            "workload = ['chain:n=10', 'bgemm']\n[set]\n'limits.window' = [64, 128, 256]\n[set.workers]\ncube = 4\n";
        let spec = Spec::parse(grid, "s.toml").expect("a grid");
        assert_eq!((spec.n_points(), spec.name.as_str(), spec.axes.len()), (6, "s", 5));
        let list = "workload = 'chain:n=10'\n[[list]]\n'limits.window' = 64\n[[list]]\nworkload = 'bgemm'\n";
        let spec = Spec::parse(list, "s.toml").expect("a list");
        assert_eq!(spec.mode, Mode::List(vec![vec![0, UNSET, 0, 0], vec![1, UNSET, 0, UNSET]]));
    }

    #[test]
    fn wrong_specifications_name_line_value_and_remedy() {
        assert_eq!(
            wrong("workload = 'chain'\n[set]\n'limits.windw' = 1\n"),
            "s.toml:3: unknown key `limits.windw`; did you mean `limits.window`?"
        );
        assert_eq!(
            wrong("workload = 'chain'\nmachin = 'a5'\n"),
            "s.toml:2: unknown key `machin`; did you mean `machine`?"
        );
        assert!(
            wrong("workload = 'chain'\n[set]\n'limits.window' = []\n")
                .starts_with("s.toml:3: limits.window has no values")
        );
        assert!(wrong("workload = []").contains("workload has no values"));
        assert!(wrong("name = 'x'").contains("no workload"));
        assert!(wrong("workload = 'chain'\npolicy = 'ptoo'").contains("did you mean `pto`"));
        assert!(wrong("workload = 'chain'\n[generator]\nm = 4\n").starts_with("s.toml:3: "));
        assert!(wrong("workload = 'chain'\nsamples = 0").contains("at least 1"));
        let list =
            |point: &str| wrong(&format!("workload = 'chain'\n[[list]]\n'limits.window' = 64\n[[list]]\n{point}\n"));
        assert!(list("'limits.windw' = 64").starts_with("s.toml:5: unknown key"));
        assert!(list("'limits.window' = 'x'").starts_with("s.toml:5: "));
        assert!(list("'generator.m' = 2").starts_with("s.toml:5: "));
        assert!(wrong("[[list]]\nworkload = 'chain'\n[[list]]\npolicy = 'lifo'\n").starts_with("s.toml:3: point 2"));
    }

    #[test]
    fn a_parameter_joins_those_that_are_there() {
        assert_eq!(with_parameter("chain", "n", "5"), "chain:n=5");
        assert_eq!(with_parameter("bgemm:m=2,n=3", "k", "9"), "bgemm:m=2,n=3,k=9");
    }

    #[test]
    fn a_parameter_given_in_two_places_is_refused_where_the_two_meet() {
        let told = "s.toml:3: chain: parameter \"n\" is given twice; keep one";
        assert_eq!(wrong("workload = ['chain', 'chain:n=10']\n[generator]\nn = 3\n"), told);
        let list = |first: &str| {
            format!("[[list]]\n'generator.n' = 3\nworkload = '{first}'\n[[list]]\nworkload = 'chain:n=9'\n")
        };
        assert!(Spec::parse(&list("chain"), "s.toml").is_ok(), "each point has one");
        assert_eq!(wrong(&list("chain:n=10")), told.replace(":3:", ":2:"));
    }
}

//! One parameter of a sweep and the values it takes.

use toml::de::DeValue;

/// Values of an axis at most; a slip in a range should not fill the memory.
const MOST_VALUES: u64 = 1_000_000;

/// What a parameter changes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Key {
    /// The workload.
    Workload,
    /// The machine that settings start from.
    Machine,
    /// The policy.
    Policy,
    /// A setting of the machine, by its dotted key.
    Set(String),
    /// A parameter of the workload's generator.
    Generator(String),
}

impl Key {
    /// The name used in tables and files.
    pub fn name(&self) -> String {
        match self {
            Key::Workload => "workload".into(),
            Key::Machine => "machine".into(),
            Key::Policy => "policy".into(),
            Key::Set(key) => key.clone(),
            Key::Generator(key) => format!("generator.{key}"),
        }
    }
}

/// A parameter and its values, in the order of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    /// What it changes.
    pub key: Key,
    /// None if the specification says nothing about it.
    pub values: Vec<String>,
}

impl Axis {
    /// How many choices it leaves a point.
    pub fn n_choices(&self) -> u64 {
        self.values.len().max(1) as u64
    }

    /// Reads a single value, a list, or a range such as `{ from = 1, to = 64, times = 2 }`.
    pub fn read(key: Key, value: &DeValue) -> Result<Axis, String> {
        let name = key.name();
        let values = match value {
            DeValue::Array(list) => {
                list.iter().map(|value| scalar(&name, value.get_ref())).collect::<Result<_, _>>()?
            }
            DeValue::Table(_) => range(&name, value)?,
            value => vec![scalar(&name, value)?],
        };
        if values.is_empty() {
            return Err(format!("{name} has no values; give at least one, such as [1, 2]"));
        }
        Ok(Axis { key, values })
    }
}

/// Whether a table is a range and not a group of settings.
pub fn is_range(value: &DeValue) -> bool {
    value.as_table().is_some_and(|table| table.contains_key("from") || table.contains_key("to"))
}

fn scalar(name: &str, value: &DeValue) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(_) => integer(name, value).map(|number| number.to_string()),
        DeValue::Float(number) => Ok(number.to_string()),
        DeValue::Boolean(value) => Ok(value.to_string()),
        other => Err(format!("{name}: a value must be a number or a text, not {}", other.type_str())),
    }
}

fn integer(name: &str, value: &DeValue) -> Result<u64, String> {
    let number =
        value.as_integer().ok_or_else(|| format!("{name}: must be a whole number, not {}", value.type_str()))?;
    u64::from_str_radix(number.as_str(), number.radix())
        .map_err(|_| format!("{name} = {number}: must be from 0 to 2^64 - 1"))
}

fn range(name: &str, value: &DeValue) -> Result<Vec<String>, String> {
    let table = value.as_table().expect("a range is a table");
    if let Some((unknown, _)) =
        table.iter().find(|(key, _)| !["from", "to", "step", "times"].contains(&key.get_ref().as_ref()))
    {
        return Err(format!("{name}: a range has from, to and step or times, not `{}`", unknown.get_ref()));
    }
    let part = |key: &str| table.get(key).map(|value| integer(&format!("{name}.{key}"), value.get_ref())).transpose();
    let (Some(from), Some(to)) = (part("from")?, part("to")?) else {
        return Err(format!("{name}: a range needs from and to, such as {{ from = 1, to = 64, times = 2 }}"));
    };
    let next: Box<dyn Fn(u64) -> Option<u64>> = match (part("step")?, part("times")?) {
        (Some(0), _) => return Err(format!("{name}.step = 0: must be at least 1")),
        (Some(_), Some(_)) => return Err(format!("{name}: a range has step or times, not both")),
        (_, Some(0 | 1)) => return Err(format!("{name}.times: must be at least 2")),
        (_, Some(_)) if from == 0 => return Err(format!("{name}.from = 0: a range with times must start above 0")),
        (_, Some(times)) => Box::new(move |at| at.checked_mul(times)),
        (step, None) => Box::new(move |at| at.checked_add(step.unwrap_or(1))),
    };
    let values = std::iter::successors(Some(from), |&at| next(at)).take_while(|&at| at <= to);
    let values: Vec<String> = values.take(MOST_VALUES as usize + 1).map(|at| at.to_string()).collect();
    if values.len() as u64 > MOST_VALUES {
        return Err(format!("{name}: a range of more than {MOST_VALUES} values; use a larger step"));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::de::DeTable;

    fn values(text: &str) -> Result<Vec<String>, String> {
        let text = format!("x = {text}");
        let table = DeTable::parse(&text).expect("TOML");
        let value = table.get_ref().get("x").expect("it is there");
        Axis::read(Key::Set("limits.window".into()), value.get_ref()).map(|axis| axis.values)
    }

    #[test]
    fn values_lists_and_ranges_are_read() {
        assert_eq!(values("64").expect("a value"), ["64"]);
        assert_eq!(values("['1MiB', 2, 0.5]").expect("a list"), ["1MiB", "2", "0.5"]);
        assert_eq!(values("{ from = 1, to = 10, step = 4 }").expect("a range"), ["1", "5", "9"]);
        assert_eq!(values("{ from = 4, to = 32, times = 2 }").expect("a range"), ["4", "8", "16", "32"]);
    }

    #[test]
    fn wrong_ranges_say_what_would_be_right() {
        assert!(values("[]").expect_err("empty").contains("has no values"));
        assert!(values("{ from = 3, to = 2 }").expect_err("empty").contains("has no values"));
        assert!(values("{ from = 0, to = 2, times = 2 }").expect_err("endless").contains("above 0"));
        assert!(values("{ from = 1, to = 2, step = 0 }").expect_err("endless").contains("at least 1"));
        assert!(values("{ from = 1 }").expect_err("half").contains("needs from and to"));
        assert!(values("[[1]]").expect_err("nested").contains("not array"));
    }
}

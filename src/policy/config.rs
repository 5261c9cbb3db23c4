//! The policy configuration: a TOML file with `[policy]` and a table for each policy that has settings.

use super::Name;
use crate::config::{ConfigError, nearest};
use serde::{Deserialize, Deserializer};

/// Settings of all policies; every one has a default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Which policy, and the seed of those that roll dice.
    pub policy: PolicyTable,
}

/// `[policy]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyTable {
    /// The policy to use when the command does not say.
    #[serde(deserialize_with = "name")]
    pub name: Option<Name>,
    /// Of `random`; printed in its report.
    pub seed: u64,
}

impl Default for PolicyTable {
    fn default() -> PolicyTable {
        PolicyTable { name: None, seed: 1 }
    }
}

fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Name>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// When it cannot be read, or a key or value is wrong; the message names file, line and remedy.
    pub fn load(path: &str) -> Result<Config, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Io { path: path.to_owned(), source })?;
        Config::parse(&text, path)
    }

    /// Reads the text of a TOML file; `origin` is its name, for messages.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(text: &str, origin: &str) -> Result<Config, ConfigError> {
        toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start).min(text.len());
            let line = text[..offset].matches('\n').count() + 1;
            ConfigError::Setting(format!("{origin}:{line}: {}", explain(error.message())))
        })
    }
}

/// A message in our words: an unknown key with the nearest known one, and machine settings sent where they belong.
fn explain(message: &str) -> String {
    let mut words = message.trim().split('`');
    let Some(key) = words.nth(1).filter(|_| message.starts_with("unknown field")) else {
        return message.trim().replace('\n', " ");
    };
    if let Some(remedy) = machine_setting(key) {
        return format!("[{key}] is not of a policy; {remedy}");
    }
    let known: Vec<&str> = words.skip(1).step_by(2).collect();
    match nearest(key, known.iter().copied()) {
        Some(near) => format!("unknown key `{key}`; did you mean `{near}`?"),
        None => format!("unknown key `{key}`; the keys are {}", known.join(", ")),
    }
}

/// Where the settings of the machine are made.
fn machine_setting(table: &str) -> Option<&'static str> {
    match table {
        "machine" => Some("workers are set in the machine file, such as --set workers.cube=2"),
        "pto" => Some("sizes and rules are set in the machine file, such as --set limits.window=1024"),
        "cost" => Some("costs are set in the machine file, such as --set cost.preset=low"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Config::parse(text, "p.toml").expect_err("it is wrong").to_string()
    }

    #[test]
    fn name_and_seed_are_read_and_have_defaults() {
        let config = Config::parse("[policy]\nname = \"random\"\nseed = 7\n", "p.toml").expect("it is right");
        assert_eq!((config.policy.name, config.policy.seed), (Some(Name::Random), 7));
        let config = Config::parse("", "p.toml").expect("nothing is needed");
        assert_eq!((config.policy.name, config.policy.seed), (None, 1));
    }

    #[test]
    fn mistakes_name_line_and_remedy() {
        let told = refused("[policy]\nname = \"randm\"\n");
        assert!(told.starts_with("p.toml:2: unknown policy `randm`; did you mean `random`?"), "{told}");
        assert_eq!(refused("[policy]\nsed = 7\n"), "p.toml:2: unknown key `sed`; did you mean `seed`?");
        assert!(refused("\n[pto]\nready = 7\n").starts_with("p.toml:2: [pto] is not of a policy"));
        assert!(refused("[policy\n").starts_with("p.toml:1: "));
    }
}

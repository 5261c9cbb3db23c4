//! Settings of the policy: the `[ray]` table of a policy file.

use crate::config::ConfigError;
use crate::workload::trace::time;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// The `[ray]` table.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// How many tasks of all sources may run at once; 0 is no limit.
    pub global_concurrency: u64,
    /// No task is fired while this many fired tasks wait for a token or a worker; 0 is no limit.
    pub fire_batch: u64,
    /// Cycles after `stop` at which what still runs is given up; 0 is never.
    pub stop_timeout: u64,
    /// The time of cycle 0, such as `2026-03-01T00:00:00Z`; by default the smallest time of the trace.
    pub epoch: Option<String>,
    /// Who consumes tasks, by name. An empty table knows nobody; without one every name is a source.
    pub sources: Option<BTreeMap<String, SourceConfig>>,
    /// What happens to failed tasks.
    pub retry: Retry,
}

/// A `[ray.sources.NAME]` table.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table such as { concurrent_count = 1 }")]
pub struct SourceConfig {
    /// How many of its tasks may run at once.
    pub concurrent_count: ConcurrentCount,
}

/// A number of tasks; what is not one counts as 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConcurrentCount {
    /// A number from 1.
    Valid(u64),
    /// Anything else, as it was written.
    Invalid(String),
}

impl ConcurrentCount {
    /// The number it stands for.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        match self {
            ConcurrentCount::Valid(count) => *count,
            ConcurrentCount::Invalid(_) => 1,
        }
    }
}

impl Default for ConcurrentCount {
    fn default() -> ConcurrentCount {
        ConcurrentCount::Valid(1)
    }
}

impl<'de> Deserialize<'de> for ConcurrentCount {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<ConcurrentCount, D::Error> {
        let value = serde_json::Value::deserialize(input)?;
        Ok(match value.as_u64() {
            Some(count) if count > 0 => ConcurrentCount::Valid(count),
            _ => ConcurrentCount::Invalid(value.to_string()),
        })
    }
}

/// The `[ray.retry]` table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retry {
    /// How often a task is run at most; 0 and 1 mean once.
    pub max_attempts: u32,
    /// How the waits between two runs grow.
    pub backoff: Backoff,
    /// Cycles before the second run.
    pub delay: u64,
}

/// How waits grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// They stay the same.
    #[default]
    Fixed,
    /// Each is twice the one before.
    Exponential,
}

impl Retry {
    /// How long to wait after the run of this number, from 1; `None` when it was the last.
    #[must_use]
    pub fn wait_after(&self, attempt: u32) -> Option<u64> {
        if attempt >= self.max_attempts {
            return None;
        }
        let doubled = match self.backoff {
            Backoff::Fixed => 0,
            Backoff::Exponential => attempt - 1,
        };
        let factor = 1_u64.checked_shl(doubled).unwrap_or(u64::MAX);
        Some(self.delay.saturating_mul(factor))
    }
}

impl Config {
    /// The epoch in microseconds since 1970, if one is set.
    ///
    /// # Errors
    /// When it is not a time with an offset.
    pub fn epoch_micros(&self) -> Result<Option<i64>, ConfigError> {
        let parse = |text: &String| time::parse(text).map_err(|why| ConfigError::Setting(format!("ray.epoch: {why}")));
        self.epoch.as_ref().map(parse).transpose()
    }

    /// What is allowed but probably not meant.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let invalid = |(name, source): (&String, &SourceConfig)| match &source.concurrent_count {
            ConcurrentCount::Valid(_) => None,
            ConcurrentCount::Invalid(text) => {
                Some(format!("ray.sources.{name}.concurrent_count = {text}: must be a whole number from 1; 1 is used"))
            }
        };
        self.sources.iter().flatten().filter_map(invalid).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Backoff, Config, Retry};

    #[test]
    fn the_table_of_a_policy_file_is_read() {
        let text = "global_concurrency = 3\nfire_batch = 2\n[sources.video]\nconcurrent_count = 4\n[retry]\nmax_attempts = 3\n\
                    backoff = \"exponential\"\ndelay = 10\n";
        let config: Config = toml::from_str(text).unwrap();
        assert_eq!((config.global_concurrency, config.fire_batch, config.stop_timeout), (3, 2, 0));
        assert_eq!(config.sources.unwrap()["video"].concurrent_count.tokens(), 4);
        assert_eq!(config.retry, Retry { max_attempts: 3, backoff: Backoff::Exponential, delay: 10 });
        assert!(toml::from_str::<Config>("fire_bach = 2").unwrap_err().to_string().contains("fire_bach"));
    }

    #[test]
    fn a_count_that_is_none_means_1_and_all_but_an_absent_one_warn() {
        let text = "[sources.a]\n[sources.b]\nconcurrent_count = 0\n[sources.c]\nconcurrent_count = -3\n[sources.d]\n\
                    concurrent_count = \"x\"\n";
        let config: Config = toml::from_str(text).unwrap();
        let warnings = config.warnings();
        assert!(config.sources.unwrap().values().all(|source| source.concurrent_count.tokens() == 1));
        assert_eq!(warnings.len(), 3);
        assert_eq!(warnings[1], "ray.sources.c.concurrent_count = -3: must be a whole number from 1; 1 is used");
    }

    #[test]
    fn waits_between_runs_stay_or_double_and_end() {
        let fixed = Retry { max_attempts: 3, backoff: Backoff::Fixed, delay: 10 };
        assert_eq!([1, 2, 3].map(|attempt| fixed.wait_after(attempt)), [Some(10), Some(10), None]);
        let doubling = Retry { max_attempts: 100, backoff: Backoff::Exponential, delay: 10 };
        assert_eq!([1, 2, 3].map(|attempt| doubling.wait_after(attempt)), [Some(10), Some(20), Some(40)]);
        assert_eq!(doubling.wait_after(90), Some(u64::MAX));
        assert_eq!(Retry { delay: 0, ..doubling }.wait_after(90), Some(0));
        assert_eq!(Retry::default().wait_after(1), None);
    }

    #[test]
    fn an_epoch_without_an_offset_is_refused() {
        let epoch = |text: &str| Config { epoch: Some(text.into()), ..Config::default() }.epoch_micros();
        assert_eq!(epoch("1970-01-01T00:00:01Z").unwrap(), Some(1_000_000));
        assert!(epoch("1970-01-01T00:00:01").unwrap_err().to_string().starts_with("ray.epoch: "));
    }
}

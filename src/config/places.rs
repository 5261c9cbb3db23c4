//! Where settings were made, so that a message about one names its line.

use super::machine::{ConfigError, Machine};
use std::collections::BTreeMap;

/// The lines of a file of settings and what was set after it was read.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Name of the file.
    origin: String,
    /// The line of every dotted key and of every table in the file; `None` for what was set later.
    lines: BTreeMap<String, Option<usize>>,
}

/// Where a value was written makes no difference between settings.
impl PartialEq for Places {
    fn eq(&self, _: &Places) -> bool {
        true
    }
}

impl Places {
    /// Of a file that says nothing yet.
    pub(crate) fn of_file(origin: &str) -> Places {
        Places { origin: origin.to_owned(), lines: BTreeMap::new() }
    }

    /// A key or a table stands in this line of the file.
    pub(crate) fn stands(&mut self, key: &str, line: usize) {
        self.lines.insert(key.to_owned(), Some(line));
    }

    /// A key was set, whatever the file says.
    pub(super) fn was_set(&mut self, key: &str) {
        self.lines.insert(key.to_owned(), None);
    }

    /// `message` about these keys, behind file and line of the first of them that stands there, or else of its table. What
    /// was set later is no mistake of the file; the message names the key.
    pub(crate) fn locate(&self, keys: &[&str], message: String) -> String {
        let line_of = |key: &str| self.lines.get(key).copied();
        let table_of = |key: &str| line_of(key.split('.').next().unwrap_or(key));
        if keys.iter().any(|key| line_of(key) == Some(None)) {
            return message;
        }
        let in_file = |line_of: &dyn Fn(&str) -> Option<Option<usize>>| keys.iter().find_map(|key| line_of(key)?);
        match in_file(&line_of).or_else(|| in_file(&table_of)) {
            Some(line) => format!("{}:{line}: {message}", self.origin),
            None => message,
        }
    }
}

impl Machine {
    /// Whether a number of workers was set after the machine was read.
    pub(crate) fn has_set_workers(&self) -> bool {
        self.places.lines.iter().any(|(key, line)| line.is_none() && key.starts_with("workers."))
    }

    /// The error that says what is wrong with these settings, of which the first is the most likely culprit.
    pub(crate) fn refuse(&self, keys: &[&str], message: impl Into<String>) -> ConfigError {
        ConfigError::Setting(self.places.locate(keys, message.into()))
    }
}

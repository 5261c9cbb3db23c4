//! From the text of a machine file, and from `KEY=VALUE` settings, to a [`Machine`].
//!
//! Both go through one door, `assign`: it knows every key because it asks a machine for its own serialised form.

use super::builtin::{BUILTINS, Builtin};
use super::machine::{ConfigError, Machine, Workers};
use super::places::Places;
use crate::nearest::nearest;
use serde_json::Value;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// A value as a machine file or a setting gives it.
enum Scalar<'a> {
    Integer(i128),
    Text(&'a str),
}

impl Scalar<'_> {
    fn text(&self) -> Option<&str> {
        match self {
            Scalar::Integer(_) => None,
            Scalar::Text(text) => Some(text),
        }
    }
}

impl Machine {
    /// The built-in machine of this name, or the one described by this file. It is not validated yet, so that settings can
    /// still mend it.
    ///
    /// # Errors
    /// When there is no such machine or its text is wrong.
    pub fn load(name_or_path: &str) -> Result<Machine, ConfigError> {
        if let Some(builtin) = Builtin::find(name_or_path) {
            let machine = Machine::parse(builtin.toml, &format!("{}.toml", builtin.name))?;
            return Ok(Machine { places: Places::default(), ..machine });
        }
        let path = Path::new(name_or_path);
        if !path.exists() && path.extension().is_none() && !name_or_path.contains('/') {
            return Err(unknown_machine(name_or_path));
        }
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Io { path: name_or_path.to_owned(), source })?;
        Machine::parse(&text, name_or_path)
    }

    /// The machine described by the text of a machine file. What the text leaves out is as in `ideal`, except that a
    /// `[workers]` table starts from no worker at all. `origin` is the file's name, for messages.
    ///
    /// # Errors
    /// When the text is not TOML, a key is unknown or a value has the wrong type.
    pub fn parse(text: &str, origin: &str) -> Result<Machine, ConfigError> {
        let line_of = |offset| line_of(text, offset);
        let place =
            |offset: usize, message: &str| ConfigError::Setting(format!("{origin}:{}: {message}", line_of(offset)));
        let document = DeTable::parse(text)
            .map_err(|error| place(error.span().map_or(0, |span| span.start), error.message().trim_end()))?;
        let document = document.get_ref();
        let name = Path::new(origin).file_stem().map_or(origin.into(), |stem| stem.to_string_lossy().into_owned());
        let mut machine = Machine { name, places: Places::of_file(origin), ..Machine::default() };
        for table in document.keys() {
            machine.places.stands(table.get_ref(), line_of(table.span().start));
        }
        if document.contains_key("workers") {
            machine.workers = Workers::default();
        }
        for (offset, key, value) in leaves(document) {
            scalar(&key, value)
                .and_then(|scalar| machine.assign(&key, &scalar))
                .map_err(|message| place(offset, &message))?;
            machine.places.stands(&key, line_of(offset));
        }
        Ok(machine)
    }

    /// Sets one value by its dotted key, for example `limits.heap` to `1MiB`. Clusters replace the cube and vector workers
    /// that the machine had.
    ///
    /// # Errors
    /// When there is no such key, with the nearest one, or the value has the wrong type.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        // Quotes may be copied from a machine file.
        let value =
            ['"', '\''].iter().find_map(|&quote| value.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or(value);
        let scalar = match value.trim().parse() {
            Ok(number) if !self.is_text(key) => Scalar::Integer(number),
            _ => Scalar::Text(value),
        };
        self.assign(key, &scalar).map_err(ConfigError::Setting)?;
        self.places.was_set(key);
        if key == "workers.clusters" && self.workers.clusters > 0 {
            self.workers.cube = 0;
            self.workers.vector = 0;
        }
        Ok(())
    }

    /// Sets all of `KEY=VALUE`. Their order does not matter, except that of two for the same key the last one counts.
    ///
    /// # Errors
    /// When a setting has no `=`, or as [`Machine::set`].
    pub fn apply<S: AsRef<str>>(&mut self, settings: &[S]) -> Result<(), ConfigError> {
        let mut pairs = Vec::with_capacity(settings.len());
        for setting in settings.iter().map(AsRef::as_ref) {
            let pair = setting.split_once('=').ok_or_else(|| {
                ConfigError::Setting(format!("setting `{setting}`: must be KEY=VALUE, for example limits.window=1024"))
            })?;
            pairs.push((pair.0.trim(), pair.1.trim()));
        }
        // Clusters first: a cube set beside them then shows as a contradiction, wherever it stands. A preset before what is
        // set in detail.
        pairs.sort_by_key(|(key, _)| *key != "workers.clusters" && *key != super::preset::KEY);
        pairs.into_iter().try_for_each(|(key, value)| self.set(key, value))
    }

    /// Every dotted key that [`Machine::set`] takes and that a machine file shows, in alphabetical order.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        keys_of(&self.tree())
    }

    fn tree(&self) -> Value {
        serde_json::to_value(self).expect("a machine is plain data")
    }

    fn is_text(&self, key: &str) -> bool {
        entry(&mut self.tree(), key).is_some_and(|value| value.is_string())
    }

    fn assign(&mut self, key: &str, scalar: &Scalar) -> Result<(), String> {
        if key == super::preset::KEY {
            return super::preset::apply(&mut self.scheduler, scalar.text().unwrap_or_default());
        }
        let mut tree = self.tree();
        let keys = keys_of(&tree);
        let slot = entry(&mut tree, key).ok_or_else(|| unknown_key(key, &keys))?;
        *slot = accept(key, slot, scalar)?;
        let machine = serde_json::from_value(tree).map_err(|error| match scalar {
            Scalar::Integer(number) => format!("{key} = {number}: must be below 2^32"),
            Scalar::Text(_) => format!("{key}: {error}"),
        })?;
        *self = Machine { places: std::mem::take(&mut self.places), ..machine };
        Ok(())
    }
}

/// The line, from 1, of a byte of a settings file.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    text[..offset.min(text.len())].matches('\n').count() + 1
}

/// The value behind a dotted key that is not a table.
fn entry<'a>(tree: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    let value = key.split('.').try_fold(tree, |value, part| value.get_mut(part))?;
    (!value.is_object()).then_some(value)
}

/// What to store for `scalar` where `old` stood.
fn accept(key: &str, old: &Value, scalar: &Scalar) -> Result<Value, String> {
    match *scalar {
        Scalar::Text(text) if old.is_string() || key == "limits.heap" => Ok(text.into()),
        Scalar::Text(text) => Err(format!("{key} = {text}: must be a whole number")),
        Scalar::Integer(number) if old.is_string() => Err(format!("{key} = {number}: must be a text in quotes")),
        Scalar::Integer(number) => match u64::try_from(number) {
            Ok(number) => Ok(number.into()),
            Err(_) if key == "limits.window" => Err(super::validate::wrong_window(number)),
            // What is there now has been used before.
            Err(_) if number < 0 => Err(format!("{key} = {number}: must not be negative; try {old}")),
            Err(_) => Err(format!("{key} = {number}: must be below 2^64")),
        },
    }
}

fn keys_of(tree: &Value) -> Vec<String> {
    let mut keys = Vec::new();
    for (name, value) in tree.as_object().into_iter().flatten() {
        match value.as_object() {
            Some(table) => keys.extend(table.keys().map(|key| format!("{name}.{key}"))),
            None => keys.push(name.clone()),
        }
    }
    keys
}

fn unknown_key(key: &str, keys: &[String]) -> String {
    // A key without its table, such as `window`, means the one that ends like it.
    let ending = keys.iter().find(|known| known.rsplit('.').next() == Some(key)).map(String::as_str);
    match ending.or_else(|| nearest(key, keys.iter().map(String::as_str))) {
        Some(known) => format!("unknown key `{key}`; did you mean `{known}`?"),
        None => format!("unknown key `{key}`; the keys are {}, {}", keys.join(", "), super::preset::KEY),
    }
}

fn unknown_machine(name: &str) -> ConfigError {
    let names: Vec<&str> = BUILTINS.iter().map(|builtin| builtin.name).collect();
    let hint = nearest(name, names.iter().copied()).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    let names = names.join(", ");
    ConfigError::Setting(format!("no machine and no file is called `{name}`{hint} (built in: {names})"))
}

/// Offset, dotted key and value of everything in a document that is not a table of it.
fn leaves<'a>(document: &'a DeTable<'a>) -> Vec<(usize, String, &'a DeValue<'a>)> {
    let mut leaves = Vec::new();
    for (name, value) in document {
        match value.get_ref() {
            DeValue::Table(table) => leaves.extend(table.iter().map(|(key, value)| {
                (key.span().start, format!("{}.{}", name.get_ref(), key.get_ref()), value.get_ref())
            })),
            value => leaves.push((name.span().start, name.get_ref().to_string(), value)),
        }
    }
    // The first wrong line of the file is the one reported.
    leaves.sort_by_key(|(offset, ..)| *offset);
    leaves
}

fn scalar<'a>(key: &str, value: &'a DeValue<'a>) -> Result<Scalar<'a>, String> {
    match value {
        DeValue::String(text) => Ok(Scalar::Text(text)),
        DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix())
            .map(Scalar::Integer)
            .map_err(|_| format!("{key} = {number}: must be below 2^64")),
        other => Err(format!("{key}: must be a whole number or a text, not {}", other.type_str())),
    }
}

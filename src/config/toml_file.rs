//! TOML files as values of our types, with every mistake told like those of other settings: file, line, key, value and remedy.

use super::load::line_of;
use super::machine::ConfigError;
use crate::nearest::nearest;
use serde::de::{DeserializeOwned, Error, Unexpected};
use serde::{Deserialize, Deserializer};
use std::ops::Range;

/// Reads the text of a TOML file; `origin` is its name, for messages.
///
/// # Errors
/// When the text is not TOML, a key is unknown or missing, or a value is wrong.
pub fn from_toml<T: DeserializeOwned>(text: &str, origin: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        let line = line_of(text, span.start);
        ConfigError::Setting(format!("{origin}:{line}: {}", explain(text, span, error.message())))
    })
}

/// A number that fulfils a condition, which messages call `wanted`; for fields with `deserialize_with`.
///
/// # Errors
/// When it is no number, or does not.
pub(crate) fn number<'de, D: Deserializer<'de>>(
    input: D,
    is_right: impl FnOnce(f64) -> bool,
    wanted: &str,
) -> Result<f64, D::Error> {
    let number = f64::deserialize(input)?;
    if number.is_finite() && is_right(number) {
        return Ok(number);
    }
    Err(D::Error::invalid_value(Unexpected::Float(number), &wanted))
}

/// A message in our words.
fn explain(text: &str, span: Range<usize>, message: &str) -> String {
    let message = message.trim().replace('\n', " ");
    let mut words = message.split('`').skip(1).step_by(2);
    let (word, known) = (words.next().unwrap_or_default(), words.collect::<Vec<_>>());
    if message.starts_with("unknown field") {
        return unknown_field(word, &known);
    }
    if message.starts_with("missing field") {
        return format!("no `{word}`; add {word} = … here");
    }
    let told = if message.starts_with("unknown variant") {
        format!("must be one of {}", known.join(", "))
    } else if let Some((_, expected)) = message.strip_prefix("invalid ").and_then(|rest| rest.rsplit_once("expected "))
    {
        format!("must be {}", wanted(expected))
    } else {
        message.clone()
    };
    match key_before(text, span.start) {
        Some(key) => format!("`{key}` = {}: {told}", text[span].lines().next().unwrap_or_default().trim()),
        None => told,
    }
}

/// The message for a field that does not exist, with the nearest one or all.
pub(crate) fn unknown_field(field: &str, known: &[&str]) -> String {
    match nearest(field, known.iter().copied()) {
        Some(near) => format!("unknown field `{field}`; did you mean `{near}`?"),
        None => format!("unknown field `{field}`; the fields are {}", known.join(", ")),
    }
}

/// The key of a value that begins here, if it stands right before it.
fn key_before(text: &str, value: usize) -> Option<&str> {
    let before = text.get(..value)?.trim_end().strip_suffix('=')?.trim_end();
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let key = &before[before.rfind(|c| !is_part(c)).map_or(0, |at| at + 1)..];
    (!key.is_empty()).then_some(key)
}

/// What a type is called by people.
fn wanted(expected: &str) -> String {
    match expected {
        "u64" | "usize" => "a whole number from 0".into(),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "i32" => format!("a whole number from {} to {}", i32::MIN, i32::MAX),
        "i64" => "a whole number".into(),
        "f64" => "a number".into(),
        "a string" | "string" => "a text in quotes".into(),
        "a sequence" => "a list".into(),
        "a boolean" => "true or false".into(),
        other if other == "a map" || other.starts_with("struct ") => "a table".into(),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only what is refused matters")]
    struct Table {
        name: String,
        #[serde(default)]
        words: Vec<String>,
        #[serde(default)]
        inner: BTreeMap<String, Inner>,
    }

    #[derive(Deserialize, Debug)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        Max,
        Sum,
    }

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only what is refused matters")]
    struct Inner {
        #[serde(default)]
        count: u32,
        kind: Option<Kind>,
    }

    #[test]
    fn mistakes_are_told_with_line_key_and_remedy_in_one_line() {
        for (text, told) in [
            ("name = \"t\"\nword = []\n", "t:2: unknown field `word`; did you mean `words`?"),
            ("zzz = 1\n", "t:1: unknown field `zzz`; the fields are name, words, inner"),
            ("words = []\n", "t:1: no `name`; add name = … here"),
            ("\nname = 1\n", "t:2: `name` = 1: must be a text in quotes"),
            ("name = \"t\"\nwords = 7\n", "t:2: `words` = 7: must be a list"),
            ("name = \"t\"\nwords = [\n  \"a\",\n  7]\n", "t:4: must be a text in quotes"),
            ("name = \"t\"\n[inner]\none = 1\n", "t:3: `one` = 1: must be a table"),
            (
                "name = \"t\"\ninner.a = { count = -1 }\n",
                "t:2: `count` = -1: must be a whole number from 0 to 4294967295",
            ),
            ("name = \"t\"\n[inner.a]\nkind = \"mux\"\n", "t:3: `kind` = \"mux\": must be one of max, sum"),
        ] {
            let error = from_toml::<Table>(text, "t").expect_err("it is wrong").to_string();
            assert_eq!(error, told);
        }
        let error = from_toml::<Table>("name = \"t\"\nwords = [\n", "t").expect_err("no TOML").to_string();
        assert!(error.starts_with("t:") && !error.contains('\n'), "{error}");
    }
}

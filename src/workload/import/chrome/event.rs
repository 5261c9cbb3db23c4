//! Events of a Chrome trace, and how a file gives them.

use super::super::file::Input;
use super::super::number::{Real, or_default};
use super::super::text::Text;
use crate::workload::WorkloadError;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;

const REMEDY: &str =
    "a Chrome trace is {\"traceEvents\":[{\"ph\":\"X\",\"name\":\"…\",\"pid\":0,\"tid\":0,\"ts\":0,\"dur\":1}]}";

/// One event; what is not needed is not read.
#[derive(Deserialize)]
pub struct Event<'a> {
    #[serde(default, borrow, deserialize_with = "or_default")]
    pub ph: Text<'a>,
    #[serde(default, borrow, deserialize_with = "or_default")]
    pub name: Text<'a>,
    #[serde(default, borrow, deserialize_with = "or_default")]
    pub cat: Text<'a>,
    #[serde(default, deserialize_with = "or_default")]
    pub pid: Key,
    #[serde(default, deserialize_with = "or_default")]
    pub tid: Key,
    #[serde(default, deserialize_with = "or_default")]
    pub id: Key,
    #[serde(default, deserialize_with = "or_default")]
    pub ts: Real,
    #[serde(default, deserialize_with = "or_default")]
    pub dur: Real,
    #[serde(default)]
    pub args: Value,
}

impl Event<'_> {
    /// A whole number among the arguments, as a number or a text.
    pub fn number(&self, key: &str) -> Option<u64> {
        let value = self.args.get(key)?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    }

    /// A text among the arguments.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.args.get(key)?.as_str()
    }
}

/// A process, thread or flow: a number or a text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Key(pub String);

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a text")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Key, E> {
        Ok(Key(value.to_string()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Key, E> {
        Ok(Key(value.to_string()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Key, E> {
        Ok(Key(value.to_string()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Key, E> {
        Ok(Key(value.into()))
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_any(KeyVisitor)
    }
}

/// A whole file.
#[derive(Deserialize)]
pub struct File<'a> {
    #[serde(rename = "traceEvents", borrow)]
    pub events: Vec<Event<'a>>,
    #[serde(rename = "otherData", default)]
    other: Value,
}

impl File<'_> {
    /// Whether a nanosecond of the file stands for a cycle, as in what `run --chrome` writes.
    pub fn counts_cycles(&self) -> bool {
        self.other.get("unit").and_then(Value::as_str) == Some("1 ns is 1 cycle")
    }
}

/// Reads a file: an object, or a bare array whose end may be missing. Slices that begin and end with an event each become
/// complete ones.
pub fn file(input: &Input) -> Result<File<'_>, WorkloadError> {
    let start = input.bytes.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    let mut file = if input.bytes.get(start) == Some(&b'[') {
        File { events: bare_events(input, start)?, other: Value::Null }
    } else {
        input.json(REMEDY)?
    };
    complete(&mut file.events);
    Ok(file)
}

/// Makes a complete event of every beginning (`B`) and the end (`E`) that belongs to it on the same thread.
fn complete(events: &mut [Event<'_>]) {
    let mut open: HashMap<(Key, Key), Vec<usize>> = HashMap::new();
    for place in 0..events.len() {
        let event = &events[place];
        match &*event.ph {
            "B" => open.entry((event.pid.clone(), event.tid.clone())).or_default().push(place),
            "E" => {
                let end = event.ts.0;
                let begun = open.get_mut(&(event.pid.clone(), event.tid.clone())).and_then(Vec::pop);
                if let Some(begun) = begun.map(|begun| &mut events[begun]) {
                    begun.ph = Text::from("X");
                    begun.dur = Real((end - begun.ts.0).max(0.0));
                }
            }
            _ => {}
        }
    }
}

/// The events of an array that begins at a byte.
fn bare_events(input: &Input, start: usize) -> Result<Vec<Event<'_>>, WorkloadError> {
    let (mut found, mut position) = (Vec::new(), start + 1);
    loop {
        let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
        let rest = &input.bytes[position..];
        position += rest.iter().position(|byte| !is_between(byte)).unwrap_or(rest.len());
        let rest = &input.bytes[position..];
        if rest.is_empty() || rest[0] == b']' {
            return Ok(found);
        }
        let mut stream = serde_json::Deserializer::from_slice(rest).into_iter::<Event<'_>>();
        match stream.next() {
            Some(Ok(event)) => found.push(event),
            Some(Err(error)) => {
                let what = super::super::file::shown(&error.to_string());
                return Err(input.error_at(position, format!("event {}: {what}; {REMEDY}", found.len())));
            }
            None => return Ok(found),
        }
        position += stream.byte_offset();
    }
}

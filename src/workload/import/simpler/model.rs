//! The files of the simpler runtime as they are written.

use super::super::number::{Real, Whole};
use super::super::text::Text;
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use std::collections::HashMap;
use std::fmt;

/// `deps.json`.
#[derive(serde::Deserialize)]
pub struct Deps<'a> {
    #[serde(borrow)]
    pub tasks: Vec<Task<'a>>,
    #[serde(default, borrow)]
    pub tensors: Vec<Tensor<'a>>,
    #[serde(default, borrow)]
    pub edges: Vec<Edge<'a>>,
}

/// A task: which kernels it runs on cube and vectors (-1 is none), and its arguments.
#[derive(serde::Deserialize)]
pub struct Task<'a> {
    pub task_id: Whole,
    #[serde(borrow)]
    pub scope: Option<Text<'a>>,
    #[serde(default)]
    pub early_dispatch: bool,
    #[serde(default)]
    pub kernel_ids: Vec<i64>,
    pub block_num: Option<Whole>,
    #[serde(default, borrow)]
    pub args: Vec<Arg<'a>>,
}

/// An argument; offsets, shape and strides count elements.
#[derive(serde::Deserialize)]
pub struct Arg<'a> {
    #[serde(rename = "type", borrow)]
    pub kind: Text<'a>,
    pub tensor_id: Option<Whole>,
    #[serde(borrow)]
    pub dtype: Option<Text<'a>>,
    #[serde(default)]
    pub shape: Vec<Whole>,
    pub start_offset: Option<Whole>,
    #[serde(default)]
    pub strides: Vec<Whole>,
}

/// Memory that arguments name.
#[derive(serde::Deserialize)]
pub struct Tensor<'a> {
    pub tensor_id: Whole,
    pub buffer_addr: Whole,
    #[serde(borrow)]
    pub dtype: Option<Text<'a>>,
    pub buffer_numel: Option<Whole>,
}

/// A dependency that the runtime found.
#[derive(serde::Deserialize)]
pub struct Edge<'a> {
    pub pred: Whole,
    pub succ: Whole,
    #[serde(borrow)]
    pub source: Option<Text<'a>>,
    flags: Option<Flags>,
    pub tensor_id: Option<Whole>,
}

/// What an edge is for, from a list of words.
#[derive(Clone, Copy)]
struct Flags {
    wait: bool,
}

impl<'de> Deserialize<'de> for Flags {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Flags, D::Error> {
        deserializer.deserialize_seq(FlagsVisitor)
    }
}

struct FlagsVisitor;

impl<'de> Visitor<'de> for FlagsVisitor {
    type Value = Flags;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of flags such as \"wait\"")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Flags, A::Error> {
        let mut flags = Flags { wait: false };
        while let Some(flag) = list.next_element::<Text<'_>>()? {
            flags.wait |= &*flag == "wait";
        }
        Ok(flags)
    }
}

impl Edge<'_> {
    /// Whether the consumer waits; other edges only keep memory alive.
    pub fn waits(&self) -> bool {
        self.flags.is_none_or(|flags| flags.wait)
    }

    /// Whether the producer made the tensor.
    pub fn is_creator(&self) -> bool {
        self.source.as_deref() == Some("creator")
    }

    /// Whether the program asked for it.
    pub fn is_explicit(&self) -> bool {
        self.source.as_deref() == Some("explicit")
    }
}

/// `name_map.json`.
#[derive(serde::Deserialize)]
pub struct NameMap {
    #[serde(default)]
    pub callable_id_to_name: HashMap<String, String>,
}

/// `chip_swimlane_records.json`, as much of it as tells durations.
#[derive(serde::Deserialize)]
pub struct Records<'a> {
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
    /// Core, task, register id, start, end, and more.
    #[serde(default)]
    pub aicore_tasks: Vec<Vec<Whole>>,
}

/// What the records were measured with.
#[derive(serde::Deserialize)]
pub struct Metadata<'a> {
    pub clock_freq_hz: Real,
    #[serde(default, borrow)]
    pub core_types: Vec<Text<'a>>,
}

/// A line of `scope_stats.jsonl` behind the first.
#[derive(serde::Deserialize)]
pub struct Boundary<'a> {
    #[serde(borrow)]
    pub phase: Text<'a>,
    pub ring: Whole,
    pub task_window_end: Whole,
    pub heap_end: Option<Whole>,
}

/// Bytes of an element; unknown types count as 4.
pub fn element_bytes(dtype: Option<&str>) -> u64 {
    let name = dtype.unwrap_or("");
    let bits = name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let length = bits.bytes().take_while(u8::is_ascii_digit).count();
    match bits[..length].parse::<u64>() {
        Ok(bits) if (1..=128).contains(&bits) => bits.div_ceil(8),
        _ if name.eq_ignore_ascii_case("bool") => 1,
        _ => 4,
    }
}

//! `PyTorch` execution traces: what a host called, in JSON; schema 1.0.1 is flat, later ones follow Chakra.
//!
//! Calls contain calls; those that contain none do the work and become tasks, in the order of their ids. A task waits for
//! the latest earlier one that has a tensor among its outputs which is among its own inputs. There are no durations.

use super::file::Input;
use super::number::Whole;
use super::sketch::{Places, Sketch};
use super::{Format, Options, contains};
use crate::id::TaskType;
use crate::workload::{Program, WorkloadError};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The format.
pub struct PyTorch;

const REMEDY: &str =
    "a PyTorch execution trace is {\"schema\":\"…\",\"nodes\":[{\"id\":1,\"name\":\"…\",\"inputs\":…}]}";

/// Beginnings of the names of nodes that run nothing.
const MARKS: [&str; 2] = ["[pytorch|", "## "];

/// Words in names that mean communication.
const COMMUNICATION: [&str; 4] = ["nccl:", "c10d::", "gloo:", "record_param_comms"];

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    schema: Cow<'a, str>,
    #[serde(borrow)]
    nodes: Vec<Node<'a>>,
}

#[derive(Deserialize)]
struct Node<'a> {
    id: Whole,
    #[serde(borrow)]
    name: Cow<'a, str>,
    /// The node inside of which this one was called.
    #[serde(alias = "ctrl_deps")]
    parent: Option<Whole>,
    #[serde(default)]
    inputs: Values,
    #[serde(default)]
    outputs: Values,
}

/// Arguments or results, bare or with shapes and types beside them.
#[derive(Deserialize)]
#[serde(untagged)]
enum Values {
    Bare(Vec<Value>),
    Described { values: Vec<Value> },
}

impl Default for Values {
    fn default() -> Values {
        Values::Bare(Vec::new())
    }
}

impl Values {
    /// Ids of all tensors, also of those in lists.
    fn tensors(&self) -> Vec<u64> {
        let (Values::Bare(values) | Values::Described { values }) = self;
        let mut found = Vec::new();
        values.iter().for_each(|value| tensors(value, &mut found));
        found
    }
}

/// A tensor is `[id, storage, offset, elements, bytes of an element, "device"]`.
fn tensors(value: &Value, found: &mut Vec<u64>) {
    let Value::Array(items) = value else { return };
    match items.as_slice() {
        [Value::Number(id), _, _, _, _, Value::String(_)] => found.extend(id.as_u64()),
        items => items.iter().for_each(|item| tensors(item, found)),
    }
}

impl Format for PyTorch {
    fn name(&self) -> &'static str {
        "pytorch"
    }

    fn description(&self) -> &'static str {
        "PyTorch execution trace (JSON)"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".pytorch.json"]
    }

    fn recognises(&self, head: &[u8]) -> bool {
        let is_object = head.trim_ascii_start().starts_with(b"{");
        is_object && contains(head, "\"schema\"") && contains(head, "\"nodes\"")
    }

    fn read(&self, input: &Input, options: &Options) -> Result<Program, WorkloadError> {
        let mut file: File<'_> = input.json(REMEDY)?;
        file.nodes.sort_by_key(|node| node.id);
        let sketch = sketch(&file, Sketch::new(input.title()));
        sketch.map_err(|fault| input.error(fault))?.finish(input, &options.rules)
    }
}

fn sketch(file: &File<'_>, mut sketch: Sketch) -> Result<Sketch, String> {
    let callers: HashSet<u64> =
        file.nodes.iter().filter(|node| node.parent != Some(node.id)).filter_map(|node| Some(node.parent?.0)).collect();
    let mut places = Places::default();
    let mut writers: HashMap<u64, usize> = HashMap::new();
    let mut left_out = 0;
    for (place, node) in file.nodes.iter().enumerate() {
        places.insert(node.id.0, place)?;
        if callers.contains(&node.id.0) || MARKS.iter().any(|mark| node.name.starts_with(mark)) {
            left_out += 1;
            continue;
        }
        let mut task = sketch.task(&format!("n{}", node.id.0), &node.name);
        let communicates = COMMUNICATION.iter().any(|word| node.name.contains(word));
        task.kind = communicates.then_some(TaskType::Accelerator);
        let consumer = sketch.push(task);
        for tensor in node.inputs.tensors() {
            if let Some(&producer) = writers.get(&tensor) {
                sketch.link(producer, consumer);
            }
        }
        writers.extend(node.outputs.tensors().into_iter().map(|tensor| (tensor, consumer)));
    }
    sketch.notes.push(format!(
        "format pytorch, schema {}: no durations, cycles from the kernel table; communication runs on ACCELERATOR, others by \
         name on CUBE or VECTOR; dependencies from tensors",
        super::file::shown(&file.schema)
    ));
    if left_out > 0 {
        sketch.notes.push(format!("{left_out} calls that contain others, and marks, were left out"));
    }
    Ok(sketch)
}

//! Chakra execution traces: protobuf (`*.et`) and JSON, plain or gzip.
//!
//! A node waits for its data dependencies. Control dependencies are left out as the feeder of that project does, because in
//! real traces they dangle and run in circles; `--edges all` takes those that exist.

mod proto;

use super::file::Input;
use super::number::{Flag, Real, Whole, or_default};
use super::sketch::{Places, Sketch, cycles};
use super::text::Text;
use super::{Edges, Format, Options, contains};
use crate::id::TaskType;
use crate::workload::{Cost, Program, WorkloadError};
use serde::Deserialize;
use std::borrow::Cow;

/// The format.
pub struct Chakra;

const REMEDY: &str = "a Chakra trace in JSON is {\"workload_graph\":[{\"Id\":0,\"Name\":\"…\",\"NodeType\":4,\"data_deps\":[]}]}, or the list alone";

/// Keys of nodes by which a bare list of them is recognised.
const KEYS: [&str; 8] = [
    "\"NodeType\"",
    "\"nodeType\"",
    "\"ctrl_deps\"",
    "\"ctrlDeps\"",
    "\"data_deps\"",
    "\"dataDeps\"",
    "\"duration_micros\"",
    "\"durationMicros\"",
];
/// What the list of nodes may be called. A file without one is metadata and nodes, one object behind the other.
const LISTS: [&str; 3] = ["\"workload_graph\"", "\"nodes\"", "\"node\""];

/// A node in either form; everything has a default, as in protobuf.
#[derive(Deserialize, Default)]
struct Node<'a> {
    #[serde(rename = "Id", alias = "id", default)]
    id: Whole,
    #[serde(rename = "Name", alias = "name", default, borrow, deserialize_with = "or_default")]
    name: Text<'a>,
    #[serde(rename = "NodeType", alias = "type", alias = "nodeType", default, deserialize_with = "or_default")]
    kind: NodeType,
    #[serde(alias = "ctrlDeps", default, deserialize_with = "or_default")]
    ctrl_deps: Vec<Whole>,
    #[serde(alias = "dataDeps", default, deserialize_with = "or_default")]
    data_deps: Vec<Whole>,
    #[serde(
        rename = "runtime",
        alias = "duration_micros",
        alias = "durationMicros",
        default,
        deserialize_with = "or_default"
    )]
    micros: Real,
    is_cpu_op: Option<Flag>,
    #[serde(alias = "attrs", default, borrow, deserialize_with = "or_default")]
    attr: Vec<Attribute<'a>>,
}

/// A named value; only booleans matter here.
#[derive(Deserialize)]
struct Attribute<'a> {
    #[serde(default, borrow)]
    name: Cow<'a, str>,
    #[serde(rename = "boolVal", alias = "bool_val", default, deserialize_with = "or_default")]
    is_true: Flag,
}

impl Node<'_> {
    /// Whether the node ran on the host; it is said beside the other fields or among the attributes.
    fn runs_on_host(&self) -> bool {
        let attribute = || self.attr.iter().find(|attribute| attribute.name == "is_cpu_op");
        let Flag(on_host) = self.is_cpu_op.or_else(|| attribute().map(|found| found.is_true)).unwrap_or_default();
        on_host
    }
}

/// 1 metadata, 2 and 3 memory, 4 computation, 5 to 7 communication.
#[derive(Clone, Copy, Default)]
struct NodeType(u64);

impl<'de> Deserialize<'de> for NodeType {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<NodeType, D::Error> {
        const NAMES: [&str; 8] =
            ["INVALID", "METADATA", "MEM_LOAD", "MEM_STORE", "COMP", "COMM_SEND", "COMM_RECV", "COMM_COLL"];
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(name) => {
                let known = NAMES.iter().position(|known| name.trim_end_matches("_NODE") == *known);
                let number = known.map(|known| known as u64).or_else(|| name.parse().ok());
                number.map(NodeType).ok_or_else(|| serde::de::Error::custom(format!("unknown node type \"{name}\"")))
            }
            other => {
                let number = other.as_f64().and_then(Whole::of);
                number
                    .map(|Whole(number)| NodeType(number))
                    .ok_or_else(|| serde::de::Error::custom("the node type is not a number"))
            }
        }
    }
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(alias = "nodes", alias = "node", borrow)]
    workload_graph: Vec<Node<'a>>,
}

impl Format for Chakra {
    fn name(&self) -> &'static str {
        "chakra"
    }

    fn description(&self) -> &'static str {
        "Chakra execution trace (protobuf or JSON)"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".et"]
    }

    fn edges(&self) -> &'static [Edges] {
        &[Edges::Recorded, Edges::All]
    }

    fn recognises(&self, head: &[u8]) -> bool {
        if head.trim_ascii_start().starts_with(b"{") {
            return ["\"workload_graph\"", "\"dataDeps\"", "\"ctrlDeps\""].iter().any(|key| contains(head, key));
        }
        if is_list(head) {
            return KEYS.iter().any(|key| contains(head, key));
        }
        proto::looks_right(head, (head.len() as u64) < super::HEAD)
    }

    fn read(&self, input: &Input, options: &Options) -> Result<Program, WorkloadError> {
        let is_json = input.bytes.trim_ascii_start().starts_with(b"{");
        let mut nodes = if is_list(&input.bytes) {
            input.json(REMEDY)?
        } else if is_json && LISTS.iter().any(|key| contains(&input.bytes, key)) {
            input.json::<File<'_>>(REMEDY)?.workload_graph
        } else if is_json {
            objects(input)?
        } else {
            let wrong = |fault: proto::Fault| input.error(format!("byte {}: {}", fault.byte, fault.message));
            proto::nodes(&input.bytes).map_err(wrong)?
        };
        // The feeder issues the smallest id first.
        nodes.sort_by_key(|node| node.id);
        let sketch = sketch(&nodes, Sketch::new(input.title()), options);
        sketch.map_err(|fault| input.error(fault))?.finish(input, &options.rules)
    }
}

/// Whether a file is a list of objects in JSON. A protobuf may begin with the same bracket, but not go on like this.
fn is_list(bytes: &[u8]) -> bool {
    let inside = bytes.trim_ascii_start().strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    inside.is_some_and(|inside| inside.starts_with(b"{") || inside.starts_with(b"]"))
}

/// The nodes of a file that is one object behind the other, as Chakra's own program writes it; the first are the metadata.
fn objects(input: &Input) -> Result<Vec<Node<'_>>, WorkloadError> {
    let objects = serde_json::Deserializer::from_str(input.text()?).into_iter().skip(1);
    objects.map(|node| node.map_err(|error| input.json_error(&error, REMEDY))).collect()
}

fn sketch(nodes: &[Node<'_>], mut sketch: Sketch, options: &Options) -> Result<Sketch, String> {
    let mut places = Places::default();
    for node in nodes {
        let mut task = sketch.task(&format!("n{}", node.id.0), kernel(&node.name));
        task.kind = kind(node);
        let amount = node.micros.0 * options.cycles_per_us();
        task.cost = Some(Cost::Cycles(cycles(amount, format_args!("the duration of node {}", node.id.0))?));
        let place = sketch.push(task);
        places.insert(node.id.0, place)?;
    }
    let (mut ignored, mut dangling) = (0, 0);
    for (place, node) in nodes.iter().enumerate() {
        for &Whole(producer) in &node.data_deps {
            sketch.link(places.named(&producer, format_args!("node {}", node.id.0))?, place);
        }
        for Whole(producer) in &node.ctrl_deps {
            match places.find(producer) {
                _ if options.edges != Some(Edges::All) => ignored += 1,
                Some(producer) => sketch.link(producer, place),
                None => dangling += 1,
            }
        }
    }
    let clock = options.clock_note();
    sketch.notes.push(format!(
        "format chakra: {clock}; communication and memory nodes run on ACCELERATOR, CPU operations on AI_CPU, others by name \
         on CUBE or VECTOR"
    ));
    if ignored > 0 {
        sketch.notes.push(format!("{ignored} control dependencies were left out; --edges all takes them"));
    }
    if dangling > 0 {
        sketch.notes.push(format!("{dangling} control dependencies name nodes that the file does not have"));
    }
    Ok(sketch)
}

/// Where a node runs; `None` leaves it to its name.
fn kind(node: &Node<'_>) -> Option<TaskType> {
    match node.kind.0 {
        1 => Some(TaskType::None),
        2 | 3 | 5..=7 => Some(TaskType::Accelerator),
        _ if node.runs_on_host() => Some(TaskType::AiCpu),
        _ => None,
    }
}

/// A node's name without the number of the call, as in `aten::add(3)`.
fn kernel(name: &str) -> &str {
    let inside = name.strip_suffix(')').map(|name| name.trim_end_matches(|letter: char| letter.is_ascii_digit()));
    inside.and_then(|name| name.strip_suffix('(')).filter(|name| !name.is_empty()).unwrap_or(name)
}

//! A small program as a Graphviz graph: tasks as boxes, coloured by type; the longest path bold.

use crate::graph::Graph;
use crate::id::{TaskId, TaskType};
use std::fmt::Write as _;
use std::io::{self, Write};

/// More tasks than this no layout program draws in a readable way.
pub const MOST_TASKS: u64 = 2000;

/// Writes `graph` in the DOT language.
///
/// # Errors
/// Those of `writer`.
pub fn write_dot(graph: &Graph, name: &str, mut writer: impl Write) -> io::Result<()> {
    let path = graph.critical_path();
    let on_path = |task: TaskId| path.contains(&task);
    let mut text = format!("digraph {} {{\n", quoted(name));
    text.push_str("  rankdir=TB;\n  node [shape=box, style=filled, fontname=\"sans-serif\"];\n");
    for (index, task) in graph.tasks.iter().enumerate() {
        let id = TaskId(index as u64);
        let kernel = task.kernel.map_or(String::new(), |kernel| format!("{}\n", graph.symbols.name(kernel)));
        let blocks = if task.blocks > 1 { format!("{} blocks of ", task.blocks) } else { String::new() };
        let label = format!("{}\n{kernel}{} {blocks}{}", graph.name(id), task.kind, task.cycles());
        let width = if on_path(id) { ", penwidth=3" } else { "" };
        let _ = writeln!(text, "  t{id} [label={}, fillcolor=\"{}\"{width}];", quoted(&label), colour(task.kind));
    }
    for consumer in 0..graph.tasks.len() as u64 {
        for &producer in graph.producers(TaskId(consumer)) {
            let is_step = path.windows(2).any(|pair| pair == [producer, TaskId(consumer)]);
            let width = if is_step { " [penwidth=3]" } else { "" };
            let _ = writeln!(text, "  t{producer} -> t{consumer}{width};");
        }
    }
    text.push_str("}\n");
    writer.write_all(text.as_bytes())?;
    writer.flush()
}

fn colour(kind: TaskType) -> &'static str {
    match kind {
        TaskType::Cube => "#a6cee3",
        TaskType::Vector => "#fdd49e",
        TaskType::Mix => "#d9d2e9",
        TaskType::AiCpu => "#b8e0c8",
        TaskType::Accelerator => "#f4c7d8",
        TaskType::None => "#eeeeee",
    }
}

/// Any text as a DOT string; a line feed becomes a new line of the label.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

//! A graph for Graphviz: a box a task, coloured by type; our own attributes carry what a picture cannot.

use super::Subject;
use crate::id::{TaskId, TaskType};
use std::io::{self, Write};

/// Writes the graph. Graphviz itself becomes slow beyond some thousand tasks; other programs read any number.
pub fn write(subject: &Subject<'_>, output: &mut dyn Write) -> io::Result<()> {
    let graph = subject.graph;
    writeln!(output, "digraph tasks {{\n  node [shape=box, style=filled];")?;
    for (index, task) in graph.tasks.iter().enumerate() {
        let id = TaskId(index as u64);
        let kernel = task.kernel.map_or("task", |kernel| graph.symbols.name(kernel));
        let (name, colour, cycles) = (quoted(&graph.name(id)), colour(task.kind), task.cycles());
        let label = quoted(&format!("{kernel} {id}"));
        write!(output, "  t{id} [label={label}, fillcolor={colour}, name={name}, kernel={}", quoted(kernel))?;
        write!(output, ", worker_type={}, cycles={cycles}", task.kind)?;
        if task.blocks > 1 {
            write!(output, ", blocks={}", task.blocks)?;
        }
        writeln!(output, "];")?;
    }
    for index in 0..graph.tasks.len() as u64 {
        for producer in graph.producers(TaskId(index)) {
            writeln!(output, "  t{producer} -> t{index};")?;
        }
    }
    writeln!(output, "}}")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn colour(kind: TaskType) -> &'static str {
    match kind {
        TaskType::Mix => "plum",
        TaskType::Cube => "lightsalmon",
        TaskType::Vector => "lightblue",
        TaskType::AiCpu => "khaki",
        TaskType::Accelerator => "palegreen",
        TaskType::None => "white",
    }
}

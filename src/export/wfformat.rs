//! `WfFormat` 1.5. Type and blocks of a task stand in the arguments of its command, where our reader finds them again.

use super::Subject;
use super::json::{lines, text};
use crate::id::{TaskId, TaskType};
use crate::workload::Workload;
use std::collections::HashSet;
use std::io::{self, Write};

/// Writes specification and execution.
pub fn write(subject: &Subject<'_>, output: &mut dyn Write) -> io::Result<()> {
    let ids = ids(subject);
    let graph = subject.graph;
    let list = |tasks: &[TaskId]| tasks.iter().map(|task| text(&ids[task.0 as usize])).collect::<Vec<_>>().join(",");
    write!(output, "{{\"name\":{},\"schemaVersion\":\"1.5\",\"workflow\":{{", text(&subject.program.name()))?;
    write!(output, "\"specification\":{{\"tasks\":[")?;
    lines(output, 0..graph.tasks.len() as u64, |output, index| {
        let (id, task) = (text(&ids[index as usize]), TaskId(index));
        write!(output, "{{\"name\":{id},\"id\":{id},\"parents\":[{}],", list(graph.producers(task)))?;
        write!(output, "\"children\":[{}]}}", list(graph.consumers(task)))
    })?;
    let seconds = subject.recording().rows.iter().map(|row| row.end).max().unwrap_or(0);
    let seconds = subject.micros(seconds) / 1e6;
    write!(output, "\n],\"files\":[]}},\n\"execution\":{{\"makespanInSeconds\":{seconds},")?;
    write!(output, "\"executedAt\":\"1970-01-01T00:00:00Z\",\"tasks\":[")?;
    lines(output, graph.tasks.iter().enumerate(), |output, (index, task)| {
        let id = text(&ids[index]);
        let seconds = subject.micros(task.cycles()) / 1e6;
        let kernel = task.kernel.map_or("task", |kernel| graph.symbols.name(kernel));
        let mut arguments = Vec::new();
        if task.kind != TaskType::Vector {
            arguments.push(text(&format!("--worker-type={}", task.kind)));
        }
        if task.blocks > 1 {
            arguments.push(text(&format!("--blocks={}", task.blocks)));
        }
        write!(output, "{{\"id\":{id},\"runtimeInSeconds\":{seconds:?},")?;
        let (kernel, arguments) = (text(kernel), arguments.join(","));
        write!(output, "\"command\":{{\"program\":{kernel},\"arguments\":[{arguments}]}}}}")
    })?;
    writeln!(output, "\n],\"machines\":[]}}}}}}")
}

/// An id for every task: its label, or, when an earlier one has it already, one made of its number.
fn ids(subject: &Subject<'_>) -> Vec<String> {
    let graph = subject.graph;
    let mut ids: Vec<String> = (0..graph.tasks.len() as u64).map(|index| graph.name(TaskId(index))).collect();
    let mut taken: HashSet<String> = HashSet::with_capacity(ids.len());
    let again: Vec<usize> = (0..ids.len()).filter(|&index| !taken.insert(ids[index].clone())).collect();
    for index in again {
        ids[index] = format!("task{index}");
        while !taken.insert(ids[index].clone()) {
            ids[index].push('_');
        }
    }
    ids
}

//! The timeline of a run as Chrome trace JSON: a process per worker type, a thread per worker, a slice per block, a flow per
//! dependency. The first slice of a task tells everything that our reader needs.

use super::Subject;
use super::json::{numbers, text};
use crate::engine::BlockRow;
use crate::id::{TaskId, TaskType, WorkerType};
use std::io::{self, Write};

/// The process of tasks that take no worker.
const JOINTS: usize = WorkerType::ALL.len();

/// Writes the timeline.
pub fn write(subject: &Subject<'_>, output: &mut dyn Write) -> io::Result<()> {
    write!(output, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"clock_mhz\":{}}},", subject.machine.clock_mhz)?;
    writeln!(output, "\"traceEvents\":[")?;
    tracks(subject, output)?;
    let n_tasks = subject.graph.tasks.len();
    let mut first: Vec<Option<&BlockRow>> = vec![None; n_tasks];
    let mut last: Vec<Option<&BlockRow>> = vec![None; n_tasks];
    for row in &subject.recording().rows {
        let place = row.task.0 as usize;
        slice(subject, output, row, first[place].is_none())?;
        first[place].get_or_insert(row);
        if last[place].is_none_or(|last| row.end > last.end) {
            last[place] = Some(row);
        }
    }
    for (index, task) in subject.graph.tasks.iter().enumerate() {
        let id = TaskId(index as u64);
        if task.kind == TaskType::None {
            let ts = subject.micros(subject.recording().submitted(id));
            let kernel = text(kernel(subject, id));
            write!(
                output,
                "{{\"name\":{kernel},\"cat\":\"task\",\"ph\":\"i\",\"s\":\"t\",\"pid\":{JOINTS},\"tid\":0,\"ts\":{ts:?},"
            )?;
            writeln!(output, "\"args\":{{{}}}}},", about(subject, id))?;
        }
    }
    let mut flow = 0_u64;
    for (index, begin) in first.iter().enumerate() {
        for producer in subject.graph.producers(TaskId(index as u64)) {
            if let (Some(end), Some(begin)) = (last[producer.0 as usize], begin) {
                arrow(subject, output, (flow, end, begin))?;
                flow += 1;
            }
        }
    }
    writeln!(output, "{{\"name\":\"end\",\"ph\":\"M\",\"pid\":0,\"args\":{{}}}}\n]}}")
}

/// Names of processes and threads.
fn tracks(subject: &Subject<'_>, output: &mut dyn Write) -> io::Result<()> {
    let mut worker = 0_u32;
    for (process, kind) in WorkerType::ALL.into_iter().enumerate() {
        let count = subject.machine.workers.count(kind);
        if count > 0 {
            let name = text(&format!("{kind} workers"));
            writeln!(
                output,
                "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{process},\"args\":{{\"name\":{name}}}}},"
            )?;
        }
        for number in 0..count {
            let name = text(&format!("{kind}-{number}"));
            let place = format!("\"pid\":{process},\"tid\":{worker}");
            writeln!(output, "{{\"name\":\"thread_name\",\"ph\":\"M\",{place},\"args\":{{\"name\":{name}}}}},")?;
            worker += 1;
        }
    }
    writeln!(output, "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{JOINTS},\"args\":{{\"name\":\"joints\"}}}},")
}

fn slice(subject: &Subject<'_>, output: &mut dyn Write, row: &BlockRow, is_first: bool) -> io::Result<()> {
    let kernel = text(kernel(subject, row.task));
    let (ts, dur) = (subject.micros(row.start), subject.micros(row.end - row.start));
    let about = if is_first { about(subject, row.task) } else { format!("\"task_id\":{}", row.task) };
    write!(
        output,
        "{{\"name\":{kernel},\"cat\":\"task\",\"ph\":\"X\",{},\"ts\":{ts:?},\"dur\":{dur:?},",
        track(subject, row)
    )?;
    writeln!(output, "\"args\":{{{about},\"block\":{}}}}},", row.block)
}

/// Process and thread of a row.
fn track(subject: &Subject<'_>, row: &BlockRow) -> String {
    let mut end = 0;
    let kind = WorkerType::ALL.into_iter().position(|kind| {
        end += subject.machine.workers.count(kind);
        row.worker.0 < end
    });
    format!("\"pid\":{},\"tid\":{}", kind.unwrap_or(0), row.worker.0)
}

/// Everything about a task that its slice does not show.
fn about(subject: &Subject<'_>, id: TaskId) -> String {
    let task = &subject.graph.tasks[id.0 as usize];
    let name = text(&subject.graph.name(id));
    let kernel = text(kernel(subject, id));
    let producers = numbers(subject.graph.producers(id).iter().map(|producer| producer.0));
    let (kind, cycles, blocks) = (task.kind, task.cycles(), task.blocks);
    format!(
        "\"task_id\":{id},\"name\":{name},\"kernel\":{kernel},\"worker_type\":\"{kind}\",\"cycles\":{cycles},\
         \"blocks\":{blocks},\"producers\":[{producers}]"
    )
}

fn kernel<'a>(subject: &Subject<'a>, id: TaskId) -> &'a str {
    let graph = subject.graph;
    graph.tasks[id.0 as usize].kernel.map_or("task", |kernel| graph.symbols.name(kernel))
}

fn arrow(
    subject: &Subject<'_>,
    output: &mut dyn Write,
    (flow, end, begin): (u64, &BlockRow, &BlockRow),
) -> io::Result<()> {
    let event = "\"name\":\"dep\",\"cat\":\"dep\"";
    let (from, to) = (track(subject, end), track(subject, begin));
    let (left, arrived) = (subject.micros(end.end), subject.micros(begin.start));
    writeln!(output, "{{{event},\"ph\":\"s\",\"id\":{flow},{from},\"ts\":{left:?}}},")?;
    writeln!(output, "{{{event},\"ph\":\"f\",\"bp\":\"e\",\"id\":{flow},{to},\"ts\":{arrived:?}}},")
}

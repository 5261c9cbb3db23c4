//! A run on host threads in words and tables: nanoseconds of the host, never beside cycles.

use super::table::{numbers, plain};
use super::words::{count, decimal, group};
use super::{Latency, Report, ThreadsReport};
use comfy_table::Table;

/// What a run in free mode has to say.
pub(super) fn verdict(report: &Report, threads: &ThreadsReport) -> String {
    let resolves = match threads.schedulers {
        0 => "whoever ended a task completed it".to_string(),
        n => format!("{} completed tasks", count(n, "scheduler thread")),
    };
    let executors = count(threads.executors, "executor thread");
    let waits = match threads.orchestrator_waits {
        0 => String::new(),
        n => format!(" The orchestrator had to wait for room {}.", count(n, "time")),
    };
    format!(
        "{executors} ran the blocks of {} and {resolves}: {} ns a task, {} tasks a second.{waits} What an idle worker waits for is \
         known in virtual time only; run with --engine virtual to see it.",
        count(report.workers.len() as u64, "worker"),
        decimal(threads.ns_per_task),
        group(threads.tasks_per_second as u64),
    )
}

/// The figures of the host.
pub(super) fn figures(threads: &ThreadsReport) -> Option<Table> {
    let mut table = plain(&["", ""]);
    table.add_row(["wall time in ns".into(), group(threads.wall_ns)]);
    table.add_row(["ns a task".into(), decimal(threads.ns_per_task)]);
    table.add_row(["tasks a second".into(), group(threads.tasks_per_second as u64)]);
    let counts = [
        ("threads woken", threads.wake_ups),
        ("times a thread slept", threads.parks),
        ("queue operations repeated", threads.contention),
        ("tasks handed on without a queue", threads.handed_on),
        ("waits of the orchestrator", threads.orchestrator_waits),
    ];
    for (name, number) in counts {
        table.add_row([name.into(), group(number)]);
    }
    numbers(table)
}

/// Waiting times of sampled tasks.
pub(super) fn latencies(threads: &ThreadsReport) -> Option<Table> {
    let mut table = plain(&["", "count", "mean", "p50", "p90", "p99", "max"]);
    let order = ["submit", "submit_to_ready", "ready_to_start", "start_to_end", "end_to_completed"];
    for name in order {
        if let Some(latency) = threads.latency.get(name) {
            let Latency { count, mean, p50, p90, p99, max } = *latency;
            let mut row = vec![name.replace('_', " "), group(count), decimal(mean)];
            row.extend([p50, p90, p99, max].map(group));
            table.add_row(row);
        }
    }
    numbers(table)
}

//! What the policy tells in the report.

use super::{Ray, State};
use crate::id::{Symbol, TaskId};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How many events a report lists at most; the counts are always whole.
const LISTED: usize = 1_000;

/// A task, to be named when the report is written.
type Named = (TaskId, Option<Symbol>);

/// Events and figures worth telling.
#[derive(Default)]
pub(super) struct Record {
    pub heap_high: usize,
    pub waiting_high: u64,
    /// Cycle, number of runs, and the task, of tasks that were given up after their last run.
    pub dead_letters: Vec<(u64, u32, Value)>,
    /// Tasks given up after a stop.
    pub cancelled: Vec<(u64, Named)>,
    /// The last moment at which anything happened.
    pub last: u64,
    fired: Vec<(u64, Named)>,
    fired_count: u64,
    latency_total: u128,
    latency_max: u64,
    log: Vec<(u64, String)>,
}

impl Record {
    pub fn new() -> Record {
        Record { log: vec![(0, "Scheduler started".into())], ..Record::default() }
    }

    /// A task was fired this many cycles after it could have been.
    pub fn fired(&mut self, now: u64, task: Named, latency: u64) {
        self.fired_count += 1;
        self.latency_total += u128::from(latency);
        self.latency_max = self.latency_max.max(latency);
        if self.fired.len() < LISTED {
            self.fired.push((now, task));
        }
    }

    pub fn log(&mut self, now: u64, line: &str) {
        self.last = self.last.max(now);
        if self.log.len() < LISTED {
            self.log.push((now, line.into()));
        }
    }
}

pub(super) fn report(ray: &Ray<'_>) -> Value {
    let record = &ray.record;
    let name =
        |(task, name): Named| name.map_or_else(|| format!("task{task}"), |name| ray.symbols.name(name).to_string());
    let events = |events: &[(u64, Named)]| events.iter().map(|&(at, task)| (at, name(task))).collect::<Vec<_>>();
    let left = ray.heap.in_order();
    let ticket = |slot: u32| &ray.tickets[slot as usize];
    let mut log = record.log.clone();
    if ray.state == State::Running {
        log.push((record.last, "Scheduler stopped".into()));
    }
    let total = |figure: fn(&super::tokens::Source<u32>) -> u64| ray.sources.iter().map(figure).sum::<u64>();
    json!({
        "fired": events(&record.fired),
        "fired_count": record.fired_count,
        "fired_waiting_high_water": record.waiting_high,
        "heap_left": left.iter().take(LISTED).map(|entry| name((ticket(entry.item).task, ticket(entry.item).name))).collect::<Vec<_>>(),
        "pending": left.iter().take(LISTED).map(|entry| ray.task(entry.item).to_dict()).collect::<Vec<_>>(),
        "cancelled_at_stop": events(&record.cancelled),
        "dead_letters": record.dead_letters.iter().map(|(at, attempts, task)| json!({"at": at, "attempts": attempts, "task": task})).collect::<Vec<_>>(),
        "queue": {"size": left.len(), "high_water": record.heap_high},
        "task": {
            "started": total(|source| source.started),
            "finished": total(|source| source.finished),
            "failures": total(|source| source.failures),
        },
        "dispatch_latency": {
            "mean": if record.fired_count == 0 { 0.0 } else { record.latency_total as f64 / record.fired_count as f64 },
            "max": record.latency_max,
        },
        "semaphore_available_of_all": ray.global.as_ref().map(super::Semaphore::available),
        "sources": sources(ray),
        "log": log,
    })
}

fn sources<'r>(ray: &'r Ray<'_>) -> BTreeMap<&'r str, Value> {
    let row = |source: &super::tokens::Source<u32>| {
        json!({
            "concurrent_count": source.tokens,
            "semaphore_available": source.semaphore.as_ref().map(super::Semaphore::available),
            "started": source.started,
            "finished": source.finished,
            "failures": source.failures,
        })
    };
    ray.sources.iter().map(|source| (source.name.as_str(), row(source))).collect()
}

//! What the policy tells in the report.

use super::Bmf;
use super::graph::Stream;
use super::read::Names;
use crate::id::TaskId;
use serde_json::{Value, json};

/// How many events and nodes a report lists at most; the counts are always whole.
pub(super) const LISTED: usize = 1_000;

/// Events worth telling.
#[derive(Default)]
pub(super) struct Record {
    is_declared: bool,
    pub halt: Option<String>,
    pub closed_at: Option<u64>,
    admissions: Events,
    forced: Events,
    removed: Events,
}

/// Moments and names, as many as are listed.
#[derive(Default)]
struct Events {
    count: u64,
    listed: Vec<(u64, String)>,
}

/// What happened at a node.
#[derive(Clone, Copy, Default)]
pub(super) struct NodeRecord {
    pub processed: u64,
    pub pending_high: u32,
    pub held_high: u32,
    pub last_schedule: Option<u64>,
    pub closed_at: Option<u64>,
}

impl Events {
    #[inline]
    fn add(&mut self, now: u64, names: &Names, task: TaskId) {
        self.count += 1;
        if self.listed.len() < LISTED {
            self.note(now, names, task);
        }
    }

    #[cold]
    fn note(&mut self, now: u64, names: &Names, task: TaskId) {
        self.listed.push((now, names.name(task)));
    }

    fn list(&self) -> Vec<Value> {
        let rows = self.listed.iter();
        rows.map(|(moment, name)| Value::Array(vec![(*moment).into(), name.as_str().into()])).collect()
    }
}

impl Record {
    pub fn new(is_declared: bool) -> Record {
        Record { is_declared, ..Record::default() }
    }

    #[inline]
    pub fn admitted(&mut self, now: u64, names: &Names, task: TaskId) {
        self.admissions.add(now, names, task);
    }

    pub fn forced(&mut self, now: u64, names: &Names, task: TaskId) {
        self.forced.add(now, names, task);
    }

    pub fn removed(&mut self, now: u64, names: &Names, task: TaskId) {
        self.removed.add(now, names, task);
    }

    pub fn report(&self, bmf: &Bmf) -> Value {
        let mut report = json!({
            "nodes_declared": self.is_declared,
            "backpressure": if bmf.is_relaxed { "relaxed" } else { "strict" },
            "halt": self.halt,
            "closed_at": self.closed_at,
            "last_schedule_clk": bmf.flow.last_schedule,
            "admissions": null,
            "admissions_count": self.admissions.count,
            "forced_admissions": null,
            "forced_admissions_count": self.forced.count,
            "removed": null,
            "removed_count": self.removed.count,
            "queue_high_water": bmf.flow.queues.high_water(),
            "nodes_count": bmf.flow.nodes.len(),
            "nodes": null,
            "streams_count": bmf.flow.shape.streams.len(),
            "streams": null,
        });
        // Lists are put in as they are: the macro would copy them.
        let lists = [
            ("admissions", self.admissions.list()),
            ("forced_admissions", self.forced.list()),
            ("removed", self.removed.list()),
            ("nodes", nodes(bmf)),
            ("streams", streams(bmf)),
        ];
        lists.into_iter().for_each(|(key, list)| report[key] = Value::Array(list));
        report
    }
}

fn nodes(bmf: &Bmf) -> Vec<Value> {
    let shape = &bmf.flow.shape;
    let queues = queues(bmf);
    let rows = (0..).zip(&bmf.flow.records).zip(queues);
    rows.map(|((index, node), queues)| {
        json!({
            "node": shape.id(index),
            "queues": queues,
            "tasks": shape.n_tasks[index as usize],
            "processed": node.processed,
            "pending_high_water": node.pending_high,
            "held_high_water": node.held_high,
            "last_schedule_clk": node.last_schedule,
            "closed_at": node.closed_at,
        })
    })
    .collect()
}

/// The queues that the tasks of each listed node go to, ascending.
fn queues(bmf: &Bmf) -> Vec<Vec<u32>> {
    let (shape, n_listed) = (&bmf.flow.shape, bmf.flow.records.len());
    // What takes no worker counts as taking several.
    let listed = |queue: u32| queue.min(bmf.flow.queues.n_workers());
    if shape.queues.is_empty() {
        return bmf.flow.nodes[..n_listed].iter().map(|node| vec![listed(node.queue())]).collect();
    }
    let mut queues: Vec<Vec<u32>> = vec![Vec::new(); n_listed];
    for (member, &queue) in shape.tasks.iter().zip(&shape.queues) {
        if let Some(known) = queues.get_mut(member.node as usize) {
            let queue = listed(queue);
            if known.last() != Some(&queue) && !known.contains(&queue) {
                known.push(queue);
            }
        }
    }
    queues.iter_mut().for_each(|queues| queues.sort_unstable());
    queues
}

/// Streams by ascending nodes at both ends.
fn streams(bmf: &Bmf) -> Vec<Value> {
    let shape = &bmf.flow.shape;
    // Only those of the first nodes are sorted, of as many as it takes.
    let (mut rows, mut limit): (Vec<&Stream>, _) = (Vec::new(), LISTED as u32);
    while rows.len() < LISTED.min(shape.streams.len()) {
        rows = shape.streams.iter().filter(|stream| stream.from < limit).collect();
        limit = limit.saturating_mul(8);
    }
    rows.sort_unstable_by_key(|stream| (stream.from, stream.to));
    rows.truncate(LISTED);
    rows.iter()
        .map(|stream| json!({"from": shape.id(stream.from), "to": shape.id(stream.to), "high_water": stream.high}))
        .collect()
}

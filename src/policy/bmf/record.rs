//! What the policy tells in the report.

use super::Bmf;
use crate::graph::Graph;
use crate::id::TaskId;
use serde_json::{Value, json};

/// How many events and nodes a report lists at most; the counts are always whole.
const LISTED: usize = 1_000;

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

impl Events {
    fn add(&mut self, now: u64, graph: &Graph, task: TaskId) {
        self.count += 1;
        if self.listed.len() < LISTED {
            self.listed.push((now, graph.name(task)));
        }
    }
}

impl Record {
    pub fn new(is_declared: bool) -> Record {
        Record { is_declared, ..Record::default() }
    }

    pub fn admitted(&mut self, now: u64, graph: &Graph, task: TaskId, by_force: bool) {
        self.admissions.add(now, graph, task);
        if by_force {
            self.forced.add(now, graph, task);
        }
    }

    pub fn removed(&mut self, now: u64, graph: &Graph, task: TaskId) {
        self.removed.add(now, graph, task);
    }

    pub fn report(&self, bmf: &Bmf) -> Value {
        json!({
            "nodes_declared": self.is_declared,
            "backpressure": if bmf.is_relaxed { "relaxed" } else { "strict" },
            "halt": self.halt,
            "closed_at": self.closed_at,
            "last_schedule_clk": bmf.flow.last_schedule,
            "admissions": self.admissions.listed,
            "admissions_count": self.admissions.count,
            "forced_admissions": self.forced.listed,
            "forced_admissions_count": self.forced.count,
            "removed": self.removed.listed,
            "removed_count": self.removed.count,
            "queue_high_water": bmf.queues.high_water(),
            "nodes_count": bmf.flow.nodes.len(),
            "nodes": nodes(bmf),
            "streams_count": bmf.flow.streams.len(),
            "streams": streams(bmf),
        })
    }
}

fn nodes(bmf: &Bmf) -> Vec<Value> {
    let mut queues: Vec<Vec<u32>> = vec![Vec::new(); bmf.flow.nodes.len().min(LISTED)];
    for (member, queue) in bmf.flow.shape.tasks.iter().zip(&bmf.routes) {
        if let Some(known) = queues.get_mut(member.node as usize)
            && !known.contains(queue)
        {
            known.push(*queue);
        }
    }
    queues.iter_mut().for_each(|queues| queues.sort_unstable());
    let rows = bmf.flow.shape.nodes.iter().zip(&bmf.flow.nodes).zip(queues);
    rows.map(|((shape, node), queues)| {
        json!({
            "node": shape.id,
            "queues": queues,
            "tasks": shape.n_tasks,
            "processed": node.processed,
            "pending_high_water": node.pending_high,
            "held_high_water": node.held_high,
            "last_schedule_clk": node.last_schedule,
            "closed_at": node.closed_at,
        })
    })
    .collect()
}

/// Streams by ascending nodes at both ends.
fn streams(bmf: &Bmf) -> Vec<Value> {
    let id = |node: u32| bmf.flow.shape.nodes[node as usize].id;
    let of_one_node = bmf.flow.shape.streams.iter().zip(&bmf.flow.streams).collect::<Vec<_>>();
    let mut rows = Vec::new();
    // Those of a node stand together, in the order of the nodes.
    for streams in of_one_node.chunk_by(|((a, _), _), ((b, _), _)| a == b) {
        let mut streams = streams.to_vec();
        streams.sort_unstable_by_key(|((_, to), _)| *to);
        rows.extend(
            streams
                .iter()
                .map(|((from, to), stream)| json!({"from": id(*from), "to": id(*to), "high_water": stream.high})),
        );
        if rows.len() >= LISTED {
            break;
        }
    }
    rows.truncate(LISTED);
    rows
}

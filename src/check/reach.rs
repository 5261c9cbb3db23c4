//! Which task comes after which, exactly: reachability in the dependency graph, a block of sources at a time.
//!
//! A task may follow 512 sources at once in one row of 512 bits: the union of the rows of its producers and of their own
//! bits. One pass over the tasks behind a block answers every question about its sources. A block that nobody asks about
//! costs nothing, and a pass ends with the last task asked about, so programs whose tasks depend on near ones take time in
//! proportion to their edges. In the worst case it is tasks × edges ÷ 64 word operations, shared among the host's CPUs; the
//! memory is 64 bytes a task and CPU.

use crate::graph::Graph;
use crate::id::TaskId;
use rayon::prelude::*;

const WORDS: usize = 8;
/// Sources of one pass.
const BLOCK: u64 = 64 * WORDS as u64;

type Row = [u64; WORDS];

/// Whether a path leads from the first to the second of each pair; the first is the smaller one.
pub fn ordered(graph: &Graph, pairs: &[(TaskId, TaskId)]) -> Vec<bool> {
    let mut by_block: Vec<usize> = (0..pairs.len()).collect();
    by_block.sort_unstable_by_key(|&index| pairs[index].0.0 / BLOCK);
    let blocks: Vec<&[usize]> = by_block.chunk_by(|&a, &b| pairs[a].0.0 / BLOCK == pairs[b].0.0 / BLOCK).collect();
    let answers: Vec<Vec<(usize, bool)>> = blocks
        .into_par_iter()
        .map_init(Vec::new, |rows, asked| {
            let first = pairs[asked[0]].0.0 / BLOCK * BLOCK;
            let last = asked.iter().map(|&index| pairs[index].1.0).max().expect("a block is asked about");
            fill(graph, first, last, rows);
            let is_ordered = |&index: &usize| {
                let (from, to) = pairs[index];
                (index, has(&rows[(to.0 - first) as usize], from.0 - first))
            };
            asked.iter().map(is_ordered).collect()
        })
        .collect();
    let mut ordered = vec![false; pairs.len()];
    answers.into_iter().flatten().for_each(|(index, answer)| ordered[index] = answer);
    ordered
}

/// An edge that a longer path implies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Redundant {
    /// The task that waits.
    pub consumer: TaskId,
    /// The task it need not name.
    pub producer: TaskId,
    /// Another producer of the consumer that comes after this one.
    pub through: TaskId,
}

/// All edges that longer paths imply, by consumer.
pub fn redundant(graph: &Graph) -> Vec<Redundant> {
    let n_blocks = (graph.tasks.len() as u64).div_ceil(BLOCK);
    let lists: Vec<Vec<Redundant>> = (0..n_blocks)
        .into_par_iter()
        .map_init(Vec::new, |rows, block| redundant_from(graph, block * BLOCK, rows))
        .collect();
    let mut all: Vec<Redundant> = lists.into_iter().flatten().collect();
    all.sort_unstable();
    all
}

/// Redundant edges whose producers are in the block that begins with `first`.
fn redundant_from(graph: &Graph, first: u64, rows: &mut Vec<Row>) -> Vec<Redundant> {
    let behind = (first + BLOCK).min(graph.tasks.len() as u64);
    let last = (first..behind).filter_map(|task| graph.consumers(TaskId(task)).last()).max();
    let Some(&last) = last else { return Vec::new() };
    fill(graph, first, last.0, rows);
    let mut found = Vec::new();
    for consumer in (first + 1..=last.0).map(TaskId) {
        let producers = graph.producers(consumer);
        let near = || producers.iter().filter(|producer| producer.0 >= first);
        let row = |task: TaskId| &rows[(task.0 - first) as usize];
        let mut implied = [0; WORDS];
        near().for_each(|&producer| unite(&mut implied, row(producer)));
        for &producer in near().filter(|producer| producer.0 < behind && has(&implied, producer.0 - first)) {
            let through = near().find(|&&other| has(row(other), producer.0 - first));
            let &through = through.expect("a bit of the union is a bit of a part");
            found.push(Redundant { consumer, producer, through });
        }
    }
    found
}

/// For every task from `first` to `last` the sources of the block at `first` that come before it.
fn fill(graph: &Graph, first: u64, last: u64, rows: &mut Vec<Row>) {
    rows.clear();
    rows.resize((last - first + 1) as usize, [0; WORDS]);
    for task in first + 1..=last {
        let mut row = [0; WORDS];
        for producer in graph.producers(TaskId(task)).iter().filter(|producer| producer.0 >= first) {
            let distance = producer.0 - first;
            unite(&mut row, &rows[distance as usize]);
            if distance < BLOCK {
                row[(distance / 64) as usize] |= 1 << (distance % 64);
            }
        }
        rows[(task - first) as usize] = row;
    }
}

fn unite(row: &mut Row, other: &Row) {
    row.iter_mut().zip(other).for_each(|(word, more)| *word |= more);
}

fn has(row: &Row, bit: u64) -> bool {
    row[(bit / 64) as usize] >> (bit % 64) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Machine;
    use crate::workload;

    #[test]
    fn paths_across_many_blocks_are_found_and_edges_beside_them_are_redundant() {
        let chain = workload::open("random:n=3000,fanin=3,seed=5").expect("a generator");
        let graph = Graph::load(chain.as_ref(), &Machine::default()).expect("it has a graph");
        let pairs: Vec<_> = (0..graph.tasks.len() as u64).step_by(37).map(|to| (TaskId(to / 3), TaskId(to))).collect();
        let pairs: Vec<_> = pairs.into_iter().filter(|(from, to)| from < to).collect();
        for (&(from, to), answer) in pairs.iter().zip(ordered(&graph, &pairs)) {
            assert_eq!(answer, walk(&graph, from, to), "{from} to {to}");
        }
        let found = redundant(&graph);
        let mut expected = 0;
        for consumer in (0..graph.tasks.len() as u64).map(TaskId) {
            let producers = graph.producers(consumer);
            let implied = |&p: &TaskId| producers.iter().any(|&other| p < other && walk(&graph, p, other));
            expected += producers.iter().filter(|p| implied(p)).count();
        }
        assert!(expected > 10);
        assert_eq!(found.len(), expected);
        assert!(found.iter().all(|edge| walk(&graph, edge.producer, edge.through)));
    }

    /// Depth-first search backwards.
    fn walk(graph: &Graph, from: TaskId, to: TaskId) -> bool {
        let mut seen = vec![false; graph.tasks.len()];
        let mut open = vec![to];
        while let Some(task) = open.pop() {
            for &producer in graph.producers(task).iter().filter(|&&producer| producer >= from) {
                if producer == from {
                    return true;
                }
                if !std::mem::replace(&mut seen[producer.0 as usize], true) {
                    open.push(producer);
                }
            }
        }
        false
    }
}

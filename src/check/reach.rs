//! Which task comes after which, exactly: reachability in the dependency graph, a block of sources at a time.
//!
//! A task may follow 512 sources at once in one row of 512 bits: the union of the rows of its producers and of their own
//! bits. One pass over the tasks behind a block answers every question about its sources. A block that nobody asks about
//! costs nothing, and a pass ends with the last task asked about, so programs whose tasks depend on near ones take time in
//! proportion to their edges.
//!
//! The first passes look for edges that longer paths imply, the last sources first. What they find is left out of all
//! passes after them, which changes no answer. In the worst case the work is tasks × edges that are left ÷ 64 word
//! operations, shared among the host's CPUs; the memory is 64 bytes a task and CPU.

use crate::graph::Graph;
use crate::id::TaskId;
use rayon::prelude::*;

const WORDS: usize = 8;
/// Sources of one pass.
const BLOCK: u64 = 64 * WORDS as u64;
/// Passes side by side, between which implied edges are left out.
const WAVE: usize = 16;

type Row = [u64; WORDS];

/// The order that dependencies give to tasks.
pub struct Order {
    /// For every task its producers without those that longer paths imply.
    producers: Vec<Vec<TaskId>>,
    /// All edges that longer paths imply, by consumer.
    pub redundant: Vec<Redundant>,
}

/// An edge that a longer path implies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Redundant {
    /// The task that waits.
    pub consumer: TaskId,
    /// The task it need not name.
    pub producer: TaskId,
    /// The last of the other producers of the consumer that come after this one.
    pub through: TaskId,
}

impl Order {
    /// Reads a graph.
    pub fn of(graph: &Graph) -> Order {
        let n_tasks = graph.tasks.len() as u64;
        let mut order = Order { producers: vec![Vec::new(); graph.tasks.len()], redundant: Vec::new() };
        let blocks: Vec<u64> = (0..n_tasks).step_by(BLOCK as usize).collect();
        for wave in blocks.rchunks(WAVE) {
            let behind = (wave[wave.len() - 1] + BLOCK).min(n_tasks);
            for producer in (wave[0]..behind).map(TaskId) {
                graph.consumers(producer).iter().for_each(|consumer| order.producers_mut(*consumer).push(producer));
            }
            let implied = |rows: &mut Vec<Row>, &first: &u64| {
                let sources = first..(first + BLOCK).min(n_tasks);
                let last = sources.filter_map(|task| graph.consumers(TaskId(task)).last()).max();
                last.map_or_else(Vec::new, |last| order.fill(first, last.0, rows))
            };
            let mut found: Vec<Redundant> = wave.par_iter().map_init(Vec::new, implied).flatten_iter().collect();
            found.sort_unstable();
            order.leave_out(&found);
            order.redundant.append(&mut found);
        }
        order.redundant.par_sort_unstable();
        order
    }

    /// Whether a path leads from the first to the second of each pair; the first is the smaller one.
    pub fn holds(&self, pairs: &[(TaskId, TaskId)]) -> Vec<bool> {
        let mut by_block: Vec<usize> = (0..pairs.len()).collect();
        by_block.sort_unstable_by_key(|&index| pairs[index].0.0 / BLOCK);
        let blocks: Vec<&[usize]> = by_block.chunk_by(|&a, &b| pairs[a].0.0 / BLOCK == pairs[b].0.0 / BLOCK).collect();
        let answers: Vec<Vec<(usize, bool)>> = blocks
            .into_par_iter()
            .map_init(Vec::new, |rows, asked| {
                let first = pairs[asked[0]].0.0 / BLOCK * BLOCK;
                let last = asked.iter().map(|&index| pairs[index].1.0).max().expect("a block is asked about");
                self.fill(first, last, rows);
                let is_ordered = |&index: &usize| {
                    let (from, to) = pairs[index];
                    (index, has(&rows[(to.0 - first) as usize], from.0 - first))
                };
                asked.iter().map(is_ordered).collect()
            })
            .collect();
        let mut holds = vec![false; pairs.len()];
        answers.into_iter().flatten().for_each(|(index, answer)| holds[index] = answer);
        holds
    }

    /// For every task from `first` to `last` the sources of the block at `first` that come before it, into `rows`; and the
    /// edges from these sources that longer paths imply.
    fn fill(&self, first: u64, last: u64, rows: &mut Vec<Row>) -> Vec<Redundant> {
        rows.clear();
        rows.resize((last - first + 1) as usize, [0; WORDS]);
        let mut found = Vec::new();
        for consumer in (first + 1..=last).map(TaskId) {
            let (mut implied, mut named) = ([0; WORDS], [0; WORDS]);
            for distance in self.producers(consumer).iter().filter_map(|producer| producer.0.checked_sub(first)) {
                unite(&mut implied, &rows[distance as usize]);
                if distance < BLOCK {
                    named[(distance / 64) as usize] |= 1 << (distance % 64);
                }
            }
            if implied.iter().zip(&named).any(|(implied, named)| implied & named != 0) {
                self.redundant_of(consumer, first, (&implied, rows), &mut found);
            }
            unite(&mut named, &implied);
            rows[(consumer.0 - first) as usize] = named;
        }
        found
    }

    /// The producers of a task in the block at `first` that are among the sources in `implied`, the union of the rows of
    /// all its producers.
    fn redundant_of(&self, consumer: TaskId, first: u64, (implied, rows): (&Row, &[Row]), found: &mut Vec<Redundant>) {
        let near = || self.producers(consumer).iter().filter(|producer| producer.0 >= first);
        for &producer in near().filter(|producer| producer.0 < first + BLOCK && has(implied, producer.0 - first)) {
            let comes_after = |other: &&TaskId| has(&rows[(other.0 - first) as usize], producer.0 - first);
            let &through = near().filter(comes_after).max().expect("a bit of the union is a bit of a part");
            found.push(Redundant { consumer, producer, through });
        }
    }

    /// Forgets edges, which are sorted.
    fn leave_out(&mut self, edges: &[Redundant]) {
        for of_consumer in edges.chunk_by(|a, b| a.consumer == b.consumer) {
            let is_needed = |task: &TaskId| of_consumer.binary_search_by_key(task, |edge| edge.producer).is_err();
            self.producers_mut(of_consumer[0].consumer).retain(is_needed);
        }
    }

    fn producers(&self, consumer: TaskId) -> &[TaskId] {
        &self.producers[consumer.0 as usize]
    }

    fn producers_mut(&mut self, consumer: TaskId) -> &mut Vec<TaskId> {
        &mut self.producers[consumer.0 as usize]
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
        let random = workload::open("random:n=10000,fanin=3,reach=3000,seed=5").expect("a generator");
        let graph = Graph::load(random.as_ref(), &Machine::default()).expect("it has a graph");
        let order = Order::of(&graph);
        let pairs: Vec<_> = (0..graph.tasks.len() as u64).step_by(37).map(|to| (TaskId(to / 3), TaskId(to))).collect();
        let pairs: Vec<_> = pairs.into_iter().filter(|(from, to)| from < to).collect();
        for (&(from, to), answer) in pairs.iter().zip(order.holds(&pairs)) {
            assert_eq!(answer, walk(&graph, from, to), "{from} to {to}");
        }
        let mut expected = Vec::new();
        for consumer in (0..graph.tasks.len() as u64).map(TaskId) {
            for &producer in graph.producers(consumer) {
                let comes_after = |other: &&TaskId| producer < **other && walk(&graph, producer, **other);
                let through = graph.producers(consumer).iter().filter(comes_after).max();
                expected.extend(through.map(|&through| Redundant { consumer, producer, through }));
            }
        }
        expected.sort_unstable();
        assert!(expected.len() > 10);
        assert_eq!(order.redundant, expected);
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

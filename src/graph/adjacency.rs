//! Which tasks each task is joined to: all lists one after the other in one piece of memory.

use super::{check_number, n_edges_expected, n_expected};
use crate::config::Machine;
use crate::error::RunError;
use crate::id::TaskId;
use crate::large;
use crate::orchestrator::Orchestrator;
use crate::workload::{Symbols, Workload};
use std::ops::Range;

/// Lists of tasks, one for each task.
#[derive(Debug)]
pub struct Adjacency<N> {
    /// Where the list of each task begins; one more than there are tasks.
    pub(crate) first: Vec<u32>,
    pub(crate) tasks: Vec<N>,
}

/// The producers of every task by their numbers alone, half as large: for what reads ahead of a run and must not cost much.
pub type Producers = Adjacency<u32>;

/// How a task stands in a list.
pub trait Number: Copy + PartialEq {
    /// A task.
    fn of(task: TaskId) -> Self;
    /// Which task it is.
    fn index(self) -> usize;
}

impl Number for TaskId {
    fn of(task: TaskId) -> TaskId {
        task
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

impl Number for u32 {
    fn of(task: TaskId) -> u32 {
        task.0 as u32
    }

    fn index(self) -> usize {
        self as usize
    }
}

impl<N> Default for Adjacency<N> {
    /// No lists yet.
    fn default() -> Adjacency<N> {
        Adjacency { first: vec![0], tasks: Vec::new() }
    }
}

impl Producers {
    /// Reads a whole program as [`super::Graph::load`] does, and shows every task as the orchestrator has it at hand, with its
    /// producers. All names come with it.
    ///
    /// # Errors
    /// As [`super::Graph::load`].
    pub fn load(
        workload: &dyn Workload,
        machine: &Machine,
        mut show: impl FnMut(&Orchestrator, &[u32]),
    ) -> Result<(Producers, Symbols), RunError> {
        let mut producers = Adjacency::default();
        let symbols = super::read(workload, machine, |orchestrator, _, found| {
            if producers.first.len() == 1 {
                producers.expect(n_expected(orchestrator));
            }
            producers.add_list(found, || n_edges_expected(orchestrator));
            show(orchestrator, found);
        })?;
        Ok((producers.checked()?, symbols))
    }
}

impl<N> Adjacency<N> {
    /// Where the list of a task stands.
    #[inline]
    pub(crate) fn range(&self, index: usize) -> Range<usize> {
        self.first[index] as usize..self.first[index + 1] as usize
    }

    /// The list of a task.
    #[inline]
    pub fn of(&self, index: usize) -> &[N] {
        &self.tasks[self.range(index)]
    }
}

impl<N: Number> Adjacency<N> {
    /// There will be about so many lists; there are none yet.
    #[cold]
    fn expect(&mut self, n_tasks: usize) {
        self.first = large::with_capacity(n_tasks + 1);
        self.first.push(0);
    }

    /// The next list; `expected` is how many tasks all of them may have.
    #[inline]
    pub(super) fn add_list(&mut self, list: &[N], expected: impl FnOnce() -> usize) {
        large::extend_expecting(&mut self.tasks, list.iter().copied(), expected);
        large::push(&mut self.first, self.tasks.len() as u32);
    }

    /// The lists, if their places are numbers of 32 bits.
    pub(super) fn checked(self) -> Result<Adjacency<N>, RunError> {
        check_number("dependencies", self.tasks.len() as u64, u32::MAX)?;
        Ok(self)
    }

    /// Number of tasks that have a list.
    #[must_use]
    pub fn n_tasks(&self) -> usize {
        self.first.len() - 1
    }

    /// Number of entries in all lists.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether all lists are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The same edges from the other end; every list ascending.
    #[must_use]
    pub fn reversed(&self) -> Adjacency<N> {
        let n_tasks = self.n_tasks();
        // Where the next entry of each list goes, one place behind: filling them moves every start to where it belongs.
        let mut first = vec![0_u32; n_tasks + 2];
        for task in &self.tasks {
            first[task.index() + 2] += 1;
        }
        for index in 1..=n_tasks {
            first[index + 1] += first[index];
        }
        let mut tasks = vec![N::of(TaskId(0)); self.tasks.len()];
        for index in 0..n_tasks {
            for other in self.of(index) {
                let place = &mut first[other.index() + 1];
                tasks[*place as usize] = N::of(TaskId(index as u64));
                *place += 1;
            }
        }
        first.pop();
        Adjacency { first, tasks }
    }

    /// If these are producers: for every task its own `span` and, `hop` apart, the largest rank of its consumers.
    #[must_use]
    pub fn upward_ranks(&self, hop: u64, span: impl Fn(usize) -> u64) -> Vec<u64> {
        let mut ranks: Vec<u64> = large::zeroed(self.n_tasks());
        for index in (0..ranks.len()).rev() {
            let rank = span(index).saturating_add(ranks[index]);
            ranks[index] = rank;
            let before = rank.saturating_add(hop);
            for producer in self.of(index) {
                let behind = &mut ranks[producer.index()];
                *behind = (*behind).max(before);
            }
        }
        ranks
    }
}

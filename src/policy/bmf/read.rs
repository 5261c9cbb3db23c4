//! What the policy keeps of a program while it is read: the node that every task belongs to, and what the trace says of it.
//!
//! A trace says `node` and `timestamp`, or both are derived: a node is a pair of kernel and level (the longest path of
//! dependencies before the task), numbered by first appearance, so that the graph has no cycle.

use crate::graph::Producers;
use crate::id::{Symbol, TaskId, TaskType};
use crate::orchestrator::Orchestrator;
use crate::window::NONE;
use crate::workload::{Symbols, Workload};
use crate::{config::Machine, engine::RunError};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// A program as far as the policy needs it.
pub(super) struct Program {
    pub producers: Producers,
    /// By task: the number of its node. Nodes are numbered by first appearance.
    pub nodes: Vec<u32>,
    pub n_nodes: u32,
    /// Nodes that the trace names: their numbers, ascending, and their ids. All others are derived.
    pub named: Vec<(u32, i32)>,
    /// By task.
    pub demands: Vec<Demand>,
    /// By task, as far as the trace gives any.
    pub timestamps: Vec<Option<i64>>,
    /// The first task with the timestamp -1, which no task may have, and its line.
    pub refused: Option<(TaskId, Option<u64>)>,
    pub names: Names,
}

/// What a task runs on.
#[derive(Clone, Copy)]
pub(super) struct Demand {
    pub kind: TaskType,
    /// Whether it has several blocks that start together.
    pub is_together: bool,
}

/// Labels of tasks.
#[derive(Default)]
pub(super) struct Names {
    /// By task, as far as any has one of its own.
    own: Vec<Option<Symbol>>,
    symbols: Symbols,
}

impl Names {
    /// Label of a task.
    pub fn name(&self, task: TaskId) -> String {
        let own = self.own.get(task.0 as usize).copied().flatten();
        own.map_or_else(|| format!("task{task}"), |name| self.symbols.name(name).to_string())
    }
}

impl Program {
    pub fn load(workload: &dyn Workload, machine: &Machine) -> Result<Program, RunError> {
        let mut reader = Reader::default();
        let (producers, symbols) =
            Producers::load(workload, machine, |orchestrator, producers| reader.add(orchestrator, producers))?;
        let Reader { nodes, n_nodes, named, demands, timestamps, refused, names, .. } = reader;
        let names = Names { own: names, symbols };
        Ok(Program { producers, nodes, n_nodes, named, demands, timestamps, refused, names })
    }
}

/// A program in the middle of reading.
#[derive(Default)]
struct Reader {
    /// By task: how many tasks are on the longest path before it.
    levels: Vec<u32>,
    nodes: Vec<u32>,
    n_nodes: u32,
    derived: Derived,
    named: Vec<(u32, i32)>,
    /// Number by id of the nodes that the trace names.
    numbers: BTreeMap<i32, u32>,
    demands: Vec<Demand>,
    timestamps: Vec<Option<i64>>,
    refused: Option<(TaskId, Option<u64>)>,
    names: Vec<Option<Symbol>>,
}

impl Reader {
    #[inline]
    fn add(&mut self, orchestrator: &Orchestrator, producers: &[u32]) {
        let (submit, (kind, _)) = (&orchestrator.task, orchestrator.resolved);
        let level = producers.iter().map(|&producer| self.levels[producer as usize] + 1).max().unwrap_or(0);
        self.levels.push(level);
        self.demands.push(Demand { kind, is_together: submit.sync_start && submit.blocks > 1 });
        set(&mut self.names, self.nodes.len(), submit.name);
        let (mut node, mut timestamp) = (None, None);
        if let Some(fields) = &submit.policy {
            (node, timestamp) = (fields.node, fields.timestamp);
            set(&mut self.timestamps, self.nodes.len(), timestamp);
        }
        if timestamp == Some(super::timestamp::UNSET) && self.refused.is_none() {
            self.refused = Some((TaskId(self.nodes.len() as u64), orchestrator.line()));
        }
        let number = match node {
            None => self.derived.number(submit.kernel, level, &mut self.n_nodes),
            Some(id) => self.number(id),
        };
        self.nodes.push(number);
    }

    /// The number of a node that the trace names.
    fn number(&mut self, id: i32) -> u32 {
        *self.numbers.entry(id).or_insert_with(|| {
            self.named.push((self.n_nodes, id));
            self.n_nodes += 1;
            self.n_nodes - 1
        })
    }
}

/// Sets an entry of a list in which most programs have nothing.
#[inline]
fn set<T: Copy>(list: &mut Vec<Option<T>>, index: usize, value: Option<T>) {
    if value.is_some() {
        list.resize(index, None);
        list.push(value);
    }
}

/// The derived nodes so far.
#[derive(Default)]
struct Derived {
    /// By level: the kernel seen last and the number of its node, or [`NONE`].
    last: Vec<(u32, u32)>,
    /// By kernel and level: all nodes of levels that have several.
    numbers: HashMap<(u32, u32), u32, BuildHasherDefault<Multiplied>>,
}

impl Derived {
    #[inline]
    fn number(&mut self, kernel: Option<Symbol>, level: u32, n_nodes: &mut u32) -> u32 {
        let kernel = kernel.map_or(NONE, |kernel| kernel.0);
        if level as usize >= self.last.len() {
            self.last.resize(level as usize + 1, (NONE, NONE));
        }
        let last = &mut self.last[level as usize];
        if last.1 == NONE {
            *last = (kernel, *n_nodes);
            *n_nodes += 1;
        } else if last.0 != kernel {
            let (other, known) = *last;
            let number = self.numbers.get(&(kernel, level)).copied().unwrap_or_else(|| {
                self.numbers.insert((other, level), known);
                self.numbers.insert((kernel, level), *n_nodes);
                *n_nodes += 1;
                *n_nodes - 1
            });
            *last = (kernel, number);
        }
        last.1
    }
}

/// A hash of a few small numbers: enough for keys that nobody chooses to collide.
#[derive(Default)]
struct Multiplied(u64);

impl Hasher for Multiplied {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

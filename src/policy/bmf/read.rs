//! What the policy keeps of a program while it is read: the node that every task belongs to, and what the trace says of it.
//!
//! A trace says `node` and `timestamp`, or both are derived: a node is a pair of kernel and level (the longest path of
//! dependencies before the task), numbered by first appearance, so that the graph has no cycle.

use super::graph::{Member, UNUSED};
use crate::graph::{self, check_number, n_edges_expected, n_expected};
use crate::id::{Symbol, TaskId, TaskType};
use crate::large;
use crate::orchestrator::Orchestrator;
use crate::window::NONE;
use crate::workload::{Symbols, Workload};
use crate::{config::Machine, engine::RunError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// A program as far as the policy needs it. Nodes are numbered by first appearance.
pub(super) struct Program {
    /// The producers of all tasks, one list after the other.
    pub producers: Vec<u32>,
    /// By task, with the number of its node.
    pub members: Vec<Member>,
    /// By number.
    pub nodes: Vec<Sketch>,
    /// Nodes that the trace names: their numbers, ascending, and their ids. All others are derived.
    pub named: Vec<(u32, i32)>,
    /// By task, if any runs on something else than the first task of its node.
    pub demands: Vec<Demand>,
    /// By task, as far as the trace gives any.
    pub timestamps: Vec<Option<i64>>,
    /// The first task with the timestamp -1, which no task may have, and where it stands, as the beginning of a message.
    pub refused: Option<(TaskId, String)>,
    pub names: Names,
    /// Whether the tasks of every node follow each other.
    pub is_grouped: bool,
}

/// What is known of a node.
#[derive(Clone, Copy)]
pub(super) struct Sketch {
    pub n_tasks: u32,
    /// How many tasks are on the longest path before its first task.
    pub level: u32,
    /// What its first task runs on.
    pub demand: Demand,
}

/// What a task runs on.
#[derive(Clone, Copy, PartialEq, Eq)]
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
        let (mut reader, mut producers) = (Reader { is_grouped: true, ..Reader::default() }, Vec::new());
        let symbols = graph::read(workload, machine, |orchestrator, _, found: &[u32]| {
            large::extend_expecting(&mut producers, found.iter().copied(), || n_edges_expected(orchestrator));
            reader.add(orchestrator, found);
        })?;
        check_number("dependencies", producers.len() as u64, UNUSED)?;
        let Reader { members, nodes, named, demands, timestamps, refused, names, is_grouped, .. } = reader;
        let names = Names { own: names, symbols };
        Ok(Program { producers, members, nodes, named, demands, timestamps, refused, names, is_grouped })
    }

    /// What a task runs on.
    pub fn demand(&self, task: usize) -> Demand {
        self.demands.get(task).copied().unwrap_or_else(|| self.nodes[self.members[task].node as usize].demand)
    }
}

/// Ids of all nodes, ascending; nodes and members of the program are then known by the indices of these. Derived numbers begin
/// behind those of the trace. Nothing if all nodes are derived, because then ids, indices and numbers are the same.
pub(super) fn name_nodes(program: &mut Program, declared: &BTreeSet<(i32, i32)>) -> Vec<i32> {
    let named = &program.named;
    if named.is_empty() && declared.is_empty() {
        return Vec::new();
    }
    let first = named.iter().map(|&(_, id)| id).max().map_or(0, |largest| largest.saturating_add(1).max(0));
    let (mut of_trace, mut n_derived) = (named.iter().peekable(), 0_u32);
    let id_of = (0..program.nodes.len() as u32).map(|number| {
        if let Some(&(_, id)) = of_trace.next_if(|&&(next, _)| next == number) {
            return id;
        }
        n_derived += 1;
        first.wrapping_add((n_derived - 1).cast_signed())
    });
    let id_of: Vec<i32> = id_of.collect();
    let mut ids: Vec<i32> = id_of.iter().copied().chain(declared.iter().flat_map(|&(a, b)| [a, b])).collect();
    ids.sort_unstable();
    ids.dedup();
    let index_of = |id: &i32| ids.binary_search(id).expect("every node is listed");
    renumber(program, &id_of.iter().map(index_of).collect::<Vec<_>>(), ids.len());
    ids
}

/// Gives the nodes of a program other numbers, below `n_nodes`.
fn renumber(program: &mut Program, numbers: &[usize], n_nodes: usize) {
    if program.demands.is_empty() {
        program.demands = (0..program.members.len()).map(|task| program.demand(task)).collect();
    }
    let nobody = Demand { kind: TaskType::None, is_together: false };
    program.nodes = vec![Sketch { n_tasks: 0, level: 0, demand: nobody }; n_nodes];
    for member in &mut program.members {
        let node = &mut program.nodes[numbers[member.node as usize]];
        node.n_tasks += 1;
        (member.node, member.place) = (numbers[member.node as usize] as u32, node.n_tasks);
    }
}

/// A program in the middle of reading.
#[derive(Default)]
struct Reader {
    members: Vec<Member>,
    nodes: Vec<Sketch>,
    is_grouped: bool,
    derived: Derived,
    named: Vec<(u32, i32)>,
    /// Number by id of the nodes that the trace names.
    numbers: BTreeMap<i32, u32>,
    /// How many producers all tasks before have.
    n_edges: usize,
    /// By task, how many tasks are on the longest path before it; nothing as long as that is so for all tasks of its node.
    levels: Vec<u32>,
    demands: Vec<Demand>,
    timestamps: Vec<Option<i64>>,
    refused: Option<(TaskId, String)>,
    names: Vec<Option<Symbol>>,
}

impl Reader {
    /// The next task, with its producers.
    #[inline(always)]
    fn add(&mut self, orchestrator: &Orchestrator, found: &[u32]) {
        let (submit, kind) = (&orchestrator.task, orchestrator.resolved.0);
        let mut level = 0;
        for &producer in found {
            let member = &mut self.members[producer as usize];
            member.outlet += 1;
            level = level.max(self.nodes[member.node as usize].level + 1);
        }
        if !self.levels.is_empty() {
            level = found.iter().map(|&producer| self.levels[producer as usize] + 1).max().unwrap_or(0);
        }
        set(&mut self.names, self.members.len(), submit.name);
        let number = match &submit.policy {
            None => self.derived.number(submit.kernel, level, self.nodes.len()),
            Some(fields) => {
                self.note_timestamp(fields.timestamp, orchestrator);
                match fields.node {
                    None => self.derived.number(submit.kernel, level, self.nodes.len()),
                    Some(id) => self.number(id),
                }
            }
        };
        let place = self.join(number, level, Demand { kind, is_together: submit.sync_start && submit.blocks > 1 });
        let member = Member { node: number, place, outlet: 0, inlet: self.n_edges as u32 };
        large::push_expecting(&mut self.members, member, || n_expected(orchestrator));
        self.n_edges += found.len();
    }

    /// The next task is of a node, which may be a new one; gives its place in it.
    #[inline(always)]
    fn join(&mut self, number: u32, level: u32, demand: Demand) -> u32 {
        if number as usize == self.nodes.len() {
            large::push(&mut self.nodes, Sketch { n_tasks: 0, level, demand });
        }
        self.is_grouped &= number as usize + 1 == self.nodes.len();
        let node = &mut self.nodes[number as usize];
        node.n_tasks += 1;
        let (place, usual) = (node.n_tasks, node.level);
        let is_usual = node.demand == demand && self.demands.is_empty();
        if !is_usual {
            self.note_demand(demand);
        }
        if usual != level || !self.levels.is_empty() {
            self.note_level(level);
        }
        place
    }

    /// The level of the next task, which is not that of the first one of its node, or was not for another before.
    #[inline(never)]
    fn note_level(&mut self, level: u32) {
        if self.levels.is_empty() {
            self.levels = self.members.iter().map(|member| self.nodes[member.node as usize].level).collect();
        }
        self.levels.push(level);
    }

    /// The timestamp that the trace gives the next task.
    fn note_timestamp(&mut self, timestamp: Option<i64>, orchestrator: &Orchestrator) {
        set(&mut self.timestamps, self.members.len(), timestamp);
        if timestamp == Some(super::timestamp::UNSET) && self.refused.is_none() {
            self.refused = Some((TaskId(self.members.len() as u64), orchestrator.place()));
        }
    }

    /// What the next task runs on, which is not that of its node, or was not for another before.
    #[inline(never)]
    fn note_demand(&mut self, demand: Demand) {
        if self.demands.is_empty() {
            self.demands = self.members.iter().map(|member| self.nodes[member.node as usize].demand).collect();
        }
        self.demands.push(demand);
    }

    /// The number of a node that the trace names.
    fn number(&mut self, id: i32) -> u32 {
        *self.numbers.entry(id).or_insert_with(|| {
            let next = self.nodes.len() as u32;
            self.named.push((next, id));
            next
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
    /// The same for the kernel seen before that, as far as there is any.
    before: Vec<(u32, u32)>,
    /// By kernel and level: all nodes of levels that have several.
    numbers: HashMap<(u32, u32), u32, BuildHasherDefault<Multiplied>>,
}

impl Derived {
    /// The number of a node; it is new if it is the number of nodes so far. A task without a kernel has one of its own, as its name would be.
    #[inline(always)]
    fn number(&mut self, kernel: Option<Symbol>, level: u32, n_nodes: usize) -> u32 {
        let next = n_nodes as u32;
        let Some(Symbol(kernel)) = kernel else { return next };
        if level as usize == self.last.len() {
            large::push(&mut self.last, (kernel, next));
            return next;
        }
        match self.last.get(level as usize) {
            Some(&(last, known)) if last == kernel && known != NONE => known,
            _ => self.other_number(kernel, level, next),
        }
    }

    /// The same where another kernel was seen last, or none because the trace names the nodes before.
    #[inline(never)]
    fn other_number(&mut self, kernel: u32, level: u32, next: u32) -> u32 {
        if level as usize >= self.last.len() {
            self.last.resize(level as usize + 1, (NONE, NONE));
        }
        let last = &mut self.last[level as usize];
        let (other, known) = *last;
        let number = if known == NONE {
            next
        } else if let Some(before) = self.before.get_mut(level as usize)
            && before.0 == kernel
            && before.1 != NONE
        {
            std::mem::swap(before, last);
            return last.1;
        } else {
            if level as usize >= self.before.len() {
                self.before.resize(level as usize + 1, (NONE, NONE));
            }
            self.before[level as usize] = *last;
            self.numbers.get(&(kernel, level)).copied().unwrap_or_else(|| {
                self.numbers.insert((other, level), known);
                self.numbers.insert((kernel, level), next);
                next
            })
        };
        *last = (kernel, number);
        number
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

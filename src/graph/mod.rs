//! A whole program as a graph in memory: every task, every dependency, whatever the window of the machine.
//!
//! The same orchestrator finds the dependencies, as if nothing were ever consumed. For what must look ahead: policies that
//! know costs beforehand, checks, statistics, exports. A run itself never needs it.

mod adjacency;

pub use adjacency::{Adjacency, Number, Producers};

use crate::config::{Limits, Machine, Workers};
use crate::error::RunError;
use crate::id::{Symbol, TaskId, TaskType};
use crate::kernel::{Costs, Table};
use crate::large;
use crate::orchestrator::{Orchestrator, Step};
use crate::workload::{Cost, Operation, Submit, Symbols, Units, Workload};
use std::sync::OnceLock;

/// A program as a graph.
pub struct Graph {
    /// Tasks by id.
    pub tasks: Vec<Task>,
    /// Names of tasks and kernels.
    pub symbols: Symbols,
    producers: Adjacency<TaskId>,
    /// Found when they are asked for.
    consumers: OnceLock<Adjacency<TaskId>>,
}

/// One task of a graph.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Task {
    /// Its label, if it has one of its own.
    pub name: Option<Symbol>,
    /// Its kernel.
    pub kernel: Option<Symbol>,
    /// What it runs on, on this machine.
    pub kind: TaskType,
    /// Cycles of a block.
    pub cost: Cost,
    /// Number of blocks.
    pub blocks: u32,
    /// What one MIX block takes.
    pub units: Units,
    /// Scopes open at its submission.
    pub depth: u32,
    /// Line in the trace.
    pub line: Option<u64>,
}

impl Task {
    /// The task that an orchestrator has at hand.
    #[inline]
    pub fn at_hand(orchestrator: &Orchestrator, depth: u32) -> Task {
        let (submit, (kind, cost)) = (&orchestrator.task, orchestrator.resolved);
        Task {
            name: submit.name,
            kernel: submit.kernel,
            kind,
            cost,
            blocks: submit.blocks,
            units: submit.units,
            depth,
            line: orchestrator.line(),
        }
    }

    /// Cycles from the start of a block to its end on its last worker.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        match (self.kind, self.cost) {
            (TaskType::None, _) => 0,
            (_, Cost::Cycles(cycles)) => cycles,
            (_, Cost::PerKind { cube, vector }) => {
                (cube * u64::from(self.units.cube.min(1))).max(vector * u64::from(self.units.vector.min(1)))
            }
        }
    }
}

impl Graph {
    /// Reads a whole program and finds its dependencies by the hazards of `machine`.
    ///
    /// # Errors
    /// When the program cannot be read or asks for what the machine can never give.
    pub fn load(workload: &dyn Workload, machine: &Machine) -> Result<Graph, RunError> {
        let (mut tasks, mut producers) = (Vec::new(), Adjacency::default());
        let symbols = read(workload, machine, |orchestrator, depth, found| {
            tasks.push(Task::at_hand(orchestrator, depth));
            producers.add_list(found, || n_edges_expected(orchestrator));
        })?;
        Ok(Graph { tasks, symbols, producers: producers.checked()?, consumers: OnceLock::new() })
    }

    /// As [`Graph::load`], whatever workers the machine has: every task keeps its own type.
    ///
    /// # Errors
    /// When the program cannot be read.
    pub fn survey(workload: &dyn Workload, machine: &Machine) -> Result<Graph, RunError> {
        const MANY: u32 = 1 << 24;
        let workers = Workers { clusters: MANY, cube: 0, vector: 0, ai_cpu: MANY, accelerator: MANY, any: 0 };
        Graph::load(workload, &Machine { workers, ..machine.clone() })
    }

    /// Producers of a task, each once.
    pub fn producers(&self, task: TaskId) -> &[TaskId] {
        self.producers.of(task.0 as usize)
    }

    /// Consumers of a task, ascending.
    pub fn consumers(&self, task: TaskId) -> &[TaskId] {
        self.consumers.get_or_init(|| self.producers.reversed()).of(task.0 as usize)
    }

    /// Number of edges.
    pub fn n_edges(&self) -> usize {
        self.producers.len()
    }

    /// Label of a task.
    pub fn name(&self, task: TaskId) -> String {
        let own = self.tasks[task.0 as usize].name.map(|name| self.symbols.name(name).to_string());
        own.unwrap_or_else(|| format!("task{task}"))
    }

    /// The tasks of the longest path, first to last; see `Longest` for which of several equally long ones.
    #[must_use]
    pub fn critical_path(&self) -> Vec<TaskId> {
        let mut longest = Longest::default();
        for (index, task) in self.tasks.iter().enumerate() {
            let producers = self.producers(TaskId(index as u64));
            let before = producers.iter().fold(Before::default(), |before, &producer| longest.longer(before, producer));
            longest.add(task.cycles(), before);
        }
        longest.path().tasks().map(|(task, _)| task).collect()
    }

    /// For every task the cycles of the longest path that begins with it, itself included.
    #[must_use]
    pub fn longest_paths(&self) -> Vec<u64> {
        self.producers.upward_ranks(0, |index| self.tasks[index].cycles())
    }
}

/// The longest path through a graph whose tasks come one by one. Of several equally long paths it is the one that ends first,
/// and from there back the one with the smallest ids.
#[derive(Default)]
struct Longest {
    /// By task: the cycles of the longest path that ends with it, itself included.
    ends: Vec<u64>,
    /// By task: the one before it on that path, or [`NONE`].
    before: Vec<u32>,
}

/// No task before, no symbol.
const NONE: u32 = u32::MAX;

/// The longest path to a task, as far as its producers are known: its cycles and its last task.
#[derive(Clone, Copy)]
struct Before(u64, u32);

impl Default for Before {
    fn default() -> Before {
        Before(0, NONE)
    }
}

impl Longest {
    /// The path by way of `producer`, if it is longer. Which one is cannot be foreseen, so that nothing depends on a jump.
    #[inline]
    #[expect(clippy::needless_bitwise_bool, reason = "the lazy operators are jumps")]
    fn longer(&self, Before(longest, before): Before, producer: TaskId) -> Before {
        let (cycles, id) = (self.ends[producer.0 as usize], producer.0 as u32);
        let is_longer = (cycles > longest) | (cycles == longest) & (id < before);
        Before(longest.max(cycles), if is_longer { id } else { before })
    }

    /// The next task, behind the longest path to it.
    #[inline]
    fn add(&mut self, cycles: u64, Before(longest, before): Before) {
        assert!(self.ends.len() < NONE as usize, "so many tasks take more than all memory");
        large::push(&mut self.ends, longest.saturating_add(cycles));
        large::push(&mut self.before, before);
    }

    /// The path, once all tasks are there. It is turned round where it stands, so that it takes no more room than before.
    fn path(mut self) -> LongestPath {
        let last =
            (0..self.ends.len()).reduce(|best, task| if self.ends[task] > self.ends[best] { task } else { best });
        let (mut task, mut first) = (last.map_or(NONE, |last| last as u32), NONE);
        while task != NONE {
            let before = std::mem::replace(&mut self.before[task as usize], first);
            (first, task) = (task, before);
        }
        LongestPath { first, ends: self.ends, next: self.before }
    }
}

/// A longest path from its beginning.
struct LongestPath {
    /// Its first task, or [`NONE`].
    first: u32,
    /// By task: when it ends, if it is on the path.
    ends: Vec<u64>,
    /// By task: the one behind it, if it is on the path, or [`NONE`].
    next: Vec<u32>,
}

impl LongestPath {
    /// Its tasks with their ends, first to last.
    fn tasks(&self) -> impl Iterator<Item = (TaskId, u64)> {
        let task = |number: u32| (number != NONE).then_some(number);
        std::iter::successors(task(self.first), move |&number| task(self.next[number as usize]))
            .map(|number| (TaskId(number.into()), self.ends[number as usize]))
    }
}

/// The longest path of a program, found while it is read: 13 bytes a task instead of the whole graph, and 12 more for one with a
/// name of its own.
pub struct StaticPath {
    longest: LongestPath,
    labels: Labels,
    /// Names of tasks and kernels.
    pub symbols: Symbols,
}

/// By task, its own name and its kernel; [`NONE`] where there is none. Most tasks have no name and one of a few kernels.
#[derive(Default)]
struct Labels {
    /// The first few that are different.
    few: Vec<Label>,
    /// By task, which of them it is, or [`OTHER`].
    which: Vec<u8>,
    /// The others, by task.
    others: Vec<(u32, Label)>,
}

type Label = [u32; 2];

const MOST_FEW: usize = 16;
const OTHER: u8 = u8::MAX;

impl Labels {
    /// The label of the next task.
    #[inline]
    fn push(&mut self, label: Label) {
        let known = self.few.iter().position(|few| *few == label);
        let which = known.map_or_else(|| self.add(label), |known| known as u8);
        large::push(&mut self.which, which);
    }

    fn add(&mut self, label: Label) -> u8 {
        if self.few.len() < MOST_FEW {
            self.few.push(label);
            return self.few.len() as u8 - 1;
        }
        large::push(&mut self.others, (self.which.len() as u32, label));
        OTHER
    }

    fn of(&self, task: u32) -> Label {
        match self.which[task as usize] {
            OTHER => {
                let place = self.others.binary_search_by_key(&task, |other| other.0);
                self.others[place.expect("it is among the others")].1
            }
            which => self.few[which as usize],
        }
    }
}

/// A task of a static path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathTask {
    /// The task.
    pub task: TaskId,
    /// Its label, if it has one of its own.
    pub name: Option<Symbol>,
    /// Its kernel.
    pub kernel: Option<Symbol>,
    /// Its first cycle on a machine that is never busy.
    pub from: u64,
    /// Its end there.
    pub to: u64,
}

impl StaticPath {
    /// Whether a program that knows how many tasks it has is not too large.
    ///
    /// # Errors
    /// When it is, or cannot be opened.
    pub fn check_size(workload: &dyn Workload) -> Result<(), RunError> {
        check_tasks(workload.open()?.n_tasks().unwrap_or(0))
    }

    /// Reads a whole program, as [`Graph::load`] does.
    ///
    /// # Errors
    /// As [`Graph::load`].
    pub fn load(workload: &dyn Workload, machine: &Machine) -> Result<StaticPath, RunError> {
        let (mut reader, mut longest, mut labels) = (reader(workload, machine)?, Longest::default(), Labels::default());
        check_tasks(reader.source().n_tasks().unwrap_or(0))?;
        let n_tasks = n_expected(&reader);
        large::reserve(&mut longest.ends, n_tasks);
        large::reserve(&mut longest.before, n_tasks);
        large::reserve(&mut labels.which, n_tasks);
        let number = |symbol: Option<Symbol>| symbol.map_or(NONE, |symbol| symbol.0);
        loop {
            let mut before = Before::default();
            match reader.survey(|producer| before = longest.longer(before, producer))? {
                Step::Done => break,
                Step::ScopeBegin | Step::ScopeEnd => {}
                Step::Submit => {
                    let task = Task::at_hand(&reader, 0);
                    longest.add(task.cycles(), before);
                    labels.push([number(task.name), number(task.kernel)]);
                }
            }
        }
        let symbols = reader.source().symbols().clone();
        Ok(StaticPath { longest: longest.path(), labels, symbols })
    }

    /// Its tasks, first to last.
    pub fn tasks(&self) -> impl Iterator<Item = PathTask> {
        let symbol = |number: u32| (number != NONE).then_some(Symbol(number));
        let mut clock = 0;
        self.longest.tasks().map(move |(task, to)| {
            let [name, kernel] = self.labels.of(task.0 as u32).map(symbol);
            PathTask { task, name, kernel, from: std::mem::replace(&mut clock, to), to }
        })
    }
}

/// An orchestrator that has no window to fill.
fn reader(workload: &dyn Workload, machine: &Machine) -> Result<Orchestrator, RunError> {
    let machine = Machine { limits: Limits { window: 1, rings: 1, ..Limits::default() }, ..machine.clone() };
    let table = Table::load(&machine.kernels)?;
    Ok(Orchestrator::new(workload.open()?, Costs::new(&table), &machine))
}

/// Reads a whole program by the hazards of `machine`, whatever its window, and shows every task as the orchestrator has it at hand,
/// with the number of open scopes and its producers, each once. Returns all names.
pub(crate) fn read<N: Number>(
    workload: &dyn Workload,
    machine: &Machine,
    show: impl FnMut(&Orchestrator, u32, &[N]),
) -> Result<Symbols, RunError> {
    // What is wrong with the program itself comes before what is wrong with it on this machine.
    read_tasks(workload, machine, show).map_err(|error| count_tasks(workload).err().unwrap_or(error))
}

/// How many tasks to expect of a program, as far as that is known before it is read, and not more than room is made for at once.
pub(crate) fn n_expected(reader: &Orchestrator) -> usize {
    const MOST: u64 = 1 << 24;
    reader.source().n_tasks().map_or(0, |n_tasks| n_tasks.min(MOST) as usize)
}

/// How many dependencies to make room for: few programs have more.
pub(crate) fn n_edges_expected(reader: &Orchestrator) -> usize {
    4 * n_expected(reader)
}

fn read_tasks<N: Number>(
    workload: &dyn Workload,
    machine: &Machine,
    mut show: impl FnMut(&Orchestrator, u32, &[N]),
) -> Result<Symbols, RunError> {
    /// So many producers are looked through, whether they come in order or not.
    const FEW: usize = 3;
    let (mut reader, mut depth, mut repeats) = (reader(workload, machine)?, 0, Repeats::default());
    check_tasks(reader.source().n_tasks().unwrap_or(0))?;
    let mut found = Vec::new();
    loop {
        found.clear();
        let (consumer, mut beyond) = (reader.next_task(), 0);
        let step = reader.survey(|producer| {
            // Mostly they come in order, and then none of them comes again.
            if producer.0 >= beyond {
                beyond = producer.0 + 1;
            } else if found.len() <= FEW {
                if found.iter().any(|&other| other == N::of(producer)) {
                    return;
                }
            } else if repeats.is_repeated(&found, producer, consumer) {
                return;
            }
            found.push(N::of(producer));
        })?;
        match step {
            Step::Done => break,
            Step::ScopeBegin => depth += 1,
            Step::ScopeEnd => depth -= 1,
            Step::Submit => show(&reader, depth, &found),
        }
    }
    check_tasks(reader.next_task().0)?;
    Ok(reader.source().symbols().clone())
}

/// Tasks are known by numbers of 32 bits here.
fn check_tasks(n_tasks: u64) -> Result<(), RunError> {
    check_number("tasks", n_tasks, NONE)
}

/// What a whole program is made of must be fewer than `limit`.
pub(crate) fn check_number(what: &str, count: u64, limit: u32) -> Result<(), RunError> {
    if count < limit.into() {
        return Ok(());
    }
    Err(RunError::Task(format!(
        "a program of {count} {what} is too large to be looked at as a whole, which takes fewer than {limit}; use a smaller one, \
         or leave out what reads all of it: policies that look ahead, --critical-path, --flows, --dot"
    )))
}

/// Finds out whether a producer is listed already: by looking through a short list, by marks when it gets long.
#[derive(Default)]
struct Repeats {
    /// By task: one more than the last task with a long list that depends on it.
    marks: Vec<u32>,
}

impl Repeats {
    #[inline]
    fn is_repeated<N: Number>(&mut self, listed: &[N], producer: TaskId, consumer: TaskId) -> bool {
        const SHORT: usize = 8;
        if listed.len() <= SHORT {
            return listed.iter().any(|&other| other == N::of(producer));
        }
        self.is_marked(listed, producer, consumer)
    }

    /// Marks those of the list that are not marked yet, and looks whether that marks the producer.
    #[inline(never)]
    fn is_marked<N: Number>(&mut self, listed: &[N], producer: TaskId, consumer: TaskId) -> bool {
        let mark = consumer.0 as u32 + 1;
        self.marks.resize(consumer.0 as usize, 0);
        for task in listed.iter().rev() {
            if std::mem::replace(&mut self.marks[task.index()], mark) == mark {
                break;
            }
        }
        self.marks[producer.0 as usize] == mark
    }
}

/// How many tasks a program has, without keeping any.
///
/// # Errors
/// When the program cannot be read.
pub fn count_tasks(workload: &dyn Workload) -> Result<u64, RunError> {
    let (mut source, mut task, mut count) = (workload.open()?, Submit::default(), 0);
    if let Some(known) = source.n_tasks() {
        return Ok(known);
    }
    while let Some(operation) = source.next(&mut task)? {
        count += u64::from(operation == Operation::Submit);
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload;

    #[test]
    fn the_path_found_while_reading_is_the_longest_of_the_graph() {
        for spec in ["chain:n=9", "cholesky:tiles=8", "random:n=500,fanin=3", "moe"] {
            let (program, machine) = (workload::open(spec).expect("a generator"), Machine::default());
            let graph = Graph::load(program.as_ref(), &machine).expect("a graph");
            let path = StaticPath::load(program.as_ref(), &machine).expect("a graph");
            let ids: Vec<TaskId> = path.tasks().map(|task| task.task).collect();
            assert_eq!(ids, graph.critical_path(), "{spec}");
            assert!(ids.windows(2).all(|pair| graph.producers(pair[1]).contains(&pair[0])), "{spec}");
            let mut clock = 0;
            for found in path.tasks() {
                let task = &graph.tasks[found.task.0 as usize];
                assert_eq!((found.name, found.kernel), (task.name, task.kernel), "{spec}");
                assert_eq!((found.from, found.to), (clock, clock + task.cycles()), "{spec}");
                clock = found.to;
            }
            assert_eq!(Some(clock), graph.longest_paths().into_iter().max(), "{spec}");
        }
    }
}

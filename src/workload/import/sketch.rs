//! A program as a foreign file tells it: tasks in the order of the file, dependencies in any direction.
//!
//! [`Sketch::finish`] applies the mapping rules, puts producers before consumers and makes a [`Program`] of it.

use super::file::{Input, shown};
use super::rules::Rules;
use crate::id::{BufferId, Symbol, TaskId};
use crate::workload::program::{Content, Program};
use crate::workload::{Operation, Region, Submit, Symbols, WorkloadError};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::hash_map::{Entry, HashMap};
use std::fmt::Display;
use std::hash::Hash;
use std::sync::Arc;

/// A map whose hashing is fast.
pub type FastMap<K, V> = HashMap<K, V, foldhash::fast::FixedState>;

/// Tasks that an error about a circle names.
const NAMED: usize = 8;

/// A program in the making. The `deps` of its tasks are places in the sketch, not ids.
#[derive(Default)]
pub struct Sketch {
    /// What reports call the program.
    pub name: String,
    tasks: Vec<Submit>,
    lines: Vec<u64>,
    symbols: Symbols,
    buffers: Symbols,
    /// Sizes of buffers that outlive the run; `None` for those that tasks allocate.
    sizes: Vec<Option<u64>>,
    /// Whether dependencies only put tasks into order, because regions imply them.
    only_order: bool,
    /// What the user should know about the way the file was read.
    pub notes: Vec<String>,
}

/// A task reads or writes a file.
#[derive(Clone, Copy)]
pub struct Use<'a> {
    /// The task's place in the sketch.
    pub place: usize,
    /// Name of the file.
    pub file: &'a str,
    /// Whether it writes it.
    pub is_output: bool,
    /// Size of the file.
    pub bytes: u64,
}

impl Sketch {
    /// An empty one.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Sketch {
        Sketch { name: name.into(), ..Sketch::default() }
    }

    /// A task of this name that runs this kernel, still without cost.
    pub fn task(&mut self, name: &str, kernel: &str) -> Submit {
        let (name, kernel) = (self.symbols.intern(name), self.symbols.intern(kernel));
        Submit { name: Some(name), kernel: Some(kernel), ..Submit::default() }
    }

    /// The number of a name if a task or kernel has it.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Symbol> {
        self.symbols.find(name)
    }

    /// The name of a symbol.
    #[must_use]
    pub fn text(&self, symbol: Symbol) -> &str {
        self.symbols.name(symbol)
    }

    /// The symbol of a name.
    pub fn symbol(&mut self, name: &str) -> Symbol {
        self.symbols.intern(name)
    }

    /// Adds a task and returns its place.
    pub fn push(&mut self, task: Submit) -> usize {
        self.tasks.push(task);
        self.tasks.len() - 1
    }

    /// Says where in the file the task last added stands.
    pub fn at_line(&mut self, line: u64) {
        self.lines.resize(self.tasks.len(), line);
    }

    /// The task at a place.
    pub fn at(&mut self, place: usize) -> &mut Submit {
        &mut self.tasks[place]
    }

    /// All tasks in the order of the file.
    #[must_use]
    pub fn tasks(&self) -> &[Submit] {
        &self.tasks
    }

    /// Lets the task at `consumer` wait for the one at `producer`.
    pub fn link(&mut self, producer: usize, consumer: usize) {
        self.tasks[consumer].deps.push(TaskId(producer as u64));
    }

    /// All of a buffer that outlives the run, declared at its first use. Later sizes that are larger win.
    pub fn buffer(&mut self, name: &str, bytes: u64) -> Region {
        let buffer = self.heap_buffer(name);
        let size = &mut self.sizes[buffer.0 as usize];
        *size = Some(size.unwrap_or(0).max(bytes));
        Region::range(buffer, 0, bytes)
    }

    /// A buffer that tasks allocate.
    pub fn heap_buffer(&mut self, name: &str) -> BufferId {
        let Symbol(number) = self.buffers.intern(name);
        self.sizes.resize(self.sizes.len().max(number as usize + 1), None);
        BufferId(number)
    }

    /// Takes every file as a buffer that its writers write and its readers read, instead of the dependencies so far. An
    /// empty file is taken as one byte, so that it still carries a dependency. Those dependencies, and the one from the only
    /// writer of a file to its readers, still decide the order of the tasks.
    pub fn use_files(&mut self, uses: &[Use<'_>]) {
        let mut writers: FastMap<&str, Vec<usize>> = FastMap::default();
        for used in uses.iter().filter(|used| used.is_output) {
            writers.entry(used.file).or_default().push(used.place);
        }
        for used in uses {
            let region = self.buffer(used.file, used.bytes.max(1));
            let task = &mut self.tasks[used.place];
            let regions = if used.is_output { &mut task.writes } else { &mut task.reads };
            regions.push(region);
            if let Some(&[writer]) = writers.get(used.file).map(Vec::as_slice)
                && !used.is_output
                && writer != used.place
            {
                self.link(writer, used.place);
            }
        }
        self.only_order = true;
    }

    /// What messages call the task at a place.
    #[must_use]
    pub fn label(&self, place: usize) -> String {
        let name = self.tasks[place].name;
        name.map_or_else(|| format!("task {place}"), |name| format!("\"{}\"", shown(self.symbols.name(name))))
    }

    /// Applies the rules, sorts and makes a program.
    ///
    /// # Errors
    /// When tasks wait for themselves or for each other in a circle; names them.
    pub fn finish(self, input: &Input, rules: &Rules) -> Result<Program, WorkloadError> {
        self.settle(input, rules).map(|(content, _)| Program { content: Arc::new(content) })
    }

    /// As [`Sketch::finish`], for readers that change more; also gives the place in the sketch of every task.
    ///
    /// # Errors
    /// As [`Sketch::finish`].
    pub(super) fn settle(mut self, input: &Input, rules: &Rules) -> Result<(Content, Vec<usize>), WorkloadError> {
        if self.tasks.is_empty() {
            return Err(input.error("no tasks; is the file complete, and is --from right?"));
        }
        rules.apply(&mut self.tasks, &self.symbols).map_err(|fault| input.error(fault))?;
        let order = match self.order().map_err(|fault| input.error(fault))? {
            None => (0..self.tasks.len()).collect(),
            Some(order) => {
                self.reorder(&order);
                order
            }
        };
        for task in &mut self.tasks {
            task.deps.sort_unstable();
            task.deps.dedup();
            if self.only_order {
                task.deps.clear();
            }
        }
        let declared = |(number, bytes): (usize, &Option<u64>)| {
            bytes.map(|bytes| Operation::Buffer { buffer: BufferId(number as u32), bytes })
        };
        let mut operations: Vec<Operation> = self.sizes.iter().enumerate().filter_map(declared).collect();
        let mut lines = Vec::new();
        if self.lines.len() == self.tasks.len() && operations.is_empty() {
            lines = self.lines;
        }
        operations.resize(operations.len() + self.tasks.len(), Operation::Submit);
        let content = Content {
            origin: None,
            name: self.name,
            operations,
            tasks: self.tasks,
            lines,
            symbols: self.symbols,
            buffers: self.buffers,
            controls: Vec::new(),
            notes: self.notes,
        };
        Ok((content, order))
    }

    /// The places in an order in which producers come first, as near to the file's as can be; `None` when the file is in
    /// such an order already.
    fn order(&self) -> Result<Option<Vec<usize>>, String> {
        let mut in_order = true;
        for (place, task) in self.tasks.iter().enumerate() {
            for &TaskId(producer) in &task.deps {
                if producer as usize == place {
                    return Err(format!("{} waits for itself; remove that dependency", self.label(place)));
                }
                in_order &= (producer as usize) < place;
            }
        }
        if in_order {
            return Ok(None);
        }
        let (first, consumers) = self.consumers();
        let mut missing: Vec<usize> = self.tasks.iter().map(|task| task.deps.len()).collect();
        let free = missing.iter().enumerate().filter(|&(_, &count)| count == 0).map(|(place, _)| Reverse(place));
        let mut ready: BinaryHeap<_> = free.collect();
        let mut order = Vec::with_capacity(self.tasks.len());
        while let Some(Reverse(place)) = ready.pop() {
            order.push(place);
            for &consumer in &consumers[first[place]..first[place + 1]] {
                missing[consumer] -= 1;
                if missing[consumer] == 0 {
                    ready.push(Reverse(consumer));
                }
            }
        }
        if order.len() == self.tasks.len() { Ok(Some(order)) } else { Err(self.circle(&missing)) }
    }

    /// Consumers of every task, one list behind the other, and where each list begins.
    fn consumers(&self) -> (Vec<usize>, Vec<usize>) {
        let mut first = vec![0; self.tasks.len() + 1];
        for TaskId(producer) in self.tasks.iter().flat_map(|task| &task.deps) {
            first[*producer as usize + 1] += 1;
        }
        for place in 0..self.tasks.len() {
            first[place + 1] += first[place];
        }
        let mut next = first.clone();
        let mut consumers = vec![0; first[self.tasks.len()]];
        for (place, task) in self.tasks.iter().enumerate() {
            for &TaskId(producer) in &task.deps {
                let end = &mut next[producer as usize];
                consumers[*end] = place;
                *end += 1;
            }
        }
        (first, consumers)
    }

    /// The message that names a circle among the tasks that still miss producers.
    fn circle(&self, missing: &[usize]) -> String {
        let stuck = |place: &usize| missing[*place] > 0;
        let mut path: Vec<usize> = (0..missing.len()).find(stuck).into_iter().collect();
        let mut seen = vec![usize::MAX; missing.len()];
        let start = loop {
            let last = *path.last().expect("a task is left over, or there is no circle");
            if seen[last] != usize::MAX {
                break seen[last];
            }
            seen[last] = path.len() - 1;
            let mut producers = self.tasks[last].deps.iter().map(|producer| producer.0 as usize);
            path.push(producers.find(stuck).expect("a task that is left over waits for another one"));
        };
        let circle: Vec<String> = path[start..].iter().map(|&place| self.label(place)).collect();
        let length = circle.len() - 1;
        let shown =
            if length > NAMED { format!("{} ← …", circle[..NAMED].join(" ← ")) } else { circle.join(" ← ") };
        format!("{length} tasks wait for each other in a circle: {shown}; remove one of these dependencies")
    }

    /// Puts the tasks into `order` and renames their dependencies.
    fn reorder(&mut self, order: &[usize]) {
        let mut ids = vec![TaskId(0); order.len()];
        for (id, &place) in order.iter().enumerate() {
            ids[place] = TaskId(id as u64);
        }
        let mut tasks: Vec<Submit> = order.iter().map(|&place| std::mem::take(&mut self.tasks[place])).collect();
        for dependency in tasks.iter_mut().flat_map(|task| &mut task.deps) {
            *dependency = ids[dependency.0 as usize];
        }
        if self.lines.len() == order.len() {
            self.lines = order.iter().map(|&place| self.lines[place]).collect();
        }
        self.tasks = tasks;
        let moved = order.iter().enumerate().filter(|&(id, &place)| id != place).count();
        self.notes.push(format!("{moved} tasks were moved so that producers come first"));
    }
}

/// Where the tasks of a file are in a sketch, by the file's own names.
pub struct Places<K> {
    places: FastMap<K, usize>,
}

impl<K> Default for Places<K> {
    fn default() -> Places<K> {
        Places { places: FastMap::default() }
    }
}

/// As [`Places`], for files that call their tasks by names, which the sketch knows already.
#[derive(Default)]
pub struct NamedPlaces {
    /// By symbol; `usize::MAX` where no task is called so.
    places: Vec<usize>,
}

impl NamedPlaces {
    /// Where the tasks of a sketch are.
    ///
    /// # Errors
    /// When two have the same name.
    pub fn of(sketch: &Sketch) -> Result<NamedPlaces, String> {
        let mut places = vec![usize::MAX; sketch.symbols.len()];
        for (place, task) in sketch.tasks.iter().enumerate() {
            let Some(name) = task.name else { continue };
            if std::mem::replace(&mut places[name.0 as usize], place) != usize::MAX {
                return Err(twice(sketch.symbols.name(name)));
            }
        }
        Ok(NamedPlaces { places })
    }

    /// Where the task of a name is.
    #[must_use]
    pub fn find(&self, name: Symbol) -> Option<usize> {
        self.places.get(name.0 as usize).copied().filter(|&place| place != usize::MAX)
    }

    /// The place of the task that the one at `by` names.
    ///
    /// # Errors
    /// When there is no such task.
    pub fn named(&self, name: Symbol, sketch: &Sketch, by: usize) -> Result<usize, String> {
        let by = || sketch.tasks[by].name.map_or_else(|| by.to_string(), |by| shown(sketch.symbols.name(by)));
        self.find(name).ok_or_else(|| dangling(sketch.symbols.name(name), format_args!("task {}", by())))
    }
}

/// The message of a task that occurs twice.
fn twice(name: &str) -> String {
    format!("task {} occurs twice; give every task its own id", shown(name))
}

/// The message of a name that no task has.
fn dangling(name: &str, by: impl Display) -> String {
    format!("{by} names task {}, which the file does not have; add it or remove the name", shown(name))
}

impl<K: Eq + Hash + Display> Places<K> {
    /// Remembers where a task is.
    ///
    /// # Errors
    /// When the name is taken.
    pub fn insert(&mut self, key: K, place: usize) -> Result<(), String> {
        match self.places.entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(place);
                Ok(())
            }
            Entry::Occupied(known) => Err(twice(&known.key().to_string())),
        }
    }

    /// Where a task is.
    #[must_use]
    pub fn find(&self, key: &K) -> Option<usize> {
        self.places.get(key).copied()
    }

    /// The place of a task that another one names.
    ///
    /// # Errors
    /// When there is no such task.
    pub fn named(&self, key: &K, by: impl Display) -> Result<usize, String> {
        self.find(key).ok_or_else(|| dangling(&key.to_string(), by))
    }
}

/// Cycles of a fractional amount, rounded to the nearest.
///
/// # Errors
/// When the amount is negative or more than 2^63.
pub fn cycles(amount: f64, what: impl Display) -> Result<u64, String> {
    let rounded = amount.round();
    if (0.0..9.2e18).contains(&rounded) {
        Ok(rounded as u64)
    } else {
        Err(format!("{what} makes {amount} cycles; it must be from 0 to 2^63"))
    }
}

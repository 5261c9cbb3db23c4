//! Generators of loop nests: they hand out the operations of one inner loop at a time.

use super::indexed::Kernel;
use crate::id::{BufferId, Symbol, TaskType};
use crate::workload::{NewBuffer, Operation, Region, Source, Submit, Symbols, WorkloadError};

/// A program that comes in parts.
pub trait Nest {
    /// Appends the next part to `part`; false when there is none.
    fn part(&mut self, part: &mut Part) -> bool;
}

/// The names of a program in the making.
#[derive(Default)]
pub struct Names {
    symbols: Symbols,
    buffers: Symbols,
    declared: Vec<Operation>,
}

impl Names {
    /// A kernel.
    pub fn kernel(&mut self, name: &str, kind: TaskType) -> Kernel {
        Kernel::new(&mut self.symbols, name, kind)
    }

    /// A buffer in device memory, declared at the start of the program.
    pub fn buffer(&mut self, name: &str, bytes: u64) -> BufferId {
        let buffer = self.heap(name);
        self.declared.push(Operation::Buffer { buffer, bytes });
        buffer
    }

    /// A name for buffers that tasks allocate.
    pub fn heap(&mut self, name: &str) -> BufferId {
        BufferId(self.buffers.intern(name).0)
    }

    /// The parameters m, n and k of matrix products.
    pub fn sides(&mut self) -> [Symbol; 3] {
        ["m", "n", "k"].map(|name| self.symbols.intern(name))
    }
}

/// Operations that were made but not handed out yet.
#[derive(Default)]
pub struct Part {
    operations: Vec<Operation>,
    /// Submissions of `operations` in their order; the rest is memory for further ones.
    tasks: Vec<Submit>,
    used: usize,
}

impl Part {
    /// Opens a scope.
    pub fn scope_begin(&mut self) {
        self.operations.push(Operation::ScopeBegin);
    }

    /// Closes it.
    pub fn scope_end(&mut self) {
        self.operations.push(Operation::ScopeEnd);
    }

    /// Adds a call of `kernel`, to be filled.
    pub fn task(&mut self, kernel: Kernel) -> Task<'_> {
        if self.used == self.tasks.len() {
            self.tasks.push(Submit::default());
        }
        let task = &mut self.tasks[self.used];
        self.used += 1;
        self.operations.push(Operation::Submit);
        task.clear();
        kernel.call(task);
        Task(task)
    }
}

/// A task being filled.
pub struct Task<'a>(&'a mut Submit);

impl Task<'_> {
    /// Reads a region.
    pub fn reads(self, region: Region) -> Self {
        self.0.reads.push(region);
        self
    }

    /// Writes a region.
    pub fn writes(self, region: Region) -> Self {
        self.0.writes.push(region);
        self
    }

    /// Reads and writes a region.
    pub fn updates(self, region: Region) -> Self {
        self.0.updates.push(region);
        self
    }

    /// Writes a region that holds nothing yet, or adds to one that does.
    pub fn starts_or_updates(self, starts: bool, region: Region) -> Self {
        if starts { self.writes(region) } else { self.updates(region) }
    }

    /// Allocates a buffer.
    pub fn allocates(self, buffer: BufferId, bytes: u64) -> Self {
        self.0.allocates.push(NewBuffer { buffer, bytes });
        self
    }

    /// Sets m, n and k.
    pub fn sides(self, names: [Symbol; 3], sides: [u64; 3]) -> Self {
        self.0.params.extend(std::iter::zip(names, sides).map(|(name, side)| (name, side as f64)));
        self
    }
}

/// A nest being read.
struct Parts<N> {
    nest: N,
    names: Names,
    part: Part,
    next_operation: usize,
    next_task: usize,
}

/// A stream of the operations of `nest`.
pub fn parts<N: Nest + 'static>(nest: N, mut names: Names) -> Box<dyn Source> {
    let part = Part { operations: std::mem::take(&mut names.declared), ..Part::default() };
    Box::new(Parts { nest, names, part, next_operation: 0, next_task: 0 })
}

impl<N: Nest> Source for Parts<N> {
    fn next(&mut self, task: &mut Submit) -> Result<Option<Operation>, WorkloadError> {
        while self.next_operation == self.part.operations.len() {
            self.part.operations.clear();
            self.part.used = 0;
            (self.next_operation, self.next_task) = (0, 0);
            if !self.nest.part(&mut self.part) {
                return Ok(None);
            }
        }
        let operation = self.part.operations[self.next_operation];
        self.next_operation += 1;
        if operation == Operation::Submit {
            std::mem::swap(task, &mut self.part.tasks[self.next_task]);
            self.next_task += 1;
        }
        Ok(Some(operation))
    }

    fn symbols(&self) -> &Symbols {
        &self.names.symbols
    }

    fn buffers(&self) -> &Symbols {
        &self.names.buffers
    }
}

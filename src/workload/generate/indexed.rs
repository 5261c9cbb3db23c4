//! Generators whose tasks are a function of their number: no buffers, no scopes, explicit dependencies.

use crate::id::{Symbol, TaskId, TaskType};
use crate::workload::{Operation, Source, Submit, Symbols, WorkloadError};

/// What a task runs, and on what.
#[derive(Clone, Copy)]
pub struct Kernel {
    name: Symbol,
    kind: TaskType,
}

impl Kernel {
    /// A kernel of this name.
    pub fn new(symbols: &mut Symbols, name: &str, kind: TaskType) -> Kernel {
        Kernel { name: symbols.intern(name), kind }
    }

    /// Makes `task` a call of this kernel.
    pub fn call(self, task: &mut Submit) {
        task.kernel = Some(self.name);
        task.kind = Some(self.kind);
    }
}

/// A graph as a function from the number of a task to its content.
pub trait Shape {
    /// Number of tasks.
    fn tasks(&self) -> u64;

    /// Fills an empty task.
    fn fill(&self, id: u64, task: &mut Submit);
}

/// A shape being read.
struct Indexed<S> {
    shape: S,
    next: u64,
    tasks: u64,
    symbols: Symbols,
    buffers: Symbols,
}

/// A stream of the tasks of `shape`, whose kernels are in `symbols`.
pub fn indexed<S: Shape + 'static>(shape: S, symbols: Symbols) -> Box<dyn Source> {
    let tasks = shape.tasks();
    Box::new(Indexed { shape, next: 0, tasks, symbols, buffers: Symbols::default() })
}

impl<S: Shape> Source for Indexed<S> {
    fn next(&mut self, task: &mut Submit) -> Result<Option<Operation>, WorkloadError> {
        if self.next == self.tasks {
            return Ok(None);
        }
        task.clear();
        self.shape.fill(self.next, task);
        self.next += 1;
        Ok(Some(Operation::Submit))
    }

    fn n_tasks(&self) -> Option<u64> {
        Some(self.tasks)
    }

    fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    fn buffers(&self) -> &Symbols {
        &self.buffers
    }
}

/// Adds a dependency on task `id`.
pub fn depend(task: &mut Submit, id: u64) {
    task.deps.push(TaskId(id));
}

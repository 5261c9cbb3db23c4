//! A workload held in memory, to be run many times.

use super::{Control, Operation, Source, Submit, Symbols, Workload, WorkloadError};
use std::sync::Arc;

/// All operations of a workload. Copies share one memory.
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) content: Arc<Content>,
}

/// What a program holds.
#[derive(Clone, Default, Debug)]
pub(super) struct Content {
    pub name: String,
    /// The file it was read from, for messages.
    pub origin: Option<String>,
    pub operations: Vec<Operation>,
    /// The data of every submission, in order.
    pub tasks: Vec<Submit>,
    /// The line of every operation; empty when the program was not a text.
    pub lines: Vec<u64>,
    pub symbols: Symbols,
    pub buffers: Symbols,
    pub controls: Vec<Control>,
    pub notes: Vec<String>,
}

impl Program {
    /// Reads a whole workload into memory.
    ///
    /// # Errors
    /// When the workload cannot be read.
    pub fn load(workload: &dyn Workload) -> Result<Program, WorkloadError> {
        let mut content = Content {
            name: workload.name(),
            controls: workload.controls()?,
            notes: workload.notes(),
            ..Content::default()
        };
        let mut source = workload.open()?;
        content.origin = source.origin().map(str::to_owned);
        let mut task = Submit::default();
        while let Some(operation) = source.next(&mut task)? {
            content.operations.push(operation);
            content.lines.extend(source.line());
            if operation == Operation::Submit {
                content.tasks.push(task.clone());
            }
        }
        content.symbols = source.symbols().clone();
        content.buffers = source.buffers().clone();
        Ok(Program { content: Arc::new(content) })
    }

    /// Whether something may keep its tasks from running: faults or timed commands.
    #[must_use]
    pub fn is_disturbed(&self) -> bool {
        !self.content.controls.is_empty() || self.content.tasks.iter().any(|task| task.fault)
    }

    /// The same without faults and timed commands, so that all its tasks run.
    #[must_use]
    pub fn undisturbed(&self) -> Program {
        let mut program = self.clone();
        if self.is_disturbed() {
            let content = Arc::make_mut(&mut program.content);
            content.controls.clear();
            content.tasks.iter_mut().for_each(|task| task.fault = false);
        }
        program
    }

    /// Its operations in program order.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        &self.content.operations
    }

    /// Its tasks by their ids.
    #[must_use]
    pub fn tasks(&self) -> &[Submit] {
        &self.content.tasks
    }

    /// Names of its kernels, tasks and parameters.
    #[must_use]
    pub fn symbols(&self) -> &Symbols {
        &self.content.symbols
    }

    /// Names of its buffers.
    #[must_use]
    pub fn buffers(&self) -> &Symbols {
        &self.content.buffers
    }
}

impl Workload for Program {
    fn name(&self) -> String {
        self.content.name.clone()
    }

    fn open(&self) -> Result<Box<dyn Source>, WorkloadError> {
        Ok(Box::new(Replay { content: Arc::clone(&self.content), next_operation: 0, next_task: 0 }))
    }

    fn controls(&self) -> Result<Vec<Control>, WorkloadError> {
        Ok(self.content.controls.clone())
    }

    fn notes(&self) -> Vec<String> {
        self.content.notes.clone()
    }
}

/// A program being read.
struct Replay {
    content: Arc<Content>,
    next_operation: usize,
    next_task: usize,
}

impl Source for Replay {
    fn next(&mut self, task: &mut Submit) -> Result<Option<Operation>, WorkloadError> {
        let Some(&operation) = self.content.operations.get(self.next_operation) else { return Ok(None) };
        self.next_operation += 1;
        if operation == Operation::Submit {
            task.copy_from(&self.content.tasks[self.next_task]);
            self.next_task += 1;
        }
        Ok(Some(operation))
    }

    fn n_tasks(&self) -> Option<u64> {
        Some(self.content.tasks.len() as u64)
    }

    fn symbols(&self) -> &Symbols {
        &self.content.symbols
    }

    fn buffers(&self) -> &Symbols {
        &self.content.buffers
    }

    fn origin(&self) -> Option<&str> {
        self.content.origin.as_deref()
    }

    fn has_lines(&self) -> bool {
        !self.content.lines.is_empty()
    }

    fn line(&self) -> Option<u64> {
        self.content.lines.get(self.next_operation.checked_sub(1)?).copied()
    }
}

//! Builds a workload in code.
//!
//! ```
//! use ptosim::workload::{Builder, Workload};
//!
//! let mut program = Builder::new("two products");
//! let a = program.buffer("A", 4096);
//! let c = program.buffer("C", 1024);
//! let p = program.heap_buffer("P", 1024);
//! program.scope(|program| {
//!     for step in 0..2 {
//!         program.task("gemm_tile").cube().cycles(100).reads(a.range(step * 1024, 1024)).allocates(p).submit();
//!         program.task("tile_add").vector().cycles(50).reads(p).updates(c).submit();
//!     }
//! });
//! let last = program.task("copy_out").vector().cycles(80).reads(c).submit();
//! program.task("done").none().after(last).submit();
//! let program = program.build()?;
//! assert_eq!(program.tasks().len(), 6);
//! assert_eq!(program.name(), "two products");
//! # Ok::<(), ptosim::workload::WorkloadError>(())
//! ```

use super::program::{Content, Program};
use super::trace::{MAX_SCOPES, resolve};
use super::{Cost, NewBuffer, Operation, PolicyFields, Region, Submit, Units, WorkloadError};
use crate::id::{BufferId, Symbol, TaskId, TaskType};
use std::sync::Arc;

/// A workload in the making. Mistakes are kept and told by [`Builder::build`].
#[derive(Debug)]
pub struct Builder {
    content: Content,
    /// Size of the buffer that each name is bound to.
    sizes: Vec<Option<u64>>,
    open_scopes: u32,
    mistake: Option<String>,
}

/// A buffer of a program, to be named in arguments of tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffer {
    id: BufferId,
    bytes: u64,
}

/// A part of a buffer, not checked yet: offset, bytes of a row, rows, stride.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    buffer: Buffer,
    numbers: [u64; 4],
}

impl Buffer {
    /// `bytes` bytes from `offset` on.
    #[must_use]
    pub fn range(self, offset: u64, bytes: u64) -> Piece {
        Piece { buffer: self, numbers: [offset, bytes, 1, bytes] }
    }

    /// `rows` pieces of `row_bytes`, their beginnings `stride` apart.
    #[must_use]
    pub fn rows(self, offset: u64, row_bytes: u64, rows: u64, stride: u64) -> Piece {
        Piece { buffer: self, numbers: [offset, row_bytes, rows, stride] }
    }

    /// Its size.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.bytes
    }
}

impl From<Buffer> for Piece {
    fn from(buffer: Buffer) -> Piece {
        buffer.range(0, buffer.bytes)
    }
}

impl From<&Buffer> for Piece {
    fn from(buffer: &Buffer) -> Piece {
        (*buffer).into()
    }
}

impl Builder {
    /// An empty program.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Builder {
        let content = Content { name: name.into(), ..Content::default() };
        Builder { content, sizes: Vec::new(), open_scopes: 0, mistake: None }
    }

    /// Declares device memory that outlives the run.
    pub fn buffer(&mut self, name: &str, bytes: u64) -> Buffer {
        let buffer = self.heap_buffer(name, bytes);
        self.content.operations.push(Operation::Buffer { buffer: buffer.id, bytes });
        self.sizes[buffer.id.0 as usize] = Some(bytes);
        buffer
    }

    /// Names a buffer that tasks will allocate (see [`Task::allocates`]).
    pub fn heap_buffer(&mut self, name: &str, bytes: u64) -> Buffer {
        let Symbol(number) = self.content.buffers.intern(name);
        if self.sizes.len() <= number as usize {
            self.sizes.push(None);
        }
        Buffer { id: BufferId(number), bytes }
    }

    /// Runs `inside` between the beginning and the end of a scope.
    pub fn scope<T>(&mut self, inside: impl FnOnce(&mut Builder) -> T) -> T {
        self.begin_scope();
        let result = inside(self);
        self.end_scope();
        result
    }

    /// Opens a scope.
    pub fn begin_scope(&mut self) {
        if self.open_scopes == MAX_SCOPES {
            self.remember(format!("{MAX_SCOPES} scopes are open, the most there can be; close one before"));
        }
        self.open_scopes += 1;
        self.content.operations.push(Operation::ScopeBegin);
    }

    /// Closes the innermost scope.
    pub fn end_scope(&mut self) {
        if self.open_scopes == 0 {
            self.remember("a scope is closed that was not opened; call begin_scope before".into());
            return;
        }
        self.open_scopes -= 1;
        self.content.operations.push(Operation::ScopeEnd);
    }

    /// A call of `kernel`, to be filled and submitted.
    pub fn task(&mut self, kernel: &str) -> Task<'_> {
        let kernel = Some(self.content.symbols.intern(kernel));
        Task { builder: self, task: Submit { kernel, ..Submit::default() } }
    }

    /// The finished program; scopes still open are closed.
    ///
    /// # Errors
    /// The first mistake, such as a region outside its buffer; names the task.
    pub fn build(mut self) -> Result<Program, WorkloadError> {
        while self.open_scopes > 0 {
            self.end_scope();
        }
        match self.mistake {
            Some(mistake) => Err(WorkloadError::Input(format!("{}: {mistake}", self.content.name))),
            None => Ok(Program { content: Arc::new(self.content) }),
        }
    }

    fn next_task(&self) -> TaskId {
        TaskId(self.content.tasks.len() as u64)
    }

    fn remember(&mut self, mistake: String) {
        self.mistake.get_or_insert(mistake);
    }

    /// The bytes of a piece of a buffer that is bound now.
    fn region(&self, piece: Piece) -> Result<Region, String> {
        let BufferId(number) = piece.buffer.id;
        let name = self.content.buffers.name(Symbol(number));
        let Some(bytes) = self.sizes[number as usize] else {
            return Err(format!("buffer \"{name}\" is not allocated yet; let an earlier task allocate it"));
        };
        resolve::rows(name, Region::range(piece.buffer.id, 0, bytes), piece.numbers)
    }
}

/// A task in the making.
#[derive(Debug)]
#[must_use = "a task is part of the program only after submit()"]
pub struct Task<'a> {
    builder: &'a mut Builder,
    task: Submit,
}

impl Task<'_> {
    /// Gives it a label.
    pub fn named(mut self, name: &str) -> Self {
        self.task.name = Some(self.builder.content.symbols.intern(name));
        self
    }

    /// Runs it on a cube.
    pub fn cube(self) -> Self {
        self.on(TaskType::Cube)
    }

    /// Runs it on a vector.
    pub fn vector(self) -> Self {
        self.on(TaskType::Vector)
    }

    /// Runs every block on units of one cluster.
    pub fn mix(mut self, cube: u8, vector: u8) -> Self {
        if cube > 1 || vector > 2 || cube + vector == 0 {
            self.mistake(&format!("{cube} cubes and {vector} vectors; a block takes at most 1 and 2, and not none"));
        }
        self.task.units = Units { cube, vector };
        self.on(TaskType::Mix)
    }

    /// Lets it take no worker.
    pub fn none(self) -> Self {
        self.on(TaskType::None)
    }

    /// Runs it on workers of a type.
    pub fn on(mut self, kind: TaskType) -> Self {
        self.task.kind = Some(kind);
        self
    }

    /// Cycles of a block; without it the kernel table decides.
    pub fn cycles(mut self, cycles: u64) -> Self {
        self.task.cost = Some(Cost::Cycles(cycles));
        self
    }

    /// Cycles of a MIX block on each kind.
    pub fn cycles_per_kind(mut self, cube: u64, vector: u64) -> Self {
        self.task.cost = Some(Cost::PerKind { cube, vector });
        self
    }

    /// Number of equal blocks.
    pub fn blocks(mut self, blocks: u32) -> Self {
        if blocks == 0 {
            self.mistake("0 blocks; a task has at least 1");
        }
        self.task.blocks = blocks;
        self
    }

    /// Places all blocks at the same instant.
    pub fn sync_start(mut self) -> Self {
        self.task.sync_start = true;
        self
    }

    /// Waits for an earlier task.
    pub fn after(mut self, producer: TaskId) -> Self {
        let own = self.builder.next_task();
        if producer >= own {
            self.mistake(&format!("cannot wait for task {producer}; only tasks before {own} are earlier"));
        }
        self.task.deps.push(producer);
        self
    }

    /// Reads a buffer or a part of it.
    pub fn reads(mut self, piece: impl Into<Piece>) -> Self {
        let region = self.region(piece.into());
        self.task.reads.extend(region);
        self
    }

    /// Writes a buffer or a part of it.
    pub fn writes(mut self, piece: impl Into<Piece>) -> Self {
        let region = self.region(piece.into());
        self.task.writes.extend(region);
        self
    }

    /// Reads and writes a buffer or a part of it.
    pub fn updates(mut self, piece: impl Into<Piece>) -> Self {
        let region = self.region(piece.into());
        self.task.updates.extend(region);
        self
    }

    /// Allocates a buffer in the heap ring and writes it; its name means the new buffer for all later tasks.
    pub fn allocates(mut self, buffer: Buffer) -> Self {
        self.task.allocates.push(NewBuffer { buffer: buffer.id, bytes: buffer.bytes });
        self
    }

    /// Allocates bytes without a name.
    pub fn out_bytes(mut self, bytes: u64) -> Self {
        self.task.out_bytes = bytes;
        self
    }

    /// Is not submitted before this cycle.
    pub fn submit_at(mut self, cycle: u64) -> Self {
        self.task.submit_at = cycle;
        self
    }

    /// Fails at its end.
    pub fn fault(mut self) -> Self {
        self.task.fault = true;
        self
    }

    /// Is created by an earlier task, `offset` cycles after that one starts.
    pub fn parent(mut self, parent: TaskId, offset: u64) -> Self {
        let own = self.builder.next_task();
        if parent >= own {
            self.mistake(&format!("cannot have task {parent} as parent; only tasks before {own} are earlier"));
        }
        self.task.parent = Some((parent, offset));
        self
    }

    /// Sets a number that kernel cost expressions may use.
    pub fn param(mut self, name: &str, value: f64) -> Self {
        if !value.is_finite() {
            self.mistake(&format!("parameter \"{name}\" is {value}; use a finite number"));
        }
        let name = self.builder.content.symbols.intern(name);
        self.task.params.retain(|&(known, _)| known != name);
        self.task.params.push((name, value));
        self
    }

    /// Sets what only policies read.
    pub fn policy(mut self, fields: PolicyFields) -> Self {
        self.task.policy = Some(Box::new(fields));
        self
    }

    /// Puts it into the program.
    pub fn submit(mut self) -> TaskId {
        if self.task.kind != Some(TaskType::Mix) && matches!(self.task.cost, Some(Cost::PerKind { .. })) {
            self.mistake("cycles per kind are for MIX tasks only");
        }
        let Task { builder, task } = self;
        let id = builder.next_task();
        for new in &task.allocates {
            builder.sizes[new.buffer.0 as usize] = Some(new.bytes);
        }
        builder.content.operations.push(Operation::Submit);
        builder.content.tasks.push(task);
        id
    }

    fn region(&mut self, piece: Piece) -> Option<Region> {
        match self.builder.region(piece) {
            Ok(region) => Some(region),
            Err(mistake) => {
                self.mistake(&mistake);
                None
            }
        }
    }

    fn mistake(&mut self, mistake: &str) {
        let own = self.builder.next_task();
        self.builder.remember(format!("task {own}: {mistake}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(build: impl FnOnce(&mut Builder)) -> String {
        let mut builder = Builder::new("b");
        build(&mut builder);
        builder.build().expect_err("a mistake").to_string()
    }

    #[test]
    fn the_first_mistake_is_told_with_its_task() {
        let outside = mistake(|b| {
            let a = b.buffer("A", 100);
            b.task("x").submit();
            b.task("x").reads(a.range(50, 51)).blocks(0).submit();
        });
        assert_eq!(
            outside,
            "b: task 1: region of \"A\" ends at byte 101, but the buffer has 100 bytes; make the buffer larger or the region smaller"
        );
        let early = mistake(|b| {
            let p = b.heap_buffer("P", 64);
            b.task("x").allocates(p).reads(p).submit();
        });
        assert!(early.contains("task 0: buffer \"P\" is not allocated yet"));
        assert!(mistake(|b| _ = b.task("x").after(TaskId(0)).submit()).contains("cannot wait for task 0"));
        assert!(mistake(|b| _ = b.task("x").mix(2, 0).submit()).contains("2 cubes and 0 vectors"));
        assert!(mistake(|b| _ = b.task("x").cycles_per_kind(1, 2).submit()).contains("MIX tasks only"));
        assert!(mistake(Builder::end_scope).contains("not opened"));
        assert!(mistake(|b| (0..65).for_each(|_| b.begin_scope())).contains("64 scopes are open"));
    }

    #[test]
    fn scopes_left_open_are_closed() {
        let mut builder = Builder::new("b");
        builder.begin_scope();
        builder.scope(|b| b.task("x").submit());
        builder.begin_scope();
        let program = builder.build().expect("valid");
        let (begin, end) = (Operation::ScopeBegin, Operation::ScopeEnd);
        assert_eq!(program.operations(), [begin, begin, Operation::Submit, end, begin, end, end]);
    }
}

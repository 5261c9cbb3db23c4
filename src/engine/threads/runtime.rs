//! The runtime for programs of one's own: submit kernels on buffers, let dependencies be found, wait.
//!
//! ```
//! use ptosim::runtime::Runtime;
//!
//! let runtime = Runtime::builder()
//!     .workers(1, 2)
//!     .kernel("axpy", |inputs, outputs| {
//!         for (y, x) in outputs[0].iter_mut().zip(inputs[0]) {
//!             *y += 2.0 * x;
//!         }
//!     })
//!     .build()?;
//! let sums = runtime.run(|session| {
//!     let x = session.buffer(&[1.0, 2.0, 3.0])?;
//!     let y = session.buffer(&[0.0; 3])?;
//!     for _ in 0..10 {
//!         session.submit("axpy", &[x.read(), y.update()])?;
//!     }
//!     session.wait_all()?;
//!     Ok(session.contents(&y))
//! })?;
//! assert_eq!(sums, [20.0, 40.0, 60.0]);
//! # Ok::<(), ptosim::engine::RunError>(())
//! ```

use super::core::Core;
use super::feed::{Feed, FeedSource, Order};
use super::inject::Faults;
use super::submit::Submitter;
use super::{Options, Setup, host, outcome};
use crate::config::{Hazards, Machine, Workers};
use crate::engine::RunError;
use crate::engine::execute::{Access, Frame, Kernel, Numbers};
use crate::id::{BufferId, TaskId, TaskType};
use crate::kernel::{Costs, Table};
use crate::orchestrator::Orchestrator;
use crate::workload::{NewBuffer, Region};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A runtime that is set up; [`Runtime::run`] starts its threads.
pub struct Runtime {
    machine: Machine,
    options: Options,
    kernels: Vec<(String, TaskType, Kernel)>,
}

/// What a runtime is made of.
pub struct Builder {
    runtime: Runtime,
}

impl Runtime {
    /// A runtime of one cube and one vector worker, a window of 1024 tasks and a heap ring of 16 MiB.
    #[must_use]
    pub fn builder() -> Builder {
        let mut machine = Machine { name: "embedded".into(), ..Machine::default() };
        machine.workers = Workers { cube: 1, vector: 1, ..Workers::default() };
        machine.limits.window = 1024;
        machine.limits.heap = 16 << 20;
        machine.scheduler.threads = 0;
        // A later write waits for earlier readers, so that no kernel sees numbers from its future.
        machine.rules.hazards = Hazards::Full;
        Builder { runtime: Runtime { machine, options: Options::default(), kernels: Vec::new() } }
    }

    /// Runs a program of submissions on the calling thread while the kernels run on others; returns when all of them ended.
    ///
    /// # Errors
    /// What the program returns, a kernel that failed or panicked, or a resource that nothing will ever give back.
    pub fn run<T>(&self, program: impl FnOnce(&Session<'_, '_, '_>) -> Result<T, RunError>) -> Result<T, RunError> {
        let table = Table::load(&self.machine.kernels)?;
        let mut numbers = Numbers::new("embedded", &self.machine)?;
        for (name, _, kernel) in &self.kernels {
            numbers.register(name, Arc::clone(kernel));
        }
        let feed = Rc::new(RefCell::new(Feed::default()));
        let source = Box::new(FeedSource::new(Rc::clone(&feed)));
        let faults = Faults::new(self.options.inject, self.machine.workers.total());
        let core = Core::new(&self.machine, &numbers, Setup::new(&self.machine, &self.options), faults)?;
        let orchestrator = Orchestrator::new(source, Costs::new(&table), &self.machine);
        let mut submitter = Submitter::new(&core, orchestrator);
        let result = host(&core, &mut submitter, |submitter| {
            let session = Session { runtime: self, numbers: &numbers, feed, submitter: RefCell::new(submitter) };
            let result = program(&session);
            let submitter = session.submitter.into_inner();
            submitter.drain();
            result
        });
        match (outcome::failure(&submitter), result) {
            (Some(failure), _) => Err(failure),
            (None, result) => result,
        }
    }

    fn kind(&self, kernel: &str) -> Option<TaskType> {
        self.kernels.iter().rev().find(|(name, ..)| name == kernel).map(|(_, kind, _)| *kind)
    }
}

impl Builder {
    /// How many cube and vector workers there are.
    #[must_use]
    pub fn workers(mut self, cube: u32, vector: u32) -> Builder {
        self.runtime.machine.workers = Workers { cube, vector, ..Workers::default() };
        self
    }

    /// Tasks in flight at most; a power of two.
    #[must_use]
    pub fn window(mut self, slots: u64) -> Builder {
        self.runtime.machine.limits.window = slots;
        self
    }

    /// Bytes of the heap ring, in which temporaries live.
    #[must_use]
    pub fn heap(mut self, bytes: u64) -> Builder {
        self.runtime.machine.limits.heap = bytes;
        self
    }

    /// Scheduler threads; 0, the default, lets whoever ends a task release its consumers.
    #[must_use]
    pub fn schedulers(mut self, threads: u32) -> Builder {
        self.runtime.machine.scheduler.threads = threads;
        self
    }

    /// Threads that run kernels; by default as many as the host has CPUs left.
    #[must_use]
    pub fn executors(mut self, threads: usize) -> Builder {
        self.runtime.options.executors = Some(threads);
        self
    }

    /// A kernel on vector workers: gets the regions it reads, and the regions it writes to change in place.
    #[must_use]
    pub fn kernel(
        self,
        name: &str,
        function: impl Fn(&[&[f32]], &mut [&mut [f32]]) + Send + Sync + 'static,
    ) -> Builder {
        self.kernel_on(TaskType::Vector, name, function)
    }

    /// As [`Builder::kernel`], on another type of worker.
    #[must_use]
    pub fn kernel_on(
        mut self,
        kind: TaskType,
        name: &str,
        function: impl Fn(&[&[f32]], &mut [&mut [f32]]) + Send + Sync + 'static,
    ) -> Builder {
        let kernel: Kernel = Arc::new(move |frame: &mut Frame| {
            on_slices(frame, &function);
            Ok(())
        });
        self.runtime.kernels.push((name.into(), kind, kernel));
        self
    }

    /// The runtime.
    ///
    /// # Errors
    /// When a setting cannot be used; the message names it and the remedy.
    pub fn build(self) -> Result<Runtime, RunError> {
        self.runtime.machine.validate()?;
        Ok(self.runtime)
    }
}

/// Calls a function on the numbers of a frame.
fn on_slices(frame: &mut Frame, function: &impl Fn(&[&[f32]], &mut [&mut [f32]])) {
    let inputs: Vec<Vec<f32>> = frame.reads().map(crate::engine::execute::Operand::singles).collect();
    let mut outputs: Vec<Vec<f32>> = frame.results().map(|operand| operand.singles()).collect();
    let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
    let mut slices: Vec<&mut [f32]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    function(&inputs, &mut slices);
    for (operand, numbers) in frame.results().zip(&outputs) {
        operand.set_singles(numbers);
    }
}

/// Numbers that kernels work on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffer {
    id: BufferId,
    first: u64,
    len: u64,
}

/// A buffer, or a part of one, as a kernel uses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Argument {
    buffer: Buffer,
    access: Access,
}

impl Buffer {
    /// A part of it.
    ///
    /// # Panics
    /// When the part reaches beyond the buffer.
    #[must_use]
    pub fn part(&self, range: std::ops::Range<usize>) -> Buffer {
        assert!(range.start <= range.end && range.end as u64 <= self.len, "part {range:?} of {} numbers", self.len);
        Buffer { id: self.id, first: self.first + range.start as u64, len: range.len() as u64 }
    }

    /// The kernel reads it.
    #[must_use]
    pub fn read(&self) -> Argument {
        Argument { buffer: *self, access: Access::Read }
    }

    /// The kernel reads and writes it.
    #[must_use]
    pub fn update(&self) -> Argument {
        Argument { buffer: *self, access: Access::Update }
    }

    /// The kernel writes it.
    #[must_use]
    pub fn write(&self) -> Argument {
        Argument { buffer: *self, access: Access::Write }
    }

    /// The kernel makes it: it takes fresh memory of the heap ring until its last reader has ended.
    #[must_use]
    pub fn create(&self) -> Argument {
        Argument { buffer: *self, access: Access::New }
    }

    fn region(&self) -> Region {
        Region::range(self.id, self.first * 4, self.len * 4)
    }
}

/// A program being submitted.
pub struct Session<'s, 'c, 'a> {
    runtime: &'s Runtime,
    numbers: &'s Numbers,
    feed: Rc<RefCell<Feed>>,
    submitter: RefCell<&'s mut Submitter<'c, 'a, Numbers>>,
}

/// An open scope: its tasks stay alive until it is dropped.
pub struct Scope<'r, 's, 'c, 'a> {
    session: &'r Session<'s, 'c, 'a>,
}

impl<'s, 'c, 'a> Session<'s, 'c, 'a> {
    /// A buffer that lives as long as the session, with its first content.
    ///
    /// # Errors
    /// When the host has not enough memory.
    pub fn buffer(&self, content: &[f32]) -> Result<Buffer, RunError> {
        let id = self.feed.borrow_mut().next_buffer();
        let bytes: Vec<u8> = content.iter().flat_map(|number| number.to_le_bytes()).collect();
        let refused = || RunError::Threads(format!("a buffer of {} bytes is more than the host has", bytes.len()));
        self.numbers.declare(id, &bytes).ok_or_else(refused)?;
        Ok(Buffer { id, first: 0, len: content.len() as u64 })
    }

    /// A name for numbers in the heap ring, to be made by a kernel that gets [`Buffer::create`].
    pub fn temporary(&self, len: usize) -> Buffer {
        Buffer { id: self.feed.borrow_mut().next_buffer(), first: 0, len: len as u64 }
    }

    /// Submits a kernel; it runs as soon as what it reads is there. Waits while the window or the heap ring is full.
    ///
    /// # Errors
    /// When there is no such kernel, another kernel has failed, or what it needs will never be free.
    pub fn submit(&self, kernel: &str, arguments: &[Argument]) -> Result<TaskId, RunError> {
        let kind = self.runtime.kind(kernel).ok_or_else(|| RunError::Task(self.unknown(kernel)))?;
        let mut order = Order::new(kernel, kind);
        for argument in arguments {
            let region = argument.buffer.region();
            match argument.access {
                Access::Read => order.reads.push(region),
                Access::Update => order.updates.push(region),
                Access::Write => order.writes.push(region),
                Access::New => order.allocates.push(NewBuffer { buffer: region.buffer, bytes: region.row_bytes }),
            }
        }
        let task = self.submitter.borrow().orchestrator.next_task();
        self.step(order.into())?;
        Ok(task)
    }

    fn unknown(&self, kernel: &str) -> String {
        let known: Vec<_> = self.runtime.kernels.iter().map(|(name, ..)| name.as_str()).collect();
        format!("no kernel `{kernel}`; the builder was given {}", known.join(", "))
    }

    fn step(&self, order: super::feed::Entry) -> Result<(), RunError> {
        self.feed.borrow_mut().push(order);
        let mut submitter = self.submitter.borrow_mut();
        if submitter.step()? {
            return Ok(());
        }
        match submitter.stuck_on {
            Some(resource) => Err(RunError::Stuck(format!(
                "task {} can never be submitted: the {} stays full, because open scopes or unfinished readers hold it",
                submitter.orchestrator.next_task(),
                resource.name()
            ))),
            None => Err(RunError::Threads("the run is over".into())),
        }
    }

    /// Opens a scope: tasks submitted while it is open keep their temporaries until it is dropped.
    ///
    /// # Errors
    /// When a kernel has failed.
    pub fn scope(&self) -> Result<Scope<'_, 's, 'c, 'a>, RunError> {
        self.step(super::feed::Entry::ScopeBegin)?;
        Ok(Scope { session: self })
    }

    /// Waits until everything submitted so far has run.
    ///
    /// # Errors
    /// When a kernel has failed.
    pub fn wait_all(&self) -> Result<(), RunError> {
        let mut submitter = self.submitter.borrow_mut();
        submitter.wait_until_idle();
        outcome::failure(&submitter).map_or(Ok(()), Err)
    }

    /// The numbers in a buffer or a part of one; complete after [`Session::wait_all`].
    #[must_use]
    pub fn contents(&self, buffer: &Buffer) -> Vec<f32> {
        let bytes = self.numbers.read(buffer.id, (buffer.first + buffer.len) * 4);
        let numbers = bytes.chunks_exact(4).skip(buffer.first as usize);
        numbers.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    }
}

impl Drop for Scope<'_, '_, '_, '_> {
    fn drop(&mut self) {
        // A failure is told by the next call of the session and at the end of the run.
        let _ = self.session.step(super::feed::Entry::ScopeEnd);
    }
}

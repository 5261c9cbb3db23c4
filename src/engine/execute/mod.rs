//! The executing engine: the threaded one, and every task computes real numbers in the heap ring and the device's buffers.
//!
//! A wrong dependency or a buffer recycled too early shows as a wrong number. [`Numbers`] are the kernels of such a run;
//! [`verify`] computes the same program directly and compares.

mod direct;
mod frame;
mod functions;
mod memory;
mod verify;

pub use frame::{Access, Frame, Operand, to_half};
pub use verify::verify;

use super::RunError;
use super::threads::{Call, Draft, KernelError, Kernels};
use crate::config::Machine;
use crate::id::{BufferId, Symbol};
use crate::window::Resource;
use crate::workload::{Control, Operation, Region, Source, Submit, Symbols, Workload, WorkloadError};
use functions::FUNCTIONS;
use memory::{Memory, Place};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// A kernel: works on copies of its regions.
pub type Kernel = Arc<dyn Fn(&mut Frame) -> Result<(), String> + Send + Sync>;

/// Kernels that compute, and the memory they compute in.
pub struct Numbers {
    /// Heap rings.
    heaps: Vec<Memory>,
    /// Built-in functions; tasks without regions have nothing for them to compute.
    functions: BTreeMap<&'static str, Kernel>,
    /// Kernels of the caller.
    kernels: BTreeMap<String, Kernel>,
    /// What the task in each slot works on: written by the orchestrator, read by whoever runs it.
    jobs: Box<[Mutex<Job>]>,
    /// The orchestrator's book of buffers.
    book: Mutex<Book>,
}

/// What a task runs, on what.
#[derive(Default)]
struct Job {
    kernel: Option<Kernel>,
    operands: Vec<(Access, Place)>,
}

/// Which memory each buffer name stands for.
#[derive(Default)]
struct Book {
    bound: Vec<Option<(Memory, u64)>>,
    /// Device buffers in the order in which they were declared.
    device: Vec<(BufferId, Memory)>,
    fill: Fill,
}

/// What device buffers contain at first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Fill {
    /// Numbers between −1 and 1 that depend on buffer and place; 2-byte numbers when the workload uses them.
    #[default]
    Singles,
    Halves,
    /// A symmetric positive definite matrix in tiles.
    Definite {
        tiles: u64,
        tile: u64,
    },
}

impl Numbers {
    /// Memory for a run of `workload` on `machine`.
    ///
    /// # Errors
    /// When the host has not enough memory for the heap rings.
    pub fn new(workload: &str, machine: &Machine) -> Result<Numbers, RunError> {
        let limits = &machine.limits;
        let heap = |_| {
            Memory::new(limits.heap).ok_or_else(|| {
                let message = format!("a heap of {} bytes is more than the host has; lower limits.heap", limits.heap);
                RunError::TooLarge { resource: Resource::Heap, message }
            })
        };
        let n_slots = limits.window * u64::from(limits.rings);
        let named = |&(name, function): &(&'static str, functions::Function)| (name, Arc::new(function) as Kernel);
        Ok(Numbers {
            heaps: (0..limits.rings).map(heap).collect::<Result<_, _>>()?,
            functions: FUNCTIONS.iter().map(named).collect(),
            kernels: BTreeMap::new(),
            jobs: (0..n_slots).map(|_| Mutex::default()).collect(),
            book: Mutex::new(Book { fill: Fill::of(workload), ..Book::default() }),
        })
    }

    /// Adds or replaces a kernel.
    pub fn register(&mut self, name: &str, kernel: Kernel) {
        self.kernels.insert(name.into(), kernel);
    }

    /// The same program, telling this memory of the buffers it declares.
    pub fn tap<'a>(self: &'a Arc<Self>, workload: &'a dyn Workload) -> Tapped<'a> {
        Tapped { numbers: self, workload }
    }

    /// The bytes of all device buffers, in the order of their declaration.
    #[must_use]
    pub fn device(&self) -> Vec<(BufferId, Vec<u8>)> {
        let read = |(buffer, memory): &(BufferId, Memory)| {
            let mut bytes = Vec::new();
            memory.read(0, memory.len(), &mut bytes);
            (*buffer, bytes)
        };
        self.book().device.iter().map(read).collect()
    }

    /// The kernel of this name: the caller's, or a built-in one for a task that has something to compute on.
    fn find(&self, name: &str, has_regions: bool) -> Option<&Kernel> {
        self.kernels.get(name).or_else(|| self.functions.get(name).filter(|_| has_regions))
    }

    /// The error for a task with regions that nothing is known to compute.
    #[cold]
    fn no_function(&self, kernel: Option<&str>) -> KernelError {
        let known = self.functions.keys().copied().collect::<Vec<_>>().join(", ");
        let kernel = kernel.map_or("no kernel".into(), |kernel| format!("kernel `{kernel}`"));
        KernelError(format!("{kernel}: no such function; known are {known}"))
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("nobody panics with the book")
    }

    /// Declares a device buffer with its first content; `None` when the host has not enough memory.
    pub(crate) fn declare(&self, buffer: BufferId, bytes: &[u8]) -> Option<()> {
        let memory = Memory::new(bytes.len() as u64)?;
        memory.write(0, bytes);
        self.book().bind(buffer, memory, 0);
        Some(())
    }

    /// The bytes a name stands for now.
    pub(crate) fn read(&self, buffer: BufferId, bytes: u64) -> Vec<u8> {
        let mut content = Vec::new();
        if let Some(Some((memory, base))) = self.book().bound.get(buffer.0 as usize) {
            memory.read(*base, bytes, &mut content);
        }
        content
    }
}

impl Kernels for Numbers {
    fn prepare(&self, draft: &Draft<'_>) -> Result<(), KernelError> {
        let mut book = self.book();
        let mut job = self.jobs[draft.slot as usize].lock().expect("kernels run without holding a job");
        job.operands.clear();
        job.operands.extend(book.operands(draft.task));
        let has_regions = !job.operands.is_empty() || !draft.task.allocates.is_empty();
        let name = draft.task.kernel.map(|kernel| draft.symbols.name(kernel));
        job.kernel = name.and_then(|name| self.find(name, has_regions).cloned());
        if job.kernel.is_none() && has_regions {
            return Err(self.no_function(name));
        }
        let mut base = draft.window.heap_base(draft.slot, draft.task.heap_bytes());
        let heap = &self.heaps[draft.window.ring_of(draft.slot) as usize];
        for new in &draft.task.allocates {
            book.bound_to(new.buffer, heap.clone(), base);
            let place = Place { memory: heap.clone(), base, region: Region::range(new.buffer, 0, new.bytes) };
            job.operands.push((Access::New, place));
            base += new.bytes.next_multiple_of(64);
        }
        Ok(())
    }

    /// The first block computes; the others of the same task only take their time.
    fn run(&self, call: &Call) -> Result<(), KernelError> {
        if call.block > 0 {
            return Ok(());
        }
        let (kernel, operands) = {
            let mut job = self.jobs[call.slot as usize].lock().expect("kernels run without holding a job");
            (job.kernel.take(), std::mem::take(&mut job.operands))
        };
        // A task without regions may do without a function.
        kernel.map_or(Ok(()), |kernel| compute(&kernel, &operands).map_err(KernelError))
    }
}

/// Runs a kernel on copies of its operands.
fn compute(kernel: &Kernel, operands: &[(Access, Place)]) -> Result<(), String> {
    let copy = |(access, place): &(Access, Place)| Operand { access: *access, bytes: place.gather() };
    let mut frame = Frame { operands: operands.iter().map(copy).collect(), block: 0 };
    kernel(&mut frame)?;
    for ((access, place), operand) in operands.iter().zip(&frame.operands) {
        if *access != Access::Read {
            let (made, room) = (operand.bytes.len() as u64, place.len());
            if made != room {
                return Err(format!(
                    "made {made} bytes for a region of {room}; give it a region of {made} bytes, or inputs that fit"
                ));
            }
            place.scatter(&operand.bytes);
        }
    }
    Ok(())
}

impl Book {
    fn bound_to(&mut self, buffer: BufferId, memory: Memory, base: u64) {
        let index = buffer.0 as usize;
        if index >= self.bound.len() {
            self.bound.resize_with(index + 1, || None);
        }
        self.bound[index] = Some((memory, base));
    }

    fn bind(&mut self, buffer: BufferId, memory: Memory, base: u64) {
        self.device.push((buffer, memory.clone()));
        self.bound_to(buffer, memory, base);
    }

    /// Makes a device buffer that the program declares.
    fn declare(&mut self, buffer: BufferId, bytes: u64) -> Result<(), WorkloadError> {
        let memory = Memory::new(bytes).ok_or_else(|| no_memory(bytes))?;
        self.fill.fill(buffer, &memory);
        self.bind(buffer, memory, 0);
        Ok(())
    }

    /// The regions of a task in the order reads, updates, writes; what is bound to nothing is left out.
    fn operands<'b>(&'b self, task: &'b Submit) -> impl Iterator<Item = (Access, Place)> + 'b {
        let reads = task.reads.iter().map(|region| (Access::Read, region));
        let updates = task.updates.iter().map(|region| (Access::Update, region));
        let writes = task.writes.iter().map(|region| (Access::Write, region));
        reads.chain(updates).chain(writes).filter_map(|(access, &region)| {
            let (memory, base) = self.bound.get(region.buffer.0 as usize)?.as_ref()?;
            Some((access, Place { memory: memory.clone(), base: *base, region }))
        })
    }
}

impl Fill {
    fn of(workload: &str) -> Fill {
        let number = |key| direct::parameter(workload, key);
        match workload.split(':').next() {
            Some("cholesky") => match (number("tiles"), number("tile")) {
                (Some(tiles), Some(tile)) => Fill::Definite { tiles, tile },
                _ => Fill::Singles,
            },
            Some("flash_attention") => Fill::Halves,
            _ => Fill::Singles,
        }
    }

    fn fill(self, buffer: BufferId, memory: &Memory) {
        let bytes: Vec<u8> = match self {
            Fill::Singles => (0..memory.len() / 4).flat_map(|at| number(buffer, at).to_le_bytes()).collect(),
            Fill::Halves => (0..memory.len() / 2).flat_map(|at| to_half(number(buffer, at)).to_le_bytes()).collect(),
            Fill::Definite { tiles, tile } => direct::definite(tiles, tile),
        };
        let most = (memory.len() as usize).min(bytes.len());
        memory.write(0, &bytes[..most]);
    }
}

/// A number between −1 and 1 that depends on the buffer and the place in it.
fn number(buffer: BufferId, at: u64) -> f32 {
    let mut z = (u64::from(buffer.0) << 40 ^ at).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z >> 40) as f32 / (1 << 23) as f32 - 1.0
}

/// A workload whose buffers are declared in a [`Numbers`] as they are read.
pub struct Tapped<'a> {
    numbers: &'a Arc<Numbers>,
    workload: &'a dyn Workload,
}

impl Workload for Tapped<'_> {
    fn name(&self) -> String {
        self.workload.name()
    }

    fn open(&self) -> Result<Box<dyn Source>, WorkloadError> {
        Ok(Box::new(Tap { numbers: Arc::clone(self.numbers), source: self.workload.open()? }))
    }

    fn controls(&self) -> Result<Vec<Control>, WorkloadError> {
        self.workload.controls()
    }
}

struct Tap {
    numbers: Arc<Numbers>,
    source: Box<dyn Source>,
}

impl Tap {
    /// Names the line, where there is one.
    fn blame(&self, error: WorkloadError) -> WorkloadError {
        match (self.source.origin(), self.source.line()) {
            (Some(path), Some(line)) => WorkloadError::Line { path: path.into(), line, message: error.to_string() },
            _ => error,
        }
    }
}

impl Source for Tap {
    fn next(&mut self, task: &mut Submit) -> Result<Option<Operation>, WorkloadError> {
        let operation = self.source.next(task)?;
        if let Some(Operation::Buffer { buffer, bytes }) = operation {
            self.numbers.book().declare(buffer, bytes).map_err(|error| self.blame(error))?;
        }
        Ok(operation)
    }

    fn symbols(&self) -> &Symbols {
        self.source.symbols()
    }

    fn buffers(&self) -> &Symbols {
        self.source.buffers()
    }

    fn origin(&self) -> Option<&str> {
        self.source.origin()
    }

    fn has_lines(&self) -> bool {
        self.source.has_lines()
    }

    fn line(&self) -> Option<u64> {
        self.source.line()
    }
}

/// A buffer is larger than what the host has.
fn no_memory(bytes: u64) -> WorkloadError {
    WorkloadError::Input(format!("a buffer of {bytes} bytes is more than the host has; make it smaller"))
}

/// The kernel of a task, by name.
fn kernel_name(symbols: &Symbols, kernel: Option<Symbol>) -> &str {
    kernel.map_or("(unnamed)", |kernel| symbols.name(kernel))
}

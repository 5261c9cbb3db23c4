//! A window in a file that two processes map: the device runs schedulers and executors, the submitter the orchestrator.
//!
//! ```text
//! header, 4096 bytes   magic | version | sizes | limits | workers     then the words by which the two sides talk
//! rings                last_task_alive, heap_tail, … of every ring
//! queue                READY tasks on their way from the submitter to the device
//! slots, entries       the tasks in flight and their dependencies
//! ```
//!
//! The file holds offsets and numbers only. Sizes are checked against each other and against the length of the file before anything is
//! looked at, and every number that leads somewhere is checked where it is used. Each side holds a lock on a file for as long as its
//! process lives; when the lock is free, the process is gone, however it ended.

mod device;
mod inspect;
mod queue;
mod submitter;

pub use device::{DeviceOptions, device};
pub use inspect::inspect;
pub use submitter::{Submitted, submit};

use super::executor::panic_message;
use super::ring::{ENDS, size_for};
use crate::config::{FanoutOrder, Limits, Machine, Workers};
use crate::error::RunError;
use crate::sync::{Shared, Sharing};
use crate::window::{AnyBytes, Entry, Lengths, Ring, Slot, Span, Window};
use memmap2::{MmapOptions, MmapRaw};
use queue::Queue;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

/// `PTOWIN` and two bytes that change when it is read in the wrong order.
const MAGIC: u64 = u64::from_le_bytes(*b"PTOWIN\x0d\x0a");
/// Stands there while a device makes a window.
const MAKING: u64 = u64::from_le_bytes(*b"PTOMAKE\x0a");
const VERSION: u64 = 5;
const HEADER_BYTES: usize = 4096;
/// A side looks whether the other is alive at least this often.
const LOOK: Duration = Duration::from_millis(100);

/// Numbers of words in the header.
#[derive(Clone, Copy, Debug)]
enum At {
    Magic,
    Version,
    SlotBytes,
    EntryBytes,
    RingBytes,
    Window,
    Rings,
    Deps,
    Heap,
    Tensors,
    Spare,
    FanoutOrder,
    FileBytes,
    Clusters,
    Cube,
    Vector,
    AiCpu,
    Accelerator,
    AnyType,
    /// Process of the device, its sign of life, what it does.
    DevicePid = 64,
    DeviceBeat,
    DeviceState,
    /// First task that failed on the device, plus 1.
    Failed,
    /// The last number of `Blocked` at which the device had nothing left to do.
    Answered,
    /// Process of the submitter, its sign of life, what it does.
    SubmitterPid = 96,
    SubmitterBeat,
    SubmitterState,
    /// Counts the times at which the submitter found something full.
    Blocked,
}

/// What a side does.
mod state {
    pub(super) const ABSENT: u64 = 0;
    pub(super) const WORKING: u64 = 1;
    pub(super) const DONE: u64 = 2;
    pub(super) const FAILED: u64 = 3;
}

/// Where a bell is in the last words of the header: a side waits on its own and rings the other's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bell {
    Device,
    Submitter,
}

/// A mapped window.
struct Mapped {
    path: PathBuf,
    /// The lock of the device lasts as long as its file is open.
    file: File,
    words: Span<AtomicU64>,
    /// Bell and whether somebody waits for it, for each side, cache lines apart.
    bells: Span<AtomicU32>,
    /// The device's machine, as far as the header tells it: limits, workers, order of fanout.
    machine: Machine,
    mapping: Arc<MmapRaw>,
    places: Places,
}

/// Offsets of the arrays.
#[derive(Clone, Copy, Debug)]
struct Places {
    rings: usize,
    ends: usize,
    cells: usize,
    slots: usize,
    entries: usize,
    end: usize,
    lengths: Lengths,
}

impl Places {
    /// `None` when the sizes are beyond what a file can have.
    fn of(limits: &Limits) -> Option<Places> {
        let lengths = Lengths::of(limits);
        let after = |start: usize, count: usize, bytes: usize| {
            start.checked_add(count.checked_mul(bytes)?)?.checked_next_multiple_of(4096)
        };
        let rings = HEADER_BYTES;
        let ends = after(rings, lengths.rings, size_of::<Ring<Shared>>())?;
        let cells = after(ends, ENDS, 8)?;
        let slots = after(cells, size_for(lengths.slots), 8)?;
        let entries = after(slots, lengths.slots, size_of::<Slot<Shared>>())?;
        let end = after(entries, lengths.entries, size_of::<Entry<Shared>>())?;
        Some(Places { rings, ends, cells, slots, entries, end, lengths })
    }
}

impl Mapped {
    /// A run that began ends badly.
    fn error(path: &Path, what: impl std::fmt::Display) -> RunError {
        RunError::Threads(format!("{}: {what}", path.display()))
    }

    /// The file cannot be used; nothing has run.
    fn refusal(path: &Path, what: impl std::fmt::Display) -> RunError {
        RunError::Window(format!("{}: {what}", path.display()))
    }

    /// Makes a file for a window of these sizes, replacing one that nobody uses.
    fn create(path: &Path, machine: &Machine) -> Result<Mapped, RunError> {
        let io = |error: std::io::Error| Mapped::refusal(path, error);
        // Looked at before it is opened, because opening a pipe or a device does something.
        if std::fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(Mapped::refusal(path, "is no regular file; take another name"));
        }
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
        if !try_lock(&file) {
            return Err(Mapped::refusal(path, "another device uses this window; end it or take another file"));
        }
        if !may_be_replaced(&file).map_err(io)? {
            return Err(Mapped::refusal(path, "is a file but no window; remove it or take another name"));
        }
        let places =
            Places::of(&machine.limits).ok_or_else(|| Mapped::refusal(path, "sizes beyond what a file can have"))?;
        // A new file under the old name: whoever still looks at the old one keeps what it has mapped.
        std::fs::remove_file(path).map_err(io)?;
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(path).map_err(io)?;
        if !try_lock(&file) {
            return Err(Mapped::refusal(path, "another device uses this window; end it or take another file"));
        }
        let room = file.write_all(&MAKING.to_le_bytes()).and_then(|()| allocate(&file, places.end as u64));
        room.map_err(|error| {
            let _ = std::fs::remove_file(path);
            let what = format!("no room for a window of {} bytes: {error}", places.end);
            Mapped::refusal(path, format!("{what}; lower limits.window or limits.deps, or take another place"))
        })?;
        let mapped = Mapped::map(path, file, machine.clone(), places)?;
        let (limits, workers, fanout_order) = (&machine.limits, &machine.workers, machine.rules.fanout_order);
        let sizes = [
            (At::SlotBytes, size_of::<Slot<Shared>>() as u64),
            (At::EntryBytes, size_of::<Entry<Shared>>() as u64),
            (At::RingBytes, size_of::<Ring<Shared>>() as u64),
            (At::Window, limits.window),
            (At::Rings, limits.rings.into()),
            (At::Deps, limits.deps),
            (At::Heap, limits.heap),
            (At::Tensors, limits.tensors),
            (At::Spare, limits.spare),
            (At::FanoutOrder, u64::from(fanout_order == FanoutOrder::Fifo)),
            (At::FileBytes, places.end as u64),
            (At::Clusters, workers.clusters.into()),
            (At::Cube, workers.cube.into()),
            (At::Vector, workers.vector.into()),
            (At::AiCpu, workers.ai_cpu.into()),
            (At::Accelerator, workers.accelerator.into()),
            (At::AnyType, workers.any.into()),
            (At::Version, VERSION),
        ];
        for (at, value) in sizes {
            mapped.set(at, value);
        }
        mapped.queue()?.clear();
        // Last of all, so that nobody takes a half-made window for a whole one.
        mapped.set(At::Magic, MAGIC);
        Ok(mapped)
    }

    /// Opens a window that somebody made; everything it says about itself is checked.
    fn open(path: &Path) -> Result<Mapped, RunError> {
        let io = |error: std::io::Error| Mapped::refusal(path, error);
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(io)?;
        let bytes = file.metadata().map_err(io)?.len();
        if bytes < HEADER_BYTES as u64 {
            return Err(Mapped::refusal(path, format!("{bytes} bytes are no window; a header has {HEADER_BYTES}")));
        }
        let header: Arc<MmapRaw> = Arc::new(MmapOptions::new().len(HEADER_BYTES).map_raw(&file).map_err(io)?);
        let words = Span::<AtomicU64>::mapped(&header, 0, HEADER_BYTES / 8);
        let words = words.ok_or_else(|| Mapped::refusal(path, "the header cannot be mapped"))?;
        let word = |at: At| words[at as usize].load(Acquire); // Ordering: pairs with the Release in `set`.
        if word(At::Magic) != MAGIC {
            return Err(Mapped::refusal(path, "is no window, or one that is not complete"));
        }
        if word(At::Version) != VERSION {
            let version = word(At::Version);
            return Err(Mapped::refusal(path, format!("window of version {version}; this program knows {VERSION}")));
        }
        let layout = [size_of::<Slot<Shared>>(), size_of::<Entry<Shared>>(), size_of::<Ring<Shared>>()];
        if [At::SlotBytes, At::EntryBytes, At::RingBytes].map(word) != layout.map(|bytes| bytes as u64) {
            return Err(Mapped::refusal(path, "slots, entries or rings have other sizes; it comes from another build"));
        }
        // More than that no machine has; sums of them do not overflow.
        let count = |at: At| word(at).min(1 << 24) as u32;
        let limits = Limits {
            window: word(At::Window),
            heap: word(At::Heap),
            deps: word(At::Deps),
            tensors: word(At::Tensors),
            rings: count(At::Rings),
            spare: word(At::Spare),
            ..Limits::default()
        };
        let workers = Workers {
            clusters: count(At::Clusters),
            cube: count(At::Cube),
            vector: count(At::Vector),
            ai_cpu: count(At::AiCpu),
            accelerator: count(At::Accelerator),
            any: count(At::AnyType),
        };
        let mut machine = Machine { workers, limits, ..Machine::default() };
        machine.rules.fanout_order = if word(At::FanoutOrder) == 0 { FanoutOrder::Lifo } else { FanoutOrder::Fifo };
        machine.validate().map_err(|error| Mapped::refusal(path, format!("corrupt: {error}")))?;
        let is_plausible = u32::try_from(machine.limits.deps).is_ok();
        let fits = |places: &Places| is_plausible && places.end as u64 == word(At::FileBytes);
        let places = Places::of(&machine.limits).filter(fits);
        let places =
            places.ok_or_else(|| Mapped::refusal(path, "corrupt: the sizes in its header do not fit together"))?;
        if bytes < places.end as u64 {
            let message = format!("truncated: {bytes} bytes of a window of {}", places.end);
            return Err(Mapped::refusal(path, message));
        }
        Mapped::map(path, file, machine, places)
    }

    fn map(path: &Path, file: File, machine: Machine, places: Places) -> Result<Mapped, RunError> {
        let mapping =
            MmapOptions::new().len(places.end).map_raw(&file).map_err(|error| Mapped::refusal(path, error))?;
        let mapping = Arc::new(mapping);
        Ok(Mapped {
            words: span(path, &mapping, 0, HEADER_BYTES / 8 - 64)?,
            bells: span(path, &mapping, HEADER_BYTES - 512, 128)?,
            path: path.into(),
            file,
            machine,
            mapping,
            places,
        })
    }

    /// The window in it.
    fn window(&self) -> Result<Window<Shared>, RunError> {
        let Places { rings, slots, entries, lengths, .. } = self.places;
        let arrays = (
            span(&self.path, &self.mapping, slots, lengths.slots)?,
            span(&self.path, &self.mapping, entries, lengths.entries)?,
            span(&self.path, &self.mapping, rings, lengths.rings)?,
        );
        Ok(Window::over(arrays, &self.machine.limits, self.machine.rules.fanout_order))
    }

    /// The queue from the submitter to the device.
    fn queue(&self) -> Result<Queue<'_>, RunError> {
        Queue::of(self)
    }

    /// Does something with the window. Where the bytes of the file lead outside its arrays or in circles, or tell of tasks that
    /// cannot be, the thread that meets them panics, this one or another; that is an error like others.
    fn guarded<T>(&self, body: impl FnOnce() -> Result<T, RunError>) -> Result<T, RunError> {
        let panicked =
            |message| Err(Mapped::error(&self.path, format!("corrupt, or a fault of the runtime: {message}")));
        match catch_unwind(AssertUnwindSafe(body)) {
            Err(panic) => panicked(panic_message(panic.as_ref())),
            Ok(Err(RunError::Panic(message))) => panicked(message),
            Ok(result) => result,
        }
    }

    /// An error unless every task that was submitted is retired.
    fn all_retired(&self, window: &Window<Shared>) -> Result<(), RunError> {
        if window.is_empty() {
            return Ok(());
        }
        Err(Mapped::error(&self.path, "corrupt: nothing is left to do, but not every task is retired"))
    }

    fn get(&self, at: At) -> u64 {
        self.words[at as usize].load(Acquire) // Ordering: pairs with the Release in `set`.
    }

    fn set(&self, at: At, value: u64) {
        self.words[at as usize].store(value, Release); // Ordering: pairs with the Acquire in `get`.
    }

    /// Rings the bell of a side, if it waits.
    fn ring(&self, bell: Bell) {
        Shared::fence();
        let [bell, waits] = self.bell(bell);
        // Ordering: Relaxed behind the fence, which pairs with the one in `wait`.
        if waits.load(Relaxed) != 0 {
            bell.fetch_add(1, Release); // Ordering: pairs with the Acquire in `wait`.
            wake(bell);
        }
    }

    /// Waits for a bell, or until it is time to look whether the other side is alive.
    fn wait(&self, bell: Bell, has_work: impl Fn() -> bool) {
        let [bell, waits] = self.bell(bell);
        let heard = bell.load(Acquire); // Ordering: pairs with the Release in `ring`.
        waits.store(1, Relaxed);
        Shared::fence();
        if !has_work() {
            sleep(bell, heard, LOOK);
        }
        waits.store(0, Relaxed); // Ordering: a bell rung too often does no harm.
    }

    fn bell(&self, bell: Bell) -> [&AtomicU32; 2] {
        let first = if bell == Bell::Device { 0 } else { 64 };
        [&self.bells[first], &self.bells[first + 1]]
    }
}

fn span<T: AnyBytes>(path: &Path, mapping: &Arc<MmapRaw>, offset: usize, len: usize) -> Result<Span<T>, RunError> {
    Span::mapped(mapping, offset, len).ok_or_else(|| Mapped::refusal(path, "corrupt: an array lies outside the file"))
}

/// The file whose lock the submitter of a window holds.
fn submitter_lock(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".submitter");
    name.into()
}

/// Takes the lock of a file for as long as it stays open; false if a living process has it.
fn try_lock(file: &File) -> bool {
    rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Whether a file is empty, a window or the beginning of one.
fn may_be_replaced(file: &File) -> std::io::Result<bool> {
    let mut start = Vec::new();
    file.take(size_of::<u64>() as u64).read_to_end(&mut start)?;
    Ok(start.is_empty() || start == MAGIC.to_le_bytes() || start == MAKING.to_le_bytes())
}

/// Gives a file its length and the room on its disk: a mapped page that finds none later would kill whoever touches it.
fn allocate(file: &File, bytes: u64) -> std::io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    file.set_len(bytes)?;
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        // Not every file system can promise it.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a living process holds the lock of a file; not for the holder itself.
fn is_locked(file: &File) -> bool {
    use rustix::fs::{FlockOperation, flock};
    flock(file, FlockOperation::NonBlockingLockShared).is_err() || flock(file, FlockOperation::Unlock).is_err()
}

/// Whether there is a file of this name whose lock a living process holds.
fn is_locked_at(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| is_locked(&file))
}

fn wake(bell: &AtomicU32) {
    let _ = rustix::thread::futex::wake(bell, rustix::thread::futex::Flags::empty(), u32::MAX >> 1);
}

fn sleep(bell: &AtomicU32, heard: u32, longest: Duration) {
    let longest = rustix::thread::futex::Timespec { tv_sec: 0, tv_nsec: longest.subsec_nanos().into() };
    // A time-out, a signal or a bell that rang already: the caller looks in any case.
    let _ = rustix::thread::futex::wait(bell, rustix::thread::futex::Flags::empty(), heard, Some(&longest));
}

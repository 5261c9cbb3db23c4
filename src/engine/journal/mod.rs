//! A run written down while it goes on, and read by others.
//!
//! ```text
//! engine ─▶ Journal ── full pages ──▶ a desk for each Reader or pair of them ─▶ reports
//!              ▲                          │
//!              └─── pages to use again ───┘
//! ```
//!
//! The thread of the engine only appends a few words an event; what reports make of them happens behind it, on threads made for it, or
//! on its own while they are too far behind (`desks.rs`). Pages are of bounded size and number, so that memory does not grow with the run.

mod desks;
mod facts;
mod held;
mod together;
mod words;
mod write;

use desks::{Desks, PageReader};
pub use facts::{DoneJob, Names, Occupancy, Started, Submitted};
use held::Held;
use words::{Page, Tenants};

use super::{BlockRow, JobKind, JobStep, Phase, Placed, SchedulerJob};
use crate::id::TaskType;
use crate::window::SlotRef;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

/// A cycle that is never reached.
const NEVER: u64 = u64::MAX;

/// What a reader wants to know beside the rows of the schedule; the rest is not written down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// Every task with its producers.
    pub tasks: bool,
    /// What is in use and in the ready queues, and what orchestrator and scheduler spend time on.
    pub levels: bool,
    /// Everything that can lead to something.
    pub causes: bool,
}

impl Needs {
    /// What either wants to know.
    #[must_use]
    pub fn and(self, other: Needs) -> Needs {
        Needs {
            tasks: self.tasks || other.tasks,
            levels: self.levels || other.levels,
            causes: self.causes || other.causes,
        }
    }
}

/// Makes something of what is in a journal, beside the engine. The calls are those of an [`Observer`](super::Observer), with
/// copies of what an observer sees in the window; every one does nothing by default.
pub trait Reader: Send + 'static {
    /// What it wants to know.
    fn needs(&self) -> Needs;

    /// A block started on a worker; its names are known.
    #[inline]
    fn block(&mut self, row: &BlockRow, names: &Names) {
        let _ = (row, names);
    }

    /// A task was published.
    #[inline]
    fn submitted(&mut self, submitted: &Submitted<'_>, now: u64) {
        let _ = (submitted, now);
    }

    /// A task became READY, or is to be run once more.
    #[inline]
    fn ready(&mut self, slot: SlotRef, kind: TaskType, now: u64) {
        let _ = (slot, kind, now);
    }

    /// A READY task was dropped or removed before all its blocks were placed.
    fn withdrawn(&mut self, kind: TaskType, now: u64) {
        let _ = (kind, now);
    }

    /// A block was given to workers.
    #[inline]
    fn placed(&mut self, placed: &Placed<'_>, now: u64) {
        let _ = (placed, now);
    }

    /// A block was given to one worker and started there at once, after the job that dispatches it if that is told.
    #[inline(always)]
    fn started(&mut self, started: &Started, names: &Names, now: u64) {
        let Started { slot, is_last, is_dispatched, ref row } = *started;
        let crew = [row.worker.0];
        self.placed(&Placed { slot, task: row.task, kind: row.kind, is_last, crew: &crew }, now);
        if is_dispatched {
            self.job_at_once(&DoneJob { kind: JobKind::Dispatch, slot, worker: Some(row.worker) });
        }
        self.block(row, names);
    }

    /// A job of the scheduler was queued, begun or done.
    #[inline]
    fn job(&mut self, job: &SchedulerJob, step: JobStep, now: u64) {
        let _ = (job, step, now);
    }

    /// A job was queued, begun and done without cost, one right after the other.
    #[inline]
    fn job_at_once(&mut self, job: &DoneJob) {
        let _ = job;
    }

    /// The orchestrator did this from a cycle to now.
    #[inline]
    fn orchestrator(&mut self, phase: Phase, from: u64, now: u64) {
        let _ = (phase, from, now);
    }

    /// Something of a ring was taken or returned; told once the instant is over.
    #[inline]
    fn occupied(&mut self, ring: u32, occupancy: &Occupancy, now: u64) {
        let _ = (ring, occupancy, now);
    }

    /// A task is CONSUMED.
    #[inline]
    fn consumed(&mut self) {}

    /// The policy acts by itself.
    #[inline]
    fn policy_acts(&mut self) {}

    /// The start of its parent no longer holds the task in this slot back.
    fn child_released(&mut self, slot: SlotRef, now: u64) {
        let _ = (slot, now);
    }

    /// The run is over.
    fn finished(&mut self, now: u64) {
        let _ = now;
    }

    /// A page was read to its end: the moment for what need not be done at once.
    fn turn(&mut self, names: &Names) {
        let _ = names;
    }
}

/// An observer that only writes down what happens; those it was given to read along.
pub struct Journal {
    page: Page,
    needs: Needs,
    /// Whether anybody reads it or wants a sign of life.
    is_read: bool,
    /// The cycle written last.
    now: u64,
    /// The same while nothing waits to be written before the next event, else [`NEVER`].
    settled: u64,
    /// The block placed on one worker that is not written yet, because what follows mostly belongs to it: first word and task.
    placed: [u64; 2],
    /// Where the task written last begins and ends in the page.
    last: usize,
    last_end: usize,
    /// Where the job stands whose effects are told now, if it was done at once and stands in this page.
    effect: usize,
    /// Whether the policy acts by itself, which is not written yet.
    policy_acts: bool,
    /// The ring of which is told what is in use when the instant is over.
    held: Held,
    /// Names handed on so far.
    n_names: usize,
    n_blocks: u64,
    /// The task that is submitted next, as far as is known.
    next_task: u64,
    sign_of_life: Option<SignOfLife>,
    desks: Arc<Desks>,
    threads: Vec<JoinHandle<()>>,
}

/// Told now and then how many blocks have started, and the cycle.
pub type SignOfLife = Box<dyn FnMut(u64, u64) + Send>;

/// A reader at work.
pub struct Reading<R> {
    desks: Arc<Desks>,
    desk: usize,
    ended: Receiver<(R, Names)>,
}

impl<R> Reading<R> {
    /// Lets the reader come to the end of a journal that is sealed, closed or dropped; gives it back with all names.
    ///
    /// # Panics
    /// When the reader did.
    #[must_use]
    pub fn end(self) -> (R, Names) {
        self.desks.read_to_end(self.desk);
        self.ended.recv().expect("a reader that did not panic comes to the end")
    }
}

/// A reader, and how far it has come.
struct Place<R> {
    reader: R,
    now: u64,
    names: Names,
    tenants: Tenants,
    ended: Sender<(R, Names)>,
}

impl<R: Reader> PageReader for Place<R> {
    fn read(&mut self, page: &Page) {
        page.read(&mut self.reader, &mut self.now, &mut self.names, &mut self.tenants);
        self.reader.turn(&self.names);
    }

    fn end(self: Box<Self>) {
        // Nobody asks for a reader when the run has failed.
        let _ = self.ended.send((self.reader, self.names));
    }
}

impl Default for Journal {
    fn default() -> Journal {
        Journal::new()
    }
}

impl Journal {
    /// One that nobody reads yet.
    #[must_use]
    pub fn new() -> Journal {
        Journal {
            page: Page::empty(),
            needs: Needs::default(),
            is_read: false,
            now: 0,
            settled: 0,
            placed: [0; 2],
            last: 0,
            last_end: usize::MAX,
            effect: usize::MAX,
            policy_acts: false,
            held: Held::default(),
            n_names: 0,
            n_blocks: 0,
            next_task: 0,
            sign_of_life: None,
            desks: Arc::default(),
            threads: Vec::new(),
        }
    }

    /// Lets `reader` read along from now on.
    pub fn add<R: Reader>(&mut self, reader: R) -> Reading<R> {
        self.needs = self.needs.and(reader.needs());
        self.is_read = true;
        let (sender, ended) = mpsc::channel();
        let tenants = Tenants::new(reader.needs().tasks);
        let desk = self.desks.add(Box::new(Place { reader, now: 0, names: Names::default(), tenants, ended: sender }));
        let desks = Arc::clone(&self.desks);
        // The engine has a processor of its own as long as readers are quick enough.
        let n_others = thread::available_parallelism().map_or(1, |n_processors| n_processors.get() - 1).max(1);
        if self.threads.len() < n_others {
            let (desks, name) = (Arc::clone(&desks), "ptosim-report".to_owned());
            let read = move || desks.read_all();
            // A host that gives no thread leaves it to the engine.
            self.threads.extend(thread::Builder::new().name(name).spawn(read));
        }
        Reading { desks, desk, ended }
    }

    /// Calls `sign` at every page.
    pub fn show_life(&mut self, sign: SignOfLife) {
        self.sign_of_life = Some(sign);
        self.is_read = true;
    }

    /// Hands on what is left; readers come to the end by themselves.
    pub fn seal(&mut self) {
        self.settle(self.now);
        self.turn_page();
        self.desks.end();
        self.is_read = false;
    }

    /// Hands on what is left and waits until everybody has read everything.
    ///
    /// # Panics
    /// When a reader did.
    pub fn close(mut self) {
        self.seal();
        self.desks.read_all();
        if let Some(panic) = self.desks.panic() {
            resume_unwind(panic);
        }
    }

    /// Hands the page on and takes an empty one.
    #[cold]
    fn turn_page(&mut self) {
        if let Some(sign) = &mut self.sign_of_life {
            sign(self.n_blocks, self.now);
        }
        let empty = self.desks.used().map_or_else(Page::empty, Page::wiped);
        let full = std::mem::replace(&mut self.page, empty.starting_with(self.next_task));
        self.desks.hand_on(full);
        (self.last_end, self.effect) = (usize::MAX, usize::MAX);
    }
}

/// A run that fails has no use for its readers, but they leave nothing behind only when they come to an end.
impl Drop for Journal {
    fn drop(&mut self) {
        self.desks.end();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Runs something with `reader` reading along.
pub fn read_along<R: Reader, T>(reader: R, run: impl FnOnce(&mut Journal) -> T) -> (T, R, Names) {
    let mut journal = Journal::new();
    let reading = journal.add(reader);
    let result = run(&mut journal);
    journal.close();
    let (reader, names) = reading.end();
    (result, reader, names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Machine;
    use crate::engine::{Observer, simulate};
    use crate::workload;

    /// Counts rows, and may fall over one.
    struct Rows {
        rows: Vec<BlockRow>,
        panics_at: usize,
    }

    impl Reader for Rows {
        fn needs(&self) -> Needs {
            Needs { tasks: true, levels: true, causes: true }
        }

        fn block(&mut self, row: &BlockRow, names: &Names) {
            self.rows.push(*row);
            row.kernel.inspect(|&kernel| assert!(!names.name(kernel).is_empty()));
            assert_ne!(self.rows.len(), self.panics_at, "told to");
        }
    }

    #[derive(Default)]
    struct Direct(Vec<BlockRow>);

    impl Observer for Direct {
        fn block(&mut self, row: &BlockRow, _names: &crate::workload::Symbols) {
            self.0.push(*row);
        }
    }

    const NOT: usize = usize::MAX;

    #[test]
    fn many_pages_arrive_whole_and_in_order_at_every_reader() {
        let program = workload::open("random:n=20000,fanin=3").expect("a generator");
        let machine = Machine::load("a2a3").expect("a built-in machine");
        let mut direct = Direct::default();
        simulate(program.as_ref(), &machine, &mut direct).expect("it runs");
        let mut journal = Journal::new();
        let readings: Vec<_> = (0..3).map(|_| journal.add(Rows { rows: Vec::new(), panics_at: NOT })).collect();
        simulate(program.as_ref(), &machine, &mut journal).expect("it runs");
        journal.close();
        for reading in readings {
            assert_eq!(reading.end().0.rows, direct.0);
        }
    }

    #[test]
    fn readers_on_one_thread_each_see_everything() {
        let program = workload::open("random:n=2000,fanin=3").expect("a generator");
        let rows = || Rows { rows: Vec::new(), panics_at: NOT };
        let (_, (left, (missing, right)), _) = read_along((rows(), (None::<Rows>, Some(rows()))), |journal| {
            simulate(program.as_ref(), &Machine::default(), journal).expect("it runs")
        });
        let right = right.expect("it was given");
        assert!(missing.is_none() && left.rows.len() == 2000 && left.rows == right.rows);
    }

    #[test]
    #[should_panic = "told to"]
    fn a_reader_that_panics_ends_the_run_and_never_hangs() {
        let program = workload::open("chain:n=50000").expect("a generator");
        read_along(Rows { rows: Vec::new(), panics_at: 100 }, |journal| {
            simulate(program.as_ref(), &Machine::default(), journal).expect("it runs")
        });
    }

    #[test]
    fn a_journal_that_is_dropped_ends_its_readers() {
        let mut journal = Journal::new();
        let reading = journal.add(Rows { rows: Vec::new(), panics_at: NOT });
        drop(journal);
        assert!(reading.end().0.rows.is_empty());
    }
}

//! Deterministic mode: kernels run on host threads, decisions are taken in virtual time.
//!
//! One thread holds the turn: it is the virtual engine, event by event. A block that starts in virtual time goes to the
//! executors; before its end is taken up in virtual time, the turn waits until the block has really ended. Blocks that
//! overlap in virtual time run in parallel, and no interleaving of the host can change a decision, because no decision looks
//! at the host. The schedule is therefore that of the virtual engine, row by row.

use super::executor::spin_until;
use super::kernels::{Call, KernelError, Kernels};
use super::ring::ReadyRing;
use super::sleep::{Sleepers, Slept};
use super::{EndOnPanic, Options, SPIN, host_cpus, n_executors, nanoseconds_since};
use crate::config::Machine;
use crate::engine::{self, BlockRow, Observer, RunError, Watch};
use crate::id::{TaskId, WorkerId};
use crate::policy::Choice;
use crate::report::{Report, ThreadsReport};
use crate::sync::{Shared, Sharing};
use crate::window::{NONE, symbol};
use crate::workload::{Symbols, Workload};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;

type U32 = <Shared as Sharing>::U32;
type U64 = <Shared as Sharing>::U64;

/// The thread that holds the turn.
const TURN: usize = 0;

/// Where the turn and the executors meet.
struct Hall<'a, K> {
    kernels: &'a K,
    queue: ReadyRing<Shared>,
    /// The block that each worker leads.
    desks: Box<[Desk]>,
    sleepers: Sleepers<Shared>,
    over: U32,
    failure: Mutex<Option<String>>,
}

/// The block of one worker: written by the turn before it is queued, read by the executor that takes it.
struct Desk {
    task: U64,
    block: U32,
    kernel: U32,
    cycles: U64,
    /// 1 while the block runs.
    busy: U32,
}

/// Runs `workload` with the schedule of the virtual engine under the policy chosen, while its kernels run on host threads.
///
/// # Errors
/// As the virtual engine, and when a kernel fails.
pub fn run_deterministic<K: Kernels, O: Observer>(
    workload: &dyn Workload,
    machine: &Machine,
    choice: &Choice,
    (kernels, options): (&K, &Options),
    observer: &mut O,
) -> Result<Report, RunError> {
    let n_workers = machine.workers.total() as usize;
    let executors = n_executors(machine, options, 1);
    let hall = Hall::new(kernels, n_workers, executors);
    hall.sleepers.register(TURN);
    let start = Instant::now();
    let result = std::thread::scope(|scope| {
        for nth in 0..executors {
            let hall = &hall;
            let name = std::thread::Builder::new().name(format!("executor {nth}"));
            if let Err(error) = name.spawn_scoped(scope, move || hall.execute(1 + nth)) {
                hall.end();
                return Err(RunError::Threads(format!("a thread cannot be started: {error}")));
            }
        }
        let _guard = EndOnPanic(|| hall.end());
        let mut turn = Turn { hall: &hall, last: None, parks: 0 };
        // The turn is told first, so that an observer learns of an end that has really come.
        let result = engine::run_with(workload, machine, choice, &mut Watch(&mut [&mut turn, observer]));
        hall.end();
        result.map(|report| (report, turn.parks))
    });
    let (mut report, parks) = result?;
    if let Some(message) = hall.failure.lock().expect("nobody panics with it").take() {
        return Err(RunError::Kernel(message));
    }
    let wall_ns = nanoseconds_since(start);
    report.engine = "threads".into();
    report.threads = Some(ThreadsReport {
        mode: "deterministic".into(),
        host_cpus: host_cpus() as u64,
        schedulers: 0,
        executors: executors as u64,
        wall_ns,
        ns_per_task: wall_ns as f64 / report.tasks.max(1) as f64,
        tasks_per_second: report.tasks as f64 * 1e9 / wall_ns.max(1) as f64,
        latency: BTreeMap::new(),
        wake_ups: 0,
        parks,
        contention: 0,
        handed_on: 0,
        orchestrator_waits: 0,
        inject_seed: None,
    });
    Ok(report)
}

impl<'a, K: Kernels> Hall<'a, K> {
    fn new(kernels: &'a K, n_workers: usize, executors: usize) -> Hall<'a, K> {
        let desk = || Desk {
            task: U64::new(0),
            block: U32::new(0),
            kernel: U32::new(NONE),
            cycles: U64::new(0),
            busy: U32::new(0),
        };
        Hall {
            kernels,
            queue: ReadyRing::new(n_workers),
            desks: (0..n_workers).map(|_| desk()).collect(),
            sleepers: Sleepers::new(1 + executors),
            over: U32::new(0),
            failure: Mutex::new(None),
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Acquire) != 0 // Ordering: pairs with the Release in `end`.
    }

    fn end(&self) {
        self.over.store(1, Release); // Ordering: pairs with the Acquire in `is_over`.
        let _ = self.sleepers.idle_after_work();
        self.sleepers.wake_all();
    }

    /// An executor: runs blocks until the run is over.
    fn execute(&self, me: usize) {
        self.sleepers.register(me);
        while !self.is_over() {
            if let Some(worker) = self.queue.pop(&mut 0) {
                self.run_block(worker);
                continue;
            }
            let has_work = || !self.queue.is_empty() || self.is_over();
            if spin_until(SPIN, &has_work) {
                continue;
            }
            self.sleepers.announce(me);
            if has_work() {
                self.sleepers.withdraw(me);
            } else if self.sleepers.sleep(me) == Slept::Last {
                // The turn waits for nothing but blocks, so it cannot be asleep; still, nobody sleeps for ever.
                self.sleepers.wake(TURN);
                self.sleepers.wait(me);
            }
        }
    }

    fn run_block(&self, worker: u32) {
        let desk = &self.desks[worker as usize];
        // Ordering: Relaxed; the queue published the desk.
        let call = Call {
            task: TaskId(desk.task.load(Relaxed)),
            slot: NONE,
            block: desk.block.load(Relaxed),
            kernel: symbol(desk.kernel.load(Relaxed)),
            cycles: desk.cycles.load(Relaxed),
        };
        let ended = catch_unwind(AssertUnwindSafe(|| self.kernels.run(&call)));
        let result = ended.unwrap_or_else(|panic| Err(KernelError(super::executor::panic_message(panic.as_ref()))));
        if let Err(KernelError(message)) = result {
            let message = format!("task {}: {message}", call.task);
            self.failure.lock().expect("nobody panics with it").get_or_insert(message);
        }
        desk.busy.store(0, Release); // Ordering: pairs with the Acquire in `wait_for`.
        if self.sleepers.idle_after_work() & 1 << TURN != 0 {
            self.sleepers.wake(TURN);
        }
    }

    /// A block starts in virtual time.
    fn start(&self, row: &BlockRow) {
        let desk = &self.desks[row.worker.0 as usize];
        // Ordering: Relaxed; the queue publishes the desk.
        desk.task.store(row.task.0, Relaxed);
        desk.block.store(row.block, Relaxed);
        desk.kernel.store(row.kernel.map_or(NONE, |kernel| kernel.0), Relaxed);
        desk.cycles.store(row.end - row.start, Relaxed);
        desk.busy.store(1, Relaxed);
        self.queue.push(row.worker.0, &mut 0).expect("a worker leads one block at a time");
        let idle = self.sleepers.idle_after_work() & !(1 << TURN);
        if idle != 0 {
            self.sleepers.wake(idle.trailing_zeros() as usize);
        }
    }

    /// Waits until the block of a worker has really ended; returns how often it slept.
    fn wait_for(&self, worker: WorkerId) -> u64 {
        let desk = &self.desks[worker.0 as usize];
        let mut parks = 0;
        loop {
            let has_ended = || desk.busy.load(Acquire) == 0; // Ordering: pairs with the Release in `run_block`.
            if spin_until(SPIN, &has_ended) {
                return parks;
            }
            self.sleepers.announce(TURN);
            if has_ended() {
                self.sleepers.withdraw(TURN);
                return parks;
            }
            parks += 1;
            if self.sleepers.sleep(TURN) == Slept::Last {
                self.sleepers.stay_up(TURN);
            }
        }
    }
}

/// The observer through which the virtual engine hands blocks out and waits for them.
struct Turn<'h, 'a, K> {
    hall: &'h Hall<'a, K>,
    /// The block told last: a MIX block is told once for each of its workers, the leader first.
    last: Option<(TaskId, u32, u64)>,
    parks: u64,
}

impl<K: Kernels> Observer for Turn<'_, '_, K> {
    fn block(&mut self, row: &BlockRow, _names: &Symbols) {
        let block = Some((row.task, row.block, row.start));
        if self.last != block {
            self.last = block;
            self.hall.start(row);
        }
    }

    fn block_ends(&mut self, leader: WorkerId, _now: u64) {
        self.parks += self.hall.wait_for(leader);
    }
}

//! The device: makes the window, takes READY tasks from the submitter, runs and completes them.

use super::{At, Bell, LOOK, Mapped, is_locked_at, state, submitter_lock};
use crate::config::Machine;
use crate::engine::threads::core::{Core, Hands};
use crate::engine::threads::executor::spin_until;
use crate::engine::threads::inject::Faults;
use crate::engine::threads::stats::Stats;
use crate::engine::threads::{Call, Inject, KernelError, Kernels, Options, Setup, Spin, spawn_all};
use crate::error::RunError;
use crate::window::{Outcomes, SlotRef};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// How a device runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceOptions {
    /// Threads that run blocks.
    pub executors: Option<usize>,
    /// Kernels spin for their cycles.
    pub spin: bool,
}

/// Kernels of a device, and its way to tell the submitter.
struct Remote<'m> {
    mapped: &'m Mapped,
    spin: Option<Spin>,
    /// Nobody waits for the kernels any more.
    given_up: AtomicBool,
}

impl Kernels for Remote<'_> {
    fn run(&self, call: &Call) -> Result<(), KernelError> {
        if let Some(spin) = self.spin {
            spin.for_cycles(call.cycles, || self.given_up.load(Relaxed)); // Ordering: it carries no data.
        }
        Ok(())
    }

    fn all_but_one_sleep(&self) {
        self.mapped.ring(Bell::Device);
    }

    fn retired(&self) {
        self.mapped.ring(Bell::Submitter);
    }
}

/// Makes a window in a file and works for one submitter until it is done; returns the number of tasks.
///
/// # Errors
/// When the file cannot be made or is in use, when the submitter dies, or when a task fails.
pub fn device(path: &Path, machine: &Machine, options: &DeviceOptions) -> Result<u64, RunError> {
    let mapped = Mapped::create(path, machine)?;
    mapped.set(At::DevicePid, std::process::id().into());
    mapped.set(At::DeviceState, state::WORKING);
    let spin = options.spin.then_some(Spin { clock_mhz: machine.clock_mhz });
    let kernels = Remote { mapped: &mapped, spin, given_up: AtomicBool::new(false) };
    let setup = Setup::new(machine, &Options { executors: options.executors, ..Options::default() });
    let setup = Setup { by_kernel: false, deferred: 0, ..setup };
    let faults = Faults::new(Inject::default(), machine.workers.total());
    let core = Core::over(mapped.window()?, machine, &kernels, setup, faults);
    let mut hands = Hands::new(&core, false);
    // Ordering: Relaxed; it carries no data.
    let intake = || intake(&core, &mapped, &mut hands).inspect_err(|_| kernels.given_up.store(true, Relaxed));
    let result = mapped.guarded(|| spawn_all(&core, intake));
    let result = result.and_then(|((), threads)| failed_tasks(hands.stats, threads));
    mapped.set(At::DeviceState, if result.is_ok() { state::DONE } else { state::FAILED });
    mapped.ring(Bell::Submitter);
    result.map(|()| (0..core.window.n_rings()).map(|ring| core.window.ring(ring).retired()).sum())
}

fn failed_tasks(mut all: Stats, threads: Vec<Stats>) -> Result<(), RunError> {
    threads.into_iter().for_each(|stats| all.add(stats));
    let bad = all.ended.failed + all.ended.cancelled;
    if bad == 0 { Ok(()) } else { Err(RunError::Kernel(format!("{bad} tasks failed or were cancelled"))) }
}

/// Takes READY tasks from the submitter until it is done or gone.
fn intake<K: Kernels>(core: &Core<'_, K>, mapped: &Mapped, hands: &mut Hands) -> Result<(), RunError> {
    core.sleepers.register(0);
    let queue = mapped.queue()?;
    let mut peer = Peer { lock: submitter_lock(&mapped.path), attached: false, looked: Instant::now() };
    loop {
        while let Some(slot) = queue.pop()? {
            take_in(core, hands, slot);
        }
        if core.is_over() {
            let message = "corrupt, or a task failed: a thread of the device gave up";
            return Err(Mapped::error(&mapped.path, message));
        }
        tell_bad(core, mapped);
        let (blocked, submitter) = (mapped.get(At::Blocked), mapped.get(At::SubmitterState));
        let is_idle = core.sleepers.is_alone() && queue.is_empty();
        if is_idle && blocked != mapped.get(At::Answered) {
            mapped.set(At::Answered, blocked);
            mapped.ring(Bell::Submitter);
        }
        if submitter == state::DONE && is_idle {
            return mapped.all_retired(&core.window);
        }
        peer.check(mapped, submitter)?;
        mapped.set(At::DeviceBeat, mapped.get(At::DeviceBeat).wrapping_add(1));
        rest(core, mapped, || !queue.is_empty());
    }
}

/// What the device knows of its submitter.
struct Peer {
    lock: PathBuf,
    /// There is or was one.
    attached: bool,
    /// When the device last looked whether it lives.
    looked: Instant,
}

impl Peer {
    /// An error when the submitter gave up, died, or says what no submitter says.
    fn check(&mut self, mapped: &Mapped, doing: u64) -> Result<(), RunError> {
        let error = |what: String| Err(Mapped::error(&mapped.path, what));
        match doing {
            state::ABSENT if !self.attached => Ok(()),
            state::FAILED => error("the submitter gave up".into()),
            // One that has submitted everything still waits for the device.
            state::WORKING | state::DONE => {
                self.attached = true;
                if self.looked.elapsed() < LOOK {
                    return Ok(());
                }
                self.looked = Instant::now();
                if is_locked_at(&self.lock) || mapped.get(At::SubmitterState) != doing {
                    return Ok(());
                }
                error(format!("the submitter (process {}) died", mapped.get(At::SubmitterPid)))
            }
            _ => error(format!("corrupt: state {doing} of the submitter")),
        }
    }
}

/// Waits for the submitter, or for the last executor to fall asleep when somebody wants to know whether the device is idle.
fn rest<K: Kernels>(core: &Core<'_, K>, mapped: &Mapped, has_work: impl Fn() -> bool) {
    let waits_for_idle =
        mapped.get(At::Blocked) != mapped.get(At::Answered) || mapped.get(At::SubmitterState) == state::DONE;
    let has_news = || has_work() || (waits_for_idle && core.sleepers.is_alone());
    if !spin_until(core.setup.spin, &has_news) {
        mapped.wait(Bell::Device, has_news);
    }
}

fn take_in<K: Kernels>(core: &Core<'_, K>, hands: &mut Hands, slot: SlotRef) {
    hands.told(core).ready(slot);
    hands.settle(core);
}

/// Tells the submitter of the first task that failed.
fn tell_bad<K: Kernels>(core: &Core<'_, K>, mapped: &Mapped) {
    if mapped.get(At::Failed) == 0
        && let Some(task) = core.bad.lock().expect("nobody panics with it").first()
    {
        mapped.set(At::Failed, task.0 + 1);
        mapped.ring(Bell::Submitter);
    }
}

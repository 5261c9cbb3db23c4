//! What a block does when it runs on a host thread.

use crate::id::{Symbol, TaskId};
use crate::sync::Shared;
use crate::window::{SlotRef, Window};
use crate::workload::{Submit, Symbols};
use std::time::{Duration, Instant};

/// Runs the blocks of tasks. All methods are called on the threads of the run.
pub trait Kernels: Sync {
    /// A task is about to be linked and published: the orchestrator's last chance to keep what its blocks will need.
    ///
    /// # Errors
    /// When they could never run; the run ends and names the task.
    #[inline]
    fn prepare(&self, draft: &Draft<'_>) -> Result<(), KernelError> {
        let _ = draft;
        Ok(())
    }

    /// Runs one block.
    ///
    /// # Errors
    /// When it cannot; the run ends and names task and kernel.
    fn run(&self, call: &Call) -> Result<(), KernelError>;

    /// Tasks were retired: there may be room for more.
    #[inline]
    fn retired(&self) {}

    /// All threads of the run but one sleep.
    #[inline]
    fn all_but_one_sleep(&self) {}

    /// A task is about to be COMPLETED.
    #[inline]
    fn completed(&self, slot: SlotRef) {
        let _ = slot;
    }
}

/// A task that has its slot and its heap piece, but is not linked yet.
pub struct Draft<'a> {
    /// The window.
    pub window: &'a Window<Shared>,
    /// Its slot.
    pub slot: SlotRef,
    /// Its id.
    pub id: TaskId,
    /// What the program said.
    pub task: &'a Submit,
    /// Names of kernels and tasks.
    pub symbols: &'a Symbols,
}

/// One block to run.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Its task.
    pub task: TaskId,
    /// Where the task lives.
    pub slot: SlotRef,
    /// Which of its blocks.
    pub block: u32,
    /// Its kernel.
    pub kernel: Option<Symbol>,
    /// What it costs on its slowest worker.
    pub cycles: u64,
}

/// Why a block could not be run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct KernelError(pub String);

/// Kernels that do nothing: what is left is the cost of the runtime.
#[derive(Clone, Copy, Debug)]
pub struct Noop;

impl Kernels for Noop {
    #[inline]
    fn run(&self, _: &Call) -> Result<(), KernelError> {
        Ok(())
    }
}

/// Kernels that keep their thread busy for their cycles.
#[derive(Clone, Copy, Debug)]
pub struct Spin {
    /// Cycles per microsecond.
    pub clock_mhz: u64,
}

impl Spin {
    /// Spins for these cycles, unless it is told to break off.
    pub(super) fn for_cycles(self, cycles: u64, is_over: impl Fn() -> bool) {
        let nanoseconds = u128::from(cycles) * 1000 / u128::from(self.clock_mhz.max(1));
        let until = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
        let start = Instant::now();
        while start.elapsed() < until && !is_over() {
            std::hint::spin_loop();
        }
    }
}

impl Kernels for Spin {
    fn run(&self, call: &Call) -> Result<(), KernelError> {
        self.for_cycles(call.cycles, || false);
        Ok(())
    }
}

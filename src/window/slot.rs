//! One place of the window: the state of its tenant, its counts, and what it was asked to do.
//!
//! ```text
//! line 0, the protocol      state | fanin | fanout | refs | deps | tensors | scope | heap end | mark
//! line 1, the description   cycles | kernel | kind | units | blocks to place, to take, to finish | flags
//! ```

use super::state::{State, StateWord};
use crate::id::{TaskId, TaskType};
use crate::sync::{Sharing, Word};
use crate::workload::{Cost, Units};
use std::sync::atomic::Ordering::Relaxed;
#[cfg(not(loom))]
use zerocopy::FromZeros;

/// A slot anywhere in the window: ring × size + position.
pub type SlotRef = u32;

/// No slot, no entry.
pub const NONE: u32 = u32::MAX;

/// The list of consumers is closed: the task is complete.
pub(super) const CLOSED: u32 = u32::MAX - 1;

/// A task in flight. All zeros is a vacant slot.
#[cfg_attr(not(loom), derive(FromZeros))]
#[cfg_attr(loom, derive(Default))]
#[repr(C, align(128))]
pub struct Slot<S: Sharing> {
    /// Tenant and state, one word, so that a slot is never mistaken for its next tenant.
    pub(super) state: StateWord<S>,
    /// Producers not yet completed, plus the hold of the orchestrator.
    pub(super) fanin: S::U32,
    /// Newest consumer's entry, [`NONE`], or [`CLOSED`].
    pub(super) fanout: S::U32,
    /// One for the task until it completes, one a consumer until that completes, one a scope that holds it.
    pub(super) refs: S::U32,
    /// First of its dependency entries.
    pub(super) deps_first: S::U32,
    /// How many of them are linked.
    pub(super) deps_linked: S::U32,
    /// How many are reserved.
    pub(super) deps_reserved: S::U32,
    /// Tensor-map entries it holds.
    pub(super) tensors: S::U32,
    /// Next task of its scope; orchestrator only.
    pub(super) next_in_scope: S::U32,
    /// End of its heap piece; 0 when it has none. Written at reservation, read when it retires.
    pub(super) heap_end: S::U64,
    /// Consumer that found it as a producer last, so that it counts once; orchestrator only.
    pub(super) mark: S::U64,
    /// What to run.
    pub job: Description<S>,
}

/// What a task was asked to do. Written before it is published.
#[repr(C)]
#[cfg_attr(not(loom), derive(FromZeros))]
#[cfg_attr(loom, derive(Default))]
pub struct Description<S: Sharing> {
    /// Cycles of a block; on the cube for a MIX block.
    pub cycles: S::U64,
    /// Cycles of a MIX block on its vectors.
    pub vector_cycles: S::U64,
    /// Kernel symbol, or [`NONE`].
    pub kernel: S::U32,
    /// Name symbol, or [`NONE`].
    pub name: S::U32,
    /// Task type and units, packed.
    kind: S::U32,
    /// [`flag`] bits.
    pub flags: S::U32,
    /// Number of blocks.
    pub blocks: S::U32,
    /// Blocks not yet placed.
    pub to_place: S::U32,
    /// Blocks whose end the scheduler has not taken up.
    pub to_take: S::U32,
    /// Blocks not yet completed.
    pub to_finish: S::U32,
}

/// Bits of [`Description::flags`].
pub mod flag {
    /// All blocks are placed at the same instant.
    pub const SYNC_START: u32 = 1;
    /// The task fails at its end.
    pub const FAULT: u32 = 2;
    /// A producer failed: the task never runs.
    pub const CANCELLED: u32 = 4;
    /// Kinds of a MIX block end on their own.
    pub const PER_KIND: u32 = 8;
    /// Admitted by the scheduler.
    pub const ADMITTED: u32 = 16;
    /// Ended badly: failed, dropped or cancelled.
    pub const BAD: u32 = 32;
}

impl<S: Sharing> Slot<S> {
    /// The task in it; the last one if it is vacant.
    #[inline]
    pub fn task(&self) -> TaskId {
        self.state.task()
    }

    /// State of the task in it.
    #[inline]
    pub fn state(&self) -> State {
        self.state.state()
    }

    /// A block of the task started.
    #[inline]
    pub fn start(&self) {
        self.state.start();
    }

    /// Producers not completed, plus holds.
    #[inline]
    pub fn fanin(&self) -> u32 {
        self.fanin.load(Relaxed) // Ordering: a hint for reports; decisions use the returned value of the decrement.
    }
}

impl<S: Sharing> Description<S> {
    /// Type of the task.
    #[inline]
    pub fn kind(&self) -> TaskType {
        match self.kind.load(Relaxed) & 7 {
            0 => TaskType::Mix,
            1 => TaskType::Cube,
            2 => TaskType::Vector,
            3 => TaskType::AiCpu,
            4 => TaskType::Accelerator,
            _ => TaskType::None,
        }
    }

    /// A number of the engine's own, below 8, given at [`Description::describe`].
    #[inline]
    pub fn class(&self) -> u32 {
        self.kind.load(Relaxed) >> 7
    }

    /// What one MIX block takes.
    #[inline]
    pub fn units(&self) -> Units {
        let word = self.kind.load(Relaxed);
        Units { cube: (word >> 3 & 3) as u8, vector: (word >> 5 & 3) as u8 }
    }

    /// Fills in type, units and cost.
    // Ordering: Relaxed throughout; the Release of publishing pairs with the Acquire of whoever takes the task.
    #[inline]
    pub fn describe(&self, kind: TaskType, units: Units, cost: Cost, class: u32) {
        let word = kind as u32 | u32::from(units.cube) << 3 | u32::from(units.vector) << 5 | class << 7;
        self.kind.store(word, Relaxed);
        let (cube, vector) = match cost {
            Cost::Cycles(cycles) => (cycles, cycles),
            Cost::PerKind { cube, vector } => (cube, vector),
        };
        self.cycles.store(cube, Relaxed);
        self.vector_cycles.store(vector, Relaxed);
    }

    /// All blocks are to be placed once more.
    pub fn rewind(&self) {
        let blocks = self.blocks.load(Relaxed);
        self.to_place.store(blocks, Relaxed);
        self.to_take.store(blocks, Relaxed);
        self.to_finish.store(blocks, Relaxed);
    }

    /// Whether a flag is set.
    #[inline]
    pub fn has(&self, flag: u32) -> bool {
        self.flags.load(Relaxed) & flag != 0
    }

    /// Sets a flag.
    #[inline]
    pub fn set(&self, flag: u32) {
        // Ordering: Relaxed; whoever decides on a flag learns of it through the count or the list that led there. One
        // operation, because a producer's failure and the task's own admission may set flags at the same time.
        self.flags.fetch_or(flag, Relaxed);
    }
}

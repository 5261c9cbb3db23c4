//! One place of the window: the state of its tenant, its counts, and what it was asked to do.
//!
//! ```text
//! line 0, until it is retired   state | mark | fanin | fanout | refs | deps | note | cycles | kernel | what
//! line 1, where there is any    blocks, to place, to finish, to take | vector cycles | name | tensors | scope | heap end
//! ```
//!
//! A window of thousands of slots does not fit the nearest caches, so what every task has stands on the first line, with bits that
//! say what the second one holds. Most tasks never touch it.

use super::state::{State, StateWord};
use crate::id::{Symbol, TaskId, TaskType};
use crate::sync::{Sharing, Word};
use crate::workload::{Cost, Submit, Units};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
#[cfg(not(loom))]
use zerocopy::FromZeros;

/// A slot anywhere in the window: ring × size + position.
pub type SlotRef = u32;

/// No slot, no entry.
pub const NONE: u32 = u32::MAX;

/// The symbol in a word of a [`Description`], where [`NONE`] stands for none.
#[inline]
pub fn symbol(word: u32) -> Option<Symbol> {
    (word != NONE).then_some(Symbol(word))
}

/// The list of consumers is closed: the task is complete.
pub(super) const CLOSED: u32 = u32::MAX - 1;

/// A task in flight. All zeros is a vacant slot.
#[cfg_attr(not(loom), derive(FromZeros))]
#[cfg_attr(loom, derive(Default))]
#[repr(C, align(128))]
pub struct Slot<S: Sharing> {
    /// Tenant and state, one word, so that a slot is never mistaken for its next tenant.
    pub(super) state: StateWord<S>,
    /// Consumer that found it as a producer last, so that it counts once; orchestrator only.
    pub(super) mark: S::U64,
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
    /// How many are reserved, times four, and the bits of [`keeps`].
    pub(super) kept: S::U32,
    /// A number of the engine's own.
    note: S::U64,
    /// What to run; the first part of it shares the line of the words above.
    pub job: Description<S>,
    /// Tensor-map entries it holds, with [`keeps::TENSORS`].
    pub(super) tensors: S::U32,
    /// Next task of its scope, if it has one; orchestrator only.
    pub(super) next_in_scope: S::U32,
    /// End of its heap piece, with [`keeps::HEAP`]. Written at reservation, read when it retires.
    pub(super) heap_end: S::U64,
}

/// What a task keeps of its ring beside dependency entries.
pub(super) mod keeps {
    /// A piece of the heap.
    pub const HEAP: u32 = 1;
    /// Tensor-map entries.
    pub const TENSORS: u32 = 2;
    /// How many bits there are.
    pub const BITS: u32 = 2;
}

/// What a task was asked to do. Written before it is published.
#[repr(C)]
#[cfg_attr(not(loom), derive(FromZeros))]
#[cfg_attr(loom, derive(Default))]
pub struct Description<S: Sharing> {
    /// Cycles of a block; on the cube for a MIX block whose kinds end on their own.
    pub cycles: S::U64,
    /// Kernel symbol, or [`NONE`].
    pub kernel: S::U32,
    /// [`flag`] bits, and above them task type, units and class, packed.
    what: S::U32,
    /// Blocks not yet placed, with [`flag::MANY_BLOCKS`].
    pub to_place: S::U32,
    /// Blocks not yet completed, with [`flag::MANY_BLOCKS`].
    pub to_finish: S::U32,
    /// Number of blocks, with [`flag::MANY_BLOCKS`].
    blocks: S::U32,
    /// Blocks whose end the scheduler has not taken up, with [`flag::MANY_BLOCKS`].
    to_take: S::U32,
    /// Cycles on the vectors of a MIX block whose kinds end on their own.
    vector_cycles: S::U64,
    /// Name symbol, with [`flag::NAMED`].
    name: S::U32,
}

// Everything up to the counts of blocks lies on the first line.
#[cfg(not(loom))]
const _: () = assert!(std::mem::offset_of!(Slot<crate::sync::Shared>, job.to_place) == 64);

/// Bits of [`Description::has`].
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
    /// The task has more than one block.
    pub const MANY_BLOCKS: u32 = 64;
    /// The task has a name of its own.
    pub const NAMED: u32 = 128;
    /// How many bits there are.
    pub(super) const BITS: u32 = 8;
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

    /// Whether nobody needs the task any more.
    #[inline]
    pub fn is_consumed(&self) -> bool {
        // Ordering: pairs with the AcqRel decrement in `let_go`; the orchestrator alone changes tenants.
        self.refs.load(Acquire) == 0
    }

    /// Remembers that `consumer` has met the task; false if it had before.
    #[inline]
    pub fn mark(&self, consumer: TaskId) -> bool {
        let is_new = self.mark.load(Relaxed) != consumer.0; // Ordering: the orchestrator's own word.
        self.mark.store(consumer.0, Relaxed);
        is_new
    }

    /// Forgets who has met the task.
    pub fn unmark(&self) {
        self.mark.store(u64::MAX, Relaxed); // Ordering: the orchestrator's own word.
    }

    /// One thing less to wait for; returns how many are left. The last one makes the task READY. Unless it was the last, the task may be
    /// anywhere in its life by the time the caller looks again.
    #[inline(always)]
    pub fn count_down(&self) -> u32 {
        // Ordering: AcqRel, every decrement: the last one sees what all the others wrote before.
        let left = self.fanin.fetch_sub(1, AcqRel) - 1;
        if left == 0 {
            self.state.become_state(State::Ready);
        }
        left
    }

    /// The number that the engine noted last.
    #[inline]
    pub fn note(&self) -> u64 {
        self.note.load(Relaxed) // Ordering: for an engine of one thread.
    }

    /// Notes a number; returns the one before.
    #[inline]
    pub fn take_note(&self, number: u64) -> u64 {
        self.note.swap(number, Relaxed) // Ordering: for an engine of one thread.
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

// Ordering: Relaxed throughout. What is written before the task is published becomes visible with that: its Release pairs with the
// Acquire of whoever takes the task. What changes afterwards is for one thread, or says otherwise.
impl<S: Sharing> Description<S> {
    /// Type of the task.
    #[inline]
    pub fn kind(&self) -> TaskType {
        TaskType::of_number((self.what.load(Relaxed) >> flag::BITS).into())
    }

    /// A number of the engine's own, below 8, given at [`Description::describe`].
    #[inline]
    pub fn class(&self) -> u32 {
        self.what.load(Relaxed) >> (flag::BITS + 7)
    }

    /// What one MIX block takes.
    #[inline]
    pub fn units(&self) -> Units {
        let word = self.what.load(Relaxed) >> flag::BITS;
        Units { cube: (word >> 3 & 3) as u8, vector: (word >> 5 & 3) as u8 }
    }

    /// Fills in a task before it is published; `class` is a number of the engine's own, below 8.
    #[inline(always)]
    pub fn describe(&self, task: &Submit, kind: TaskType, cost: Cost, class: u32) {
        let mut what = (kind as u32 | class << 7) << flag::BITS;
        if kind == TaskType::Mix {
            let Units { cube, vector } = task.units;
            what |= (u32::from(cube) << 3 | u32::from(vector) << 5) << flag::BITS;
        }
        what |= (u32::from(task.sync_start) * flag::SYNC_START) | (u32::from(task.fault) * flag::FAULT);
        let blocks = if kind == TaskType::None { 1 } else { task.blocks };
        if blocks > 1 {
            what |= flag::MANY_BLOCKS;
            self.blocks.store(blocks, Relaxed);
            self.set_out(blocks);
        }
        if let Some(name) = task.name {
            what |= flag::NAMED;
            self.name.store(name.0, Relaxed);
        }
        match cost {
            Cost::Cycles(cycles) => self.cycles.store(cycles, Relaxed),
            Cost::PerKind { cube, vector } => {
                what |= flag::PER_KIND;
                self.cycles.store(cube, Relaxed);
                self.vector_cycles.store(vector, Relaxed);
            }
        }
        self.what.store(what, Relaxed);
        self.kernel.store(task.kernel.map_or(NONE, |symbol| symbol.0), Relaxed);
    }

    /// The same for a task that has one block on one worker of its own type, which is its class, and does not fail, with these
    /// [`flag`] bits.
    #[inline(always)]
    pub fn describe_single(&self, task: &Submit, kind: TaskType, cycles: u64, flags: u32) {
        let mut what = (kind as u32 | (kind as u32) << 7) << flag::BITS | flags;
        if let Some(name) = task.name {
            what |= flag::NAMED;
            self.name.store(name.0, Relaxed);
        }
        self.cycles.store(cycles, Relaxed);
        self.what.store(what, Relaxed);
        self.kernel.store(task.kernel.map_or(NONE, |symbol| symbol.0), Relaxed);
    }

    /// Number of blocks.
    #[inline]
    pub fn blocks(&self) -> u32 {
        if self.has(flag::MANY_BLOCKS) { self.blocks.load(Relaxed) } else { 1 }
    }

    /// Name symbol, or [`NONE`].
    #[inline]
    pub fn name(&self) -> u32 {
        if self.has(flag::NAMED) { self.name.load(Relaxed) } else { NONE }
    }

    /// The scheduler takes up the end of a block; true if it is the last to be taken up.
    #[inline]
    pub fn take_end(&self) -> bool {
        !self.has(flag::MANY_BLOCKS) || self.to_take.fetch_sub(1, Relaxed) == 1
    }

    /// How many blocks of a task that is READY are not yet placed. For one thread.
    #[inline]
    pub fn left_to_place(&self) -> u32 {
        if self.has(flag::MANY_BLOCKS) { self.to_place.load(Relaxed) } else { 1 }
    }

    /// A block is placed; returns its number and how many are left. For one thread.
    #[inline]
    pub fn place_block(&self) -> (u32, u32) {
        if !self.has(flag::MANY_BLOCKS) {
            return (0, 0);
        }
        let left = self.to_place.fetch_sub(1, Relaxed) - 1;
        (self.blocks.load(Relaxed) - left - 1, left)
    }

    /// A block is completed; true if it was the last. For one thread.
    #[inline]
    pub fn finish_block(&self) -> bool {
        !self.has(flag::MANY_BLOCKS) || self.to_finish.fetch_sub(1, Relaxed) == 1
    }

    /// Cycles of a block on a worker that is no cube.
    #[inline]
    pub fn vector_cycles(&self) -> u64 {
        if self.has(flag::PER_KIND) { self.vector_cycles.load(Relaxed) } else { self.cycles.load(Relaxed) }
    }

    /// All blocks are to be placed once more.
    pub fn rewind(&self) {
        if self.has(flag::MANY_BLOCKS) {
            self.set_out(self.blocks.load(Relaxed));
        }
    }

    /// No block of a task with many is placed yet.
    fn set_out(&self, blocks: u32) {
        [&self.to_place, &self.to_take, &self.to_finish].iter().for_each(|count| count.store(blocks, Relaxed));
    }

    /// Whether a flag is set.
    #[inline]
    pub fn has(&self, flag: u32) -> bool {
        self.what.load(Relaxed) & flag != 0
    }

    /// Sets a flag.
    #[inline]
    pub fn set(&self, flag: u32) {
        // Ordering: Relaxed; whoever decides on a flag learns of it through the count or the list that led there. One
        // operation, because a producer's failure and the task's own admission may set flags at the same time.
        self.what.fetch_or(flag, Relaxed);
    }
}

//! Policies: when a READY task is handed out, in which order, and where to.
//!
//! A policy is told which tasks are READY and asked to place blocks. Dependencies, window, heap and accounts are never its
//! business. It is a type parameter of the engine, so that the default policy costs nothing.

pub mod bmf;
pub mod config;
pub mod cyber;
pub mod heft;
mod lifo;
pub mod list_schedule;
mod mostly_sorted;
mod number_set;
mod ordered;
pub mod orleans;
mod own_queues;
mod per_worker;
pub mod predictive;
mod pto;
mod queue_book;
mod random;
pub mod ray;
mod select;
pub mod settings;
mod shortest;
pub mod static_list;
mod steal;

pub use config::Config;
pub use lifo::Lifo;
pub use ordered::{Candidate, Order, Ordered};
pub use per_worker::PerWorker;
pub use predictive::Ranked;
pub use pto::Pto;
pub use queue_book::QueueBook;
pub use random::Random;
pub use select::{Choice, Name};
pub use shortest::Shortest;
pub use static_list::{Plan, StaticList};
pub use steal::Steal;

use crate::config::{Machine, OnReadyFull};
use crate::id::{TaskId, TaskType};
use crate::ledger::{Class, Ledger};
use crate::machine::{Crew, Floor};
use crate::sync::Local;
use crate::window::{Description, SlotRef, Window, flag};
use crate::workload::{Control, Source, Submit};

/// A scheduling rule.
pub trait Policy {
    /// Whether it wants to know what the program said of a task.
    const READS_SUBMISSIONS: bool = true;

    /// Whether, although it is steady and no task is unusual, it may have tasks cancelled or the run halted, or not take a task that a
    /// queue without limit would take.
    const INTERFERES: bool = true;

    /// Whether tasks mostly start in the order in which they became READY, so that their neighbours are near those of the last ones.
    const KEEPS_ORDER: bool = false;

    /// Whether it asks for the set of free workers ([`Floor::free_workers`]), which is not kept otherwise.
    const ASKS_WHO_IS_FREE: bool = true;

    /// Whether it asks for the set of free workers and mostly takes certain ones, so that their order by clocks need not be kept.
    const TAKES_CERTAIN_WORKERS: bool = false;

    /// The name used in commands and reports.
    fn name(&self) -> &'static str;

    /// Whether it takes every READY task as it comes, and leaves nothing that it could place when it has dispatched, as long as
    /// no timed command tells it otherwise. The engine does jobs that cost nothing at once for such a policy.
    #[inline]
    fn is_steady(&self) -> bool {
        false
    }

    /// A task was published.
    ///
    /// # Errors
    /// When the task can never run under this policy; the message says why and what would help. The run ends with it.
    #[inline]
    fn on_submit(&mut self, submission: &Submission<'_>, now: u64) -> Result<(), String> {
        let _ = (submission, now);
        Ok(())
    }

    /// The task in a slot may become READY soon: time to fetch what is known of it. Not asked of a policy that keeps the order.
    #[inline]
    fn foresee(&self, slot: SlotRef) {
        let _ = slot;
    }

    /// A task became READY.
    ///
    /// # Errors
    /// When it is not taken: the task is dropped and its dependents are cancelled.
    fn on_ready(&mut self, ready: Ready, now: u64) -> Result<(), Dropped>;

    /// Whether no task waits and no timer is due, so that it need not be asked to dispatch.
    #[inline]
    fn is_idle(&self) -> bool {
        false
    }

    /// Places as many blocks as the rule allows now.
    fn dispatch(&mut self, stage: &mut Stage<'_>);

    /// The last block of a task was processed, before the task is COMPLETED.
    #[inline]
    fn on_end(&mut self, end: &End, now: u64) -> AfterEnd {
        let _ = (end, now);
        AfterEnd::Complete
    }

    /// A task is COMPLETED, and [`Policy::on_ready`] has been called for what it released.
    #[inline]
    fn on_complete(&mut self, end: &End, now: u64) {
        let _ = (end, now);
    }

    /// A task that was never handed out is cancelled; the policy must forget it.
    fn on_cancel(&mut self, slot: SlotRef, task: TaskId, now: u64) {
        let _ = (slot, task, now);
    }

    /// A timed command; false if the policy does not know it.
    fn on_control(&mut self, control: &Control, now: u64) -> bool {
        let _ = (control, now);
        false
    }

    /// What the policy wants of the engine since it was last asked. Looked at after every call that can ask for something.
    #[inline]
    fn requests(&mut self) -> Option<&mut Requests> {
        None
    }

    /// The next cycle at which the policy wants to be woken.
    #[inline]
    fn next_timer(&self) -> Option<u64> {
        None
    }

    /// The cycle asked for by [`Policy::next_timer`] has come; true if anything changed.
    fn on_timer(&mut self, now: u64) -> bool {
        let _ = now;
        false
    }

    /// Nothing but a timer of the policy can happen any more, and work is left; true if the policy changed that.
    fn on_idle(&mut self, now: u64) -> bool {
        let _ = now;
        false
    }

    /// Its counters for the report.
    fn report(&self) -> serde_json::Value {
        serde_json::Value::Object(serde_json::Map::new())
    }

    /// How often a task found its ready queue full; `None` if nothing limits how many tasks wait.
    fn full_events(&self) -> Option<u64> {
        None
    }
}

/// A task that was just published.
#[derive(Clone, Copy)]
pub struct Submission<'a> {
    /// Where it lives.
    pub slot: SlotRef,
    /// Its id.
    pub task: TaskId,
    /// What it runs on, after kernel table and machine have had their say.
    pub kind: TaskType,
    /// What the program said.
    pub submit: &'a Submit,
    /// The program, which knows the names of kernels and tasks.
    pub source: &'a dyn Source,
}

/// A READY task.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// Where it lives.
    pub slot: SlotRef,
    /// Its id.
    pub task: TaskId,
    /// What it runs on.
    pub kind: TaskType,
    /// Whether its own admission made it READY, rather than the end of a producer.
    pub by_admission: bool,
}

/// A task whose blocks have all ended.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// Where it lives.
    pub slot: SlotRef,
    /// Its id.
    pub task: TaskId,
    /// What it ran on.
    pub kind: TaskType,
    /// Whether it failed.
    pub failed: bool,
    /// The worker that led the block processed last; `None` for a task without workers.
    pub worker: Option<u32>,
}

/// What happens after the last block of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterEnd {
    /// The task is COMPLETED.
    Complete,
    /// The policy runs it again: all its blocks are to be placed once more.
    Again,
    /// Its end is not processed: it stays in the window and releases nothing. For runs that are halted.
    Abandon,
}

/// What a policy wants of the engine.
#[derive(Clone, Default, Debug)]
pub struct Requests {
    /// READY tasks that must not run, with the reason; their dependents are cancelled too.
    pub cancel: Vec<(SlotRef, String)>,
    /// How many READY tasks it gives up together with the run.
    pub given_up: u64,
    /// Stop the run: what runs finishes, nothing new starts.
    pub halt: Option<Halt>,
    /// Sentences for the report.
    pub notes: Vec<String>,
}

impl Requests {
    /// Whether anything is wanted.
    #[inline]
    #[must_use]
    pub fn is_any(&self) -> bool {
        !(self.cancel.is_empty() && self.halt.is_none() && self.notes.is_empty())
    }
}

/// Why a policy stops a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Halt {
    /// Whether it is a time-out rather than a failure.
    pub timeout: bool,
    /// In words.
    pub reason: String,
}

/// A task that a policy does not take.
#[derive(Clone, Copy, Debug)]
pub struct Dropped;

/// How much of a task could be placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// Nothing.
    Nothing,
    /// One block, and more are left.
    Some,
    /// The last block.
    All,
}

/// The free workers, and the way to give them blocks.
pub struct Stage<'a> {
    /// The moment.
    pub now: u64,
    /// Tasks in flight.
    pub window: &'a Window<Local>,
    pub(crate) floor: &'a mut Floor,
    pub(crate) ledger: &'a mut Ledger,
    /// Whether jobs of the scheduler or pickups take time.
    pub(crate) has_costs: bool,
    /// Blocks placed, to become dispatch jobs in this order: the leading worker of each.
    pub(crate) placed: &'a mut Vec<u32>,
}

impl Stage<'_> {
    /// The workers.
    pub fn floor(&self) -> &Floor {
        self.floor
    }

    /// Whether a block of this type could be placed at all; MIX is not looked at.
    #[inline]
    fn has_room(&self, kind: TaskType) -> bool {
        kind == TaskType::Mix || self.floor.has_free(kind as usize)
    }

    /// Places one block of a READY task (all of them with `sync_start`) on the free workers with the smallest clocks.
    #[inline]
    pub fn place(&mut self, slot: SlotRef) -> Placement {
        self.place_of(slot, self.window.slot(slot).job.kind())
    }

    /// The same for a task whose type is known. Where there is no worker for it nothing is looked at.
    #[inline(always)]
    pub fn place_of(&mut self, slot: SlotRef, kind: TaskType) -> Placement {
        if !self.has_room(kind) {
            return Placement::Nothing;
        }
        let job = &self.window.slot(slot).job;
        if job.has(flag::SYNC_START) {
            return self.place_together(slot, job);
        }
        self.place_one(slot, job, kind)
    }

    #[inline(never)]
    fn place_together(&mut self, slot: SlotRef, job: &Description<Local>) -> Placement {
        let (kind, units) = (job.kind(), job.units());
        let room = if kind == TaskType::Mix { self.floor.mix_capacity(units) } else { self.floor.n_free_for(kind) };
        let left = job.left_to_place();
        if room < left {
            return Placement::Nothing;
        }
        for _ in 1..left {
            self.place_one(slot, job, kind);
        }
        self.place_one(slot, job, kind)
    }

    /// Places one block on a certain free worker.
    #[inline(always)]
    pub fn place_on(&mut self, slot: SlotRef, worker: u32) -> Placement {
        self.floor.take_worker(worker);
        self.ledger.placed(worker, self.has_costs);
        self.record(slot, &self.window.slot(slot).job, worker)
    }

    /// Places one block on certain free workers: one, or units of one cluster for a MIX block.
    pub fn place_crew(&mut self, slot: SlotRef, crew: Crew) -> Placement {
        for &worker in crew.ids() {
            self.floor.take_worker(worker);
            self.ledger.placed(worker, self.has_costs);
        }
        self.record_crew(slot, &self.window.slot(slot).job, crew)
    }

    #[inline(always)]
    fn place_one(&mut self, slot: SlotRef, job: &Description<Local>, kind: TaskType) -> Placement {
        if kind == TaskType::Mix {
            return self.place_mix(slot, job);
        }
        let Some(worker) = self.floor.take(kind) else { return Placement::Nothing };
        self.ledger.placed(worker, self.has_costs);
        self.record(slot, job, worker)
    }

    #[inline(never)]
    fn place_mix(&mut self, slot: SlotRef, job: &Description<Local>) -> Placement {
        let Some(crew) = self.floor.take_mix(job.units()) else { return Placement::Nothing };
        crew.ids().iter().for_each(|&worker| self.ledger.placed(worker, self.has_costs));
        self.record_crew(slot, job, crew)
    }

    fn record_crew(&mut self, slot: SlotRef, job: &Description<Local>, crew: Crew) -> Placement {
        self.floor.worker_mut(crew.leader()).block.crew = crew;
        self.record(slot, job, crew.leader())
    }

    /// A block is placed on the crew of its leader, which is the leader alone if nobody said otherwise.
    #[inline(always)]
    fn record(&mut self, slot: SlotRef, job: &Description<Local>, leader: u32) -> Placement {
        let class = Class::from_bits(job.class());
        let (index, left) = job.place_block();
        let block = &mut self.floor.worker_mut(leader).block;
        block.slot = slot;
        block.index = index;
        if self.has_costs {
            block.placed = self.now;
            self.ledger.block_placed(class);
        }
        self.placed.push(leader);
        if left > 0 {
            return Placement::Some;
        }
        self.ledger.all_placed(class);
        Placement::All
    }
}

/// What to do with a task that finds its ready queue full, and after how many entries.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimit {
    /// Entries.
    pub entries: u64,
    /// What to do beyond.
    pub when_full: OnReadyFull,
}

impl QueueLimit {
    /// The limit of a machine.
    #[must_use]
    pub fn of(machine: &Machine) -> QueueLimit {
        QueueLimit { entries: machine.limits.ready, when_full: machine.rules.on_ready_queue_full }
    }
}

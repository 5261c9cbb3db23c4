//! What all threads of a run share, and how a completed task is followed up.
//!
//! ```text
//! thread 0               the orchestrator: the caller of the run
//! threads 1 ..           schedulers: take tasks whose last block ended and complete them
//! threads behind those   executors: take READY tasks and run their blocks for the machine's workers
//! ```
//!
//! Without scheduler threads, whoever ends a task's last block completes it.

use super::clocks::Clocks;
use super::ring::ReadyRing;
use super::sleep::Sleepers;
use super::stats::{SAMPLED, Stats};
use super::{Faults, Kernels, Setup, nanoseconds_since};
use crate::config::{Machine, Wake};
use crate::engine::{RunError, make_window};
use crate::id::{Symbol, TaskId, TaskType};
use crate::sync::{Shared, Sharing};
use crate::window::{Outcomes, SlotRef, Window, flag};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;
use std::time::Instant;

type U32 = <Shared as Sharing>::U32;
type U64 = <Shared as Sharing>::U64;

/// The thread that reads the program.
pub(super) const ORCHESTRATOR: usize = 0;

/// The state shared by all threads.
pub(super) struct Core<'a, K> {
    pub(super) machine: &'a Machine,
    pub(super) kernels: &'a K,
    pub(super) setup: Setup,
    pub(super) window: Window<Shared>,
    /// READY tasks by type.
    pub(super) ready: [ReadyRing<Shared>; 5],
    /// Types that have ever had a READY task, one bit each, so that nobody looks into the other queues.
    used: U32,
    /// Tasks whose last block ended, for the scheduler threads.
    pub(super) ended: ReadyRing<Shared>,
    pub(super) clocks: Clocks,
    pub(super) sleepers: Sleepers<Shared>,
    pub(super) moments: Box<[Moment]>,
    pub(super) samples: Box<[Sample]>,
    /// Smallest clock of each executor's workers, written before it sleeps.
    pub(super) least: Box<[U64]>,
    /// What the orchestrator does; written by it, read by who finds everybody idle.
    pub(super) duty: U32,
    /// The retired count at which a blocked orchestrator wants to be woken.
    pub(super) wake_at: U64,
    /// Not 0 when the run is over.
    stop: U32,
    /// Tasks that ended badly, for the orchestrator to learn.
    pub(super) bad: Mutex<Vec<TaskId>>,
    /// How many ever were in it.
    pub(super) n_bad: U64,
    pub(super) failure: Mutex<Option<Failure>>,
    pub(super) faults: Faults,
    pub(super) epoch: Instant,
    /// The thread that tells how far the run is, if there is one.
    pub(super) watcher: OnceLock<Thread>,
}

/// Values of [`Core::duty`].
pub(super) mod duty {
    /// It submits.
    pub(crate) const WORKING: u32 = 0;
    /// Something is full.
    pub(crate) const BLOCKED: u32 = 1;
    /// The program is over.
    pub(crate) const DONE: u32 = 2;
}

/// Cycles of the task in a slot. Both are 0 for a new tenant: who completes a task leaves them so, and the orchestrator need not
/// touch memory that executors work on.
pub(super) struct Moment {
    /// Cycle at which its last producer ended, or its `submit_at`.
    pub(super) ready: U64,
    /// Cycle at which its last block ended. The last tenant's as long as the next one has not run.
    pub(super) end: U64,
}

/// Nanoseconds of the task in a slot, if it is one of those sampled.
pub(super) struct Sample {
    pub(super) submitted_ns: U64,
    pub(super) ready_ns: U64,
    pub(super) ended_ns: U64,
}

/// A kernel that did not come to a good end.
#[derive(Debug)]
pub(super) struct Failure {
    /// Where the task lives, and still does when the run ends.
    pub(super) slot: SlotRef,
    pub(super) task: TaskId,
    pub(super) name: Option<Symbol>,
    pub(super) kernel: Option<Symbol>,
    pub(super) message: String,
}

impl<'a, K: Kernels> Core<'a, K> {
    /// # Errors
    /// When there is not enough memory for the window.
    pub(super) fn new(
        machine: &'a Machine,
        kernels: &'a K,
        setup: Setup,
        faults: Faults,
    ) -> Result<Core<'a, K>, RunError> {
        Ok(Core::over(make_window(machine)?, machine, kernels, setup, faults))
    }

    /// With a window that others may share.
    pub(super) fn over(
        window: Window<Shared>,
        machine: &'a Machine,
        kernels: &'a K,
        setup: Setup,
        faults: Faults,
    ) -> Core<'a, K> {
        let n_slots = window.n_slots();
        let word = || U64::new(0);
        let moment = || Moment { ready: word(), end: word() };
        let sample = || Sample { submitted_ns: word(), ready_ns: word(), ended_ns: word() };
        Core {
            machine,
            kernels,
            setup,
            window,
            ready: std::array::from_fn(|_| ReadyRing::new(n_slots)),
            used: U32::new(0),
            ended: ReadyRing::new(n_slots),
            clocks: Clocks::new(&machine.workers),
            sleepers: Sleepers::new(1 + setup.schedulers + setup.executors),
            moments: (0..n_slots).map(|_| moment()).collect(),
            samples: (0..n_slots).map(|_| sample()).collect(),
            least: (0..setup.executors).map(|_| U64::new(0)).collect(),
            duty: U32::new(duty::WORKING),
            wake_at: U64::new(0),
            stop: U32::new(0),
            bad: Mutex::new(Vec::new()),
            n_bad: U64::new(0),
            failure: Mutex::new(None),
            faults,
            epoch: Instant::now(),
            watcher: OnceLock::new(),
        }
    }

    /// Nanoseconds since the run began.
    pub(super) fn nanoseconds(&self) -> u64 {
        nanoseconds_since(self.epoch)
    }

    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.stop.load(Acquire) != 0 // Ordering: pairs with the Release in `end`.
    }

    /// Ends the run for everybody.
    pub(super) fn end(&self) {
        self.stop.store(1, Release); // Ordering: pairs with the Acquire in `is_over`.
        // A thread that announces itself after this passes a fence and looks at `is_over` before it sleeps.
        let _ = self.sleepers.idle_after_work();
        self.sleepers.wake_all();
        if let Some(watcher) = self.watcher.get() {
            watcher.unpark();
        }
    }

    /// A kernel failed: the first failure is kept, the run ends.
    pub(super) fn fail(&self, failure: Failure) {
        self.failure.lock().expect("nobody panics with it").get_or_insert(failure);
        self.end();
    }

    /// Types to look for, one bit each.
    #[inline]
    pub(super) fn used(&self) -> u32 {
        self.used.load(Relaxed) // Ordering: set before the push that it announces.
    }

    /// Whether an executor would find something.
    pub(super) fn has_ready(&self) -> bool {
        self.ready.iter().any(|queue| !queue.is_empty())
    }

    /// Wakes the executor whose workers have the smallest clock, if one sleeps, after something was pushed; all that sleep if
    /// the rules say so.
    #[inline]
    pub(super) fn wake_executor(&self, stats: &mut Stats) {
        let idle = self.sleepers.idle_after_work() >> (1 + self.setup.schedulers);
        if idle != 0 {
            self.wake_one_of(idle, stats);
        }
    }

    #[cold]
    pub(super) fn wake_one_of(&self, mut idle: u64, stats: &mut Stats) {
        if self.faults.loses_wake_up() {
            return;
        }
        while idle != 0 {
            let of_bit = |bit: &usize| self.least[*bit].load(Relaxed); // Ordering: a hint for the choice.
            let bits = (0..self.setup.executors).filter(|bit| idle >> bit & 1 != 0);
            let Some(least) = bits.min_by_key(of_bit) else { return };
            if self.sleepers.wake(1 + self.setup.schedulers + least) {
                stats.wake_ups += 1;
                if self.machine.rules.wake == Wake::MinClock {
                    return;
                }
            }
            idle &= !(1 << least);
        }
    }

    /// Wakes a scheduler thread, if one sleeps, after a task was put into `ended`.
    #[inline]
    pub(super) fn wake_scheduler(&self, stats: &mut Stats) {
        let schedulers = (1 << self.setup.schedulers) - 1;
        let idle = self.sleepers.idle_after_work() >> 1 & schedulers;
        if idle != 0 && !self.faults.loses_wake_up() && self.sleepers.wake(1 + idle.trailing_zeros() as usize) {
            stats.wake_ups += 1;
        }
    }

    /// Retires what is consumed of a ring, and wakes an orchestrator that waits for it.
    pub(super) fn advance(&self, ring: u32, stats: &mut Stats) {
        self.window.advance(ring, |_, _| {});
        self.kernels.retired();
        // The fence at the end of `advance` pairs with the one of a blocked orchestrator that announces itself. Whether
        // it is woken early or only when all are idle is a matter of speed.
        // Ordering: Relaxed; written before the bit was set.
        if self.sleepers.idle_hint() & 1 << ORCHESTRATOR != 0
            && self.window.ring(ring).retired() >= self.wake_at.load(Relaxed)
            && self.duty.load(Relaxed) == duty::BLOCKED
            && self.sleepers.wake(ORCHESTRATOR)
        {
            stats.wake_ups += 1;
        }
    }

    /// Called by whoever finds that everybody is idle, itself included: hands out what a lost wake-up left behind, wakes a blocked
    /// orchestrator, or ends the run.
    pub(super) fn all_idle(&self, me: usize) {
        // Something may have been left behind by a wake-up that was lost on purpose; the finder takes it up itself.
        if self.has_ready() || !self.ended.is_empty() {
            let executor = 1 + self.setup.schedulers;
            let helper = if self.has_ready() { executor } else { 1 };
            if helper == me {
                self.sleepers.stay_up(me);
            } else {
                self.sleepers.wake(helper);
                self.sleepers.wait(me);
            }
            return;
        }
        // Ordering: Acquire; everybody's last act, the orchestrator's included, comes before the count fell to 0.
        if self.duty.load(Acquire) == duty::BLOCKED {
            self.sleepers.wake(ORCHESTRATOR);
            self.sleepers.wait(me);
        } else {
            self.sleepers.stay_up(me);
            self.end();
        }
    }
}

/// What one thread has at hand: its counters, and what the window told it while it changed something.
pub(super) struct Hands {
    pub(super) stats: Stats,
    /// A READY task to run next without a queue; executors only.
    pub(super) next: Option<SlotRef>,
    keeps_next: bool,
    /// READY tasks that are complete without running: NONE, and cancelled ones.
    joins: Vec<SlotRef>,
    pushed: bool,
    /// A ring whose oldest task it consumed and which it has not advanced yet, and after how many completions it will.
    owed: Option<(u32, u32)>,
}

impl Hands {
    pub(super) fn new<K>(core: &Core<'_, K>, keeps_next: bool) -> Hands {
        let n_workers = core.machine.workers.total() as usize;
        Hands { stats: Stats::new(n_workers), next: None, keeps_next, joins: Vec::new(), pushed: false, owed: None }
    }

    /// Completes a task whose last block ended, and everything that is complete with it.
    #[inline]
    pub(super) fn resolve<K: Kernels>(&mut self, core: &Core<'_, K>, slot: SlotRef) {
        let sampled = core.window.slot(slot).task().0.is_multiple_of(SAMPLED);
        // Ordering: Relaxed; the queue, or this thread itself, brought it here. Afterwards the slot may have a new tenant.
        let ended = sampled.then(|| core.samples[slot as usize].ended_ns.load(Relaxed));
        self.complete(core, slot);
        if let Some((_, left)) = &mut self.owed {
            *left -= 1;
            if *left == 0 {
                self.pay(core);
            }
        }
        if let Some(ended) = ended {
            self.stats.end_to_completed.record(core.nanoseconds().saturating_sub(ended));
        }
        self.settle(core);
    }

    /// Completes what needs no worker and wakes who is needed, after the window changed.
    #[inline]
    pub(super) fn settle<K: Kernels>(&mut self, core: &Core<'_, K>) {
        while let Some(slot) = self.joins.pop() {
            self.complete(core, slot);
        }
        if self.pushed {
            self.pushed = false;
            core.wake_executor(&mut self.stats);
        }
    }

    /// Whether a ring, whose oldest task this thread consumed, can wait for more to be retired at once: advancing it costs two
    /// fences, and takes a cache line away from the orchestrator that looks for room. The thread owes the advance then, and pays
    /// it after some completions or before it idles. An orchestrator that finds no room advances the ring itself, and nobody
    /// defers from then on: the orchestrator writes its duty, passes a fence and looks for consumed tasks, while this thread wrote
    /// CONSUMED, passed the fence in `is_oldest` and looks at the duty, so one of them sees the other.
    #[inline]
    fn defers<K: Kernels>(&mut self, core: &Core<'_, K>, ring: u32) -> bool {
        // Ordering: Relaxed behind the fence.
        if !self.keeps_next || core.setup.deferred == 0 || core.duty.load(Relaxed) != duty::WORKING {
            return false;
        }
        self.owed.get_or_insert((ring, core.setup.deferred)).0 == ring
    }

    /// Does what it deferred.
    #[inline]
    pub(super) fn pay<K: Kernels>(&mut self, core: &Core<'_, K>) {
        if let Some((ring, _)) = self.owed.take() {
            core.advance(ring, &mut self.stats);
        }
    }

    #[inline]
    fn complete<K: Kernels>(&mut self, core: &Core<'_, K>, slot_ref: SlotRef) {
        let job = &core.window.slot(slot_ref).job;
        let mut is_bad = false;
        if job.has(flag::FAULT | flag::CANCELLED) {
            is_bad = true;
            self.note_bad(core, slot_ref);
        } else {
            self.stats.ended.completed += 1;
        }
        core.kernels.completed(slot_ref);
        // Ordering: Relaxed; the count of blocks led here, and the next tenant comes after `complete`.
        let moment = &core.moments[slot_ref as usize];
        let end = moment.end.load(Relaxed);
        moment.ready.store(0, Relaxed);
        let mut told = Told { core, hands: self, end, is_bad };
        core.window.complete(slot_ref, &mut told);
    }

    #[cold]
    fn note_bad<K: Kernels>(&mut self, core: &Core<'_, K>, slot_ref: SlotRef) {
        let slot = core.window.slot(slot_ref);
        if slot.job.has(flag::CANCELLED) {
            self.stats.ended.cancelled += 1;
        } else {
            self.stats.ended.failed += 1;
        }
        slot.job.set(flag::BAD);
        core.bad.lock().expect("nobody panics with it").push(slot.task());
        // Ordering: Release; the orchestrator that finds the task dead also finds it in the list.
        core.n_bad.fetch_add(1, Release);
    }

    /// Does something to the window as the thread that has these hands.
    #[inline]
    pub(super) fn told<'h, 'c, 'a, K>(&'h mut self, core: &'c Core<'a, K>) -> Told<'h, 'c, 'a, K> {
        Told { core, hands: self, end: 0, is_bad: false }
    }
}

/// Follows up what a change of the window leads to.
pub(super) struct Told<'h, 'c, 'a, K> {
    core: &'c Core<'a, K>,
    hands: &'h mut Hands,
    /// When the completed task ended, in cycles.
    end: u64,
    is_bad: bool,
}

impl<K: Kernels> Outcomes for Told<'_, '_, '_, K> {
    #[inline]
    fn releasing(&mut self, _: SlotRef, consumer: SlotRef) {
        if self.end > 0 {
            // Ordering: Relaxed; the count that makes the consumer READY publishes it.
            self.core.moments[consumer as usize].ready.fetch_max(self.end, Relaxed);
        }
        if self.is_bad {
            self.core.window.slot(consumer).job.set(flag::CANCELLED | flag::BAD);
        }
    }

    #[inline]
    fn ready(&mut self, slot_ref: SlotRef) {
        let (core, slot) = (self.core, self.core.window.slot(slot_ref));
        let kind = slot.job.kind();
        if kind == TaskType::None || slot.job.has(flag::CANCELLED) {
            let moment = &core.moments[slot_ref as usize];
            moment.end.store(moment.ready.load(Relaxed), Relaxed); // Ordering: nobody else has the task now.
            self.hands.joins.push(slot_ref);
            return;
        }
        if slot.job.has(flag::MANY_BLOCKS) {
            core.moments[slot_ref as usize].end.store(0, Relaxed); // Ordering: nobody else has the task now.
        }
        if slot.task().0.is_multiple_of(SAMPLED) {
            let (now, sample) = (core.nanoseconds(), &core.samples[slot_ref as usize]);
            let since = now.saturating_sub(sample.submitted_ns.load(Relaxed)); // Ordering: published with the task.
            self.hands.stats.submit_to_ready.record(since);
            sample.ready_ns.store(now, Relaxed); // Ordering: the queue publishes it.
        }
        let bit = 1 << kind as u32;
        if core.used() & bit == 0 {
            core.used.fetch_or(bit, AcqRel); // Ordering: before the push, which publishes it.
        }
        if self.hands.keeps_next && self.hands.next.is_none() {
            self.hands.next = Some(slot_ref);
            self.hands.stats.handed_on += 1;
            return;
        }
        core.ready[kind as usize]
            .push(slot_ref, &mut self.hands.stats.contention)
            .expect("the queue has room for every slot of the window");
        self.hands.pushed = true;
    }

    #[inline]
    fn unblocked(&mut self, _: SlotRef) {}

    #[inline]
    fn consumed(&mut self, slot: SlotRef) {
        self.hands.stats.ended.consumed += 1;
        let core = self.core;
        if !core.window.is_oldest(slot) {
            return;
        }
        let ring = core.window.ring_of(slot);
        if !self.hands.defers(core, ring) {
            core.advance(ring, &mut self.hands.stats);
        }
    }
}

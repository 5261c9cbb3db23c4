//! Executors run blocks; schedulers complete tasks. Both take from a queue, and sleep when it stays empty.

use super::clocks::{Cycles, Share, Span};
use super::core::{Core, Failure, Hands};
use super::sleep::Slept;
use super::stats::{SAMPLED, Stats};
use super::{Call, KernelError, Kernels, nanoseconds_since};
use crate::engine::BlockRow;
use crate::id::{TaskType, WorkerId};
use crate::window::{SlotRef, flag, symbol};
use crossbeam_utils::Backoff;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::time::{Duration, Instant};

/// Ended tasks that are worth waking a scheduler thread for.
const BACKLOG: u64 = 4;

/// A thread that gives its CPU away again and again stops looking after this time, however few rounds it made.
const LONGEST_SPIN: Duration = Duration::from_millis(1);

/// Most blocks in one turn, so that the end of the run is never far away.
const TURN: u32 = 1024;

/// A scheduler thread: completes tasks whose last block ended, until the run is over.
pub(super) fn schedule<K: Kernels>(core: &Core<'_, K>, me: usize) -> Stats {
    core.sleepers.register(me);
    let mut hands = Hands::new(core, false);
    while !core.is_over() {
        match core.ended.pop(&mut hands.stats.contention) {
            Some(slot) => {
                core.faults.pause_scheduler();
                hands.resolve(core, slot);
            }
            None => idle(core, me, &mut hands.stats, || !core.ended.is_empty()),
        }
    }
    hands.stats
}

/// Waits for work: first on its feet, then asleep. One sleep costs as much as hundreds of tasks.
pub(super) fn idle<K: Kernels>(core: &Core<'_, K>, me: usize, stats: &mut Stats, has_work: impl Fn() -> bool) {
    let has_work = || has_work() || core.is_over();
    if spin_until(core.setup.spin, &has_work) {
        return;
    }
    core.sleepers.announce(me);
    if has_work() {
        core.sleepers.withdraw(me);
        return;
    }
    stats.parks += 1;
    if core.sleepers.sleep_telling(me, || core.kernels.all_but_one_sleep()) == Slept::Last {
        core.all_idle(me);
    }
}

/// Looks again and again for a while; true as soon as there is something.
pub(super) fn spin_until(rounds: u32, found: &impl Fn() -> bool) -> bool {
    let backoff = Backoff::new();
    let mut yielding_since = None;
    for _ in 0..rounds {
        if found() {
            return true;
        }
        // Where others want the CPU, every time it is given away may take them a while.
        if backoff.is_completed() && yielding_since.get_or_insert_with(Instant::now).elapsed() > LONGEST_SPIN {
            return false;
        }
        // Spins with growing pauses at first, then lets other threads of the host run.
        backoff.snooze();
    }
    false
}

/// A thread that runs blocks for the machine's workers.
pub(super) struct Executor<'c, 'a, K> {
    core: &'c Core<'a, K>,
    me: usize,
    hands: Hands,
    share: Share,
}

impl<'c, 'a, K: Kernels> Executor<'c, 'a, K> {
    /// The `nth` executor.
    pub(super) fn new(core: &'c Core<'a, K>, nth: usize) -> Self {
        let share = core.clocks.share(nth, core.setup.executors);
        // A consumer of what this thread completes is run next, without a queue.
        let hands = Hands::new(core, true);
        Executor { core, me: 1 + core.setup.schedulers + nth, hands, share }
    }

    /// Runs blocks until the run is over.
    pub(super) fn run(mut self) -> Stats {
        let core = self.core;
        core.sleepers.register(self.me);
        while !core.is_over() {
            if let Some(slot) = self.take() {
                self.execute(slot);
            } else if let Some(slot) = core.ended.pop(&mut self.hands.stats.contention) {
                // With nothing to run it helps the schedulers, rather than wait for one of them to get a CPU.
                self.hands.resolve(core, slot);
            } else {
                self.hands.pay(core);
                // Ordering: Relaxed; a hint for the choice of whom to wake.
                core.least[self.me - 1 - core.setup.schedulers].store(self.share.clock(), Relaxed);
                idle(core, self.me, &mut self.hands.stats, || core.has_ready() || !core.ended.is_empty());
            }
        }
        self.hands.stats
    }

    /// What it was handed, or the head of the first queue that has one: MIX, CUBE, VECTOR, `AI_CPU`, ACCELERATOR.
    #[inline]
    fn take(&mut self) -> Option<SlotRef> {
        if let Some(slot) = self.hands.next.take() {
            return Some(slot);
        }
        let (core, mut used) = (self.core, self.core.used());
        while used != 0 {
            let queue = &core.ready[used.trailing_zeros() as usize];
            if let Some(slot) = queue.pop(&mut self.hands.stats.contention) {
                // Whoever takes a task while more are queued wakes the next.
                let idle = core.sleepers.idle_hint() >> (1 + core.setup.schedulers);
                if idle != 0 && !queue.is_empty() {
                    core.wake_one_of(idle, &mut self.hands.stats);
                }
                return Some(slot);
            }
            used &= used - 1;
        }
        None
    }

    /// Runs as many blocks of a READY task as are this thread's turn.
    #[inline]
    fn execute(&mut self, slot_ref: SlotRef) {
        let core = self.core;
        let job = &core.window.slot(slot_ref).job;
        core.window.slot(slot_ref).start();
        let blocks = job.blocks();
        let turn = if blocks == 1 { 0..1 } else { self.turn(slot_ref, blocks) };
        let done = turn.len() as u32;
        if self.run_blocks(slot_ref, turn).is_err() {
            return;
        }
        // Ordering: AcqRel, every decrement: the last one sees what the others did.
        if done == blocks || job.to_finish.fetch_sub(done, AcqRel) == done {
            self.finish(slot_ref);
        }
    }

    /// The blocks to run now; the rest goes back into the queue for others. Blocks that start together stay together.
    fn turn(&mut self, slot_ref: SlotRef, blocks: u32) -> std::ops::Range<u32> {
        let core = self.core;
        let job = &core.window.slot(slot_ref).job;
        // Ordering: Relaxed; the task is in the queue at most once, so one thread at a time is here.
        let left = job.to_place.load(Relaxed);
        let share = left.div_ceil(2 * core.setup.executors as u32).min(TURN);
        let count = if job.has(flag::SYNC_START) { left } else { share };
        job.to_place.store(left - count, Relaxed);
        if left > count {
            core.ready[job.kind() as usize]
                .push(slot_ref, &mut self.hands.stats.contention)
                .expect("the queue has room for every slot of the window");
            core.wake_executor(&mut self.hands.stats);
        }
        blocks - left..blocks - left + count
    }

    #[inline]
    fn run_blocks(&mut self, slot_ref: SlotRef, turn: std::ops::Range<u32>) -> Result<(), KernelError> {
        let core = self.core;
        let job = &core.window.slot(slot_ref).job;
        // Ordering: Relaxed; published with the task.
        let ready = core.moments[slot_ref as usize].ready.load(Relaxed);
        let (cube, vector) = (job.cycles.load(Relaxed), job.vector_cycles());
        let kind = job.kind();
        let together = job.has(flag::SYNC_START);
        if kind == TaskType::Mix {
            let cycles = Cycles { cube, vector };
            let (rounds, each) = if together { (1, turn.len()) } else { (turn.len(), 1) };
            let mut index = turn.start;
            for _ in 0..rounds {
                for crew in core.clocks.take_mix(job.units(), each as u32, ready, cycles) {
                    self.run_block(slot_ref, index, &crew)?;
                    index += 1;
                }
            }
            return Ok(());
        }
        if together && turn.len() > 1 {
            let spans = core.clocks.take_together(kind, turn.len() as u32, ready, cube);
            return turn.zip(spans).try_for_each(|(index, span)| self.run_block(slot_ref, index, &[span]));
        }
        for index in turn {
            let span = core.clocks.take(&mut self.share, kind, ready, cube);
            self.run_block(slot_ref, index, &[span])?;
        }
        Ok(())
    }

    /// Runs one block, which takes these cycles of these workers.
    #[inline]
    fn run_block(&mut self, slot_ref: SlotRef, index: u32, spans: &[Span]) -> Result<(), KernelError> {
        let core = self.core;
        let slot = core.window.slot(slot_ref);
        let (task, kernel) = (slot.task(), slot.job.kernel.load(Relaxed)); // Ordering: published with the task.
        let cycles = spans.iter().map(|span| span.end - span.start).max().unwrap_or(0);
        let call = Call { task, slot: slot_ref, block: index, kernel: symbol(kernel), cycles };
        let sampled = (task.0.is_multiple_of(SAMPLED) && index == 0).then(|| self.started(slot_ref));
        core.faults.slow_down(spans[0].worker);
        let ended = catch_unwind(AssertUnwindSafe(|| {
            if core.faults.has_stopped(spans[0].worker) {
                return Err(KernelError(format!("worker {} stopped", spans[0].worker)));
            }
            core.kernels.run(&call)
        }));
        if let Some(start) = sampled {
            self.hands.stats.start_to_end.record(nanoseconds_since(start));
        }
        let result = ended.unwrap_or_else(|panic| Err(KernelError(panic_message(panic.as_ref()))));
        if let Err(KernelError(message)) = result {
            let name = symbol(slot.job.name());
            core.fail(Failure { slot: slot_ref, task, name, kernel: call.kernel, message: message.clone() });
            return Err(KernelError(message));
        }
        self.book(slot_ref, index, kernel, spans);
        Ok(())
    }

    #[inline]
    fn book(&mut self, slot_ref: SlotRef, index: u32, kernel: u32, spans: &[Span]) {
        let (core, stats) = (self.core, &mut self.hands.stats);
        let mut last = 0;
        for span in spans {
            stats.ran(span.worker, span.end - span.start, span.end);
            if core.setup.by_kernel {
                stats.ran_kernel(kernel, span.end - span.start);
            }
            last = last.max(span.end);
        }
        stats.blocks += 1;
        let (slot, moment) = (core.window.slot(slot_ref), &core.moments[slot_ref as usize]);
        // Ordering: Relaxed; the count of blocks publishes it.
        if slot.job.blocks() == 1 {
            moment.end.store(last, Relaxed);
        } else {
            moment.end.fetch_max(last, Relaxed);
        }
        if core.setup.rows {
            let row = |span: &Span| BlockRow {
                task: slot.task(),
                block: index,
                worker: WorkerId(span.worker),
                submit: 0,
                ready: moment.ready.load(Relaxed), // Ordering: published with the task.
                start: span.start,
                end: span.end,
                name: symbol(slot.job.name()),
                kernel: symbol(kernel),
                kind: slot.job.kind(),
            };
            stats.rows.extend(spans.iter().map(row));
        }
    }

    /// The first block of a sampled task starts.
    #[cold]
    fn started(&mut self, slot: SlotRef) -> Instant {
        let core = self.core;
        let ready = core.samples[slot as usize].ready_ns.load(Relaxed); // Ordering: published with the task.
        self.hands.stats.ready_to_start.record(core.nanoseconds().saturating_sub(ready));
        Instant::now()
    }

    /// The last block of a task ended.
    #[inline]
    fn finish(&mut self, slot: SlotRef) {
        let core = self.core;
        core.faults.delay_completion();
        if core.window.slot(slot).task().0.is_multiple_of(SAMPLED) {
            // Ordering: Relaxed; the queue publishes it.
            core.samples[slot as usize].ended_ns.store(core.nanoseconds(), Relaxed);
        }
        if core.setup.schedulers == 0 {
            self.hands.resolve(core, slot);
        } else {
            core.ended
                .push(slot, &mut self.hands.stats.contention)
                .expect("the queue has room for every slot of the window");
            // Fewer are no reason to wake anybody: before it sleeps, this thread completes them itself.
            if core.ended.len() >= BACKLOG {
                core.wake_scheduler(&mut self.hands.stats);
            }
        }
    }
}

pub(super) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panicked: {}", text.unwrap_or_else(|| "no message".into()))
}

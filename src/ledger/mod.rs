//! The ledger: every cycle of every worker in exactly one account.
//!
//! What an idle worker waits for depends on its type only, so idle time is booked once per type, in running sums, when time
//! moves on. A worker takes the difference between the sums when it is given work again and those when it fell idle, which are noted
//! in its book before what idle workers wait for changes.
//!
//! Callers say whether the run `has_costs`, that is, whether jobs of the scheduler or pickups take time, so that something can be seen
//! between two steps of a task's life. Most of them know it when they are compiled.

mod class;
mod crowd;
mod sums;

pub use class::Class;

use crate::fifo::Fifo;
use crate::id::{TaskType, WorkerType};
use crate::report::Accounts;
use crate::window::Resource;
use class::{ALL_CLASSES, MIX_CLASSES, N_CLASSES, classes_of};
use crowd::{Crowd, crowd_of_several};
use sums::{DEPENDENCY, DRAINED, FULL, HELD, ORCHESTRATOR, OVERHEAD, Running, Sums, add, blame_scheduler};

/// What the orchestrator does, as far as an idle worker is concerned: the account of a worker for which there is no task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Supply(u8);

impl Supply {
    /// It works or waits for its time.
    pub const WORKING: Supply = Supply(ORCHESTRATOR as u8);
    /// Its program is over.
    pub const DONE: Supply = Supply(DRAINED as u8);

    /// Something is full.
    #[inline]
    pub const fn blocked(on: Resource) -> Supply {
        Supply(FULL as u8 + on as u8)
    }
}

/// One worker's book. What is written for every block where nothing takes time but kernels stands on the first cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Book {
    kind: WorkerType,
    is_to_note: bool,
    busy: u64,
    blocks: u64,
    /// When its part of its last block ended.
    ended_at: u64,
    idle: Sums,
    /// The sums of its type when that ended, unless they are still to be noted.
    ended: Sums,
    /// Cycles in which tasks of its type were held back, up to the end and to the completion of its last block.
    held: (u64, u64),
}

/// The book of all cycles.
pub struct Ledger {
    now: u64,
    makespan: u64,
    crowds: [Crowd; N_CLASSES],
    /// The most READY tasks at a time, by task type.
    most_ready: [u64; N_CLASSES],
    /// Whether workers of some type may run tasks of several classes: a MIX task was met, or there are ANY workers.
    is_mixed: bool,
    /// When blocks being picked up start, in that order. Nobody else needs to know.
    pickups: Fifo<(u64, Class)>,
    supply: Supply,
    /// Types of which there are workers: the bit behind the one with their number.
    present: u8,
    /// Classes of which anything changed since time moved on, a bit each.
    changed: u8,
    /// Idle cycles of a free worker of each type.
    sums: [Running; 5],
    /// The same as it was at the makespan, for types whose cause has changed since.
    at_makespan: [Running; 5],
    /// Which types that are, a bit each.
    tails: u8,
    books: Vec<Book>,
    /// Workers of each type whose books do not tell yet what the sums were when their last part ended: all of them ended under the
    /// present cause.
    to_note: [Vec<u32>; 5],
}

impl Ledger {
    /// All workers free at cycle 0.
    #[must_use]
    pub fn new(workers: impl Iterator<Item = WorkerType>) -> Ledger {
        let kinds: Vec<_> = workers.collect();
        let present = kinds.iter().fold(0, |present, &kind| present | 2 << kind as u8);
        Ledger {
            now: 0,
            makespan: 0,
            crowds: Default::default(),
            most_ready: [0; N_CLASSES],
            is_mixed: kinds.contains(&WorkerType::Any),
            pickups: Fifo::default(),
            supply: Supply::WORKING,
            sums: Default::default(),
            at_makespan: Default::default(),
            tails: 0,
            books: kinds.into_iter().map(Book::new).collect(),
            to_note: Default::default(),
            present,
            changed: ALL_CLASSES,
        }
    }

    /// Counts tasks of a class. What `count` returns tells whether some count has become 0 or is no longer 0, so that idle workers may
    /// wait for something else.
    #[inline(always)]
    fn count(&mut self, class: Class, count: impl FnOnce(&mut Crowd) -> bool) {
        let has_changed = count(&mut self.crowds[class.index()]);
        self.changed |= u8::from(has_changed) << class.index();
    }

    /// End of the last block so far.
    pub fn makespan(&self) -> u64 {
        self.makespan
    }

    /// Tells what the orchestrator does from now on.
    #[inline]
    pub fn supply(&mut self, supply: Supply) {
        if supply != self.supply {
            self.supply = supply;
            self.changed = ALL_CLASSES;
        }
    }

    /// A MIX task is about to be submitted.
    #[inline]
    pub fn met_mix(&mut self) {
        self.is_mixed = true;
    }

    /// A task was published; `admitting` if it waits for nothing but its admission and anything takes time.
    #[inline]
    pub fn submitted(&mut self, class: Class, admitting: bool) {
        self.count(class, |crowd| {
            crowd.pending += 1;
            crowd.admitting += u64::from(admitting);
            crowd.pending == 1 || admitting && crowd.admitting == 1
        });
    }

    /// A task waits for nothing but its admission any more. Only called in runs that have costs.
    #[inline]
    pub fn unblocked(&mut self, class: Class) {
        self.count(class, |crowd| {
            crowd.admitting += 1;
            crowd.admitting == 1
        });
    }

    /// An admission took effect on a task that waited for nothing else. Only called in runs that have costs.
    #[inline]
    pub fn admitted(&mut self, class: Class) {
        self.count(class, |crowd| {
            crowd.admitting -= 1;
            crowd.admitting == 0
        });
    }

    /// A task became READY.
    #[inline]
    pub fn ready(&mut self, class: Class) {
        self.count(class, |crowd| {
            crowd.pending -= 1;
            crowd.ready += 1;
            crowd.pending == 0 || crowd.ready == 1
        });
    }

    /// A task is to be run once more.
    pub fn again(&mut self, class: Class) {
        self.count(class, |crowd| {
            crowd.ready += 1;
            crowd.ready == 1
        });
        self.waits(class);
    }

    /// A READY task waits for its blocks to be placed.
    #[inline]
    pub fn waits(&mut self, class: Class) {
        if class.is_mix() {
            let ready: u64 = MIX_CLASSES.iter().map(|&class| self.crowds[class].ready).sum();
            let most = &mut self.most_ready[TaskType::Mix as usize];
            *most = ready.max(*most);
        } else {
            self.one_waits(class);
        }
    }

    /// The same for a task that is not of type MIX.
    #[inline]
    pub fn one_waits(&mut self, class: Class) {
        let ready = self.crowds[class.index()].ready;
        let most = &mut self.most_ready[class.index()];
        if ready > *most {
            *most = ready;
        }
    }

    /// The most tasks that were READY at a time, with blocks not placed, by task type; those that take no worker aside.
    pub fn most_ready(&self) -> &[u64] {
        &self.most_ready[..TaskType::None as usize]
    }

    /// The last block of a READY task was placed, or it needs none.
    #[inline]
    pub fn all_placed(&mut self, class: Class) {
        self.count(class, |crowd| {
            crowd.ready -= 1;
            crowd.ready == 0
        });
    }

    /// A worker was given to a block.
    #[inline(always)]
    pub fn placed(&mut self, worker: u32, has_costs: bool) {
        let book = &mut self.books[worker as usize];
        let sums = &self.sums[book.kind as usize];
        if self.now > book.ended_at {
            sums.book(&mut book.idle, book.ended_at, &book.ended, self.now);
            if has_costs {
                blame_scheduler(&mut book.idle, book.held.1 - book.held.0);
            }
        }
    }

    /// A block was placed. Only called in runs that have costs.
    #[inline]
    pub fn block_placed(&mut self, class: Class) {
        self.count(class, |crowd| {
            crowd.starting += 1;
            crowd.starting == 1
        });
    }

    /// A placed block starts at a cycle that is not earlier than those of the blocks before. Only called in runs that have costs.
    #[inline]
    pub fn block_starts(&mut self, class: Class, start: u64) {
        if start > self.now {
            self.pickups.push((start, class));
        } else {
            self.picked_up(class);
        }
    }

    /// A block that was placed starts.
    #[inline]
    fn picked_up(&mut self, class: Class) {
        self.count(class, |crowd| {
            crowd.starting -= 1;
            crowd.starting == 0
        });
    }

    /// A worker placed at `placed` runs from `start` to `end`.
    #[inline]
    pub fn runs(&mut self, worker: u32, placed: u64, start: u64, end: u64) {
        let book = &mut self.books[worker as usize];
        book.idle[OVERHEAD] += start - placed;
        book.busy += end - start;
        book.blocks += 1;
        if end > self.makespan {
            self.makespan = end;
            self.tails = 0;
        }
    }

    /// A worker's part of a block ended, perhaps before the block does.
    #[inline(always)]
    pub fn part_ended(&mut self, worker: u32, has_costs: bool) {
        let book = &mut self.books[worker as usize];
        book.ended_at = self.now;
        if has_costs {
            // Where much takes time, causes change all the time.
            self.sums[book.kind as usize].note(&mut book.ended, self.now);
        } else if !book.is_to_note {
            book.is_to_note = true;
            self.to_note[book.kind as usize].push(worker);
        }
    }

    /// The block of a worker ended, and with it or before it the worker's own part. Only called in runs that have costs.
    #[inline(always)]
    pub fn block_ended(&mut self, worker: u32) {
        let book = &mut self.books[worker as usize];
        book.held.0 = self.sums[book.kind as usize].held(self.now);
    }

    /// The worker is free again. Only called in runs that have costs.
    #[inline(always)]
    pub fn freed(&mut self, worker: u32) {
        let book = &mut self.books[worker as usize];
        book.held.1 = self.sums[book.kind as usize].held(self.now);
    }

    /// Time moves on; nothing but the start of blocks being picked up happens until then.
    #[inline(always)]
    pub fn advance(&mut self, to: u64, has_costs: bool) {
        while has_costs
            && let Some(&(start, class)) = self.pickups.front()
            && start <= to
        {
            self.pickups.drop_front();
            self.pass(start, true);
            self.picked_up(class);
        }
        self.pass(to, has_costs);
    }

    /// Time moves on, and nothing happens until then.
    #[inline(always)]
    fn pass(&mut self, to: u64, has_costs: bool) {
        if self.changed != 0 {
            self.turn(has_costs);
        }
        self.now = to;
    }

    /// What idle workers wait for has changed, perhaps.
    #[inline(always)]
    fn turn(&mut self, has_costs: bool) {
        let changed = std::mem::take(&mut self.changed);
        if self.is_mixed {
            return self.turn_mixed(changed, has_costs);
        }
        // Task types are MIX and then the types of workers in their order; workers of a type run one class.
        let mut kinds = changed & self.present;
        while kinds != 0 {
            let class = kinds.trailing_zeros() as usize;
            kinds &= kinds - 1;
            let cause = self.cause(&self.crowds[class], has_costs);
            if cause != self.sums[class - 1].cause {
                self.turn_to(class - 1, cause, has_costs);
            }
        }
    }

    /// The same where workers of a type may run several classes.
    #[inline(never)]
    fn turn_mixed(&mut self, changed: u8, has_costs: bool) {
        for kind in WorkerType::ALL {
            let classes = classes_of(kind);
            if changed & classes != 0 && self.present >> (kind as u8 + 1) & 1 == 1 {
                let cause = self.cause(&crowd_of_several(&self.crowds, classes), has_costs);
                if cause != self.sums[kind as usize].cause {
                    self.turn_to(kind as usize, cause, has_costs);
                }
            }
        }
    }

    /// What a free worker waits for that can run these tasks.
    #[inline(always)]
    fn cause(&self, crowd: &Crowd, has_costs: bool) -> usize {
        let nothing = usize::from(self.supply.0);
        if has_costs { crowd.costly_cause(nothing) } else { crowd.cause(nothing) }
    }

    /// From now on idle workers of this type wait for something else.
    #[inline]
    fn turn_to(&mut self, kind: usize, cause: usize, has_costs: bool) {
        if !has_costs {
            self.note_ends(kind);
        }
        if self.now > self.makespan && self.tails >> kind & 1 == 0 {
            // Whatever follows, the accounts end before it unless a later block moves the makespan.
            self.at_makespan[kind] = self.sums[kind];
            self.tails |= 1 << kind;
        }
        self.sums[kind].turn(cause, self.now);
    }

    /// Writes down the sums of a type at the last ends of its workers, before they change otherwise than by the present cause.
    fn note_ends(&mut self, kind: usize) {
        let sums = &self.sums[kind];
        for worker in self.to_note[kind].drain(..) {
            let book = &mut self.books[worker as usize];
            book.is_to_note = false;
            sums.note(&mut book.ended, book.ended_at);
        }
    }

    /// The accounts of every worker up to the makespan, with its number of blocks.
    #[must_use]
    pub fn close(&mut self) -> Vec<(Accounts, u64)> {
        (0..self.sums.len()).for_each(|kind| self.note_ends(kind));
        let close = |book: &Book| {
            let has_tail = self.tails >> book.kind as u8 & 1 == 1;
            let sums = if has_tail { &self.at_makespan } else { &self.sums };
            (book.close(&sums[book.kind as usize], self.makespan), book.blocks)
        };
        self.books.iter().map(close).collect()
    }
}

impl Book {
    fn new(kind: WorkerType) -> Book {
        let sums = Sums::default();
        Book { kind, busy: 0, blocks: 0, idle: sums, ended_at: 0, ended: sums, is_to_note: false, held: (0, 0) }
    }

    /// Books the idle time since the last block, up to the makespan.
    fn close(&self, sums: &Running, makespan: u64) -> Accounts {
        let (mut idle, mut last) = (self.idle, Sums::default());
        sums.note(&mut last, makespan);
        // Sums only grow, so the smaller of two is the one at the earlier moment, and none is later than the makespan.
        let ended = std::array::from_fn(|account| self.ended[account].min(last[account]));
        add(&mut idle, &ended, &last);
        blame_scheduler(&mut idle, self.held.1.min(last[HELD]) - self.held.0.min(last[HELD]));
        Accounts {
            busy: self.busy,
            overhead: idle[OVERHEAD],
            held: idle[HELD],
            dependency: idle[DEPENDENCY],
            window: idle[FULL],
            heap: idle[FULL + 1],
            deps: idle[FULL + 2],
            tensors: idle[FULL + 3],
            orchestrator: idle[ORCHESTRATOR],
            drained: idle[DRAINED],
        }
    }
}

//! `ray`: tasks fire when they are due and run as far as the tokens of their source allow.
//!
//! ```text
//! READY ─▶ heap (when, order) ─fire▶ token of the source ─▶ token of all ─▶ line per type ─▶ free worker
//!                              └ unknown source: dropped      held until the task has ended
//! ```

mod config;
pub mod dispatcher;
mod heap;
mod record;
mod registry;
mod task;
mod tokens;

pub use config::{Backoff, ConcurrentCount, Config, Retry, SourceConfig};
pub use heap::{Entry, Heap};
pub use registry::{Consumer, Registry, Taken};
pub use task::{Task, TaskError, load_pending, save_pending};
pub use tokens::{DEFAULT_SOURCE, Semaphore};

use super::{AfterEnd, Dropped, End, Halt, Placement, Policy, Ready, Requests, Stage, Submission};
use crate::config::Machine;
use crate::engine::RunError;
use crate::fifo::Fifo;
use crate::id::{Symbol, TaskId, TaskType};
use crate::window::SlotRef;
use crate::workload::{Control, Operation, ScheduleAt, Submit, Symbols, Workload};
use record::Record;
use serde_json::Value;
use tokens::Sources;

/// The rule of `RayScheduler`.
pub struct Ray<'a> {
    clock: Clock<'a>,
    retry: Retry,
    stop_timeout: u64,
    fire_batch: u64,
    heap: Heap<SlotRef>,
    sources: Sources<SlotRef>,
    global: Option<Semaphore<SlotRef>>,
    /// Tasks with their tokens, by type, in order.
    lines: [Fifo<SlotRef>; 5],
    /// Bit k is set when line k has a task.
    filled: u32,
    /// By slot.
    tickets: Vec<Ticket>,
    /// Tasks fired, not all of whose blocks are placed.
    waiting: u64,
    /// Tasks all of whose blocks are placed and that have not ended.
    running: u64,
    state: State,
    /// Names of the tasks so far, for the report.
    symbols: Symbols,
    workload: String,
    requests: Requests,
    record: Record,
}

/// What the policy knows of the task in a slot.
#[derive(Clone, Default)]
struct Ticket {
    task: TaskId,
    name: Option<Symbol>,
    /// Its line.
    line: usize,
    source: u32,
    when: u64,
    /// When it was put into the heap.
    added: u64,
    /// How often it ran.
    attempts: u32,
    progress: Progress,
    /// What only some tasks have.
    extra: Option<Box<Extra>>,
}

/// How far a task is.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Progress {
    /// Not fired, or ended.
    #[default]
    Resting,
    /// Waits for a token or a worker.
    Fired,
    Running,
    /// Runs, but its end does not count any more.
    Cut,
}

/// Fields that most tasks do not give.
#[derive(Clone)]
struct Extra {
    uuid: Option<String>,
    args: Option<Value>,
    schedule_at: Option<ScheduleAt>,
}

/// Whether tasks are fired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Running,
    /// Nothing is fired; what still runs at the deadline is given up.
    Stopped {
        deadline: Option<u64>,
    },
}

/// From times to cycles.
struct Clock<'a> {
    /// Microseconds since 1970 at cycle 0. If it is not configured, it is the smallest time of the program, which is read for that
    /// when its first time is met.
    epoch: Option<i64>,
    workload: &'a dyn Workload,
    cycles_per_micro: u64,
}

impl Clock<'_> {
    /// The cycle of a time of the program; what lies before the epoch is due at once.
    fn cycle(&mut self, micros: i64) -> u64 {
        let epoch = *self.epoch.get_or_insert_with(|| earliest(self.workload).unwrap_or(micros));
        u64::try_from(micros.saturating_sub(epoch)).unwrap_or(0).saturating_mul(self.cycles_per_micro)
    }
}

impl<'a> Ray<'a> {
    /// The policy for one program on one machine.
    ///
    /// # Errors
    /// When the configuration is wrong.
    pub fn new(config: &Config, workload: &'a dyn Workload, machine: &Machine) -> Result<Ray<'a>, RunError> {
        Ok(Ray {
            clock: Clock { epoch: config.epoch_micros()?, workload, cycles_per_micro: machine.clock_mhz },
            retry: config.retry,
            stop_timeout: config.stop_timeout,
            fire_batch: if config.fire_batch == 0 { u64::MAX } else { config.fire_batch },
            heap: Heap::default(),
            sources: Sources::new(config, machine.workers.total()),
            global: (config.global_concurrency > 0).then(|| Semaphore::new(config.global_concurrency)),
            lines: Default::default(),
            filled: 0,
            tickets: Vec::new(),
            waiting: 0,
            running: 0,
            state: State::Running,
            symbols: Symbols::default(),
            workload: workload.name(),
            requests: Requests { notes: config.warnings(), ..Requests::default() },
            record: Record::new(),
        })
    }

    /// The task in a slot as its source made it.
    fn task(&self, slot: SlotRef) -> Task {
        let ticket = &self.tickets[slot as usize];
        let extra = ticket.extra.as_deref();
        let uuid = extra.and_then(|extra| extra.uuid.clone());
        let args = extra.and_then(|extra| extra.args.clone());
        Task {
            uuid: uuid.unwrap_or_else(|| format!("{}-{}", self.workload, ticket.task)),
            args: args.unwrap_or_else(|| Value::Object(serde_json::Map::new())),
            source: self.sources.source(ticket.source).name.clone(),
            schedule_at: extra.and_then(|extra| extra.schedule_at).unwrap_or(ScheduleAt::Cycle(ticket.when)),
        }
    }

    /// A task waits for its time.
    fn add(&mut self, slot: SlotRef, when: u64, now: u64) {
        self.tickets[slot as usize].added = now;
        self.heap.push(when, slot);
        self.record.heap_high = self.record.heap_high.max(self.heap.len());
    }

    /// A due task is dropped, gets a token, or waits for one.
    fn fire(&mut self, slot: SlotRef, when: u64, now: u64) {
        let ticket = &mut self.tickets[slot as usize];
        self.record.fired(now, (ticket.task, ticket.name), now - when.max(ticket.added));
        let source = self.sources.source_mut(ticket.source);
        let Some(tokens) = source.tokens else {
            let line = format!("[drop] Unknown task source: {} {}", source.name.clone(), self.task(slot).to_dict());
            self.record.log(now, &line);
            self.requests.cancel.push((slot, line.clone()));
            self.requests.notes.push(line);
            return;
        };
        ticket.progress = Progress::Fired;
        self.waiting += 1;
        self.record.waiting_high = self.record.waiting_high.max(self.waiting);
        let semaphore = source.semaphore.get_or_insert_with(|| Semaphore::new(tokens));
        if let Some(slot) = semaphore.acquire(slot) {
            self.join(slot);
        }
    }

    /// A task with a token of its source gets one of all, if these are counted, and then waits for a worker.
    fn join(&mut self, slot: SlotRef) {
        let admitted = match &mut self.global {
            Some(global) => global.acquire(slot),
            None => Some(slot),
        };
        if let Some(slot) = admitted {
            self.line_up(slot);
        }
    }

    fn line_up(&mut self, slot: SlotRef) {
        let number = self.tickets[slot as usize].line;
        self.lines[number].push(slot);
        self.filled |= 1 << number;
    }

    /// A task gives its tokens back: the first that waits for one of its source goes on, then the first of all.
    fn release(&mut self, source: u32) {
        let next = self.sources.source_mut(source).semaphore.as_mut().and_then(Semaphore::release);
        if let Some(slot) = next {
            self.join(slot);
        }
        if let Some(slot) = self.global.as_mut().and_then(Semaphore::release) {
            self.line_up(slot);
        }
    }

    /// A task failed; gives how long to wait before it is run once more.
    fn fail(&mut self, slot: SlotRef, now: u64) -> Option<u64> {
        let task = self.task(slot);
        let ticket = &mut self.tickets[slot as usize];
        ticket.attempts += 1;
        let (attempts, wait) = (ticket.attempts, self.retry.wait_after(ticket.attempts));
        let then = wait.map_or_else(String::new, |wait| format!(", again in {wait}"));
        let line = format!("[fail] task {} from {}: failed in run {attempts}{then}", task.uuid, task.source);
        self.record.log(now, &line);
        self.requests.notes.push(line);
        if wait.is_none() && self.retry.max_attempts > 0 {
            self.record.dead_letters.push((now, attempts, task.to_dict()));
        }
        wait
    }

    fn stop(&mut self, now: u64) {
        if self.state == State::Running {
            let deadline = (self.stop_timeout > 0).then(|| now.saturating_add(self.stop_timeout));
            self.state = State::Stopped { deadline };
            self.record.log(now, "Scheduler stopped");
        }
    }

    fn start(&mut self, now: u64) {
        if self.state != State::Running {
            self.state = State::Running;
            self.record.log(now, "Scheduler started");
        }
    }

    /// The time after a stop is over: what has not ended is given up.
    fn cut(&mut self, now: u64) {
        let mut given_up = Vec::new();
        for ticket in &mut self.tickets {
            if ticket.progress != Progress::Resting {
                given_up.push((ticket.task, ticket.name));
            }
            match ticket.progress {
                Progress::Running => ticket.progress = Progress::Cut,
                Progress::Fired => self.requests.given_up += 1,
                Progress::Resting | Progress::Cut => {}
            }
        }
        given_up.sort_unstable();
        let count = given_up.len();
        self.record.cancelled = given_up.into_iter().map(|task| (now, task)).collect();
        self.state = State::Stopped { deadline: None };
        let reason = format!("stop_timeout at {now}: {count} tasks had not ended");
        self.requests.halt = Some(Halt { timeout: true, reason });
    }
}

/// The smallest time in a program. What cannot be read ends it; the run itself will say so.
fn earliest(workload: &dyn Workload) -> Option<i64> {
    let (mut source, mut task, mut earliest) = (workload.open().ok()?, Submit::default(), None);
    while let Ok(Some(operation)) = source.next(&mut task) {
        if operation == Operation::Submit
            && let Some(ScheduleAt::UtcMicros(micros)) = task.policy.as_ref().and_then(|policy| policy.schedule_at)
        {
            earliest = Some(earliest.map_or(micros, |earliest: i64| earliest.min(micros)));
        }
    }
    earliest
}

impl Policy for Ray<'_> {
    fn name(&self) -> &'static str {
        "ray"
    }

    /// With a batch, tasks that start make room for others to be fired.
    fn is_steady(&self) -> bool {
        self.fire_batch == u64::MAX
    }

    fn on_submit(&mut self, submission: &Submission<'_>, now: u64) -> Result<(), String> {
        let Submission { slot, submit: task, .. } = *submission;
        if self.tickets.len() <= slot as usize {
            self.tickets.resize(slot as usize + 1, Ticket::default());
        }
        let mut ticket = Ticket { name: task.name, when: now, ..Ticket::default() };
        if let Some(name) = task.name {
            // Names met in the same order have the same numbers.
            while self.symbols.len() <= name.0 as usize {
                self.symbols.intern(submission.source.symbols().name(Symbol(self.symbols.len() as u32)));
            }
        }
        if let Some(policy) = task.policy.as_deref() {
            ticket.source = policy.source.as_ref().map_or(0, |name| self.sources.intern(name));
            ticket.when = match policy.schedule_at {
                None => now,
                Some(ScheduleAt::Cycle(cycle)) => cycle,
                Some(ScheduleAt::UtcMicros(micros)) => self.clock.cycle(micros),
            };
            if ticket.when == u64::MAX {
                return Err("schedule_at lies past cycle 2^64 - 2; use an earlier one, or a later ray.epoch".into());
            }
            let (uuid, args, schedule_at) = (policy.uuid.clone(), policy.args.clone(), policy.schedule_at);
            ticket.extra = Some(Box::new(Extra { uuid, args, schedule_at }));
        }
        self.tickets[slot as usize] = ticket;
        Ok(())
    }

    fn on_ready(&mut self, ready: Ready, now: u64) -> Result<(), Dropped> {
        let ticket = &mut self.tickets[ready.slot as usize];
        (ticket.task, ticket.line) = (ready.task, ready.kind as usize);
        let when = ticket.when;
        self.add(ready.slot, when, now);
        Ok(())
    }

    fn dispatch(&mut self, stage: &mut Stage<'_>) {
        let mut filled = self.filled;
        while filled != 0 {
            let number = filled.trailing_zeros();
            filled &= filled - 1;
            let line = &mut self.lines[number as usize];
            while let Some(&slot) = line.front() {
                match stage.place(slot) {
                    Placement::Nothing => break,
                    Placement::Some => {}
                    Placement::All => {
                        line.pop();
                        self.waiting -= 1;
                        self.running += 1;
                        let ticket = &mut self.tickets[slot as usize];
                        ticket.progress = Progress::Running;
                        self.sources.source_mut(ticket.source).started += 1;
                    }
                }
            }
            if line.is_empty() {
                self.filled &= !(1 << number);
            }
        }
    }

    fn on_end(&mut self, end: &End, now: u64) -> AfterEnd {
        if end.kind == TaskType::None {
            return AfterEnd::Complete;
        }
        self.record.last = now;
        self.running -= 1;
        let ticket = &mut self.tickets[end.slot as usize];
        let number = ticket.source;
        if std::mem::take(&mut ticket.progress) == Progress::Cut {
            return AfterEnd::Abandon;
        }
        let source = self.sources.source_mut(number);
        *if end.failed { &mut source.failures } else { &mut source.finished } += 1;
        let again = if end.failed { self.fail(end.slot, now) } else { None };
        self.release(number);
        let Some(wait) = again else { return AfterEnd::Complete };
        self.add(end.slot, now.saturating_add(wait), now);
        AfterEnd::Again
    }

    fn on_control(&mut self, control: &Control, now: u64) -> bool {
        match control.command.as_str() {
            "stop" | "shutdown" => self.stop(now),
            "start" => self.start(now),
            _ => return false,
        }
        true
    }

    fn requests(&mut self) -> Option<&mut Requests> {
        self.requests.is_any().then_some(&mut self.requests)
    }

    fn next_timer(&self) -> Option<u64> {
        match self.state {
            State::Running if self.waiting < self.fire_batch => self.heap.next_when(),
            State::Running => None,
            State::Stopped { deadline } => deadline.filter(|_| self.waiting + self.running > 0),
        }
    }

    fn on_timer(&mut self, now: u64) -> bool {
        self.record.last = now;
        if self.state != State::Running {
            self.cut(now);
            return true;
        }
        while self.waiting < self.fire_batch
            && let Some(entry) = self.heap.pop_due(now)
        {
            self.fire(entry.item, entry.when, now);
        }
        // Nobody but the dispatch that follows has to know.
        false
    }

    fn on_idle(&mut self, _now: u64) -> bool {
        let left = self.heap.len();
        if self.state != State::Running && left > 0 && self.next_timer().is_none() {
            let reason = format!("stopped with {left} tasks in the heap");
            self.requests.halt = Some(Halt { timeout: false, reason });
        }
        false
    }

    fn report(&self) -> Value {
        record::report(self)
    }
}

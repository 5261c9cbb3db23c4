//! `orleans`: the scheduler of Orleans. Tasks of one activation run one at a time, in order; activations share all workers.
//!
//! A READY task with a context joins the group of that context; the group stands in the [`RunQueue`] once. A free worker takes
//! the first entry it can serve and runs a turn: tasks of the group, until none is left or the quantum or the number of items
//! is used up. A task without context is an entry of its own. A child that names no context has that of its parent.
//!
//! MIX tasks and tasks with several blocks cannot run on the one worker of a turn: such a task is a turn of its own, placed
//! like under `pto`, on any workers.

mod config;
mod counts;
mod lane;
mod pool;
mod run_queue;

pub use config::{Config, Span};
pub use lane::Key;
pub use pool::{Handle, Pool, QueueError, Summary, current_context};
pub use run_queue::{Group, GroupState, Item, LANES, Limits, RunQueue, Tally, Turns};

use super::{Dropped, End, Placement, Policy, Ready, Requests, Stage, Submission};
use crate::config::{ConfigError, Machine};
use crate::id::{TaskType, WorkerType};
use crate::machine::own_type;
use crate::nearest::nearest;
use crate::window::SlotRef;
use crate::workload::{Control, PolicyFields, WorkItem};
use counts::Counts;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// No context.
const NULL: u32 = u32::MAX;

/// The first lane of tasks that a single worker cannot run; before it come the worker types.
const WIDE: usize = 4;

/// The lanes before [`WIDE`], a bit each.
const PLAIN: u16 = (1 << WIDE) - 1;

/// What the policy knows of the task in a slot.
#[derive(Clone, Copy)]
struct Seat {
    /// Its group, or [`NULL`].
    group: u32,
    wide: bool,
    /// Cycles of the turn after the task.
    post: u64,
    /// When its first block was placed.
    placed: u64,
}

const EMPTY: Seat = Seat { group: NULL, wide: false, post: 0, placed: 0 };

/// A worker that ended a task of a group, or of none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Pause {
    /// Up to this cycle it does what comes after the task.
    until: u64,
    worker: u32,
    group: u32,
    wide: bool,
}

/// The rule of Orleans' scheduler.
pub struct Orleans {
    config: Config,
    turn_warning: u64,
    delay_warning: u64,
    queue: RunQueue<SlotRef>,
    by_name: HashMap<String, u32>,
    /// Contexts of tasks by id, as far as a task had one: a child may name a parent that is long gone.
    contexts: Vec<u32>,
    seats: Vec<Seat>,
    /// Workers whose task ended and whose turn is to be decided.
    ended: Vec<Pause>,
    /// Workers that do what comes after a task.
    resting: BinaryHeap<Reverse<Pause>>,
    /// Workers that have done so.
    rested: Vec<Pause>,
    /// Tasks of several blocks of which some are placed.
    partial: Vec<SlotRef>,
    /// The group whose task is being completed, and what that made READY in the same group.
    completing: u32,
    inlined: Vec<Item<SlotRef>>,
    applications_stopped: bool,
    stopped: bool,
    counts: Counts,
    requests: Requests,
}

impl Orleans {
    /// An empty queue; spans with a unit are converted by the machine's clock, `clock_mhz` cycles to the microsecond.
    ///
    /// # Errors
    /// When a span is wrong.
    pub fn new(config: Config, machine: &Machine) -> Result<Orleans, ConfigError> {
        let spans = config.spans(machine.clock_mhz);
        let [quantum, turn_warning, delay_warning] =
            spans.map_err(|message| ConfigError::Setting(format!("orleans: {message}")))?;
        let limits = Limits {
            quantum,
            items: config.max_work_items_per_turn,
            turn_warning,
            prioritize_system: config.prioritize_system,
        };
        let mut orleans = Orleans {
            turn_warning,
            delay_warning,
            queue: RunQueue::new(limits),
            by_name: HashMap::new(),
            contexts: Vec::new(),
            seats: Vec::new(),
            ended: Vec::new(),
            resting: BinaryHeap::new(),
            rested: Vec::new(),
            partial: Vec::new(),
            completing: NULL,
            inlined: Vec::new(),
            applications_stopped: false,
            stopped: false,
            counts: Counts::default(),
            requests: Requests::default(),
            config,
        };
        for context in orleans.config.contexts.clone() {
            orleans.register(&context);
        }
        Ok(orleans)
    }

    fn register(&mut self, context: &str) -> u32 {
        if let Some(&group) = self.by_name.get(context) {
            return group;
        }
        let group = self.queue.add_group(context);
        self.by_name.insert(context.to_string(), group);
        if self.applications_stopped && !self.queue.group(group).is_system() {
            self.queue.stop(group);
        }
        group
    }

    /// The group of a submitted task.
    fn context_of(&mut self, submission: &Submission<'_>) -> Result<u32, String> {
        let fields = submission.submit.policy.as_deref();
        let group = match fields.and_then(|fields| fields.activation.as_ref()) {
            Some(Some(name)) => self.named(name, fields)?,
            Some(None) => NULL,
            None => {
                let parent = submission.submit.parent.map(|(parent, _)| parent.0 as usize);
                parent.and_then(|parent| self.contexts.get(parent)).copied().unwrap_or(NULL)
            }
        };
        if group == NULL && self.config.forbid_null_context && submission.kind != TaskType::None {
            return Err("has no context, and forbid_null_context asks for one; set `activation`".into());
        }
        Ok(group)
    }

    fn named(&mut self, name: &str, fields: Option<&PolicyFields>) -> Result<u32, String> {
        if fields.and_then(|fields| fields.work_item) == Some(WorkItem::Task) {
            return Err(QueueError::InvalidOperation(name.into()).to_string());
        }
        if !self.config.strict_contexts || self.by_name.contains_key(name) {
            return Ok(self.register(name));
        }
        let known = self.config.contexts.iter().map(String::as_str);
        let hint = nearest(name, known).map_or_else(
            || "add it to `contexts`".into(),
            |near| format!("add it to `contexts`, or did you mean `{near}`?"),
        );
        Err(format!("InvalidSchedulingContext: context `{name}` is not registered, and strict_contexts is set; {hint}"))
    }

    fn remember(&mut self, task: u64, group: u32) {
        if group != NULL {
            let task = task as usize;
            if task >= self.contexts.len() {
                self.contexts.resize(task + 1, NULL);
            }
            self.contexts[task] = group;
        }
    }

    /// A task that must not run.
    fn refuse(&mut self, slot: SlotRef, group: u32) {
        let reason = if group == NULL {
            "scheduler shut down".into()
        } else {
            self.queue.group_mut(group).tally.dropped += 1;
            format!("activation `{}` was stopped", self.queue.group(group).name())
        };
        if self.counts.refused == 0 {
            self.requests.notes.push(format!("{reason}: what comes later is dropped"));
        }
        self.counts.refused += 1;
        self.counts.dropped += 1;
        self.requests.cancel.push((slot, reason));
    }

    /// Decides how the turns of workers go on whose task, or whose work after it, has ended.
    fn settle(&mut self, stage: &mut Stage<'_>) {
        for index in 0..self.rested.len() {
            let pause = self.rested[index];
            stage.floor.give_back(pause.worker);
            self.go_on(pause, stage);
        }
        self.rested.clear();
        for index in 0..self.ended.len() {
            let pause = self.ended[index];
            if pause.until > stage.now {
                stage.floor.take_worker(pause.worker);
                stage.floor.worker_mut(pause.worker).clock = pause.until;
                self.resting.push(Reverse(pause));
            } else {
                self.go_on(pause, stage);
            }
        }
        self.ended.clear();
    }

    fn go_on(&mut self, pause: Pause, stage: &mut Stage<'_>) {
        if pause.group == NULL {
            return;
        }
        let kind = stage.floor.worker(pause.worker).kind;
        let serves = |lane: u8| !pause.wide && lanes_of(kind).contains(&usize::from(lane));
        match self.queue.proceed(pause.group, stage.now, serves) {
            Some(item) => {
                self.start(&item, stage.now);
                stage.place_on(item.what, pause.worker);
            }
            None if self.stopped => self.stop_group(pause.group),
            None => {}
        }
    }

    /// Tasks that need several workers: first the ones begun, then by their place in the queue.
    fn place_wide(&mut self, stage: &mut Stage<'_>) {
        self.partial.retain(|&slot| place_all(stage, slot) != Placement::All);
        for lane in WIDE..LANES {
            while let Some(slot) = self.queue.first_item(lane).map(|item| item.what) {
                let placement = place_all(stage, slot);
                if placement == Placement::Nothing {
                    break;
                }
                let (_, item) = self.queue.take(lane, stage.now).expect("the entry just looked at");
                self.start(&item, stage.now);
                self.counts.wide += 1;
                if placement == Placement::Some {
                    self.partial.push(slot);
                    break;
                }
            }
        }
    }

    /// The first entry that a free worker can serve goes to the one with the smallest clock, and so on: what idle workers, by
    /// clock, would take.
    fn place_plain(&mut self, stage: &mut Stage<'_>) {
        loop {
            let floor = stage.floor();
            // Task types are MIX and then those of the lanes.
            let first = self.queue.first_lane(PLAIN, |lane| floor.has_free(lane + 1));
            let Some(lane) = first else { return };
            let (_, item) = self.queue.take(lane, stage.now).expect("the entry just looked at");
            self.start(&item, stage.now);
            stage.place(item.what);
        }
    }

    fn start(&mut self, item: &Item<SlotRef>, now: u64) {
        self.seats[item.what as usize].placed = now;
        if self.delay_warning > 0 && now - item.queued > self.delay_warning {
            self.counts.long_queue_waits += 1;
        }
    }

    fn stop_group(&mut self, group: u32) {
        if self.queue.group(group).state() == GroupState::Shutdown {
            return;
        }
        let reason = format!("activation `{}` was stopped", self.queue.group(group).name());
        let dropped = self.queue.stop(group);
        self.counts.dropped += dropped.len() as u64;
        self.requests.cancel.extend(dropped.into_iter().map(|item| (item.what, reason.clone())));
    }

    fn stop_groups(&mut self, is_meant: impl Fn(&Group<SlotRef>) -> bool) {
        for group in 0..self.queue.groups().len() as u32 {
            if is_meant(self.queue.group(group)) {
                self.stop_group(group);
            }
        }
    }

    /// Turns that run go on to their end with what waits in them now; everything else is dropped.
    fn shutdown(&mut self) {
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        self.stop_groups(|group| group.state() != GroupState::Running);
        let mut tasks = self.queue.drain_tasks();
        tasks.sort_by_key(|item| item.what);
        self.counts.dropped += tasks.len() as u64;
        self.requests.cancel.extend(tasks.into_iter().map(|item| (item.what, "scheduler shut down".to_string())));
    }
}

/// Places as many blocks as there is room for.
fn place_all(stage: &mut Stage<'_>, slot: SlotRef) -> Placement {
    let mut best = Placement::Nothing;
    loop {
        match stage.place(slot) {
            Placement::Nothing => return best,
            Placement::Some => best = Placement::Some,
            Placement::All => return Placement::All,
        }
    }
}

/// Lanes that a worker looks at.
fn lanes_of(kind: WorkerType) -> std::ops::Range<usize> {
    match kind {
        WorkerType::Any => 0..WIDE,
        own => own as usize..own as usize + 1,
    }
}

impl Policy for Orleans {
    /// Only timed commands have it cancel anything.
    const INTERFERES: bool = false;

    fn name(&self) -> &'static str {
        "orleans"
    }

    fn is_steady(&self) -> bool {
        true
    }

    fn on_submit(&mut self, submission: &Submission<'_>, _now: u64) -> Result<(), String> {
        let group = self.context_of(submission)?;
        self.remember(submission.task.0, group);
        let fields = submission.submit.policy.as_deref();
        let default = if group == NULL { WorkItem::Task } else { WorkItem::Invoke };
        let kind = fields.and_then(|fields| fields.work_item).unwrap_or(default);
        self.counts.kinds[kind as usize] += 1;
        self.counts.null_tasks += u64::from(group == NULL);
        if let Some(caller) = fields.and_then(|fields| fields.caller.as_ref()) {
            self.counts.asked_by(caller);
        }
        let wide = submission.kind == TaskType::Mix || submission.submit.blocks > 1;
        let slot = submission.slot as usize;
        if slot >= self.seats.len() {
            self.seats.resize(slot + 1, EMPTY);
        }
        self.seats[slot] = Seat { group, wide, post: fields.map_or(0, |fields| fields.post_cycles), placed: 0 };
        Ok(())
    }

    fn on_ready(&mut self, ready: Ready, now: u64) -> Result<(), Dropped> {
        let Seat { group, wide, .. } = self.seats[ready.slot as usize];
        if self.stopped || group != NULL && self.queue.group(group).state() == GroupState::Shutdown {
            self.refuse(ready.slot, group);
            return Ok(());
        }
        let lane = match own_type(ready.kind) {
            Some(own) if !wide => own as usize,
            _ => WIDE + ready.kind as usize,
        };
        let item = Item { what: ready.slot, lane: lane as u8, queued: now };
        if group == NULL {
            self.queue.push(None, item, now);
            return Ok(());
        }
        if self.config.inline && self.completing == group {
            self.counts.inlined += 1;
            self.inlined.push(item);
            return Ok(());
        }
        self.queue.push(Some(group), item, now);
        let limit = self.config.max_pending_work_items_soft_limit;
        if limit > 0 && self.queue.group(group).n_waiting() as u64 > limit {
            self.counts.soft_limit_warnings += 1;
        }
        Ok(())
    }

    fn dispatch(&mut self, stage: &mut Stage<'_>) {
        self.settle(stage);
        if !self.partial.is_empty() || self.queue.has_any(!PLAIN) {
            self.place_wide(stage);
        }
        self.place_plain(stage);
    }

    fn on_end(&mut self, end: &End, _now: u64) -> super::AfterEnd {
        // A joint without a worker has no turn that could go on.
        self.completing = if end.worker.is_some() { self.seats[end.slot as usize].group } else { NULL };
        super::AfterEnd::Complete
    }

    fn on_complete(&mut self, end: &End, now: u64) {
        let Seat { group, wide, post, placed } = self.seats[end.slot as usize];
        self.completing = NULL;
        if !self.inlined.is_empty() {
            let inlined = std::mem::take(&mut self.inlined);
            self.queue.push_front(group, inlined.into_iter());
        }
        let Some(worker) = end.worker else { return };
        self.counts.failed += u64::from(end.failed);
        if group != NULL {
            self.queue.group_mut(group).tally.failed += u64::from(end.failed);
        }
        if self.turn_warning > 0 && now - placed > self.turn_warning {
            self.counts.long_running_tasks += 1;
        }
        self.counts.post_cycles += post;
        if group != NULL || post > 0 {
            self.ended.push(Pause { until: now.saturating_add(post), worker, group, wide });
        }
    }

    fn on_control(&mut self, control: &Control, _now: u64) -> bool {
        match control.command.as_str() {
            "shutdown" => self.shutdown(),
            "stop_application_turns" => {
                self.applications_stopped = true;
                self.stop_groups(|group| !group.is_system());
            }
            "stop_activation" => {
                let name = control.arguments.get("activation").and_then(Value::as_str).unwrap_or("");
                match self.by_name.get(name) {
                    Some(&group) => self.stop_group(group),
                    None => self.requests.notes.push(format!("stop_activation: there is no activation `{name}`")),
                }
            }
            _ => return false,
        }
        true
    }

    fn requests(&mut self) -> Option<&mut Requests> {
        self.requests.is_any().then_some(&mut self.requests)
    }

    fn next_timer(&self) -> Option<u64> {
        self.resting.peek().map(|Reverse(pause)| pause.until)
    }

    fn on_timer(&mut self, now: u64) -> bool {
        while let Some(&Reverse(pause)) = self.resting.peek()
            && pause.until <= now
        {
            self.resting.pop();
            self.rested.push(pause);
        }
        true
    }

    fn report(&self) -> Value {
        self.counters()
    }
}

//! `cyber_classic` and `cyber_choreography`: the schedulers of Apollo Cyber RT.
//!
//! A routine is a named coroutine; a task of the trace is one activation of it. A free worker scans its home from the highest
//! priority down, in a level in the order of creation, and takes the first routine that is not running, has a READY
//! activation and suits the worker. Every scan starts at the top: low priorities starve while high ones have work.
//!
//! ```text
//! submit ─▶ routine (home, priority) ─ready▶ its activations ─▶ the home's heap ─ free worker of the home ─▶ runs
//! ```
//!
//! A home keeps its runnable routines in one heap per worker type, so that a scan looks at heads only. Blocks of a task go to
//! the workers of its home one by one. MIX tasks, and tasks whose blocks start together, may need more than their home has:
//! they are placed like under `pto`, on any workers, before the others and by priority.

pub mod conf;
mod counts;
mod cpuset;
mod croutine;
mod hand_out;
mod idle;
mod lanes;
mod layout;
mod place;
mod proto;
mod registry;
mod routine;
mod snapshot;

pub use conf::{Conf, DEFAULT_GROUP_NAME, Mode};
pub use cpuset::{Class, affinity, parse_cpuset};
pub use croutine::{Croutine, RoutineState};
pub use layout::{Home, Layout, Processor};
pub use registry::{NotifyCounter, Registry, WAIT};
pub use snapshot::{Activity, snapshot};

use super::{Dropped, End, Policy, Ready, Requests, Stage, Submission};
use crate::config::{ConfigError, Machine};
use crate::id::{TaskId, TaskType, WorkerType};
use crate::window::{SlotRef, prefetch};
use crate::workload::Control;
use counts::Counts;
use idle::Idle;
use lanes::{Heap, Lanes, WIDE, lane_of};
use place::{Preset, presets};
use routine::{Activation, Name, Routines};
use serde_json::Value;
use std::collections::HashMap;

/// Priorities are below this.
pub const MAX_PRIO: u32 = 20;

/// Where the task in a slot belongs.
#[derive(Clone, Copy, Default)]
struct Seat {
    routine: u32,
    lane: u8,
}

/// The rule of Cyber's schedulers.
pub struct Cyber {
    mode: Mode,
    conf: Conf,
    layout: Layout,
    presets: HashMap<String, Preset>,
    routines: Routines,
    seats: Vec<Seat>,
    homes: Vec<Lanes>,
    /// Routines whose next activation is placed on any workers, by its type.
    wide: [Heap; 5],
    /// Routines in the heaps.
    runnable: usize,
    /// Every worker serves the one home.
    is_undivided: bool,
    /// Free workers of each home by their type.
    idle: Vec<Vec<(WorkerType, Idle)>>,
    /// Homes with runnable routines, in no order.
    waiting: Vec<u32>,
    /// Workers while they are put in order.
    scratch: Vec<u32>,
    stopped: bool,
    counts: Counts,
    requests: Requests,
}

impl Cyber {
    /// The scheduler that the configuration names.
    ///
    /// # Errors
    /// When the configuration does not fit the machine or is wrong in itself.
    pub fn new(conf: Conf, machine: &Machine) -> Result<Cyber, ConfigError> {
        let (mode, warning) = conf.mode();
        let warning = warning.filter(|_| conf.policy.is_none());
        let mut cyber = Cyber::with_mode(conf, mode, machine)?;
        cyber.requests.notes.extend(warning);
        Ok(cyber)
    }

    /// Groups with processors of their own, whatever the configuration names.
    ///
    /// # Errors
    /// As [`Cyber::new`].
    pub fn classic(conf: Conf, machine: &Machine) -> Result<Cyber, ConfigError> {
        Cyber::with_mode(conf, Mode::Classic, machine)
    }

    /// Pinned processors and a pool, whatever the configuration names.
    ///
    /// # Errors
    /// As [`Cyber::new`].
    pub fn choreography(conf: Conf, machine: &Machine) -> Result<Cyber, ConfigError> {
        Cyber::with_mode(conf, Mode::Choreography, machine)
    }

    fn with_mode(conf: Conf, mode: Mode, machine: &Machine) -> Result<Cyber, ConfigError> {
        let wrong = |message| ConfigError::Setting(format!("scheduler_conf: {message}"));
        parse_cpuset(conf.process_level_cpuset.as_deref().unwrap_or("")).map_err(wrong)?;
        for thread in &conf.threads {
            parse_cpuset(&thread.cpuset).map_err(|error| wrong(format!("thread `{}`: {error}", thread.name)))?;
        }
        let mut layout = Layout::new(&conf, mode, machine)?;
        let homes: Vec<_> = layout.homes.iter().map(|_| Lanes::default()).collect();
        let mut notes = std::mem::take(&mut layout.notes);
        notes.extend(conf.missing.clone());
        notes.extend(conf.mode().1.filter(|_| conf.policy.is_some()));
        let requests = Requests { notes, ..Requests::default() };
        Ok(Cyber {
            mode,
            presets: presets(&conf, mode, &layout),
            conf,
            counts: Counts { activations: vec![0; homes.len()], ..Counts::default() },
            is_undivided: layout.homes.len() == 1 && layout.home_of.iter().all(Option::is_some),
            idle: layout.homes.iter().map(|home| idle_workers(home, &layout.kinds)).collect(),
            waiting: Vec::new(),
            scratch: Vec::new(),
            layout,
            routines: Routines::default(),
            seats: Vec::new(),
            homes,
            wide: Default::default(),
            runnable: 0,
            stopped: false,
            requests,
        })
    }

    /// Its processors.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The routine of a task; a new one at the end of its level if this is its first task.
    fn routine_of(&mut self, submission: &Submission<'_>) -> Result<u32, String> {
        let named = submission.submit.policy.as_ref().and_then(|fields| fields.routine.as_deref());
        if let Some(name) = named {
            let known = self.routines.find(name);
            if let Some(routine) = known.or_else(|| self.routines.name_task(submission.source.symbols().find(name)?)) {
                return Ok(routine);
            }
            let (home, prio) = self.place_of(submission, name)?;
            return Ok(self.routines.create(Name::Routine(name), home, prio));
        }
        let symbol = submission.submit.name;
        let Some(name) = symbol.map(|symbol| submission.source.symbols().name(symbol)) else {
            let (home, prio) = self.place_of(submission, "")?;
            return Ok(self.routines.create(Name::Unnamed(submission.task), home, prio));
        };
        if let Some(routine) = self.routines.find(name) {
            return Ok(routine);
        }
        let (home, prio) = self.place_of(submission, name)?;
        let routine = self.routines.create(Name::Task(name, symbol.expect("a task with a name")), home, prio);
        if self.routines.namesakes(routine) > 1 {
            self.counts.repeated_names += 1;
            if self.conf.unique_names {
                return Err(format!("a task called `{name}` is still alive, and unique_names asks for one at a time"));
            }
        }
        Ok(routine)
    }

    /// Puts a routine with a READY activation where workers find it.
    #[inline]
    fn enqueue(&mut self, index: u32) {
        let routine = &mut self.routines[index];
        let Some(next) = routine.activations.front() else { return };
        debug_assert!(!routine.is_queued && !routine.is_running, "a routine runs once and waits once");
        routine.is_queued = true;
        let (lane, key) = (usize::from(next.lane), routine.key(index));
        if lane < WIDE {
            let lanes = &mut self.homes[routine.home as usize];
            if lanes.is_empty() && !self.is_undivided {
                self.waiting.push(routine.home);
            }
            lanes.push(lane, key);
        } else {
            self.wide[lane - WIDE].push(key);
        }
        self.runnable += 1;
    }

    /// Cancels the activations of a routine that have not started.
    fn cancel_waiting(&mut self, index: u32, reason: &str) {
        let routine = &mut self.routines[index];
        // The first activation is still in the queue while some of its blocks run and others are to be placed.
        let keep = usize::from(routine.is_running && routine.is_queued);
        let n_waiting = routine.activations.len() - keep;
        let waiting = routine.activations.take(keep == 0);
        self.requests.cancel.extend(waiting.map(|activation| (activation.slot, reason.to_string())));
        self.counts.dropped += n_waiting as u64;
        if routine.is_queued && keep == 0 {
            routine.is_queued = false;
            self.runnable -= 1;
        }
        for _ in 0..n_waiting {
            self.routines.leave(index);
        }
    }

    fn remove(&mut self, name: &str) {
        let Some(index) = self.routines.find(name).or_else(|| self.routines.find_task(name)) else {
            self.counts.unknown += 1;
            self.requests.notes.push(format!("remove_routine: there is no routine `{name}`"));
            return;
        };
        self.counts.removed += 1;
        self.routines.detach(index);
        self.cancel_waiting(index, "routine removed");
    }

    fn shutdown(&mut self) {
        if !std::mem::replace(&mut self.stopped, true) {
            for index in 0..self.routines.len() {
                self.cancel_waiting(index, "scheduler shut down");
            }
        }
    }

    fn notify(&mut self, name: &str) {
        if self.routines.find(name).or_else(|| self.routines.find_task(name)).is_some() {
            self.counts.notified += 1;
        } else {
            self.counts.unknown += 1;
            self.requests.notes.push(format!("notify: there is no routine `{name}`"));
        }
    }
}

/// The workers of a home by type, none of them known to be free.
fn idle_workers(home: &Home, kinds: &[WorkerType]) -> Vec<(WorkerType, Idle)> {
    let of_type = |kind: WorkerType| {
        let workers = home.workers.iter().copied().filter(move |&worker| kinds[worker as usize] == kind);
        (kind, Idle::new(workers))
    };
    WorkerType::ALL.into_iter().filter(|&kind| home.has(kind)).map(of_type).collect()
}

impl Policy for Cyber {
    /// Only timed commands have it cancel anything.
    const INTERFERES: bool = false;

    fn name(&self) -> &'static str {
        match self.mode {
            Mode::Classic => "cyber_classic",
            Mode::Choreography => "cyber_choreography",
        }
    }

    fn is_steady(&self) -> bool {
        true
    }

    fn on_submit(&mut self, submission: &Submission<'_>, _now: u64) -> Result<(), String> {
        let routine = self.routine_of(submission)?;
        self.routines[routine].live += 1;
        let wide = self.is_wide(submission, self.routines[routine].home)?;
        let slot = submission.slot as usize;
        if slot >= self.seats.len() {
            self.seats.resize(slot + 1, Seat::default());
        }
        self.seats[slot] = Seat { routine, lane: lane_of(submission.kind, wide) };
        Ok(())
    }

    #[inline]
    fn foresee(&self, slot: SlotRef) {
        if let Some(seat) = self.seats.get(slot as usize) {
            prefetch(&self.routines[seat.routine]);
        }
    }

    fn on_ready(&mut self, ready: Ready, _now: u64) -> Result<(), Dropped> {
        let Seat { routine: index, lane } = self.seats[ready.slot as usize];
        let routine = &mut self.routines[index];
        if self.stopped || routine.is_removed {
            let reason = if self.stopped { "scheduler shut down" } else { "routine removed" };
            self.requests.cancel.push((ready.slot, reason.into()));
            self.counts.dropped += 1;
            self.routines.leave(index);
            return Ok(());
        }
        routine.activations.push_back(Activation { slot: ready.slot, lane });
        if !routine.is_running && !routine.is_queued {
            self.enqueue(index);
        }
        Ok(())
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.runnable == 0 && !self.requests.is_any()
    }

    fn dispatch(&mut self, stage: &mut Stage<'_>) {
        if self.wide.iter().any(|heap| !heap.is_empty()) {
            self.place_wide(stage);
        }
        if self.is_undivided {
            self.place_undivided(stage);
        } else {
            self.place_by_home(stage);
        }
    }

    fn on_complete(&mut self, end: &End, _now: u64) {
        let index = self.seats[end.slot as usize].routine;
        if end.kind != TaskType::None {
            let routine = &mut self.routines[index];
            routine.is_running = false;
            if routine.activations.front().is_some() {
                self.enqueue(index);
            }
        }
        self.routines.leave(index);
    }

    fn on_cancel(&mut self, slot: SlotRef, _task: TaskId, _now: u64) {
        self.routines.leave(self.seats[slot as usize].routine);
    }

    fn on_control(&mut self, control: &Control, _now: u64) -> bool {
        let act: fn(&mut Cyber, &str) = match control.command.as_str() {
            "shutdown" => {
                self.shutdown();
                return true;
            }
            "remove_routine" => Cyber::remove,
            "notify" => Cyber::notify,
            _ => return false,
        };
        match control.arguments.get("routine").and_then(Value::as_str) {
            Some(name) => act(self, name),
            None => self.requests.notes.push(format!("control `{}` names no `routine`: ignored", control.command)),
        }
        true
    }

    fn requests(&mut self) -> Option<&mut Requests> {
        self.requests.is_any().then_some(&mut self.requests)
    }

    fn report(&self) -> Value {
        self.counters()
    }
}

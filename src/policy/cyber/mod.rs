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

use super::{Dropped, End, Placement, Policy, Ready, Requests, Stage, Submission};
use crate::config::{ConfigError, Machine};
use crate::id::{TaskId, TaskType, WorkerType};
use crate::window::SlotRef;
use crate::workload::Control;
use counts::Counts;
use idle::Idle;
use lanes::{Heap, Lanes, WIDE, lane_of, lanes_of};
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
            idle: layout.homes.iter().map(idle_workers).collect(),
            waiting: Vec::new(),
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
            if let Some(routine) = self.routines.find(name) {
                return Ok(routine);
            }
            let (home, prio) = self.place_of(submission, name)?;
            return Ok(self.routines.create(Name::Routine(name), home, prio));
        }
        let symbol = submission.submit.name;
        let Some(name) = symbol.map(|symbol| submission.symbols.name(symbol)) else {
            let (home, prio) = self.place_of(submission, "")?;
            return Ok(self.routines.create(Name::Unnamed(submission.task), home, prio));
        };
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

    /// MIX tasks and tasks whose blocks start together.
    fn place_wide(&mut self, stage: &mut Stage<'_>) {
        for lane in 0..self.wide.len() {
            while let Some(key) = self.wide[lane].head(&self.routines) {
                let index = key.routine();
                let slot = self.routines[index].next_slot();
                let placement = stage.place(slot);
                if placement == Placement::Nothing {
                    break;
                }
                self.counts.wide += u64::from(!self.routines[index].is_running);
                if self.placed(index, placement) {
                    self.wide[lane].pop();
                }
            }
        }
    }

    /// Every worker serves the same home: the first routine goes to the free worker of its type with the smallest clock, which
    /// is what workers by clock would choose.
    fn place_undivided(&mut self, stage: &mut Stage<'_>) {
        let begin = stage.placed.len();
        if self.layout.homes[0].has(WorkerType::Any) {
            self.place_lanes((1 << WIDE) - 1, stage);
        } else {
            // Workers of a type look at its own lane only.
            (0..WIDE).for_each(|lane| self.place_lanes(1 << lane, stage));
        }
        sort_by_clock(stage, begin);
    }

    /// Hands out the routines of some lanes, a bit each, of the one home.
    #[inline]
    fn place_lanes(&mut self, lanes: u8, stage: &mut Stage<'_>) {
        while self.homes[0].has_any(lanes) {
            let floor = stage.floor();
            // Task types are MIX and then those of the lanes.
            let is_served = |lane| lanes >> lane & 1 == 1 && floor.has_free(lane + 1);
            let Some((key, lane)) = self.homes[0].first(&self.routines, is_served) else { return };
            let placement = stage.place(self.routines[key.routine()].next_slot());
            if self.placed(key.routine(), placement) {
                self.homes[0].pop(lane);
            }
        }
    }

    /// Free workers by clock, each from its own home. Homes share nothing, so they go one after the other.
    fn place_by_home(&mut self, stage: &mut Stage<'_>) {
        let begin = stage.placed.len();
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|&home| {
            self.place_at(home, stage);
            !self.homes[home as usize].is_empty()
        });
        self.waiting = waiting;
        sort_by_clock(stage, begin);
    }

    /// The free workers of a home take its routines, the one with the smallest clock first.
    fn place_at(&mut self, home: u32, stage: &mut Stage<'_>) {
        for index in 0..self.idle[home as usize].len() {
            self.idle[home as usize][index].1.refresh(stage.floor());
        }
        if self.layout.homes[home as usize].has(WorkerType::Any) {
            while let Some(index) = self.first_idle(home, stage) {
                self.serve(home, index, stage);
            }
            return;
        }
        // Workers of a type look at its own lane only.
        for index in 0..self.idle[home as usize].len() {
            let lanes = lanes_of(self.idle[home as usize][index].0);
            while self.homes[home as usize].has_any(lanes)
                && self.idle[home as usize][index].1.first(stage.floor()).is_some()
            {
                self.serve(home, index, stage);
            }
        }
    }

    /// Which type has the free worker with the smallest clock that may find work in its home.
    fn first_idle(&mut self, home: u32, stage: &Stage<'_>) -> Option<usize> {
        let lanes = &self.homes[home as usize];
        let first = |(index, (kind, idle)): (usize, &mut (WorkerType, Idle))| {
            if lanes.has_any(lanes_of(*kind)) { idle.first(stage.floor()).map(|worker| (worker, index)) } else { None }
        };
        self.idle[home as usize].iter_mut().enumerate().filter_map(first).min().map(|(_, index)| index)
    }

    /// Gives the first free worker of a type the first routine of its home that it can run.
    #[inline]
    fn serve(&mut self, home: u32, index: usize, stage: &mut Stage<'_>) {
        let (kind, idle) = &mut self.idle[home as usize][index];
        let lanes = lanes_of(*kind);
        let first = self.homes[home as usize].first(&self.routines, |lane| lanes >> lane & 1 == 1);
        let Some((key, lane)) = first else { return };
        let Some(worker) = idle.take() else { return };
        let placement = stage.place_on(self.routines[key.routine()].next_slot(), worker);
        if self.placed(key.routine(), placement) {
            self.homes[home as usize].pop(lane);
        }
    }

    /// Books a block of the next activation; true if it was its last, so that the routine leaves its heap.
    #[inline]
    fn placed(&mut self, index: u32, placement: Placement) -> bool {
        let routine = &mut self.routines[index];
        if !routine.is_running {
            routine.is_running = true;
            self.counts.activations[routine.home as usize] += 1;
        }
        if placement != Placement::All {
            return false;
        }
        routine.activations.pop_front();
        routine.is_queued = false;
        self.runnable -= 1;
        true
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

/// Workers start in the order of their clocks. Those of one type or home are in it already, which a stable sort makes use of.
fn sort_by_clock(stage: &mut Stage<'_>, begin: usize) {
    let floor = &*stage.floor;
    stage.placed[begin..].sort_by_key(|&worker| (floor.worker(worker).clock, worker));
}

/// The workers of a home by type, none of them known to be free.
fn idle_workers(home: &Home) -> Vec<(WorkerType, Idle)> {
    let of_type = |kind: WorkerType| (kind, Idle::new(home.sets[kind as usize].clone()));
    WorkerType::ALL.into_iter().filter(|&kind| home.has(kind)).map(of_type).collect()
}

impl Policy for Cyber {
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

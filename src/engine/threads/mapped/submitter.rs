//! The submitter: attaches to a device's window and orchestrates a workload.

use super::queue::Queue;
use super::{At, Bell, Mapped, is_locked, state, submitter_lock, try_lock};
use crate::config::Machine;
use crate::engine::deadlock::{Scene, explain};
use crate::engine::threads::SPIN;
use crate::engine::threads::executor::spin_until;
use crate::engine::threads::submit::wait_for_parent;
use crate::error::RunError;
use crate::kernel::{Costs, Table};
use crate::orchestrator::{Orchestrator, Step};
use crate::policy::Choice;
use crate::report::{Deadlock, OldestTask};
use crate::size::fill_needed;
use crate::sync::Shared;
use crate::window::{Outcomes, Refusal, Resource, SlotRef, Window, flag};
use crate::workload::Workload;
use std::fs::{File, OpenOptions};
use std::path::Path;

/// What was submitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Submitted {
    /// Tasks.
    pub tasks: u64,
    /// Edges linked.
    pub edges: u64,
}

/// Submits a workload to the device of a window and waits until everything is consumed. Sizes and workers are those of the device;
/// `machine` says what there is besides.
///
/// # Errors
/// When there is no device, another submitter is there, the device dies or a task fails, the workload cannot be read, or something
/// stays full for ever.
pub fn submit(path: &Path, workload: &dyn Workload, machine: &Machine) -> Result<Submitted, RunError> {
    let mapped = Mapped::open(path)?;
    if !is_locked(&mapped.file) {
        return Err(Mapped::refusal(path, "no device works on this window; start `ptosim device` first"));
    }
    let _lock = attach(&mapped)?;
    let Machine { workers, limits, .. } = mapped.machine.clone();
    let machine = Machine { workers, limits, ..machine.clone() };
    let result = mapped.guarded(|| {
        let table = Table::load(&machine.kernels)?;
        let orchestrator = Orchestrator::new(workload.open()?, Costs::new(&table), &machine);
        let (window, queue) = (mapped.window()?, mapped.queue()?);
        let lines = vec![None; window.n_slots()];
        let (mapped, machine) = (&mapped, &machine);
        Submitter { window, queue, mapped, machine, workload, orchestrator, lines, edges: 0, questions: 0 }.run()
    });
    mapped.set(At::SubmitterState, if result.is_ok() { state::DONE } else { state::FAILED });
    mapped.ring(Bell::Device);
    let submitted = result?;
    wait_for_device(&mapped)?;
    mapped.all_retired(&mapped.window()?)?;
    Ok(submitted)
}

/// Becomes the only submitter of a window that has had none.
fn attach(mapped: &Mapped) -> Result<File, RunError> {
    let path = submitter_lock(&mapped.path);
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|error| Mapped::refusal(&path, error))?;
    if !try_lock(&file) {
        let pid = mapped.get(At::SubmitterPid);
        return Err(Mapped::refusal(&mapped.path, format!("has a submitter already (process {pid})")));
    }
    if mapped.get(At::SubmitterState) != state::ABSENT {
        return Err(Mapped::refusal(&mapped.path, "had its submitter; a device works for one, start another"));
    }
    mapped.set(At::SubmitterPid, std::process::id().into());
    mapped.set(At::SubmitterState, state::WORKING);
    Ok(file)
}

struct Submitter<'m> {
    mapped: &'m Mapped,
    machine: &'m Machine,
    workload: &'m dyn Workload,
    window: Window<Shared>,
    queue: Queue<'m>,
    orchestrator: Orchestrator,
    /// Line of the task in each slot.
    lines: Vec<Option<u64>>,
    edges: u64,
    /// How often it asked the device whether it has nothing left to do.
    questions: u64,
}

/// Follows up what a change of the window leads to on this side.
struct Told<'s> {
    window: &'s Window<Shared>,
    queue: &'s Queue<'s>,
    pushed: Result<(), RunError>,
}

impl Outcomes for Told<'_> {
    fn ready(&mut self, slot: SlotRef) {
        if self.pushed.is_ok() {
            self.pushed = self.queue.push(slot);
        }
    }

    fn unblocked(&mut self, _: SlotRef) {}

    fn consumed(&mut self, slot: SlotRef) {
        if self.window.is_oldest(slot) {
            self.window.advance(self.window.ring_of(slot), |_, _| {});
        }
    }
}

impl Submitter<'_> {
    /// Submits the whole program.
    fn run(mut self) -> Result<Submitted, RunError> {
        loop {
            match self.orchestrator.read()? {
                Step::Done => return Ok(Submitted { tasks: self.orchestrator.next_task().0, edges: self.edges }),
                Step::ScopeBegin => self.orchestrator.open_scope(),
                Step::ScopeEnd => {
                    let scope = self.orchestrator.close_scope(&self.window);
                    let mut told = self.told();
                    scope.release(&self.window, &mut told);
                    told.pushed?;
                }
                Step::Submit => {
                    wait_for_parent(&mut self.orchestrator);
                    self.orchestrator.find(&self.window);
                    let slot = self.reserve()?;
                    self.publish(slot)?;
                }
            }
        }
    }

    fn told(&self) -> Told<'_> {
        Told { window: &self.window, queue: &self.queue, pushed: Ok(()) }
    }

    fn reserve(&mut self) -> Result<SlotRef, RunError> {
        let mut device_is_idle = false;
        loop {
            match self.orchestrator.try_reserve(&self.window) {
                Ok((slot, _)) => return Ok(slot),
                Err(Refusal::TooLarge(resource)) => return Err(self.orchestrator.too_large(resource, &self.window)),
                // The device was idle after the question, so what does not fit now never will.
                Err(Refusal::Full(on)) if device_is_idle => return Err(self.stuck(on).unwrap_or_else(|error| error)),
                Err(Refusal::Full(_)) => device_is_idle = self.wait_for_room()?,
            }
        }
    }

    /// Waits until something was retired, or the device has nothing left to do, which is true then.
    fn wait_for_room(&mut self) -> Result<bool, RunError> {
        let ring = self.window.ring(self.orchestrator.ring());
        let before = ring.retired();
        let has_room = || ring.retired() != before;
        if spin_until(SPIN, &has_room) {
            return Ok(false);
        }
        self.questions += 1;
        let question = self.questions;
        loop {
            self.mapped.set(At::Blocked, question);
            self.mapped.ring(Bell::Device);
            if self.mapped.get(At::Answered) == question {
                return Ok(true);
            }
            if has_room() {
                return Ok(false);
            }
            check_device(self.mapped)?;
            self.mapped.wait(Bell::Submitter, || has_room() || self.mapped.get(At::Answered) == question);
        }
    }

    /// The error of a submitter that waits for ever: what is full, who keeps it, and which sizes would do.
    fn stuck(&mut self, on: Resource) -> Result<RunError, RunError> {
        let mut deadlock = explain(&Scene {
            window: &self.window,
            orchestrator: &self.orchestrator,
            machine: self.machine,
            blocked: Some(on),
            at: 0,
            line: &|slot| self.lines[slot as usize],
        });
        if let Some(why) = contradiction(&deadlock) {
            return Err(Mapped::error(&self.mapped.path, format!("corrupt, or a fault of the runtime: {why}")));
        }
        let what = self.orchestrator.blame(&format!(
            "deadlock: the {} is full, current {}, last_task_alive {}, size {}; the device has nothing left to do",
            on.name(),
            deadlock.current,
            deadlock.last_task_alive,
            deadlock.size
        ));
        self.orchestrator.validate_rest()?;
        let mut machine = self.machine.clone();
        machine.scheduler.threads = machine.scheduler.threads.max(1);
        fill_needed(&mut deadlock, self.workload, &machine, &Choice::default())?;
        let remedy = if deadlock.needed.is_empty() { "" } else { " Sizes are set where the device is started." };
        Ok(RunError::Stuck(format!("{what}. {}{remedy}", deadlock.circumstances())))
    }

    fn publish(&mut self, slot: SlotRef) -> Result<(), RunError> {
        self.lines[slot as usize] = self.orchestrator.line();
        let published = self.orchestrator.publish(&self.window, slot, 0);
        self.edges += published.edges;
        if published.cancelled.is_some() {
            self.window.slot(slot).job.set(flag::CANCELLED | flag::BAD);
        }
        let mut told = self.told();
        if self.window.satisfy(slot) {
            told.ready(slot);
        }
        told.pushed?;
        self.mapped.ring(Bell::Device);
        if self.orchestrator.next_task().0.is_multiple_of(1024) {
            check_device(self.mapped)?;
        }
        Ok(())
    }
}

/// What a deadlock cannot be like in a sound window.
fn contradiction(deadlock: &Deadlock) -> Option<String> {
    let Deadlock { used, size, resource, .. } = deadlock;
    if used > size {
        return Some(format!("{used} of {size} of the {resource} are in use"));
    }
    let OldestTask { task, state, held_by_scopes, waits_for_consumers, waits_for_producers, .. } =
        deadlock.oldest.as_ref()?;
    let is_free = held_by_scopes.is_empty() && waits_for_consumers.is_empty() && waits_for_producers.is_empty();
    is_free.then(|| format!("nothing keeps task {task}, which is {state}, but it is not retired"))
}

/// An error when the device is gone or a task has failed.
fn check_device(mapped: &Mapped) -> Result<(), RunError> {
    mapped.set(At::SubmitterBeat, mapped.get(At::SubmitterBeat).wrapping_add(1));
    if let Some(task) = mapped.get(At::Failed).checked_sub(1) {
        return Err(RunError::Kernel(format!("task {task} failed on the device")));
    }
    let (doing, pid) = (mapped.get(At::DeviceState), mapped.get(At::DevicePid));
    match doing {
        state::WORKING if is_locked(&mapped.file) => Ok(()),
        // It may have come to its end between the two looks.
        state::WORKING if mapped.get(At::DeviceState) != state::WORKING => Ok(()),
        state::WORKING => Err(Mapped::error(&mapped.path, format!("the device (process {pid}) died"))),
        state::FAILED => Err(Mapped::error(&mapped.path, "the device ended with an error")),
        _ => Err(Mapped::error(&mapped.path, format!("corrupt: state {doing} of the device"))),
    }
}

fn wait_for_device(mapped: &Mapped) -> Result<(), RunError> {
    while mapped.get(At::DeviceState) != state::DONE {
        check_device(mapped)?;
        mapped.wait(Bell::Submitter, || mapped.get(At::DeviceState) != state::WORKING);
    }
    Ok(())
}

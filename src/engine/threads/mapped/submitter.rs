//! The submitter: attaches to a device's window and orchestrates a workload.

use super::{At, Bell, Mapped, is_locked, state, submitter_lock, try_lock};
use crate::config::Machine;
use crate::engine::threads::executor::spin_until;
use crate::engine::threads::ring::ReadyRing;
use crate::error::RunError;
use crate::kernel::{Costs, Table};
use crate::orchestrator::{Orchestrator, Step};
use crate::sync::Shared;
use crate::window::{Outcomes, Refusal, Resource, SlotRef, Window, flag};
use crate::workload::Workload;
use std::fs::{File, OpenOptions};
use std::path::Path;

/// Rounds of looking before it waits.
const SPIN: u32 = 400;

/// What was submitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Submitted {
    /// Tasks.
    pub tasks: u64,
    /// Edges linked.
    pub edges: u64,
}

/// Submits a workload to the device of a window and waits until everything is consumed. The sizes of the window are those of its device;
/// `machine` says what there is besides.
///
/// # Errors
/// When there is no device, another submitter is there, the device dies or a task fails, the workload cannot be read, or something
/// stays full for ever.
pub fn submit(path: &Path, workload: &dyn Workload, machine: &Machine) -> Result<Submitted, RunError> {
    let mapped = Mapped::open(path)?;
    if !is_locked(path) {
        return Err(Mapped::error(path, "no device works on this window; start `ptosim device` first"));
    }
    let _lock = attach(&mapped)?;
    let machine = Machine { limits: mapped.limits.clone(), ..machine.clone() };
    let table = Table::load(&machine.kernels)?;
    let orchestrator = Orchestrator::new(workload.open()?, Costs::new(&table), &machine);
    let mut submitter =
        Submitter { window: mapped.window()?, queue: mapped.queue()?, mapped: &mapped, orchestrator, edges: 0 };
    let result = submitter.run();
    mapped.set(At::SubmitterState, if result.is_ok() { state::DONE } else { state::FAILED });
    mapped.ring(Bell::Device);
    result?;
    submitter.wait_for_device()?;
    Ok(Submitted { tasks: submitter.orchestrator.next_task().0, edges: submitter.edges })
}

/// Becomes the only submitter of a window that has had none.
fn attach(mapped: &Mapped) -> Result<File, RunError> {
    let path = submitter_lock(&mapped.path);
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|error| Mapped::error(&path, error))?;
    if !try_lock(&file) {
        let pid = mapped.get(At::SubmitterPid);
        return Err(Mapped::error(&mapped.path, format!("has a submitter already (process {pid})")));
    }
    if mapped.get(At::SubmitterState) != state::ABSENT {
        return Err(Mapped::error(&mapped.path, "had its submitter; a device works for one, start another"));
    }
    mapped.set(At::SubmitterPid, std::process::id().into());
    mapped.set(At::SubmitterState, state::WORKING);
    Ok(file)
}

struct Submitter<'m> {
    mapped: &'m Mapped,
    window: Window<Shared>,
    queue: ReadyRing<Shared>,
    orchestrator: Orchestrator,
    edges: u64,
}

/// Follows up what a change of the window leads to on this side.
struct Told<'s> {
    window: &'s Window<Shared>,
    queue: &'s ReadyRing<Shared>,
    full: bool,
}

impl Outcomes for Told<'_> {
    fn ready(&mut self, slot: SlotRef) {
        // Only a corrupt file makes it full; the caller tells.
        self.full |= self.queue.push(slot, &mut 0).is_err();
    }

    fn unblocked(&mut self, _: SlotRef) {}

    fn consumed(&mut self, slot: SlotRef) {
        if self.window.is_oldest(slot) {
            self.window.advance(self.window.ring_of(slot), |_| {});
        }
    }
}

impl Submitter<'_> {
    fn run(&mut self) -> Result<(), RunError> {
        loop {
            match self.orchestrator.read(&self.window)? {
                Step::Done => return Ok(()),
                Step::ScopeBegin => self.orchestrator.open_scope(),
                Step::ScopeEnd => {
                    let mut told = Told { window: &self.window, queue: &self.queue, full: false };
                    self.orchestrator.close_scope(&self.window).release(&self.window, &mut told);
                }
                Step::Submit => {
                    let slot = self.reserve()?;
                    self.publish(slot)?;
                }
            }
        }
    }

    fn reserve(&mut self) -> Result<SlotRef, RunError> {
        let mut device_is_idle = false;
        loop {
            match self.orchestrator.try_reserve(&self.window) {
                Ok((slot, _)) => return Ok(slot),
                Err(Refusal::TooLarge(resource)) => return Err(self.orchestrator.too_large(resource, &self.window)),
                // The device was idle after the question, so what does not fit now never will.
                Err(Refusal::Full(on)) if device_is_idle => return Err(self.stuck(on)),
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
        let question = self.mapped.get(At::Blocked) + 1;
        self.mapped.set(At::Blocked, question);
        self.mapped.ring(Bell::Device);
        loop {
            if self.mapped.get(At::Answered) == question {
                return Ok(true);
            }
            if has_room() {
                return Ok(false);
            }
            self.check_device()?;
            self.mapped.wait(Bell::Submitter, || has_room() || self.mapped.get(At::Answered) == question);
        }
    }

    fn stuck(&self, on: Resource) -> RunError {
        let ring = self.window.ring(self.orchestrator.ring());
        RunError::Stuck(self.orchestrator.blame(&format!(
            "deadlock: the {} is full, current {}, last_task_alive {}; the device has nothing left to do",
            on.name(),
            ring.submitted(),
            ring.retired()
        )))
    }

    fn publish(&mut self, slot: SlotRef) -> Result<(), RunError> {
        let published = self.orchestrator.publish(&self.window, slot, 0);
        self.edges += published.edges;
        if published.cancelled.is_some() {
            self.window.slot(slot).job.set(flag::CANCELLED | flag::BAD);
        }
        let mut told = Told { window: &self.window, queue: &self.queue, full: false };
        if self.window.satisfy(slot) {
            told.ready(slot);
        }
        if told.full {
            return Err(Mapped::error(&self.mapped.path, "corrupt: the queue of READY tasks is full"));
        }
        self.mapped.ring(Bell::Device);
        if self.orchestrator.next_task().0.is_multiple_of(1024) {
            self.check_device()?;
        }
        Ok(())
    }

    /// An error when the device is gone or a task has failed.
    fn check_device(&self) -> Result<(), RunError> {
        let mapped = self.mapped;
        mapped.set(At::SubmitterBeat, mapped.get(At::SubmitterBeat) + 1);
        if let Some(task) = mapped.get(At::Failed).checked_sub(1) {
            return Err(RunError::Kernel(format!("task {task} failed on the device")));
        }
        if mapped.get(At::DeviceState) == state::FAILED {
            return Err(Mapped::error(&mapped.path, "the device ended with an error"));
        }
        if !is_locked(&mapped.path) && mapped.get(At::DeviceState) != state::DONE {
            let pid = mapped.get(At::DevicePid);
            return Err(Mapped::error(&mapped.path, format!("the device (process {pid}) died")));
        }
        Ok(())
    }

    fn wait_for_device(&self) -> Result<(), RunError> {
        while self.mapped.get(At::DeviceState) != state::DONE {
            self.check_device()?;
            self.mapped.wait(Bell::Submitter, || self.mapped.get(At::DeviceState) != state::WORKING);
        }
        Ok(())
    }
}

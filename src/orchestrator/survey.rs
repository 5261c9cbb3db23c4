//! Reads a program to see all its dependencies: nothing runs and nothing is ever consumed, so that no window is needed.

use super::segments::Access;
use super::{Orchestrator, Step, each_conflict};
use crate::error::RunError;
use crate::id::TaskId;
use crate::window::NONE;
use crate::workload::Operation;

impl Orchestrator {
    /// Reads the next operation as if nothing were ever consumed. A task's cost and type are settled, and `found` is told its
    /// producers, some more than once.
    ///
    /// # Errors
    /// As [`Orchestrator::read`].
    #[inline]
    pub fn survey(&mut self, mut found: impl FnMut(TaskId)) -> Result<Step, RunError> {
        loop {
            match self.next_operation()? {
                None => return Ok(Step::Done),
                Some(Operation::Buffer { buffer, .. }) => self.map.bind(buffer),
                Some(Operation::ScopeBegin) => return Ok(Step::ScopeBegin),
                Some(Operation::ScopeEnd) => return Ok(Step::ScopeEnd),
                Some(Operation::Submit) => break,
            }
        }
        self.resolve()?;
        let consumer = self.next;
        // A task that is still to come is no producer.
        self.task.deps.iter().filter(|&&dep| dep < consumer).for_each(|&dep| found(dep));
        if self.has_regions {
            let Orchestrator { task, map, rules, .. } = &*self;
            each_conflict(task, map, rules.machine.rules.hazards, |access| {
                if access.slot != NONE {
                    found(access.task);
                }
            });
            // Anything but NONE is somebody.
            self.enter_accesses(Access { task: consumer, slot: 0, path: 0 });
        }
        self.next.0 += 1;
        Ok(Step::Submit)
    }
}

//! What the orchestrator is doing in virtual time, and the account of its cycles.

use super::Phase;
use crate::ledger::Supply;
use crate::report::{Blocked, OrchestratorReport};
use crate::window::{Resource, SlotRef};

/// Where the orchestrator stands, and its account.
pub(super) struct Clerk {
    stage: Duty,
    /// When there is something to do: at once (0), at a known cycle, or only when something is consumed or never.
    due: u64,
    supply: Supply,
    /// The slot of the task that is reserved and not yet published.
    pub(super) reserved: SlotRef,
    pub(super) report: OrchestratorReport,
    /// When the present duty began.
    pub(super) since: u64,
}

/// What the orchestrator is doing. It is looked at for every task, so it is small.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Duty {
    /// About to read an operation.
    Read,
    /// Does not start the submission before a cycle.
    Wait,
    /// About to reserve.
    Reserve,
    /// Something is full.
    Blocked(Resource),
    /// Pays until a cycle, then acts.
    Pay(Action),
    /// The program is over.
    Done,
}

/// What the orchestrator does when it has paid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    Publish,
    OpenScope,
    CloseScope,
}

impl Clerk {
    /// Before the first operation.
    pub(super) fn new() -> Clerk {
        Clerk {
            stage: Duty::Read,
            due: 0,
            supply: Supply::WORKING,
            reserved: 0,
            report: OrchestratorReport::default(),
            since: 0,
        }
    }

    /// What it is doing.
    #[inline]
    pub(super) fn stage(&self) -> Duty {
        self.stage
    }

    /// When it has something to do, or the largest number.
    #[inline]
    pub(super) fn due(&self) -> u64 {
        self.due
    }

    /// What that means for workers without a task.
    #[inline]
    pub(super) fn supply(&self) -> Supply {
        self.supply
    }

    /// Something was consumed: what was full is to be looked at again.
    #[inline]
    pub(super) fn look_again(&mut self) {
        if let Duty::Blocked(_) = self.stage {
            self.due = 0;
        }
    }

    /// Nothing is waited for any more, except for what is being paid.
    pub(super) fn hurry(&mut self) {
        if !matches!(self.stage, Duty::Pay(..) | Duty::Done) {
            self.due = 0;
        }
    }

    /// Books the time of the present duty, which it returns if it took any, and takes up another, which is due at a cycle. Looking
    /// again at something still full is no new wait.
    #[inline(always)]
    pub(super) fn turn(&mut self, duty: Duty, due: u64, now: u64) -> Option<Phase> {
        let (before, span) = (self.stage, now - self.since);
        self.stage = duty;
        self.due = due;
        self.supply = match duty {
            Duty::Blocked(on) => Supply::blocked(on),
            Duty::Done => Supply::DONE,
            Duty::Read | Duty::Wait | Duty::Reserve | Duty::Pay(_) => Supply::WORKING,
        };
        if before == duty && matches!(duty, Duty::Blocked(_)) {
            return None;
        }
        self.since = now;
        if span == 0 {
            return None;
        }
        match before {
            Duty::Read | Duty::Reserve => None,
            Duty::Done => {
                self.report.done += span;
                None
            }
            Duty::Wait => {
                self.report.waiting += span;
                Some(Phase::Waiting)
            }
            Duty::Pay(..) => {
                self.report.working += span;
                Some(Phase::Working)
            }
            Duty::Blocked(on) => {
                *part(&mut self.report.blocked, on) += span;
                Some(Phase::Blocked(on))
            }
        }
    }

    /// Cycles spent waiting for a slot until now.
    pub(super) fn blocked_on_window(&self, now: u64) -> u64 {
        let is_blocked = self.stage == Duty::Blocked(Resource::Window);
        self.report.blocked.window + if is_blocked { now - self.since } else { 0 }
    }

    /// Books the time of the last duty, which it returns if it took any. A wait that never ended counts as stuck.
    pub(super) fn close(&mut self, now: u64) -> Option<Phase> {
        let Duty::Blocked(on) = self.stage else { return self.turn(self.stage, self.due, now) };
        self.report.stuck = now - self.since;
        (self.report.stuck > 0).then_some(Phase::Blocked(on))
    }
}

fn part(blocked: &mut Blocked, resource: Resource) -> &mut u64 {
    match resource {
        Resource::Window => &mut blocked.window,
        Resource::Heap => &mut blocked.heap,
        Resource::Deps => &mut blocked.deps,
        Resource::Tensors => &mut blocked.tensors,
    }
}

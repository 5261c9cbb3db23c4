//! What the orchestrator is doing in virtual time, and the account of its cycles.

use super::Phase;
use crate::ledger::Supply;
use crate::report::{Blocked, OrchestratorReport};
use crate::window::{Resource, SlotRef};

/// Accounts of its cycles: one for each resource that may be full, and these.
const N_ACCOUNTS: usize = 8;
const WORKING: u8 = 4;
const WAITING: u8 = 5;
const DONE: u8 = 6;
/// About to do something: takes no time.
const AT_HAND: u8 = 7;

/// Where the orchestrator stands, and its account.
pub(super) struct Clerk {
    stage: Duty,
    /// When there is something to do: at once (0), at a known cycle, or only when something is consumed or never.
    due: u64,
    supply: Supply,
    /// Of the present duty.
    account: u8,
    /// The slot of the task that is reserved and not yet published.
    pub(super) reserved: SlotRef,
    /// Cycles by account, up to the beginning of the present duty.
    spent: [u64; N_ACCOUNTS],
    /// When the present duty began.
    pub(super) since: u64,
    /// Cycles of a wait that never ended.
    stuck: u64,
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
            account: AT_HAND,
            reserved: 0,
            spent: [0; N_ACCOUNTS],
            since: 0,
            stuck: 0,
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
        let (before, is_wait) = (self.stage, matches!(duty, Duty::Blocked(_)));
        self.stage = duty;
        self.due = due;
        if is_wait && before == duty {
            return None;
        }
        self.supply = duty.supply();
        self.book(duty.account(), now)
    }

    /// Books the time of the present duty, which it returns if it took any; another account begins.
    #[inline(always)]
    fn book(&mut self, account: u8, now: u64) -> Option<Phase> {
        let (before, span) = (std::mem::replace(&mut self.account, account), now - self.since);
        self.spent[usize::from(before) % N_ACCOUNTS] += span;
        self.since = now;
        if span > 0 { phase(before) } else { None }
    }

    /// Cycles spent waiting for a slot until now.
    pub(super) fn blocked_on_window(&self, now: u64) -> u64 {
        let is_blocked = self.stage == Duty::Blocked(Resource::Window);
        self.spent[Resource::Window as usize] + if is_blocked { now - self.since } else { 0 }
    }

    /// Books the time of the last duty, which it returns if it took any. A wait that never ended counts as stuck.
    pub(super) fn close(&mut self, now: u64) -> Option<Phase> {
        let Duty::Blocked(on) = self.stage else { return self.book(self.account, now) };
        self.stuck = now - self.since;
        (self.stuck > 0).then_some(Phase::Blocked(on))
    }

    /// Where its cycles went.
    pub(super) fn report(&self) -> OrchestratorReport {
        let [window, heap, deps, tensors, working, waiting, done, _] = self.spent;
        OrchestratorReport {
            working,
            blocked: Blocked { window, heap, deps, tensors },
            stuck: self.stuck,
            waiting,
            done,
        }
    }
}

impl Duty {
    /// What it means for workers without a task.
    #[inline(always)]
    fn supply(self) -> Supply {
        match self {
            Duty::Blocked(on) => Supply::blocked(on),
            Duty::Done => Supply::DONE,
            Duty::Read | Duty::Wait | Duty::Reserve | Duty::Pay(_) => Supply::WORKING,
        }
    }

    #[inline(always)]
    fn account(self) -> u8 {
        match self {
            Duty::Blocked(on) => on as u8,
            Duty::Pay(_) => WORKING,
            Duty::Wait => WAITING,
            Duty::Done => DONE,
            Duty::Read | Duty::Reserve => AT_HAND,
        }
    }
}

/// What the cycles of an account are for observers.
#[inline]
fn phase(account: u8) -> Option<Phase> {
    match account {
        0 => Some(Phase::Blocked(Resource::Window)),
        1 => Some(Phase::Blocked(Resource::Heap)),
        2 => Some(Phase::Blocked(Resource::Deps)),
        3 => Some(Phase::Blocked(Resource::Tensors)),
        WORKING => Some(Phase::Working),
        WAITING => Some(Phase::Waiting),
        _ => None,
    }
}

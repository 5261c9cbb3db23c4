//! Idle cycles by what was waited for, in running sums.

/// Accounts of a worker that runs nothing, in the order of [`crate::report::Accounts`].
const N_IDLE: usize = 9;

/// Cycles per idle account.
pub(super) type Sums = [u64; N_IDLE];

pub(super) const OVERHEAD: usize = 0;
pub(super) const HELD: usize = 1;
pub(super) const DEPENDENCY: usize = 2;
pub(super) const FULL: usize = 3;
pub(super) const ORCHESTRATOR: usize = 7;
pub(super) const DRAINED: usize = 8;

/// Idle cycles so far for one cause after the other: those of closed spans, and the span that is open.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Running {
    closed: Sums,
    pub(super) cause: usize,
    since: u64,
}

impl Running {
    /// From `now` on the cause is this one.
    #[inline]
    pub(super) fn turn(&mut self, cause: usize, now: u64) {
        self.closed[self.cause] += now - self.since;
        self.cause = cause;
        self.since = now;
    }

    /// Writes the sums up to `now` to where they are kept. Made elsewhere and copied they would cost a good deal more, because a
    /// processor waits when it reads in one piece what it has just written in several.
    #[inline]
    pub(super) fn note(&self, sums: &mut Sums, now: u64) {
        *sums = self.closed;
        sums[self.cause] += now - self.since;
    }

    /// Cycles up to `now` in which tasks were held back.
    #[inline]
    pub(super) fn held(&self, now: u64) -> u64 {
        self.closed[HELD] + if self.cause == HELD { now - self.since } else { 0 }
    }

    /// Adds the cycles of a free worker from `then`, when the sums were `before`, to `now`.
    #[inline]
    pub(super) fn book(&self, idle: &mut Sums, then: u64, before: &Sums, now: u64) {
        if self.since <= then {
            idle[self.cause] += now - then;
        } else {
            // The cause has changed since, so that the closed spans have all that was open then.
            add(idle, before, &self.closed);
            idle[self.cause] += now - self.since;
        }
    }
}

/// Adds what the sums of a type grew by.
#[inline]
pub(super) fn add(idle: &mut Sums, before: &Sums, after: &Sums) {
    for account in 0..N_IDLE {
        idle[account] += after[account] - before[account];
    }
}

/// While the scheduler has not completed a worker's last block, nobody but the scheduler keeps tasks back from it.
#[inline]
pub(super) fn blame_scheduler(idle: &mut Sums, held: u64) {
    idle[HELD] -= held;
    idle[OVERHEAD] += held;
}

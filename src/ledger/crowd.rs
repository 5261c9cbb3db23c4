//! Tasks of one class, counted by what they wait for, and what that means for a worker without a task.

use super::class::N_CLASSES;
use super::sums::{DEPENDENCY, HELD, OVERHEAD};

/// Tasks of one class by what they wait for.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Crowd {
    /// Submitted, not READY.
    pub(super) pending: u64,
    /// Of those, waiting for nothing but their admission.
    pub(super) admitting: u64,
    /// READY, with blocks not yet placed.
    pub(super) ready: u64,
    /// Blocks placed but not started.
    pub(super) starting: u64,
}

impl Crowd {
    #[inline]
    fn with(&self, other: &Crowd) -> Crowd {
        Crowd {
            pending: self.pending + other.pending,
            admitting: self.admitting + other.admitting,
            ready: self.ready + other.ready,
            starting: self.starting + other.starting,
        }
    }

    /// The account of a free worker where nothing takes time but kernels; `nothing` if there is no task for it.
    #[inline]
    pub(super) fn cause(&self, nothing: usize) -> usize {
        if self.ready > 0 {
            HELD
        } else if self.pending > 0 {
            DEPENDENCY
        } else {
            nothing
        }
    }

    /// The same where more takes time.
    #[inline]
    pub(super) fn costly_cause(&self, nothing: usize) -> usize {
        if self.starting | self.admitting > 0 { OVERHEAD } else { self.cause(nothing) }
    }
}

/// The tasks that a worker can run which runs several classes.
#[inline(never)]
pub(super) fn crowd_of_several(crowds: &[Crowd; N_CLASSES], classes: u8) -> Crowd {
    let crowds = crowds.iter().enumerate().filter(|(class, _)| classes >> class & 1 == 1);
    crowds.fold(Crowd::default(), |all, (_, crowd)| all.with(crowd))
}

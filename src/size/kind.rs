//! The four sizes, and the steps in which each is searched.

use crate::config::Limits;
use serde::Serialize;

/// A size that can be searched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Task slots.
    Window,
    /// Bytes of the heap ring.
    Heap,
    /// Dependency entries.
    Deps,
    /// Tensor-map entries.
    Tensors,
}

impl Kind {
    /// All of them, in the order in which a submission asks for them.
    pub const ALL: [Kind; 4] = [Kind::Window, Kind::Heap, Kind::Deps, Kind::Tensors];

    /// The size that a resource of this name has.
    #[must_use]
    pub fn named(resource: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.key().strip_prefix("limits.") == Some(resource))
    }

    /// The dotted key of the setting.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Kind::Window => "limits.window",
            Kind::Heap => "limits.heap",
            Kind::Deps => "limits.deps",
            Kind::Tensors => "limits.tensors",
        }
    }

    /// The size among all limits.
    #[must_use]
    pub fn value(self, limits: &Limits) -> u64 {
        match self {
            Kind::Window => limits.window,
            Kind::Heap => limits.heap,
            Kind::Deps => limits.deps,
            Kind::Tensors => limits.tensors,
        }
    }

    /// The limits with this one changed.
    #[must_use]
    pub fn with(self, limits: &Limits, size: u64) -> Limits {
        let mut limits = limits.clone();
        match self {
            Kind::Window => limits.window = size,
            Kind::Heap => limits.heap = size,
            Kind::Deps => limits.deps = size,
            Kind::Tensors => limits.tensors = size,
        }
        limits
    }
}

/// The sizes of a kind that make a difference: powers of two, or multiples of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// 0 means powers of two.
    step: u64,
    /// Slots of a window that stay unused.
    spare: u64,
}

impl Scale {
    pub(super) fn new(kind: Kind, heap_step: u64, spare: u64) -> Scale {
        let step = match kind {
            Kind::Window => 0,
            Kind::Heap => heap_step,
            Kind::Deps | Kind::Tensors => 1,
        };
        Scale { step, spare }
    }

    /// The next smaller size, if there is one that a machine can have.
    pub(super) fn below(self, size: u64) -> Option<u64> {
        match self.step {
            0 => Some(size / 2).filter(|&size| size > self.spare),
            step => size.checked_sub(step),
        }
    }

    /// The next larger size.
    pub(super) fn above(self, size: u64) -> u64 {
        if self.step == 0 { size * 2 } else { size.saturating_add(self.step) }
    }

    /// The smallest size of the scale that is at least `size`.
    pub(super) fn round_up(self, size: u64) -> u64 {
        if self.step == 0 { size.next_power_of_two() } else { size.next_multiple_of(self.step) }
    }

    /// The largest size of the scale that is at most `size`.
    pub(super) fn round_down(self, size: u64) -> u64 {
        match self.step {
            0 => 1 << size.ilog2(),
            step => size / step * step,
        }
    }

    /// The middle between two sizes that are not neighbours.
    pub(super) fn middle(self, low: u64, high: u64) -> u64 {
        match self.step {
            0 => 1 << u32::midpoint(low.trailing_zeros(), high.trailing_zeros()),
            step => u64::midpoint(low / step, high / step) * step,
        }
    }

    /// How many steps lie between two sizes.
    pub(super) fn distance(self, low: u64, high: u64) -> u64 {
        match self.step {
            0 => u64::from(high.trailing_zeros().saturating_sub(low.trailing_zeros())),
            step => high.saturating_sub(low) / step,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_step_in_powers_of_two_and_heaps_in_pieces() {
        let window = Scale::new(Kind::Window, 192, 1);
        assert_eq!((window.below(8), window.below(2), window.above(8)), (Some(4), None, 16));
        assert_eq!((window.middle(4, 64), window.distance(4, 64), window.round_up(5)), (16, 4, 8));
        let heap = Scale::new(Kind::Heap, 192, 1);
        assert_eq!((heap.below(384), heap.below(0), heap.round_up(200)), (Some(192), None, 384));
        assert_eq!((heap.middle(192, 768), heap.distance(192, 768)), (384, 3));
        assert_eq!((heap.round_down(575), heap.round_down(576), window.round_down(7)), (384, 576, 4));
    }

    #[test]
    fn a_size_has_the_name_of_its_resource() {
        assert_eq!((Kind::named("deps"), Kind::named("policy")), (Some(Kind::Deps), None));
    }
}

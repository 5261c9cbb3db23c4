//! What a check can find, and how bad it is.

use super::accesses::Span;
pub use super::fits::Misfit;
use super::reach::Redundant;
use super::survey::{Conflict, Escape, Hazard};
use crate::id::{BufferId, TaskId};
use serde::Serialize;

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Some timing gives wrong numbers, or no timing completes.
    Error,
    /// Probably not what was meant.
    Warning,
    /// Harmless; could be simpler.
    Note,
}

/// Kinds of findings, the worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A write and an earlier read of the same bytes, without order.
    WriteAfterRead,
    /// Two writes of the same bytes, without order.
    WriteAfterWrite,
    /// A heap buffer used after the scope that held it was closed.
    UseAfterScope,
    /// A scope or task that no timing fits into the machine's sizes.
    NeverFits,
    /// A heap buffer that no scope holds, used by another task.
    Unheld,
    /// Outputs of one task that share bytes.
    OverlappingOutputs,
    /// A heap buffer that nobody reads.
    NeverRead,
    /// A task whose outputs nobody needs.
    NotNeeded,
    /// A declared buffer that nobody touches.
    Unused,
    /// A dependency that others imply.
    Redundant,
}

/// One thing found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fact {
    /// Two accesses without order.
    Race(Conflict),
    /// A buffer used when nothing keeps it.
    Escape(Escape),
    /// More held than there is room for.
    NeverFits(Misfit),
    /// Outputs of one task share bytes.
    Overlap {
        /// The task.
        task: TaskId,
        /// The first shared bytes.
        bytes: Span,
    },
    /// Nobody reads a heap buffer.
    Unread {
        /// The task that makes it.
        task: TaskId,
        /// The buffer.
        buffer: BufferId,
    },
    /// Nobody needs a task.
    Unneeded {
        /// The task.
        task: TaskId,
    },
    /// Nobody touches a declared buffer.
    Unused {
        /// The buffer.
        buffer: BufferId,
        /// Line of its declaration.
        line: Option<u64>,
    },
    /// An edge that a longer path implies.
    Redundant {
        /// The edge.
        edge: Redundant,
        /// Whether the program names it in `deps`; otherwise it follows from regions.
        is_named: bool,
    },
}

impl Kind {
    /// The name used in files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::WriteAfterRead => "write_after_read",
            Kind::WriteAfterWrite => "write_after_write",
            Kind::UseAfterScope => "use_after_scope",
            Kind::NeverFits => "never_fits",
            Kind::Unheld => "unheld",
            Kind::OverlappingOutputs => "overlapping_outputs",
            Kind::NeverRead => "never_read",
            Kind::NotNeeded => "not_needed",
            Kind::Unused => "unused",
            Kind::Redundant => "redundant",
        }
    }

    /// How bad it is.
    #[must_use]
    pub fn level(self) -> Level {
        match self {
            Kind::WriteAfterRead | Kind::WriteAfterWrite | Kind::UseAfterScope | Kind::NeverFits => Level::Error,
            Kind::Unheld | Kind::OverlappingOutputs | Kind::NeverRead | Kind::NotNeeded => Level::Warning,
            Kind::Unused | Kind::Redundant => Level::Note,
        }
    }
}

impl Level {
    /// The name used in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        }
    }
}

impl Fact {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Fact::Race(Conflict { hazard: Hazard::WriteAfterRead, .. }) => Kind::WriteAfterRead,
            Fact::Race(Conflict { hazard: Hazard::WriteAfterWrite, .. }) => Kind::WriteAfterWrite,
            Fact::Escape(Escape { scope: Some(_), .. }) => Kind::UseAfterScope,
            Fact::Escape(Escape { scope: None, .. }) => Kind::Unheld,
            Fact::NeverFits(_) => Kind::NeverFits,
            Fact::Overlap { .. } => Kind::OverlappingOutputs,
            Fact::Unread { .. } => Kind::NeverRead,
            Fact::Unneeded { .. } => Kind::NotNeeded,
            Fact::Unused { .. } => Kind::Unused,
            Fact::Redundant { .. } => Kind::Redundant,
        }
    }

    /// How bad it is.
    #[must_use]
    pub fn level(&self) -> Level {
        self.kind().level()
    }
}

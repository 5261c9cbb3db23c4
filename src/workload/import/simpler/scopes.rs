//! Where scopes begin and end: from the boundaries that the runtime wrote down, or else from the rings of the tasks.

use super::super::file::Input;
use super::model::Boundary;
use crate::workload::trace::MAX_SCOPES;
use crate::workload::{Operation, WorkloadError};
use std::fmt;

/// Rings that the runtime has.
const RINGS: u32 = 4;
const REMEDY: &str = "a line is {\"phase\":\"begin\",\"depth\":0,\"ring\":0,\"task_window_end\":0,…}";

/// Where a task lives: ring and number in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Home {
    /// The ring.
    pub ring: u32,
    /// Tasks before it in that ring.
    pub local: u64,
}

impl Home {
    /// The home in an id of the runtime.
    pub fn of(id: u64) -> Home {
        Home { ring: (id >> 32) as u32, local: id & u64::from(u32::MAX) }
    }
}

/// What the runtime calls the task.
impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ring == 0 { write!(f, "t{}", self.local) } else { write!(f, "r{}t{}", self.ring, self.local) }
    }
}

/// Reads `scope_stats.jsonl`; its first line holds sizes and is passed over.
pub fn boundaries(input: &Input) -> Result<Vec<Boundary<'_>>, WorkloadError> {
    let mut found = Vec::new();
    for (index, line) in input.bytes.split(|&byte| byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() || (index == 0 && memchr::memmem::find(line, b"\"phase\"").is_none()) {
            continue;
        }
        let wrong = |what: String| input.error_in(index as u64 + 1, format!("{what}; {REMEDY}"));
        let boundary: Boundary<'_> =
            serde_json::from_slice(line).map_err(|error| wrong(super::super::file::shown(&error.to_string())))?;
        if &*boundary.phase != "begin" && &*boundary.phase != "end" {
            return Err(wrong(format!(
                "phase \"{}\" is neither begin nor end",
                super::super::file::shown(&boundary.phase)
            )));
        }
        found.push(boundary);
    }
    Ok(found)
}

/// The tasks with the boundaries between them; `None` when they do not fit together.
///
/// A boundary tells how many tasks its ring had then. It stands before the next task of that ring, or where the next task
/// lives in a ring that the open scopes do not lead to.
pub fn merged(homes: &[Home], boundaries: &[Boundary<'_>]) -> Option<Vec<Operation>> {
    let (mut operations, mut depth, mut next) = (Vec::with_capacity(homes.len() + boundaries.len()), 0, 0);
    let cross = |operations: &mut Vec<Operation>, depth: &mut u32, boundary: &Boundary<'_>| {
        let is_begin = &*boundary.phase == "begin";
        *depth = if is_begin { *depth + 1 } else { depth.checked_sub(1)? };
        operations.push(if is_begin { Operation::ScopeBegin } else { Operation::ScopeEnd });
        (*depth <= MAX_SCOPES).then_some(())
    };
    for home in homes {
        while let Some(boundary) = boundaries.get(next) {
            let is_due = u64::from(home.ring) == boundary.ring.0 && boundary.task_window_end.0 <= home.local;
            if !is_due && ring_at(depth) == home.ring {
                break;
            }
            cross(&mut operations, &mut depth, boundary)?;
            next += 1;
        }
        if ring_at(depth) != home.ring {
            return None;
        }
        operations.push(Operation::Submit);
    }
    for boundary in boundaries.get(next..)? {
        cross(&mut operations, &mut depth, boundary)?;
    }
    operations.resize(operations.len() + depth as usize, Operation::ScopeEnd);
    Some(operations)
}

/// The ring of tasks submitted with so many scopes open.
fn ring_at(depth: u32) -> u32 {
    depth.clamp(1, RINGS) - 1
}

/// Scopes as deep as the rings of the tasks ask for; a scope that follows another one at the same depth is not seen.
pub fn by_rings(homes: &[Home]) -> Vec<Operation> {
    let (mut operations, mut depth) = (Vec::with_capacity(homes.len()), 0_usize);
    let mut go = |operations: &mut Vec<Operation>, wanted: usize| {
        let step = if wanted > depth { Operation::ScopeBegin } else { Operation::ScopeEnd };
        operations.resize(operations.len() + wanted.abs_diff(depth), step);
        depth = wanted;
    };
    for home in homes {
        go(&mut operations, home.ring.min(RINGS - 1) as usize + 1);
        operations.push(Operation::Submit);
    }
    go(&mut operations, 0);
    operations
}

//! Fields that few tasks have, as JSON, so that a record of a task stays small.

use crate::id::TaskId;
use crate::workload::{PolicyFields, Submit};
use serde::{Deserialize, Serialize};

/// The rare fields of a task.
#[derive(Serialize, Deserialize)]
pub struct Rare {
    #[serde(default, skip_serializing_if = "is_zero")]
    submit_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<(u64, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    policy: Option<Box<PolicyFields>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Rare {
    /// The rare fields of a task, if it has any. What only policies read is taken from it.
    #[inline]
    pub fn taken_from(task: &mut Submit) -> Option<Rare> {
        let is_plain = task.submit_at == 0 && task.parent.is_none() && task.policy.is_none();
        if is_plain {
            return None;
        }
        Some(Rare {
            submit_at: task.submit_at,
            parent: task.parent.map(|(parent, offset)| (parent.0, offset)),
            policy: task.policy.take(),
        })
    }

    /// Gives the fields to a task, which is number `id` of its program.
    pub fn give(self, task: &mut Submit, id: u64) -> Result<(), String> {
        if let Some((parent, _)) = self.parent.filter(|&(parent, _)| parent >= id) {
            return Err(format!("its parent is task {parent}, which does not come earlier"));
        }
        task.submit_at = self.submit_at;
        task.parent = self.parent.map(|(parent, offset)| (TaskId(parent), offset));
        task.policy = self.policy;
        Ok(())
    }
}

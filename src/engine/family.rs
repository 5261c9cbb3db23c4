//! Start-to-start dependencies: a task created while its parent runs waits for the parent's start plus an offset.

use crate::id::TaskId;
use crate::window::SlotRef;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Children that wait. Only programs with `parent` put anything in.
#[derive(Default)]
pub(super) struct Family {
    /// Children by parent that has not started, in file order.
    waiting: BTreeMap<TaskId, Vec<(SlotRef, u64)>>,
    /// `(cycle, order, child)` of the releases to come.
    due: BinaryHeap<Reverse<(u64, u64, SlotRef)>>,
    order: u64,
    /// The parent of the task at hand and when it started, if the task takes its very slot.
    replaced: Option<(TaskId, u64)>,
    /// Tasks that were cancelled or dropped before they started, of programs that have faults.
    never_started: BTreeSet<TaskId>,
    /// Children of which nobody knows whether their time has come.
    untimed: u64,
}

impl Family {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether no child waits for anything.
    #[inline]
    pub(super) fn is_unused(&self) -> bool {
        self.is_empty() && self.is_settled()
    }

    /// Whether no release is to come.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        self.due.is_empty()
    }

    /// A child waits for the start of its parent.
    pub(super) fn wait_for_start(&mut self, child: SlotRef, parent: TaskId, offset: u64) {
        self.waiting.entry(parent).or_default().push((child, offset));
    }

    /// The children of a parent that will never start.
    pub(super) fn orphans(&mut self, parent: TaskId) -> Vec<(SlotRef, u64)> {
        self.waiting.remove(&parent).unwrap_or_default()
    }

    /// A child does not wait, because it is not known when its parent started.
    pub(super) fn count_untimed(&mut self) {
        self.untimed += 1;
    }

    /// Tells of the children that should perhaps have waited.
    pub(super) fn note(&self) -> Option<String> {
        let who = match self.untimed {
            0 => return None,
            1 => "1 task did not wait for the start of its parent".into(),
            many => format!("{many} tasks did not wait for the start of their parents"),
        };
        Some(format!(
            "{who} plus spawn_offset: the start is known until another task takes the parent's slot; a larger limits.window keeps it longer"
        ))
    }

    /// The task at hand is about to take the slot of its parent, which started at this cycle.
    pub(super) fn replace(&mut self, parent: TaskId, start: u64) {
        self.replaced = Some((parent, start));
    }

    /// When a parent started whose slot the task at hand has taken.
    pub(super) fn start_of_replaced(&self, parent: TaskId) -> Option<u64> {
        self.replaced.filter(|(replaced, _)| *replaced == parent).map(|(_, start)| start)
    }

    /// A task will never start.
    pub(super) fn remember_lost(&mut self, task: TaskId) {
        self.never_started.insert(task);
    }

    /// Whether a task never started and never will.
    pub(super) fn is_lost(&self, task: TaskId) -> bool {
        self.never_started.contains(&task)
    }

    /// A child waits for nothing any more.
    pub(super) fn forget(&mut self, child: SlotRef) {
        self.waiting.retain(|_, children| {
            children.retain(|&(waiting, _)| waiting != child);
            !children.is_empty()
        });
        self.due.retain(|&Reverse((.., due))| due != child);
    }

    /// The first block of a task starts.
    pub(super) fn parent_started(&mut self, parent: TaskId, start: u64) {
        let Some(children) = self.waiting.remove(&parent) else { return };
        for (child, offset) in children {
            self.push(start.saturating_add(offset), child);
        }
    }

    /// A child is released at a cycle.
    pub(super) fn push(&mut self, at: u64, child: SlotRef) {
        self.due.push(Reverse((at, self.order, child)));
        self.order += 1;
    }

    /// A child whose time has come.
    #[inline]
    pub(super) fn pop_due(&mut self, now: u64) -> Option<SlotRef> {
        let &Reverse((at, _, child)) = self.due.peek()?;
        if at > now {
            return None;
        }
        self.due.pop();
        Some(child)
    }

    /// The child that is released next.
    pub(super) fn next_child(&self) -> Option<SlotRef> {
        self.due.peek().map(|&Reverse((.., child))| child)
    }

    #[inline]
    pub(super) fn next_release(&self) -> Option<u64> {
        self.due.peek().map(|&Reverse((at, ..))| at)
    }
}

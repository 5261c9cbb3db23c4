//! Collects the producers of a task, each once, dead or alive.

use super::segments::Access;
use super::{Orchestrator, each_conflict};
use crate::id::TaskId;
use crate::sync::Sharing;
use crate::window::{Linked, NONE, SlotRef, Window, flag};
use std::collections::BTreeSet;

/// A task that another one depends on, and where it lived when that was found.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Producer {
    pub(super) task: TaskId,
    pub(super) slot: SlotRef,
}

/// Producers found so far.
pub(super) struct Found<'a, S: Sharing> {
    pub(super) window: &'a Window<S>,
    pub(super) producers: &'a mut Vec<Producer>,
    /// Those that are consumed, and perhaps their slots' tenants no more. One thread knows when they ended, others must ask.
    pub(super) gone: &'a mut Vec<Producer>,
    pub(super) consumer: TaskId,
    pub(super) path: u64,
    pub(super) bad: &'a BTreeSet<TaskId>,
    pub(super) poisoned: bool,
}

impl<S: Sharing> Found<'_, S> {
    /// A producer by an access of its own, if there is one.
    #[inline]
    pub(super) fn access(&mut self, access: &Access) {
        if access.slot == NONE {
            return;
        }
        let producer = Producer { task: access.task, slot: access.slot };
        self.path = self.path.max(access.path);
        if self.window.is_alive(producer.slot, producer.task) {
            if self.window.mark(producer.slot, self.consumer) {
                self.producers.push(producer);
            }
        } else if S::SHARED {
            self.gone.push(producer);
        }
        if !self.bad.is_empty() && self.bad.contains(&producer.task) {
            self.poisoned = true;
        }
    }
}

impl Orchestrator {
    /// Collects the live producers of the task at hand, each once, and the longest path up to it.
    #[inline(always)]
    pub(super) fn find_producers<S: Sharing>(&mut self, window: &Window<S>) {
        self.is_found = true;
        self.producers.clear();
        if S::SHARED {
            self.gone.clear();
        }
        (self.path, self.poisoned) = (0, false);
        if !self.task.deps.is_empty() && self.homes.is_empty() {
            self.find_named(window, |window, _, task| window.only_home(task));
        } else if !self.task.deps.is_empty() {
            // With several rings a task must be searched for, unless its id says where to look.
            self.find_named(window, |window, homes, task| {
                let slot = homes[task.0 as usize & (homes.len() - 1)];
                if window.slot(slot).task() == task { Some(slot) } else { window.last_home(task) }
            });
        }
        if self.has_regions {
            self.find_by_regions(window);
        }
    }

    /// Finds the producers of the task at hand now, rather than when there is room for it. Where threads share the window: what ended
    /// badly must be asked for after that.
    #[inline]
    pub fn find<S: Sharing>(&mut self, window: &Window<S>) {
        if !self.is_found {
            self.find_producers(window);
        }
    }

    /// Adds the producers named by id. The path of one is known as long as its slot has no other tenant.
    #[inline(never)]
    fn find_named<S: Sharing>(
        &mut self,
        window: &Window<S>,
        home: impl Fn(&Window<S>, &[SlotRef], TaskId) -> Option<SlotRef>,
    ) {
        let Orchestrator { task, producers, gone, paths, homes, next, .. } = self;
        let (mut path, mut count) = (0, 0);
        // Room for all of them first, so that the list does not grow in the loop.
        producers.resize(task.deps.len(), Producer::default());
        for &task in &task.deps {
            let Some(slot) = home(window, homes, task) else {
                if S::SHARED {
                    gone.push(Producer { task, slot: NONE });
                }
                continue;
            };
            path = path.max(paths[slot as usize]);
            if window.is_consumed(slot) {
                if S::SHARED {
                    gone.push(Producer { task, slot });
                }
            } else {
                producers[count] = Producer { task, slot };
                count += usize::from(window.mark(slot, *next));
            }
        }
        producers.truncate(count);
        self.path = path;
        if !self.bad.is_empty() {
            self.poisoned = self.task.deps.iter().any(|dep| self.bad.contains(dep));
        }
    }

    /// Adds the producers that follow from what the task at hand reads and writes.
    #[inline(never)]
    fn find_by_regions<S: Sharing>(&mut self, window: &Window<S>) {
        let Orchestrator { task, map, producers, gone, bad, next, rules, path, poisoned, .. } = self;
        let mut found = Found { window, producers, gone, consumer: *next, path: *path, bad, poisoned: *poisoned };
        each_conflict(task, map, rules.machine.rules.hazards, |access| found.access(access));
        (self.path, self.poisoned) = (found.path, found.poisoned);
    }

    /// Links the task at hand, in `slot`, to its producers; returns the number of edges and a producer that ended badly.
    #[inline(never)]
    pub(super) fn link_producers<S: Sharing>(&mut self, window: &Window<S>, slot: SlotRef) -> (u64, Option<TaskId>) {
        let mut cancelled = None;
        let mut links = window.links(slot, self.producers.len() as u32);
        for producer in &self.producers {
            let from = window.slot(producer.slot);
            if from.task() != producer.task {
                // It retired while this task waited, and this task may even have its slot.
                if self.bad.contains(&producer.task) {
                    cancelled = Some(producer.task);
                }
                if S::SHARED {
                    self.gone.push(*producer);
                }
                links.miss();
                continue;
            }
            let linked = links.link(producer.slot, from);
            if S::SHARED && linked != Linked::Waiting {
                self.gone.push(*producer);
            }
            if from.job.has(flag::BAD | flag::CANCELLED) {
                cancelled = Some(producer.task);
            }
        }
        (links.finish().into(), cancelled)
    }

    /// Some producer that ended badly and is not in the window any more.
    pub(super) fn bad_producer(&self) -> Option<TaskId> {
        let explicit = self.task.deps.iter().copied().find(|dep| self.bad.contains(dep));
        explicit.or_else(|| self.bad.last().copied())
    }

    /// Remembers that a task ended badly, for consumers submitted after it is gone.
    pub fn remember_bad(&mut self, task: TaskId) {
        self.bad.insert(task);
    }

    /// Whether a task is known to have ended badly.
    pub fn is_bad(&self, task: TaskId) -> bool {
        self.bad.contains(&task)
    }
}

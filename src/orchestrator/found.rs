//! Collects the producers of a task, each once, dead or alive.

use super::segments::Access;
use super::{Orchestrator, each_conflict};
use crate::id::TaskId;
use crate::sync::Sharing;
use crate::window::{HeapPiece, Linked, NONE, Needs, Slot, SlotRef, Window, flag};
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
        let slot = self.window.slot(producer.slot);
        if slot.task() == producer.task && !slot.is_consumed() {
            if slot.mark(self.consumer) {
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
        (self.path, self.edges, self.poisoned) = (0, 0, false);
        if !self.task.deps.is_empty() {
            self.find_named(window);
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

    /// Adds the producers named by id.
    #[inline(never)]
    fn find_named<S: Sharing>(&mut self, window: &Window<S>) {
        let mut producers = std::mem::take(&mut self.producers);
        self.each_named(window, |producer, _| producers.push(producer));
        self.producers = producers;
        if !self.bad.is_empty() {
            self.poisoned = self.task.deps.iter().any(|dep| self.bad.contains(dep));
        }
    }

    /// Visits the producers named by id that are not consumed, each once. The path of one is known as long as its slot has no other
    /// tenant.
    #[inline(always)]
    fn each_named<S: Sharing>(&mut self, window: &Window<S>, mut visit: impl FnMut(Producer, &Slot<S>)) {
        let Orchestrator { task, gone, paths, homes, next, .. } = self;
        let mut path = 0;
        for &task in &task.deps {
            let home = if homes.is_empty() {
                window.only_home(task)
            } else {
                // With several rings a task must be searched for, unless its id says where to look.
                let slot = homes[task.0 as usize & (homes.len() - 1)];
                if window.slot(slot).task() == task { Some(slot) } else { window.last_home(task) }
            };
            let Some(slot) = home else {
                if S::SHARED {
                    gone.push(Producer { task, slot: NONE });
                }
                continue;
            };
            path = path.max(paths[slot as usize]);
            let from = window.slot(slot);
            if from.is_consumed() {
                if S::SHARED {
                    gone.push(Producer { task, slot });
                }
            } else if from.mark(*next) {
                visit(Producer { task, slot }, from);
            }
        }
        self.path = path;
    }

    /// Whether the task at hand can be linked in one go when it is reserved: its producers are named, none of them can have ended
    /// badly, and there are entries for all of them.
    #[inline]
    pub(super) fn is_linkable<S: Sharing>(&self, window: &Window<S>) -> bool {
        !self.is_found
            && !self.has_regions
            && self.bad.is_empty()
            && window.has_entries(self.ring, self.task.deps.len())
    }

    /// Takes what the task at hand needs, which is there, and links it to the producers that it names.
    #[inline(always)]
    pub(super) fn reserve_linked<S: Sharing>(
        &mut self,
        window: &Window<S>,
        piece: Option<HeapPiece>,
    ) -> (SlotRef, Needs) {
        // The slot may still tell the path of a producer, so it is taken after that was asked for.
        let mut links = window.links_ahead(self.ring);
        self.each_named(window, |producer, from| {
            // What ended badly would be known by name.
            let _ = links.link(producer.slot, from);
        });
        let needs = Needs { deps: links.linked().into(), ..self.needs };
        let slot = window.take_checked(self.ring, self.next, &needs, piece, self.holds());
        self.edges = links.finish();
        (slot, needs)
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

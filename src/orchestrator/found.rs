//! Collects the producers of a task, each once, dead or alive.

use super::segments::Access;
use super::{Orchestrator, each_conflict};
use crate::id::TaskId;
use crate::sync::Sharing;
use crate::window::{Linked, NONE, Slot, SlotRef, Window, flag};
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
    /// Those that are consumed, whose slots may have new tenants. An engine of one thread knows when they ended, threads must ask.
    pub(super) gone: &'a mut Vec<Producer>,
    pub(super) consumer: TaskId,
    pub(super) path: u64,
    pub(super) bad: &'a BTreeSet<TaskId>,
    pub(super) poisoned: bool,
}

impl<S: Sharing> Found<'_, S> {
    /// Takes in the task behind an access, if there is one.
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
        (self.path, self.poisoned) = (0, false);
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
    #[inline(always)]
    fn find_named<S: Sharing>(&mut self, window: &Window<S>) {
        // Who is found by name may be found by a region too.
        let marks = self.has_regions || self.task.deps.len() > 1;
        self.each_named(window, marks, |producers, producer, _| producers.push(producer));
        if !self.bad.is_empty() {
            self.poisoned = self.task.deps.iter().any(|dep| self.bad.contains(dep));
        }
    }

    /// Visits the producers named by id that are not consumed, each once if it `marks` them, with the list of those found. The path of
    /// one is known as long as its slot has no other tenant.
    #[inline(always)]
    fn each_named<S: Sharing>(
        &mut self,
        window: &Window<S>,
        marks: bool,
        visit: impl FnMut(&mut Vec<Producer>, Producer, &Slot<S>),
    ) {
        if self.homes.is_empty() {
            self.each_named_in::<S, false>(window, marks, visit);
        } else {
            self.each_named_in::<S, true>(window, marks, visit);
        }
    }

    /// The same in a window of one ring or of `SEVERAL`.
    #[inline(always)]
    fn each_named_in<S: Sharing, const SEVERAL: bool>(
        &mut self,
        window: &Window<S>,
        marks: bool,
        mut visit: impl FnMut(&mut Vec<Producer>, Producer, &Slot<S>),
    ) {
        let Orchestrator { task, gone, paths, homes, next, producers, .. } = self;
        let mut path = 0;
        for &task in &task.deps {
            // With several rings a task must be searched for, unless its id says where to look.
            let place = if SEVERAL { homes[task.0 as usize & (homes.len() - 1)] } else { window.at(0, task.0) };
            let (mut slot, mut from) = (place, window.slot(place));
            if from.task() != task {
                let home = if SEVERAL { window.last_home(task) } else { None };
                let Some(home) = home else {
                    if S::SHARED {
                        gone.push(Producer { task, slot: NONE });
                    }
                    continue;
                };
                (slot, from) = (home, window.slot(home));
            }
            path = path.max(paths[slot as usize]);
            if from.is_consumed() {
                if S::SHARED {
                    gone.push(Producer { task, slot });
                }
            } else if !marks || from.mark(*next) {
                visit(producers, Producer { task, slot }, from);
            }
        }
        self.path = path;
    }

    /// Submits the task at hand, for which there is a slot, in one go, if its producers are named, none of them can have ended badly,
    /// and entries for them are all else it needs and there. Only where one thread does everything and submitting takes no time, and
    /// for a task that [is single](Orchestrator::is_single). `ring` is [its ring](Orchestrator::ring), `cycles` is what it adds to its path, `first` what comes before the first
    /// of a path; `flags` are set from the beginning.
    #[inline(always)]
    pub fn try_submit<'w, S: Sharing>(
        &mut self,
        window: &'w Window<S>,
        ring: u32,
        (cycles, first): (u64, u64),
        flags: u32,
    ) -> Option<(SlotRef, &'w Slot<S>, u32)> {
        let count = self.task.deps.len();
        if !self.is_simple || self.is_found || !self.bad.is_empty() || !window.has_entries(ring, count) {
            return None;
        }
        let mut newcomer = window.newcomer(ring);
        // What ended badly would be known by name.
        self.each_named(window, count > 1, |_, producer, from| newcomer.link(producer.slot, from));
        let first = if self.path == 0 { first } else { 0 };
        let path = self.path.saturating_add(first.saturating_add(cycles));
        // The slot may still tell the path of a producer, so it is taken after that was asked for.
        let (slot_ref, slot, edges) = newcomer.take(self.next, self.holds());
        self.describe_single(slot, flags);
        self.enter(window, slot_ref, path);
        Some((slot_ref, slot, edges))
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
    #[inline(always)]
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
}

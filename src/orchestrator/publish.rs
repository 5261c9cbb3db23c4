//! The task at hand is described, linked and entered: from here on the scheduler owns it.

use super::segments::Access;
use super::{Orchestrator, Published};
use crate::config::Hazards;
use crate::ledger::Class;
use crate::sync::Sharing;
use crate::window::{Slot, SlotRef, Window};
use crate::workload::Cost;

impl Orchestrator {
    /// Describes and links the task at hand and moves on; `cycles` is what it adds to its path.
    #[inline(always)]
    pub fn publish<S: Sharing>(&mut self, window: &Window<S>, slot_ref: SlotRef, cycles: u64) -> Published {
        let (kind, cost) = self.resolved;
        // Publishing, by the admission that follows, makes all of it visible.
        let class = Class::of(kind, self.task.units);
        window.slot(slot_ref).job.describe(&self.task, kind, cost, class.bits());
        self.link_and_enter(window, slot_ref, cycles)
    }

    /// The same for a task that [is single](Orchestrator::is_single), with these flags.
    #[inline(always)]
    pub fn publish_single<S: Sharing>(
        &mut self,
        window: &Window<S>,
        slot_ref: SlotRef,
        cycles: u64,
        flags: u32,
    ) -> Published {
        self.describe_single(window.slot(slot_ref), flags);
        self.link_and_enter(window, slot_ref, cycles)
    }

    /// Writes what the task at hand, which is single, asks for.
    #[inline(always)]
    pub(super) fn describe_single<S: Sharing>(&self, slot: &Slot<S>, flags: u32) {
        let (kind, cost) = self.resolved;
        let (Cost::Cycles(cycles) | Cost::PerKind { cube: cycles, .. }) = cost;
        slot.job.describe_single(&self.task, kind, cycles, flags);
    }

    #[inline(always)]
    fn link_and_enter<S: Sharing>(&mut self, window: &Window<S>, slot_ref: SlotRef, cycles: u64) -> Published {
        let path = self.path.saturating_add(cycles);
        let mut published = Published { edges: 0, path, cancelled: None };
        if !self.producers.is_empty() {
            (published.edges, published.cancelled) = self.link_producers(window, slot_ref);
        }
        if self.poisoned && published.cancelled.is_none() {
            published.cancelled = self.bad_producer();
        }
        let task = self.next;
        self.enter(window, slot_ref, path);
        if self.has_regions {
            self.register(window, Access { task, slot: slot_ref, path });
        }
        published
    }

    /// Notes path and slot of the task at hand, hands it to its scope and moves on.
    #[inline(always)]
    pub(super) fn enter<S: Sharing>(&mut self, window: &Window<S>, slot_ref: SlotRef, path: u64) {
        self.paths[slot_ref as usize] = path;
        if !self.homes.is_empty() {
            let place = self.next.0 as usize & (self.homes.len() - 1);
            self.homes[place] = slot_ref;
        }
        self.join_scope(window, slot_ref);
        self.next.0 += 1;
    }

    /// Enters the task's accesses.
    #[inline(always)]
    fn register<S: Sharing>(&mut self, window: &Window<S>, access: Access) {
        self.enter_accesses(access);
        let Orchestrator { map, bad, .. } = self;
        map.sweep_if_large(|access| !window.is_alive(access.slot, access.task) && !bad.contains(&access.task));
    }

    /// Enters the task's accesses into the map: reads, then writes, then new buffers.
    #[inline(always)]
    pub(super) fn enter_accesses(&mut self, access: Access) {
        let Orchestrator { task, map, rules, .. } = self;
        if rules.machine.rules.hazards == Hazards::Full {
            for region in &task.reads {
                map.read(region, access);
            }
        }
        for region in task.writes.iter().chain(&task.updates) {
            map.write(region, access);
        }
        for new in &task.allocates {
            map.bind_written(new.buffer, new.bytes, access);
        }
    }
}

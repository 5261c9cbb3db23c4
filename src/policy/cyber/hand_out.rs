//! Free workers take runnable routines: each from its own home, the one with the smallest clock first.

use super::Cyber;
use super::idle::Idle;
use super::lanes::{WIDE, lanes_of};
use super::routine::Key;
use crate::id::WorkerType;
use crate::policy::{Placement, Stage};
use crate::window::prefetch;

impl Cyber {
    /// MIX tasks and tasks whose blocks start together.
    pub(super) fn place_wide(&mut self, stage: &mut Stage<'_>) {
        for lane in 0..self.wide.len() {
            while let Some(key) = self.wide[lane].head(&self.routines) {
                let index = key.routine();
                let slot = self.routines[index].next_slot();
                let placement = stage.place(slot);
                if placement == Placement::Nothing {
                    break;
                }
                self.counts.wide += u64::from(!self.routines[index].is_running);
                if self.placed(index, placement) {
                    self.wide[lane].pop();
                }
            }
        }
    }

    /// Every worker serves the same home: the first routine goes to the free worker of its type with the smallest clock, which
    /// is what workers by clock would choose.
    pub(super) fn place_undivided(&mut self, stage: &mut Stage<'_>) {
        let begin = stage.placed.len();
        if self.layout.homes[0].has(WorkerType::Any) {
            self.place_lanes((1 << WIDE) - 1, stage);
            sort_by_clock(stage, begin);
        } else {
            // Workers of a type look at its own lane only.
            for lane in 0..WIDE {
                let middle = stage.placed.len();
                self.place_lanes(1 << lane, stage);
                self.merge(begin, middle, stage);
            }
        }
    }

    /// Hands out the routines of some lanes, a bit each, of the one home.
    #[inline]
    fn place_lanes(&mut self, lanes: u8, stage: &mut Stage<'_>) {
        while self.homes[0].has_any(lanes) {
            let floor = stage.floor();
            // Task types are MIX and then those of the lanes.
            let is_served = |lane| lanes >> lane & 1 == 1 && floor.has_free(lane + 1);
            let Some((key, lane)) = self.homes[0].first(&self.routines, is_served) else { return };
            let placement = stage.place(self.routines[key.routine()].next_slot());
            if self.placed(key.routine(), placement) {
                self.homes[0].pop(lane);
                self.foresee(0, lane, stage);
            }
        }
    }

    /// The routines that come next have waited for long and are in no near cache any more: fetches one that comes soon, and the task
    /// of the one before it.
    #[inline]
    fn foresee(&self, home: u32, lane: usize, stage: &Stage<'_>) {
        let lanes = &self.homes[home as usize];
        if let Some(next) = lanes.likely(lane, 1) {
            self.routines[next].activations.front().iter().for_each(|next| stage.window.foresee(next.slot));
        }
        if let Some(soon) = lanes.likely(lane, 3) {
            prefetch(&self.routines[soon]);
        }
    }

    /// Free workers by clock, each from its own home. Homes share nothing, so they go one after the other.
    pub(super) fn place_by_home(&mut self, stage: &mut Stage<'_>) {
        if let [home] = self.waiting[..] {
            self.place_at(home, stage);
            if self.homes[home as usize].is_empty() {
                self.waiting.clear();
            }
            return;
        }
        let begin = stage.placed.len();
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|&home| {
            self.place_at(home, stage);
            !self.homes[home as usize].is_empty()
        });
        self.waiting = waiting;
        sort_by_clock(stage, begin);
    }

    /// The free workers of a home take its routines, the one with the smallest clock first.
    fn place_at(&mut self, home: u32, stage: &mut Stage<'_>) {
        if self.layout.homes[home as usize].has(WorkerType::Any) {
            self.idle[home as usize].iter_mut().for_each(|(_, idle)| idle.refresh(stage.floor()));
            while let Some(index) = self.first_idle(home, stage) {
                self.serve(home, index, stage);
            }
            return;
        }
        // Workers of a type look at its own lane only.
        let begin = stage.placed.len();
        for index in 0..self.idle[home as usize].len() {
            let (kind, idle) = &mut self.idle[home as usize][index];
            let lane = *kind as usize;
            if self.homes[home as usize].has_any(1 << lane) {
                idle.refresh(stage.floor());
                let middle = stage.placed.len();
                self.serve_lane(home, index, lane, stage);
                self.merge(begin, middle, stage);
            }
        }
    }

    /// The free workers of a type take the routines of their lane.
    #[inline]
    fn serve_lane(&mut self, home: u32, index: usize, lane: usize, stage: &mut Stage<'_>) {
        while let Some((_, worker)) = self.idle[home as usize][index].1.first(stage.floor())
            && let Some(key) = self.homes[home as usize].head(lane, &self.routines)
        {
            self.idle[home as usize][index].1.take();
            self.place_first(home, (key, lane), worker, stage);
        }
    }

    /// Workers start in the order of their clocks: puts those placed since `middle`, who are in that order, among those placed
    /// since `begin`, who are too.
    #[inline]
    fn merge(&mut self, begin: usize, middle: usize, stage: &mut Stage<'_>) {
        let (floor, placed) = (&*stage.floor, &*stage.placed);
        let key = |worker: u32| (floor.worker(worker).clock, worker);
        if middle == begin || middle == placed.len() || key(placed[middle - 1]) < key(placed[middle]) {
            return;
        }
        self.merge_anew(begin, middle, stage);
    }

    #[inline(never)]
    fn merge_anew(&mut self, begin: usize, middle: usize, stage: &mut Stage<'_>) {
        let (floor, placed) = (&*stage.floor, &mut *stage.placed);
        let key = |worker: u32| (floor.worker(worker).clock, worker);
        self.scratch.extend_from_slice(&placed[middle..]);
        let (mut left, mut end) = (middle, placed.len());
        while let Some(&last) = self.scratch.last() {
            end -= 1;
            if left > begin && key(placed[left - 1]) > key(last) {
                left -= 1;
                placed[end] = placed[left];
            } else {
                placed[end] = last;
                self.scratch.pop();
            }
        }
    }

    /// Which type has the free worker with the smallest clock that may find work in its home.
    fn first_idle(&mut self, home: u32, stage: &Stage<'_>) -> Option<usize> {
        let lanes = &self.homes[home as usize];
        let first = |(index, (kind, idle)): (usize, &mut (WorkerType, Idle))| {
            if lanes.has_any(lanes_of(*kind)) { idle.first(stage.floor()).map(|worker| (worker, index)) } else { None }
        };
        self.idle[home as usize].iter_mut().enumerate().filter_map(first).min().map(|(_, index)| index)
    }

    /// Gives the first free worker of a type the first routine of its home that it can run.
    #[inline]
    fn serve(&mut self, home: u32, index: usize, stage: &mut Stage<'_>) {
        let (kind, idle) = &mut self.idle[home as usize][index];
        let lanes = lanes_of(*kind);
        let first = self.homes[home as usize].first(&self.routines, |lane| lanes >> lane & 1 == 1);
        let Some(first) = first else { return };
        let Some(worker) = idle.take() else { return };
        self.place_first(home, first, worker, stage);
    }

    /// Gives a worker the routine that comes first in a lane.
    #[inline]
    fn place_first(&mut self, home: u32, (key, lane): (Key, usize), worker: u32, stage: &mut Stage<'_>) {
        let placement = stage.place_on(self.routines[key.routine()].next_slot(), worker);
        if self.placed(key.routine(), placement) {
            self.homes[home as usize].pop(lane);
            self.foresee(home, lane, stage);
        }
    }

    /// Books a block of the next activation; true if it was its last, so that the routine leaves its heap.
    #[inline]
    fn placed(&mut self, index: u32, placement: Placement) -> bool {
        let routine = &mut self.routines[index];
        if !routine.is_running {
            routine.is_running = true;
            self.counts.activations[routine.home as usize] += 1;
        }
        if placement != Placement::All {
            return false;
        }
        routine.activations.pop_front();
        routine.is_queued = false;
        self.runnable -= 1;
        true
    }
}

/// Workers of different types and homes start in the order of their clocks.
fn sort_by_clock(stage: &mut Stage<'_>, begin: usize) {
    let floor = &*stage.floor;
    stage.placed[begin..].sort_unstable_by_key(|&worker| (floor.worker(worker).clock, worker));
}

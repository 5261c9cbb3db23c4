//! The `RunQueue`: groups of work items that share a context, and single tasks without one, in the order in which they are served.
//!
//! ```text
//! push ─▶ group: Waiting ─▶ Runnable, once in the queue ─take▶ Running, a turn ─proceed▶ next item
//!                   ▲                   ▲                              │ empty │ quantum or item limit used up
//!                   └───────────────────┼──────────────────────────────┘       │
//!                                       └── tail of the queue ─────────────────┘
//! ```
//!
//! The queue is kept in lanes by what can serve the first item of an entry, so that a worker looks at heads only. Time is a
//! number given by the caller: cycles in a simulation, nanoseconds on threads.

use super::lane::{Entry, Key, Lane, Place};
use serde::Serialize;
use std::collections::VecDeque;

/// How many lanes there are.
pub const LANES: usize = 9;

/// Work that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item<T> {
    /// The work.
    pub what: T,
    /// What can serve it.
    pub lane: u8,
    /// Since when it waits.
    pub queued: u64,
}

/// Where a group stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum GroupState {
    /// It has nothing to do.
    Waiting,
    /// It stands in the queue.
    Runnable,
    /// It has a turn.
    Running,
    /// It takes no more work.
    Shutdown,
}

/// Work items of one context.
pub struct Group<T> {
    name: String,
    is_system: bool,
    state: GroupState,
    items: VecDeque<Item<T>>,
    /// Of its entry in the queue.
    ticket: u64,
    turn_start: u64,
    turn_items: u64,
    /// For the report.
    pub tally: Tally,
}

/// What is counted of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Tally {
    /// Items that came.
    pub enqueued: u64,
    /// Items that ended.
    pub processed: u64,
    /// Of those, the ones that failed.
    pub failed: u64,
    /// Items that were dropped because it was stopped.
    pub dropped: u64,
    /// Turns it had.
    pub turns: u64,
    /// Most items that waited at once.
    pub longest_queue: usize,
}

/// When a turn ends early, and who goes first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Length of a turn; 0 is no limit.
    pub quantum: u64,
    /// Items of a turn; 0 is no limit.
    pub items: u64,
    /// A longer turn is counted; 0 is no limit.
    pub turn_warning: u64,
    /// Entries of system contexts go first.
    pub prioritize_system: bool,
}

/// What is counted of all turns.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Turns {
    /// Turns begun.
    pub turns: u64,
    /// Turns that ended with work left because their time was used up.
    pub quantum_expirations: u64,
    /// Turns that ended with work left because they had run enough items.
    pub item_limit_expirations: u64,
    /// Turns that ended because their worker cannot run the next item.
    pub type_switches: u64,
    /// Turns longer than the warning length.
    pub long_running_turns: u64,
    /// Most entries of the queue at once.
    pub run_queue_high_water: u64,
}

/// Groups and the order in which they are served.
pub struct RunQueue<T> {
    limits: Limits,
    groups: Vec<Group<T>>,
    lanes: [Lane<T>; LANES],
    /// A bit for every lane that is not empty.
    filled: u16,
    tickets: u64,
    length: u64,
    turns: Turns,
}

impl<T> Group<T> {
    /// The name of its context.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether its context belongs to the system.
    pub fn is_system(&self) -> bool {
        self.is_system
    }

    /// Where it stands.
    pub fn state(&self) -> GroupState {
        self.state
    }

    /// Items that wait.
    pub fn n_waiting(&self) -> usize {
        self.items.len()
    }
}

impl<T> RunQueue<T> {
    /// An empty queue.
    #[must_use]
    pub fn new(limits: Limits) -> RunQueue<T> {
        RunQueue {
            limits,
            groups: Vec::new(),
            lanes: std::array::from_fn(|_| Lane { places: Default::default() }),
            filled: 0,
            tickets: 0,
            length: 0,
            turns: Turns::default(),
        }
    }

    /// A new group; those of the system are called `system:…`.
    pub fn add_group(&mut self, name: &str) -> u32 {
        self.groups.push(Group {
            name: name.into(),
            is_system: name.starts_with("system:"),
            state: GroupState::Waiting,
            items: VecDeque::new(),
            ticket: 0,
            turn_start: 0,
            turn_items: 0,
            tally: Tally::default(),
        });
        self.groups.len() as u32 - 1
    }

    /// All groups in the order in which they were added.
    pub fn groups(&self) -> &[Group<T>] {
        &self.groups
    }

    /// A group.
    pub fn group(&self, group: u32) -> &Group<T> {
        &self.groups[group as usize]
    }

    /// A group, to count something.
    pub fn group_mut(&mut self, group: u32) -> &mut Group<T> {
        &mut self.groups[group as usize]
    }

    /// What all turns came to.
    pub fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Entries of the queue.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether nothing waits for a worker.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// An item came: it joins its group, or stands in the queue itself if it has none.
    pub fn push(&mut self, group: Option<u32>, item: Item<T>, now: u64) {
        let Some(group) = group else {
            let (key, lane) = (self.key(true, now, false), item.lane);
            return self.enter(lane, Place { key, entry: Entry::Task(item) });
        };
        let members = &mut self.groups[group as usize];
        debug_assert!(members.state != GroupState::Shutdown, "a stopped group takes no more work");
        members.items.push_back(item);
        members.tally.enqueued += 1;
        members.tally.longest_queue = members.tally.longest_queue.max(members.items.len());
        if members.state == GroupState::Waiting {
            self.queue_up(group, now, false);
        }
    }

    /// Items that run before what waits in a running group, in this order.
    pub fn push_front(&mut self, group: u32, items: impl DoubleEndedIterator<Item = Item<T>>) {
        let members = &mut self.groups[group as usize];
        for item in items.rev() {
            members.items.push_front(item);
            members.tally.enqueued += 1;
        }
        members.tally.longest_queue = members.tally.longest_queue.max(members.items.len());
    }

    /// Whether one of these lanes, a bit each, is not empty.
    #[inline]
    pub fn has_any(&self, lanes: u16) -> bool {
        self.filled & lanes != 0
    }

    /// The lane with the first entry of all that are `served`.
    #[inline]
    pub fn first_lane(&mut self, lanes: u16, served: impl Fn(usize) -> bool) -> Option<usize> {
        let (mut left, mut first) = (self.filled & lanes, None);
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            if served(lane)
                && let Some(key) = self.first(lane)
                && first.is_none_or(|(other, _)| key < other)
            {
                first = Some((key, lane));
            }
        }
        first.map(|(_, lane)| lane)
    }

    /// Place of the first entry of a lane.
    #[inline]
    pub fn first(&mut self, lane: usize) -> Option<Key> {
        while let Some(place) = self.lanes[lane].front() {
            match place.entry {
                Entry::Group(group) if self.is_stale(group, place.key) => _ = self.lanes[lane].pop_front(),
                _ => return Some(place.key),
            }
        }
        self.filled &= !(1 << lane);
        None
    }

    /// The item that [`RunQueue::take`] would give.
    pub fn first_item(&mut self, lane: usize) -> Option<&Item<T>> {
        self.first(lane)?;
        match &self.lanes[lane].front()?.entry {
            Entry::Task(item) => Some(item),
            Entry::Group(group) => self.groups[*group as usize].items.front(),
        }
    }

    /// Takes the first entry of a lane: a task without context, or the first item of a group, whose turn begins.
    pub fn take(&mut self, lane: usize, now: u64) -> Option<(Option<u32>, Item<T>)> {
        self.first(lane)?;
        self.length -= 1;
        match self.lanes[lane].pop_front()?.entry {
            Entry::Task(item) => Some((None, item)),
            Entry::Group(group) => {
                let members = &mut self.groups[group as usize];
                members.state = GroupState::Running;
                (members.turn_start, members.turn_items) = (now, 1);
                members.tally.turns += 1;
                self.turns.turns += 1;
                let item = members.items.pop_front().expect("a group in the queue has work");
                Some((Some(group), item))
            }
        }
    }

    /// The item of a group ended: gives the next one of the turn, or ends the turn. `serves` tells whether the worker can run
    /// an item of a lane.
    pub fn proceed(&mut self, group: u32, now: u64, serves: impl FnOnce(u8) -> bool) -> Option<Item<T>> {
        let members = &mut self.groups[group as usize];
        members.tally.processed += 1;
        let (elapsed, items) = (now - members.turn_start, members.turn_items);
        let mut next = None;
        if members.state != GroupState::Shutdown {
            match members.items.front().map(|next| next.lane) {
                None => members.state = GroupState::Waiting,
                Some(lane) if self.is_used_up(elapsed, items, serves(lane)) => self.queue_up(group, now, true),
                Some(_) => {
                    let members = &mut self.groups[group as usize];
                    members.turn_items += 1;
                    next = members.items.pop_front();
                }
            }
        }
        if next.is_none() && self.limits.turn_warning > 0 && elapsed > self.limits.turn_warning {
            self.turns.long_running_turns += 1;
        }
        next
    }

    /// Whether a turn with work left ends, and why.
    fn is_used_up(&mut self, elapsed: u64, items: u64, is_served: bool) -> bool {
        let Limits { quantum, items: most, .. } = self.limits;
        let cause = if quantum > 0 && elapsed >= quantum {
            &mut self.turns.quantum_expirations
        } else if most > 0 && items >= most {
            &mut self.turns.item_limit_expirations
        } else if !is_served {
            &mut self.turns.type_switches
        } else {
            return false;
        };
        *cause += 1;
        true
    }

    /// Ends a group for good; gives the items that waited. What runs finishes.
    pub fn stop(&mut self, group: u32) -> VecDeque<Item<T>> {
        let members = &mut self.groups[group as usize];
        self.length -= u64::from(members.state == GroupState::Runnable);
        members.state = GroupState::Shutdown;
        members.tally.dropped += members.items.len() as u64;
        std::mem::take(&mut members.items)
    }

    /// Takes all tasks without context out of the queue.
    pub fn drain_tasks(&mut self) -> Vec<Item<T>> {
        let mut tasks = Vec::new();
        for places in self.lanes.iter_mut().flat_map(|lane| &mut lane.places) {
            for place in std::mem::take(places) {
                match place.entry {
                    Entry::Task(item) => tasks.push(item),
                    Entry::Group(_) => places.push_back(place),
                }
            }
        }
        self.length -= tasks.len() as u64;
        tasks
    }

    fn queue_up(&mut self, group: u32, now: u64, is_again: bool) {
        let key = self.key(!self.groups[group as usize].is_system, now, is_again);
        let members = &mut self.groups[group as usize];
        members.state = GroupState::Runnable;
        members.ticket = key.ticket();
        let lane = members.items.front().expect("a runnable group has work").lane;
        self.enter(lane, Place { key, entry: Entry::Group(group) });
    }

    fn key(&mut self, is_application: bool, time: u64, is_again: bool) -> Key {
        self.tickets += 1;
        Key::new(is_application && self.limits.prioritize_system, time, is_again, self.tickets)
    }

    fn enter(&mut self, lane: u8, place: Place<T>) {
        self.lanes[usize::from(lane)].insert(place);
        self.filled |= 1 << lane;
        self.length += 1;
        self.turns.run_queue_high_water = self.turns.run_queue_high_water.max(self.length);
    }

    /// Whether a group was stopped since it entered the queue.
    fn is_stale(&self, group: u32, key: Key) -> bool {
        let members = &self.groups[group as usize];
        members.state != GroupState::Runnable || members.ticket != key.ticket()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(what: u32) -> Item<u32> {
        Item { what, lane: 0, queued: 0 }
    }

    /// A queue with groups A and B and three items in A.
    fn three(limits: Limits) -> RunQueue<u32> {
        let mut queue = RunQueue::new(limits);
        queue.add_group("A");
        queue.add_group("B");
        (1..=3).for_each(|what| queue.push(Some(0), item(what), 0));
        queue
    }

    #[test]
    fn a_group_is_in_the_queue_once_and_goes_from_waiting_to_waiting() {
        let mut queue = RunQueue::new(Limits::default());
        let a = queue.add_group("A");
        let mut log = vec![queue.group(a).state()];
        let note = |queue: &RunQueue<u32>, log: &mut Vec<GroupState>| {
            let state = queue.group(a).state();
            if log.last() != Some(&state) {
                log.push(state);
            }
        };
        for what in 1..=3 {
            queue.push(Some(a), item(what), 0);
            note(&queue, &mut log);
        }
        let mut ran = vec![queue.take(0, 0).expect("A waits").1.what];
        note(&queue, &mut log);
        while let Some(next) = queue.proceed(a, 10, |_| true) {
            note(&queue, &mut log);
            ran.push(next.what);
        }
        note(&queue, &mut log);
        assert_eq!(ran, [1, 2, 3]);
        assert_eq!(log, [GroupState::Waiting, GroupState::Runnable, GroupState::Running, GroupState::Waiting]);
        assert_eq!((queue.turns().run_queue_high_water, queue.turns().turns), (1, 1));
    }

    #[test]
    fn an_expired_turn_goes_behind_what_became_runnable_at_the_same_time() {
        let mut queue = three(Limits { quantum: 10, ..Limits::default() });
        queue.take(0, 0);
        assert_eq!(queue.proceed(0, 10, |_| true), None);
        // B becomes runnable after A was put back, but at the same time.
        queue.push(Some(1), item(9), 10);
        queue.push(None, item(8), 10);
        let order: Vec<_> = std::iter::from_fn(|| queue.take(0, 10)).map(|(_, item)| item.what).collect();
        assert_eq!(order, [9, 8, 2]);
        assert_eq!(queue.turns().quantum_expirations, 1);
    }

    #[test]
    fn a_turn_ends_after_exactly_so_many_items() {
        let mut queue = three(Limits { items: 2, ..Limits::default() });
        queue.take(0, 0);
        assert_eq!(queue.proceed(0, 5, |_| true).map(|next| next.what), Some(2));
        assert_eq!(queue.proceed(0, 9, |_| true), None);
        assert_eq!(queue.group(0).state(), GroupState::Runnable);
        assert_eq!(queue.turns().item_limit_expirations, 1);
    }

    #[test]
    fn a_turn_used_up_with_nothing_left_is_no_expiration() {
        let mut queue = RunQueue::new(Limits { quantum: 1, turn_warning: 20, ..Limits::default() });
        queue.add_group("A");
        queue.push(Some(0), item(1), 0);
        queue.take(0, 0);
        assert_eq!(queue.proceed(0, 50, |_| true), None);
        assert_eq!((queue.turns().quantum_expirations, queue.turns().long_running_turns), (0, 1));
        assert_eq!(queue.group(0).state(), GroupState::Waiting);
    }

    #[test]
    fn a_stopped_group_gives_its_items_back_and_leaves_the_queue() {
        let mut queue = three(Limits::default());
        queue.push(Some(1), item(9), 0);
        let dropped: Vec<_> = queue.stop(0).into_iter().map(|item| item.what).collect();
        assert_eq!(dropped, [1, 2, 3]);
        assert_eq!(queue.len(), 1);
        assert_eq!(queue.take(0, 0).map(|(group, item)| (group, item.what)), Some((Some(1), 9)));
        assert!(queue.take(0, 0).is_none() && queue.is_empty());
    }

    #[test]
    fn system_entries_go_first_if_asked_for() {
        for (first, expected) in [(false, [1, 7]), (true, [7, 1])] {
            let mut queue = RunQueue::new(Limits { prioritize_system: first, ..Limits::default() });
            queue.add_group("A");
            queue.add_group("system:timer");
            queue.push(Some(0), item(1), 0);
            queue.push(Some(1), item(7), 5);
            let order: Vec<_> = std::iter::from_fn(|| queue.take(0, 5)).map(|(_, item)| item.what).collect();
            assert_eq!(order, expected);
        }
    }
}

//! Routines: what a processor picks from, and the activations that wait in each.

use crate::id::{Symbol, TaskId};
use crate::window::{NONE, SlotRef};
use std::collections::{HashMap, VecDeque};
use std::ops::{Index, IndexMut};

/// A named coroutine. It fills one line of the cache.
#[derive(Default)]
#[repr(align(64))]
pub struct Routine {
    /// Where it is served.
    pub home: u32,
    /// READY activations, first come first served. The first stays until its last block is placed.
    pub activations: Activations,
    /// Acquired: an activation of it runs.
    pub is_running: bool,
    /// It stands in a heap.
    pub is_queued: bool,
    /// Removed: what is still to come of it is cancelled.
    pub is_removed: bool,
    /// Tasks of it that are submitted and not over.
    pub live: u32,
    prio: u32,
    created: u64,
    /// Its name, or one that it had before, if it has no name.
    name: Option<Box<Label>>,
    identity: Identity,
}

/// A name that is written over when the place of its routine is used again.
#[derive(Default)]
struct Label(String);

/// How a routine is known.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Identity {
    /// Its place is free for another.
    #[default]
    Nobody,
    /// By the field `routine`; it stays for further tasks.
    Named,
    /// One task with a name.
    Task(Symbol),
    /// One task without a name.
    Unnamed(TaskId),
}

/// The name under which a routine is created.
#[derive(Clone, Copy)]
pub enum Name<'a> {
    /// Given by the field `routine`.
    Routine(&'a str),
    /// The task's own.
    Task(&'a str, Symbol),
    /// None at all.
    Unnamed(TaskId),
}

/// A READY task.
#[derive(Clone, Copy)]
pub struct Activation {
    /// Where it lives.
    pub slot: SlotRef,
    /// Where its routine waits for a worker.
    pub lane: u8,
}

/// Activations in order. Most routines never have more than one, for which nothing is allocated.
pub struct Activations {
    /// The first one, if its slot is not [`NONE`].
    first: Activation,
    rest: Option<Box<Rest>>,
}

/// Activations behind the first.
#[derive(Default)]
struct Rest(VecDeque<Activation>);

impl Default for Activations {
    fn default() -> Activations {
        Activations { first: Activation::NOBODY, rest: None }
    }
}

impl Activation {
    const NOBODY: Activation = Activation { slot: NONE, lane: 0 };
}

impl Activations {
    /// The first one.
    #[inline]
    pub fn front(&self) -> Option<Activation> {
        (self.first.slot != NONE).then_some(self.first)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        usize::from(self.front().is_some()) + self.rest.as_ref().map_or(0, |rest| rest.0.len())
    }

    /// Puts one at the end.
    #[inline]
    pub fn push_back(&mut self, activation: Activation) {
        if self.front().is_none() {
            self.first = activation;
        } else {
            self.rest.get_or_insert_default().0.push_back(activation);
        }
    }

    /// Takes the first one.
    #[inline]
    pub fn pop_front(&mut self) {
        let next = self.rest.as_mut().and_then(|rest| rest.0.pop_front());
        self.first = next.unwrap_or(Activation::NOBODY);
    }

    /// Takes all, or all but the first.
    pub fn take(&mut self, with_first: bool) -> impl Iterator<Item = Activation> {
        let first = if with_first { self.front() } else { None };
        if with_first {
            self.first = Activation::NOBODY;
        }
        first.into_iter().chain(self.rest.take().into_iter().flat_map(|rest| rest.0))
    }
}

/// Place of a routine in the scan: highest priority first, then the order of creation. The index of the routine comes last. All
/// are packed, because numbers are compared faster than fields.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(u128);

impl Key {
    /// The index of the routine.
    #[inline]
    pub fn routine(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    fn created(self) -> u64 {
        (self.0 >> 32) as u64
    }
}

impl Routine {
    /// Its place in the scan.
    #[inline]
    pub fn key(&self, routine: u32) -> Key {
        Key(u128::from(u32::MAX - self.prio) << 96 | u128::from(self.created) << 32 | u128::from(routine))
    }

    /// Its name, if it has one.
    fn name(&self) -> &str {
        self.name.as_ref().map_or("", |name| &name.0)
    }

    fn set_name(&mut self, name: &str) {
        let own = &mut self.name.get_or_insert_default().0;
        own.clear();
        own.push_str(name);
    }

    /// The task to be placed next.
    #[inline]
    pub fn next_slot(&self) -> SlotRef {
        self.activations.front().expect("a queued routine has an activation").slot
    }
}

/// All routines that live; places of those that are over are used again.
#[derive(Default)]
pub struct Routines {
    all: Vec<Routine>,
    free: Vec<u32>,
    by_name: HashMap<String, u32>,
    /// Live one-task routines by the symbol of their name.
    namesakes: Vec<u32>,
    created: u64,
}

impl Index<u32> for Routines {
    type Output = Routine;

    fn index(&self, index: u32) -> &Routine {
        &self.all[index as usize]
    }
}

impl IndexMut<u32> for Routines {
    fn index_mut(&mut self, index: u32) -> &mut Routine {
        &mut self.all[index as usize]
    }
}

impl Routines {
    /// How many were created.
    pub fn created(&self) -> u64 {
        self.created
    }

    /// Places in use or free.
    pub fn len(&self) -> u32 {
        self.all.len() as u32
    }

    /// The routine that the field `routine` means.
    #[inline]
    pub fn find(&self, name: &str) -> Option<u32> {
        if self.by_name.is_empty() { None } else { self.by_name.get(name).copied() }
    }

    /// The oldest live routine of one task that has this name, from now on known as the one that the field `routine` means.
    pub fn name_task(&mut self, symbol: Symbol) -> Option<u32> {
        let alive = self.namesakes.get_mut(symbol.0 as usize).filter(|alive| **alive > 0)?;
        let meant = |routine: &&Routine| routine.identity == Identity::Task(symbol) && !routine.is_removed;
        let created = self.all.iter().filter(meant).map(|routine| routine.created).min()?;
        let index = self.all.iter().position(|routine| meant(&routine) && routine.created == created)?;
        *alive -= 1;
        let routine = &mut self.all[index];
        routine.identity = Identity::Named;
        self.by_name.insert(routine.name().to_string(), index as u32);
        Some(index as u32)
    }

    /// The oldest live routine of one task that has this name.
    pub fn find_task(&self, name: &str) -> Option<u32> {
        let unnamed = name.strip_prefix("task").and_then(|id| id.parse().ok()).map(|id| Identity::Unnamed(TaskId(id)));
        let is_meant = |routine: &Routine| match routine.identity {
            Identity::Task(_) => routine.name() == name && !routine.is_removed,
            identity @ Identity::Unnamed(_) => Some(identity) == unnamed && !routine.is_removed,
            Identity::Named | Identity::Nobody => false,
        };
        let meant = self.all.iter().enumerate().filter(|(_, routine)| is_meant(routine));
        meant.min_by_key(|(_, routine)| routine.created).map(|(index, _)| index as u32)
    }

    /// Makes a routine at the end of its level.
    pub fn create(&mut self, name: Name<'_>, home: u32, prio: u32) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.all.push(Routine::default());
            self.all.len() as u32 - 1
        });
        let routine = &mut self.all[index as usize];
        (routine.home, routine.prio, routine.created, routine.is_removed) = (home, prio, self.created, false);
        self.created += 1;
        routine.identity = match name {
            Name::Unnamed(task) => Identity::Unnamed(task),
            Name::Task(name, symbol) => {
                routine.set_name(name);
                let seen = symbol.0 as usize;
                if seen >= self.namesakes.len() {
                    self.namesakes.resize(seen + 1, 0);
                }
                self.namesakes[seen] += 1;
                Identity::Task(symbol)
            }
            Name::Routine(name) => {
                routine.set_name(name);
                self.by_name.insert(name.to_string(), index);
                Identity::Named
            }
        };
        index
    }

    /// How many live one-task routines have the name of this one.
    pub fn namesakes(&self, index: u32) -> u32 {
        match self[index].identity {
            Identity::Task(symbol) => self.namesakes[symbol.0 as usize],
            _ => 1,
        }
    }

    /// Whether an entry of a heap still means something.
    #[inline]
    pub fn is_waiting(&self, key: Key) -> bool {
        let routine = &self[key.routine()];
        routine.is_queued && routine.created == key.created() && routine.identity != Identity::Nobody
    }

    /// Removes a routine: its name can be used again, and nothing of it starts any more.
    pub fn detach(&mut self, index: u32) {
        let routine = &mut self.all[index as usize];
        routine.is_removed = true;
        if routine.identity == Identity::Named {
            self.by_name.remove(routine.name());
        }
    }

    /// A task of a routine is over. A routine that cannot have further ones gives its place back.
    pub fn leave(&mut self, index: u32) {
        let routine = &mut self.all[index as usize];
        routine.live -= 1;
        if routine.live > 0 || routine.identity == Identity::Named && !routine.is_removed {
            return;
        }
        if let Identity::Task(symbol) = routine.identity {
            self.namesakes[symbol.0 as usize] -= 1;
        }
        routine.identity = Identity::Nobody;
        self.free.push(index);
    }
}

//! What the shared memory of a machine would take in the layout of the C reference.

use crate::config::Machine;

/// Bytes of a task descriptor in the C reference.
const DESCRIPTOR_BYTES: u64 = 340;
/// Bytes of a dependency entry: task and offset of the next.
const DEPENDENCY_BYTES: u64 = 8;
/// Bytes of an entry of a ready queue.
const READY_BYTES: u64 = 4;
/// Ready queues: one for each of CUBE, VECTOR, `AI_CPU` and ACCELERATOR.
const READY_QUEUES: u64 = 4;

/// One part of the shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryPart {
    /// What it holds.
    pub name: &'static str,
    /// How many entries, all rings and queues together.
    pub entries: u64,
    /// Bytes of one entry.
    pub entry_bytes: u64,
}

impl MemoryPart {
    /// Bytes of all entries.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.entries.saturating_mul(self.entry_bytes)
    }
}

/// The parts of the shared memory that do not depend on a program; the heap is not among them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Descriptors, dependency pool, ready queues.
    pub parts: [MemoryPart; 3],
}

impl Memory {
    /// The memory of this machine.
    #[must_use]
    pub fn of(machine: &Machine) -> Memory {
        let limits = &machine.limits;
        let rings = u64::from(limits.rings);
        let part = |name, entries, entry_bytes| MemoryPart { name, entries, entry_bytes };
        Memory {
            parts: [
                part("task descriptors", limits.window.saturating_mul(rings), DESCRIPTOR_BYTES),
                part("dependency pool", limits.deps.saturating_mul(rings), DEPENDENCY_BYTES),
                part("ready queues", limits.ready.saturating_mul(READY_QUEUES), READY_BYTES),
            ],
        }
    }

    /// Bytes of all parts.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_takes_what_its_documents_say() {
        let memory = Memory::of(&Machine::load("reference").expect("it is built in"));
        assert_eq!(memory.parts.map(|part| part.bytes()), [5_570_560, 524_288, 1_048_576]);
        assert_eq!(memory.bytes(), 7_143_424);
    }

    #[test]
    fn rings_multiply_windows_and_pools_but_not_queues() {
        let memory = Memory::of(&Machine::load("a2a3").expect("it is built in"));
        assert_eq!(memory.parts.map(|part| part.entries), [4 * 16384, 4 * 16384, 4 * 65536]);
    }
}

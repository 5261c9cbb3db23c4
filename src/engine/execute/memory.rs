//! Memory that kernels read and write: the heap ring and the buffers of the device.
//!
//! It is made of atomic words, so that even a program with a missing dependency is no undefined behaviour: its kernels read
//! old or new numbers, and the result shows it. A kernel works on copies of its regions, taken before and put back after it.

use crate::workload::Region;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use zerocopy::FromZeros;

/// Bytes shared by all threads.
#[derive(Clone)]
pub(super) struct Memory {
    words: Arc<[AtomicU32]>,
    bytes: u64,
}

/// A region of a memory.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) memory: Memory,
    /// First byte of the buffer in the memory.
    pub(super) base: u64,
    pub(super) region: Region,
}

impl Memory {
    /// Zeroed memory; `None` when the host has not enough.
    pub(super) fn new(bytes: u64) -> Option<Memory> {
        let words = usize::try_from(bytes.div_ceil(4)).ok()?;
        let words = <[AtomicU32]>::new_box_zeroed_with_elems(words).ok()?;
        Some(Memory { words: words.into(), bytes })
    }

    pub(super) fn len(&self) -> u64 {
        self.bytes
    }

    // Ordering: Relaxed throughout; the dependency between two tasks orders what they read and write.

    /// Appends bytes to `to`.
    pub(super) fn read(&self, from: u64, bytes: u64, to: &mut Vec<u8>) {
        let mut at = from;
        let end = from + bytes;
        while at < end {
            let word = self.words[(at / 4) as usize].load(Relaxed).to_le_bytes();
            let first = (at % 4) as usize;
            let last = (end - (at - at % 4)).min(4) as usize;
            to.extend_from_slice(&word[first..last]);
            at += (last - first) as u64;
        }
    }

    /// Writes bytes.
    pub(super) fn write(&self, at: u64, bytes: &[u8]) {
        let mut at = at;
        let mut rest = bytes;
        while !rest.is_empty() {
            let first = (at % 4) as usize;
            let count = rest.len().min(4 - first);
            let (now, later) = rest.split_at(count);
            let word = &self.words[(at / 4) as usize];
            if count == 4 {
                word.store(u32::from_le_bytes([now[0], now[1], now[2], now[3]]), Relaxed);
            } else {
                // The rest of the word may belong to another task.
                let merge = |old: u32| {
                    let mut merged = old.to_le_bytes();
                    merged[first..first + count].copy_from_slice(now);
                    Some(u32::from_le_bytes(merged))
                };
                let _ = word.fetch_update(Relaxed, Relaxed, merge);
            }
            at += count as u64;
            rest = later;
        }
    }
}

impl Place {
    fn row(&self, row: u64) -> u64 {
        self.base + self.region.offset + row * self.region.stride
    }

    /// Its bytes, row after row.
    pub(super) fn gather(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity((self.region.rows * self.region.row_bytes) as usize);
        for row in 0..self.region.rows {
            self.memory.read(self.row(row), self.region.row_bytes, &mut bytes);
        }
        bytes
    }

    /// Puts bytes back, row after row.
    pub(super) fn scatter(&self, bytes: &[u8]) {
        for (row, bytes) in bytes.chunks(self.region.row_bytes.max(1) as usize).enumerate() {
            self.memory.write(self.row(row as u64), bytes);
        }
    }

    /// How many bytes it has.
    pub(super) fn len(&self) -> u64 {
        self.region.rows * self.region.row_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::BufferId;

    #[test]
    fn odd_pieces_come_back_and_leave_their_neighbours_alone() {
        let memory = Memory::new(64).expect("64 bytes");
        memory.write(0, &[9; 64]);
        memory.write(3, &[1, 2, 3, 4, 5, 6]);
        let mut bytes = Vec::new();
        memory.read(2, 8, &mut bytes);
        assert_eq!(bytes, [9, 1, 2, 3, 4, 5, 6, 9]);
    }

    #[test]
    fn rows_are_gathered_and_scattered() {
        let memory = Memory::new(64).expect("64 bytes");
        let region = Region { buffer: BufferId(0), offset: 1, row_bytes: 3, rows: 2, stride: 10 };
        let place = Place { memory: memory.clone(), base: 8, region };
        place.scatter(&[1, 2, 3, 4, 5, 6]);
        assert_eq!(place.gather(), [1, 2, 3, 4, 5, 6]);
        let mut bytes = Vec::new();
        memory.read(18, 4, &mut bytes);
        assert_eq!(bytes, [0, 4, 5, 6]);
    }
}

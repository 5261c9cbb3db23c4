//! Ranges of bytes of one buffer, disjoint and in order, each with its last writer and the readers since.
//!
//! A sorted list in two levels: chunks of at most 64 segments, so that thousands of tiles in one buffer cost two short
//! binary searches and a short move, and a write over exactly the same bytes changes one entry in place.

use crate::id::TaskId;
use crate::window::{NONE, SlotRef};
use std::cell::Cell;

/// Most segments of one chunk.
const CHUNK: usize = 64;

/// A task that wrote or read, where it lived then, and how long the longest path to its end is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The task.
    pub task: TaskId,
    /// Its slot; [`NONE`] means nobody.
    pub slot: SlotRef,
    /// Cycles of the longest path that ends with it.
    pub path: u64,
}

impl Access {
    /// Nobody.
    pub const NOBODY: Access = Access { task: TaskId(u64::MAX), slot: NONE, path: 0 };
}

/// Bytes `start..end` with one last writer.
#[derive(Clone, Debug)]
pub struct Segment {
    /// First byte.
    pub start: u64,
    /// Behind the last byte.
    pub end: u64,
    /// Who wrote them last.
    pub writer: Access,
    /// Who read them since; only kept when reads matter.
    pub readers: Vec<Access>,
}

/// The segments of one buffer.
#[derive(Default, Debug)]
pub struct Segments {
    /// None of them empty.
    chunks: Vec<Vec<Segment>>,
    len: usize,
    /// Where a segment was found last: programs like to come back to the same bytes.
    last: Cell<(usize, usize)>,
}

impl Segments {
    /// Number of segments.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Forgets everything, keeping one chunk's memory for the next use.
    #[inline]
    pub fn clear(&mut self, spare: &mut Vec<Vec<Segment>>) {
        self.len = 0;
        for mut chunk in self.chunks.drain(..) {
            chunk.clear();
            spare.push(chunk);
        }
    }

    /// Makes the bytes `0..bytes`, written by `writer`, all there is, if that needs no memory; false if it does.
    #[inline]
    pub fn replace_only(&mut self, bytes: u64, writer: Access) -> bool {
        let [list] = &mut self.chunks[..] else { return false };
        let [segment] = &mut list[..] else { return false };
        (segment.start, segment.end, segment.writer) = (0, bytes, writer);
        segment.readers.clear();
        true
    }

    /// Visits the segments that share bytes with `start..end`, in order.
    #[inline]
    pub fn overlapping(&self, start: u64, end: u64, mut visit: impl FnMut(&Segment)) {
        let (mut chunk, mut index) = self.seek(start);
        while let Some(list) = self.chunks.get(chunk) {
            for segment in &list[index..] {
                if segment.start >= end {
                    return;
                }
                visit(segment);
            }
            (chunk, index) = (chunk + 1, 0);
        }
    }

    /// Position of the first segment that ends behind `start`.
    #[inline]
    fn seek(&self, start: u64) -> (usize, usize) {
        let (chunk, index) = self.last.get();
        if let Some(segment) = self.chunks.get(chunk).and_then(|list| list.get(index))
            && segment.start <= start
            && start < segment.end
        {
            return (chunk, index);
        }
        let found = self.search(start);
        self.last.set(found);
        found
    }

    fn search(&self, start: u64) -> (usize, usize) {
        let chunk = match self.chunks.len() {
            0 | 1 => 0,
            _ => self.chunks.partition_point(|list| list[list.len() - 1].end <= start),
        };
        let index = self.chunks.get(chunk).map_or(0, |list| list.partition_point(|segment| segment.end <= start));
        (chunk, index)
    }

    /// Makes `writer` the last writer of `start..end`, without readers; what it covers of others is gone for good.
    pub fn write(&mut self, start: u64, end: u64, writer: Access, spare: &mut Vec<Vec<Segment>>) {
        let (chunk, index) = self.seek(start);
        if let Some(segment) = self.chunks.get_mut(chunk).and_then(|list| list.get_mut(index))
            && segment.start == start
            && segment.end == end
        {
            segment.writer = writer;
            segment.readers.clear();
            return;
        }
        self.cut(start, end, spare);
        self.insert(Segment { start, end, writer, readers: Vec::new() }, spare);
    }

    /// Adds a reader to the bytes `start..end`, splitting segments at its ends and filling gaps.
    pub fn read(&mut self, start: u64, end: u64, reader: Access, spare: &mut Vec<Vec<Segment>>) {
        let mut found = Vec::new();
        self.overlapping(start, end, |segment| found.push(segment.clone()));
        self.cut(start, end, spare);
        let mut at = start;
        for mut segment in found {
            segment.start = segment.start.max(start);
            segment.end = segment.end.min(end);
            if at < segment.start {
                self.insert(
                    Segment { start: at, end: segment.start, writer: Access::NOBODY, readers: vec![reader] },
                    spare,
                );
            }
            at = segment.end;
            if segment.readers.last() != Some(&reader) {
                segment.readers.push(reader);
            }
            self.insert(segment, spare);
        }
        if at < end {
            self.insert(Segment { start: at, end, writer: Access::NOBODY, readers: vec![reader] }, spare);
        }
    }

    /// Removes the bytes `start..end` from whatever covers them.
    fn cut(&mut self, start: u64, end: u64, spare: &mut Vec<Vec<Segment>>) {
        loop {
            let (chunk, index) = self.seek(start);
            let Some(segment) = self.chunks.get_mut(chunk).and_then(|list| list.get_mut(index)) else { return };
            if segment.start >= end {
                return;
            }
            match (segment.start < start, segment.end > end) {
                (true, true) => {
                    let right = Segment { start: end, ..segment.clone() };
                    segment.end = start;
                    self.insert(right, spare);
                    return;
                }
                (true, false) => segment.end = start,
                (false, true) => {
                    segment.start = end;
                    return;
                }
                (false, false) => self.remove(chunk, index, spare),
            }
        }
    }

    fn remove(&mut self, chunk: usize, index: usize, spare: &mut Vec<Vec<Segment>>) {
        self.chunks[chunk].remove(index);
        self.len -= 1;
        if self.chunks[chunk].is_empty() {
            spare.push(self.chunks.remove(chunk));
        }
    }

    /// Inserts a segment whose bytes are free.
    #[inline]
    fn insert(&mut self, segment: Segment, spare: &mut Vec<Vec<Segment>>) {
        self.len += 1;
        if self.chunks.is_empty() {
            let mut list = spare.pop().unwrap_or_else(|| Vec::with_capacity(4));
            list.push(segment);
            self.chunks.push(list);
            return;
        }
        let (mut chunk, mut index) = self.seek(segment.start);
        if chunk == self.chunks.len() {
            chunk -= 1;
            index = self.chunks[chunk].len();
        }
        if self.chunks[chunk].len() == CHUNK {
            (chunk, index) = self.split(chunk, index, spare);
        }
        self.chunks[chunk].insert(index, segment);
    }

    /// Makes room in a full chunk; returns where `(chunk, index)` is now. Appending at the very end opens a new chunk, so
    /// that buffers written front to back have full chunks.
    fn split(&mut self, chunk: usize, index: usize, spare: &mut Vec<Vec<Segment>>) -> (usize, usize) {
        let at = if index == CHUNK && chunk + 1 == self.chunks.len() { CHUNK } else { CHUNK / 2 };
        let mut right = spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK));
        right.extend(self.chunks[chunk].drain(at..));
        if at == CHUNK {
            self.chunks.push(right);
            return (chunk + 1, 0);
        }
        self.chunks.insert(chunk + 1, right);
        if index > at { (chunk + 1, index - at) } else { (chunk, index) }
    }

    /// Drops the accesses that `is_dead` names and the segments that nobody is left in.
    pub fn sweep(&mut self, mut is_dead: impl FnMut(&Access) -> bool, spare: &mut Vec<Vec<Segment>>) {
        for list in &mut self.chunks {
            list.retain_mut(|segment| {
                segment.readers.retain(|reader| !is_dead(reader));
                if segment.writer.slot != NONE && is_dead(&segment.writer) {
                    segment.writer = Access::NOBODY;
                }
                segment.writer.slot != NONE || !segment.readers.is_empty()
            });
        }
        for list in std::mem::take(&mut self.chunks) {
            if list.is_empty() { &mut *spare } else { &mut self.chunks }.push(list);
        }
        self.len = self.chunks.iter().map(Vec::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(task: u64) -> Access {
        Access { task: TaskId(task), slot: task as u32, path: 0 }
    }

    /// Last writer and readers of every byte, kept both ways.
    struct Both {
        segments: Segments,
        spare: Vec<Vec<Segment>>,
        bytes: Vec<(u64, Vec<u64>)>,
    }

    impl Both {
        fn check(&self) {
            let mut bytes = vec![(u64::MAX, Vec::new()); self.bytes.len()];
            let (mut last, mut count) = (0, 0);
            self.segments.overlapping(0, u64::MAX, |segment| {
                assert!(last <= segment.start && segment.start < segment.end, "segments overlap or are empty");
                (last, count) = (segment.end, count + 1);
                for byte in segment.start..segment.end {
                    bytes[byte as usize] =
                        (segment.writer.task.0, segment.readers.iter().map(|reader| reader.task.0).collect());
                }
            });
            assert_eq!(bytes, self.bytes);
            assert_eq!(count, self.segments.len());
        }
    }

    #[test]
    fn every_byte_knows_its_last_writer_and_the_readers_since() {
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for size in [8_u64, 600, 3000] {
            let mut both = Both {
                segments: Segments::default(),
                spare: Vec::new(),
                bytes: vec![(u64::MAX, vec![]); size as usize],
            };
            for task in 0..2000 {
                let start = random(size);
                let end = (start + 1 + random(12)).min(size);
                if random(3) == 0 {
                    both.segments.read(start, end, access(task), &mut both.spare);
                    both.bytes[start as usize..end as usize].iter_mut().for_each(|byte| byte.1.push(task));
                } else {
                    both.segments.write(start, end, access(task), &mut both.spare);
                    both.bytes[start as usize..end as usize].fill((task, vec![]));
                }
                if task % 50 == 0 {
                    both.check();
                }
            }
            both.check();
            both.segments.sweep(|access| access.task.0 < 1900, &mut both.spare);
            for byte in &mut both.bytes {
                byte.1.retain(|&reader| reader >= 1900);
                if byte.0 < 1900 {
                    byte.0 = u64::MAX;
                }
            }
            both.check();
            both.segments.clear(&mut both.spare);
            assert_eq!((both.segments.is_empty(), both.segments.len()), (true, 0));
        }
    }
}

//! Ranges of bytes of one buffer, disjoint and in order, each with its last writer and the readers since.
//!
//! A sorted list in two levels: chunks of at most 64 segments, so that thousands of tiles in one buffer cost two short
//! binary searches and a short move, and a write over exactly the same bytes changes one entry in place. Programs come back to the
//! same bytes, so where they were found is remembered, and mostly nothing is searched for at all.

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

/// Bytes `start..end` with one last writer. It fills one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
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
#[derive(Debug)]
pub struct Segments {
    /// None of them empty.
    chunks: Vec<Vec<Segment>>,
    len: usize,
    /// The first byte that was sought last, and the answer; as long as no segment has moved.
    last: Cell<(u64, Place)>,
    /// Where segments were found, by [`hint_of`] the byte that was sought. A hint may be out of date, which is seen when it is used.
    hints: Box<[Cell<Place>]>,
}

/// Chunk times [`CHUNK`], plus the position in it.
type Place = u32;

/// The largest number stands for no byte: nothing begins there.
const NO_BYTE: u64 = u64::MAX;

impl Default for Segments {
    fn default() -> Segments {
        Segments { chunks: Vec::new(), len: 0, last: Cell::new((NO_BYTE, 0)), hints: Box::default() }
    }
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

    /// Forgets everything; the memory of the chunks goes to `spare`.
    #[inline]
    pub fn clear(&mut self, spare: &mut Vec<Vec<Segment>>) {
        self.forget();
        self.len = 0;
        for mut chunk in self.chunks.drain(..) {
            chunk.clear();
            spare.push(chunk);
        }
    }

    /// Makes the bytes `0..bytes`, of which there must be one, written by `writer`, all there is, if that needs no memory; false if it
    /// does. Its first byte is sought next, most likely, and stands at the first place.
    #[inline]
    pub fn replace_only(&mut self, bytes: u64, writer: Access) -> bool {
        let [list] = &mut self.chunks[..] else { return false };
        let [segment] = &mut list[..] else { return false };
        (segment.start, segment.end, segment.writer) = (0, bytes, writer);
        segment.readers.clear();
        self.last.set((0, 0));
        true
    }

    /// Visits the segments that share bytes with `start..end`, in order.
    #[inline]
    pub fn overlapping(&self, start: u64, end: u64, mut visit: impl FnMut(&Segment)) {
        let (mut chunk, mut index) = parts(self.seek(start));
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

    #[inline]
    fn get(&self, place: Place) -> Option<&Segment> {
        let (chunk, index) = parts(place);
        self.chunks.get(chunk)?.get(index)
    }

    #[inline]
    fn get_mut(&mut self, place: Place) -> Option<&mut Segment> {
        let (chunk, index) = parts(place);
        self.chunks.get_mut(chunk)?.get_mut(index)
    }

    /// Position of the first segment that ends behind `start`.
    #[inline]
    fn seek(&self, start: u64) -> Place {
        let (sought, place) = self.last.get();
        if sought == start {
            return place;
        }
        let hint = self.hints.get(hint_of(start, self.hints.len()));
        let place = match hint.map(Cell::get) {
            Some(place) if self.get(place).is_some_and(|it| it.start <= start && start < it.end) => place,
            _ => self.search(start),
        };
        if let Some(hint) = hint {
            hint.set(place);
        }
        self.last.set((start, place));
        place
    }

    #[inline(never)]
    fn search(&self, start: u64) -> Place {
        let chunk = match self.chunks.len() {
            0 | 1 => 0,
            _ => self.chunks.partition_point(|list| list[list.len() - 1].end <= start),
        };
        let index = self.chunks.get(chunk).map_or(0, |list| list.partition_point(|segment| segment.end <= start));
        (chunk * CHUNK + index) as Place
    }

    /// Segments are about to move.
    #[inline]
    fn forget(&mut self) {
        self.last.set((NO_BYTE, 0));
    }

    /// Makes `writer` the last writer of `start..end`, without readers; what it covers of others is gone for good.
    #[inline]
    pub fn write(&mut self, start: u64, end: u64, writer: Access, spare: &mut Vec<Vec<Segment>>) {
        let place = self.seek(start);
        match self.get_mut(place) {
            Some(segment) if segment.start == start && segment.end == end => {
                segment.writer = writer;
                segment.readers.clear();
            }
            Some(segment) if segment.start < end => {
                self.cut(start, end, spare);
                self.insert(Segment { start, end, writer, readers: Vec::new() }, spare);
            }
            _ => self.insert(Segment { start, end, writer, readers: Vec::new() }, spare),
        }
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
            let place = self.seek(start);
            self.forget();
            let Some(segment) = self.get_mut(place) else { return };
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
                (false, false) => self.remove(place, spare),
            }
        }
    }

    fn remove(&mut self, place: Place, spare: &mut Vec<Vec<Segment>>) {
        let (chunk, index) = parts(place);
        self.chunks[chunk].remove(index);
        self.len -= 1;
        if self.chunks[chunk].is_empty() {
            spare.push(self.chunks.remove(chunk));
        }
    }

    /// Inserts a segment whose bytes are free.
    #[inline(never)]
    fn insert(&mut self, segment: Segment, spare: &mut Vec<Vec<Segment>>) {
        self.len += 1;
        if self.chunks.is_empty() {
            let mut list = spare.pop().unwrap_or_else(|| Vec::with_capacity(4));
            list.push(segment);
            self.chunks.push(list);
            self.forget();
            return;
        }
        let (mut chunk, mut index) = parts(self.seek(segment.start));
        self.forget();
        if chunk == self.chunks.len() {
            chunk -= 1;
            index = self.chunks[chunk].len();
        }
        if self.chunks[chunk].len() == CHUNK {
            (chunk, index) = self.split(chunk, index, spare);
            self.make_hints();
        }
        self.chunks[chunk].insert(index, segment);
    }

    /// Two hints for each segment, as soon as there are many of them.
    #[cold]
    fn make_hints(&mut self) {
        if self.hints.len() < 2 * self.len {
            self.hints = vec![Cell::default(); (2 * self.len).next_power_of_two()].into();
        }
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
        self.forget();
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

/// Chunk and position in it. Behind the last segment of a full chunk is the chunk behind it.
#[inline]
fn parts(place: Place) -> (usize, usize) {
    (place as usize / CHUNK, place as usize % CHUNK)
}

/// Where the hint for a byte is kept, among a power of two of them. Multiples of a tile's size are spread evenly.
#[inline]
fn hint_of(byte: u64, n_hints: usize) -> usize {
    byte.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_shr(u64::BITS - n_hints.trailing_zeros()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::rolls;

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
        let mut random = rolls(1);
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

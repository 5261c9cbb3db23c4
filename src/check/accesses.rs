//! Who wrote each byte of each buffer last and who has read it since, for a whole program at once.
//!
//! A buffer is an ordered map of pieces. The readers of a piece are a list whose tail may be shared with other pieces, so
//! cutting a piece in two copies nothing and one more reader is one more node, however many there are already.

use crate::id::{BufferId, TaskId};
use crate::workload::Region;
use std::collections::BTreeMap;

/// Nodes kept before the first look for unused ones.
const FIRST_COMPACTION: usize = 1 << 20;

/// Bytes `start..end` of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Span {
    /// The buffer.
    pub buffer: BufferId,
    /// First byte.
    pub start: u64,
    /// Behind the last byte.
    pub end: u64,
}

/// Bytes with one last writer and the same readers since.
#[derive(Clone, Copy, Debug)]
struct Piece {
    end: u64,
    writer: Option<TaskId>,
    readers: Option<Link>,
}

/// The newest node of a list of readers.
type Link = u32;

#[derive(Clone, Copy, Debug)]
struct Node {
    reader: TaskId,
    older: Option<Link>,
}

/// Every byte of every buffer that somebody touched.
#[derive(Debug)]
pub struct Accesses {
    buffers: Vec<BTreeMap<u64, Piece>>,
    nodes: Vec<Node>,
    compact_at: usize,
}

impl Default for Accesses {
    fn default() -> Accesses {
        Accesses { buffers: Vec::new(), nodes: Vec::new(), compact_at: FIRST_COMPACTION }
    }
}

impl Accesses {
    /// The name stands for a new buffer from now on; nobody has touched it.
    pub fn bind(&mut self, buffer: BufferId) {
        self.of(buffer).clear();
    }

    /// Visits the bytes of a region that have a last writer.
    pub fn writers(&self, region: &Region, mut visit: impl FnMut(TaskId, Span)) {
        self.pieces(region, |span, piece| piece.writer.into_iter().for_each(|writer| visit(writer, span)));
    }

    /// Visits the bytes of a region that were read since they were written, once for each reader.
    pub fn readers(&self, region: &Region, mut visit: impl FnMut(TaskId, Span)) {
        self.pieces(region, |span, piece| {
            let mut link = piece.readers;
            while let Some(at) = link {
                let Node { reader, older } = self.nodes[at as usize];
                visit(reader, span);
                link = older;
            }
        });
    }

    /// Visits every task that is the last writer of bytes of a buffer.
    pub fn last_writers(&self, buffer: BufferId, visit: impl FnMut(TaskId)) {
        let pieces = self.buffers.get(buffer.0 as usize).into_iter().flat_map(BTreeMap::values);
        pieces.filter_map(|piece| piece.writer).for_each(visit);
    }

    /// Adds a reader to a region.
    pub fn read(&mut self, region: &Region, reader: TaskId) {
        for (start, end) in rows(region) {
            self.split(region.buffer, start);
            self.split(region.buffer, end);
            self.read_row(region.buffer, start, end, reader);
        }
        if self.nodes.len() > self.compact_at {
            self.compact();
        }
    }

    /// Makes `writer` the last writer of a region; what it covers of others is gone.
    pub fn write(&mut self, region: &Region, writer: TaskId) {
        for (start, end) in rows(region) {
            let new = Piece { end, writer: Some(writer), readers: None };
            if let Some(piece) = self.of(region.buffer).get_mut(&start)
                && piece.end == end
            {
                *piece = new;
                continue;
            }
            self.split(region.buffer, start);
            self.split(region.buffer, end);
            let pieces = self.of(region.buffer);
            while let Some((&covered, _)) = pieces.range(start..end).next() {
                pieces.remove(&covered);
            }
            pieces.insert(start, new);
        }
    }

    /// One more reader for each piece of `start..end`, whose ends are ends of pieces; gaps become pieces.
    fn read_row(&mut self, buffer: BufferId, start: u64, end: u64, reader: TaskId) {
        let Accesses { buffers, nodes, .. } = self;
        let pieces = &mut buffers[buffer.0 as usize];
        let mut gaps = Vec::new();
        let mut at = start;
        for (&from, piece) in pieces.range_mut(start..end) {
            if at < from {
                gaps.push((at, from));
            }
            at = piece.end;
            let known = piece.readers.is_some_and(|link| nodes[link as usize].reader == reader);
            if !known {
                piece.readers = Some(push(nodes, reader, piece.readers));
            }
        }
        if at < end {
            gaps.push((at, end));
        }
        for (from, end) in gaps {
            let readers = Some(push(nodes, reader, None));
            pieces.insert(from, Piece { end, writer: None, readers });
        }
    }

    /// Makes `at` an end of pieces.
    fn split(&mut self, buffer: BufferId, at: u64) {
        let pieces = self.of(buffer);
        if let Some((_, piece)) = pieces.range_mut(..at).next_back()
            && piece.end > at
        {
            let right = *piece;
            piece.end = at;
            pieces.insert(at, right);
        }
    }

    fn pieces(&self, region: &Region, mut visit: impl FnMut(Span, &Piece)) {
        let Some(pieces) = self.buffers.get(region.buffer.0 as usize) else { return };
        for (start, end) in rows(region) {
            let first = pieces.range(..start).next_back().filter(|(_, piece)| piece.end > start);
            for (&from, piece) in first.into_iter().chain(pieces.range(start..end)) {
                let span = Span { buffer: region.buffer, start: from.max(start), end: piece.end.min(end) };
                visit(span, piece);
            }
        }
    }

    fn of(&mut self, buffer: BufferId) -> &mut BTreeMap<u64, Piece> {
        let index = buffer.0 as usize;
        if index >= self.buffers.len() {
            self.buffers.resize_with(index + 1, BTreeMap::new);
        }
        &mut self.buffers[index]
    }

    /// Drops the nodes that no piece reaches. A node only points to older ones, so the survivors keep their order.
    fn compact(&mut self) {
        let mut moved_to: Vec<Option<Link>> = vec![None; self.nodes.len()];
        let mut is_used = vec![false; self.nodes.len()];
        for piece in self.buffers.iter().flat_map(BTreeMap::values) {
            let mut link = piece.readers;
            while let Some(at) = link.filter(|&at| !is_used[at as usize]) {
                is_used[at as usize] = true;
                link = self.nodes[at as usize].older;
            }
        }
        let mut kept = Vec::new();
        for (at, node) in self.nodes.iter().enumerate().filter(|(at, _)| is_used[*at]) {
            let older = node.older.and_then(|older| moved_to[older as usize]);
            moved_to[at] = Some(push(&mut kept, node.reader, older));
        }
        for piece in self.buffers.iter_mut().flat_map(BTreeMap::values_mut) {
            piece.readers = piece.readers.and_then(|link| moved_to[link as usize]);
        }
        self.compact_at = FIRST_COMPACTION.max(2 * kept.len());
        self.nodes = kept;
    }
}

fn push(nodes: &mut Vec<Node>, reader: TaskId, older: Option<Link>) -> Link {
    let link = Link::try_from(nodes.len()).expect("fewer than 2^32 reads are alive at once");
    nodes.push(Node { reader, older });
    link
}

/// The rows of a region as ranges of bytes, ascending; none when it is empty.
pub fn rows(region: &Region) -> impl Iterator<Item = (u64, u64)> + use<> {
    let Region { offset, row_bytes, rows, stride, .. } = *region;
    let rows = if row_bytes == 0 { 0 } else { rows };
    (0..rows).map(move |row| (offset + row * stride, offset + row * stride + row_bytes))
}

/// The first bytes that two regions of one task share, if any.
pub fn shared(a: &Region, b: &Region) -> Option<Span> {
    if a.buffer != b.buffer || a.end() <= b.offset || b.end() <= a.offset {
        return None;
    }
    let (mut left, mut right) = (rows(a).peekable(), rows(b).peekable());
    while let (Some(&(a_start, a_end)), Some(&(b_start, b_end))) = (left.peek(), right.peek()) {
        let (start, end) = (a_start.max(b_start), a_end.min(b_end));
        if start < end {
            return Some(Span { buffer: a.buffer, start, end });
        }
        if a_end <= b_end {
            left.next().map(drop)
        } else {
            right.next().map(drop)
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::rolls;

    #[test]
    fn every_byte_knows_its_last_writer_and_the_readers_since() {
        let mut random = rolls(1);
        for size in [8_u64, 300] {
            let mut accesses = Accesses::default();
            let mut bytes: Vec<(Option<u64>, Vec<u64>)> = vec![(None, Vec::new()); size as usize];
            for task in 0..1500 {
                let offset = random(size);
                let region = Region::range(BufferId(2), offset, (1 + random(12)).min(size - offset));
                let touched = &mut bytes[offset as usize..region.end() as usize];
                if random(2) == 0 {
                    accesses.read(&region, TaskId(task));
                    touched.iter_mut().for_each(|byte| byte.1.push(task));
                } else {
                    accesses.write(&region, TaskId(task));
                    touched.fill((Some(task), Vec::new()));
                }
                if task % 100 == 0 {
                    accesses.compact();
                }
                let mut found = vec![(None, Vec::new()); size as usize];
                let all = Region::range(BufferId(2), 0, size);
                let range = |span: Span| span.start as usize..span.end as usize;
                accesses.writers(&all, |writer, span| found[range(span)].fill((Some(writer.0), Vec::new())));
                accesses
                    .readers(&all, |reader, span| found[range(span)].iter_mut().for_each(|b| b.1.insert(0, reader.0)));
                assert_eq!(found, bytes, "after task {task}");
            }
        }
    }

    #[test]
    fn regions_share_bytes_only_where_rows_meet() {
        let buffer = BufferId(0);
        let even = Region { buffer, offset: 0, row_bytes: 4, rows: 4, stride: 8 };
        let odd = Region { offset: 4, ..even };
        assert_eq!(shared(&even, &odd), None);
        let wide = Region { row_bytes: 5, ..odd };
        assert_eq!(shared(&even, &wide), Some(Span { buffer, start: 8, end: 9 }));
        assert_eq!(shared(&even, &Region { buffer: BufferId(1), ..even }), None);
        assert_eq!(shared(&even, &Region::range(buffer, 20, 0)), None);
    }
}

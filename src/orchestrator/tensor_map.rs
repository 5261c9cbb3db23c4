//! Which task last wrote which bytes of which buffer, and who has read them since.

use super::segments::{Access, Segment, Segments};
use crate::id::BufferId;
use crate::workload::Region;

/// Segments kept before the first look for dead ones.
const FIRST_SWEEP: usize = 1 << 16;

/// Accesses to all buffers of a program, exact to the byte. What retired tasks left is swept out when it grows, so its size
/// follows the tasks in flight, not the length of the program.
pub struct TensorMap {
    buffers: Vec<Segments>,
    spare: Vec<Vec<Segment>>,
    n_segments: usize,
    sweep_at: usize,
}

impl Default for TensorMap {
    fn default() -> TensorMap {
        TensorMap { buffers: Vec::new(), spare: Vec::new(), n_segments: 0, sweep_at: FIRST_SWEEP }
    }
}

impl TensorMap {
    /// The name stands for a new buffer from now on; nobody has written it.
    #[inline]
    pub fn bind(&mut self, buffer: BufferId) {
        let segments = of(&mut self.buffers, buffer);
        self.n_segments -= segments.len();
        segments.clear(&mut self.spare);
    }

    /// The name stands for a new buffer from now on, all of it written by `writer`.
    #[inline]
    pub fn bind_written(&mut self, buffer: BufferId, bytes: u64, writer: Access) {
        let segments = of(&mut self.buffers, buffer);
        if bytes > 0 && segments.replace_only(bytes, writer) {
            return;
        }
        self.bind(buffer);
        self.write(&Region::range(buffer, 0, bytes), writer);
    }

    /// Visits the segments that share bytes with `region`; one may come several times.
    #[inline]
    pub fn overlapping(&self, region: &Region, mut visit: impl FnMut(&Segment)) {
        let Some(segments) = self.buffers.get(region.buffer.0 as usize) else { return };
        if segments.is_empty() || region.row_bytes == 0 {
            return;
        }
        for row in 0..region.rows {
            let start = region.offset + row * region.stride;
            segments.overlapping(start, start + region.row_bytes, &mut visit);
        }
    }

    /// Makes `writer` the last writer of a region.
    #[inline]
    pub fn write(&mut self, region: &Region, writer: Access) {
        self.access(region, |segments, start, end, spare| segments.write(start, end, writer, spare));
    }

    /// Adds a reader to a region.
    pub fn read(&mut self, region: &Region, reader: Access) {
        self.access(region, |segments, start, end, spare| segments.read(start, end, reader, spare));
    }

    #[inline]
    fn access(&mut self, region: &Region, mut row: impl FnMut(&mut Segments, u64, u64, &mut Vec<Vec<Segment>>)) {
        if region.row_bytes == 0 {
            return;
        }
        let segments = of(&mut self.buffers, region.buffer);
        let before = segments.len();
        for nth in 0..region.rows {
            let start = region.offset + nth * region.stride;
            row(segments, start, start + region.row_bytes, &mut self.spare);
        }
        self.n_segments = self.n_segments + segments.len() - before;
    }

    /// Drops what dead tasks left, if enough has come together to be worth it.
    #[inline]
    pub fn sweep_if_large(&mut self, is_dead: impl FnMut(&Access) -> bool) {
        if self.n_segments > self.sweep_at {
            self.sweep(is_dead);
        }
    }

    #[cold]
    fn sweep(&mut self, mut is_dead: impl FnMut(&Access) -> bool) {
        self.n_segments = 0;
        for segments in &mut self.buffers {
            segments.sweep(&mut is_dead, &mut self.spare);
            self.n_segments += segments.len();
        }
        self.spare.truncate(64);
        self.sweep_at = FIRST_SWEEP.max(2 * self.n_segments);
    }
}

#[inline]
fn of(buffers: &mut Vec<Segments>, buffer: BufferId) -> &mut Segments {
    let index = buffer.0 as usize;
    if index >= buffers.len() {
        buffers.resize_with(index + 1, Segments::default);
    }
    &mut buffers[index]
}

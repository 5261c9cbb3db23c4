//! Which task wrote and read every single byte, and what a new task depends on because of that.
//!
//! A name that is bound again gets new bytes; nothing can name the old ones any more, so they are dropped.

use ptosim::config::Hazards;
use ptosim::id::BufferId;
use ptosim::workload::{Region, Submit};
use std::collections::{BTreeSet, HashMap};

/// Every byte of every bound buffer.
#[derive(Default)]
pub struct Memory {
    buffers: HashMap<BufferId, Vec<Byte>>,
}

#[derive(Clone, Default)]
struct Byte {
    writer: Option<usize>,
    readers: BTreeSet<usize>,
}

impl Memory {
    /// Binds a name to bytes nobody has touched.
    pub fn bind(&mut self, buffer: BufferId, bytes: u64) {
        self.buffers.insert(buffer, vec![Byte::default(); bytes as usize]);
    }

    /// Every task that `submit` depends on, explicitly or by its regions, whether CONSUMED or not; each once.
    ///
    /// Choice: under `raw` the write of an `inout` adds nothing, its read depends on the last writers like any read.
    pub fn producers(&self, submit: &Submit, hazards: Hazards) -> BTreeSet<usize> {
        let mut producers: BTreeSet<usize> = submit.deps.iter().map(|task| task.0 as usize).collect();
        for region in submit.reads.iter().chain(&submit.updates) {
            producers.extend(self.bytes(region).filter_map(|byte| byte.writer));
        }
        for region in submit.writes.iter().chain(&submit.updates) {
            for byte in self.bytes(region) {
                match hazards {
                    Hazards::Raw => {}
                    Hazards::RawWaw => producers.extend(byte.writer),
                    Hazards::Full => producers.extend(byte.writer.iter().chain(&byte.readers)),
                }
            }
        }
        producers
    }

    /// Books what task `id` does: all reads, then all writes, then the new buffers.
    pub fn record(&mut self, id: usize, submit: &Submit) {
        for region in submit.reads.iter().chain(&submit.updates) {
            self.each(region, |byte| byte.readers.extend([id]));
        }
        for region in submit.writes.iter().chain(&submit.updates) {
            self.each(region, |byte| *byte = Byte { writer: Some(id), readers: BTreeSet::new() });
        }
        for new in &submit.allocates {
            self.bind(new.buffer, new.bytes);
            let whole = Region::range(new.buffer, 0, new.bytes);
            self.each(&whole, |byte| byte.writer = Some(id));
        }
    }

    fn bytes<'a>(&'a self, region: &'a Region) -> impl Iterator<Item = &'a Byte> {
        let buffer = &self.buffers[&region.buffer];
        positions(region).map(move |position| &buffer[position])
    }

    fn each(&mut self, region: &Region, mut change: impl FnMut(&mut Byte)) {
        let buffer = self.buffers.get_mut(&region.buffer).expect("programs bind a buffer before they use it");
        for position in positions(region) {
            change(&mut buffer[position]);
        }
    }
}

fn positions(region: &Region) -> impl Iterator<Item = usize> {
    let Region { offset, row_bytes, rows, stride, .. } = *region;
    (0..rows).flat_map(move |row| (0..row_bytes).map(move |column| (offset + row * stride + column) as usize))
}

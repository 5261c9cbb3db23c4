//! Operations as records.

use super::layout::{
    BUFFER, COST, FAULT, N_LISTS, OUT_BYTES, PER_KIND, ParamRecord, RARELY, ROWS, RegionRecord, RowsRecord,
    SCOPE_BEGIN, SCOPE_END, SUBMIT, SYNC_START, SizeRecord, TaskRecord, WIDE, WideCounts,
};
use super::rare::Rare;
use crate::id::{BufferId, Symbol};
use crate::workload::{Cost, NewBuffer, Operation, Region, Submit};
use zerocopy::{Immutable, IntoBytes};

/// Records in the making.
#[derive(Default)]
pub struct Encoder {
    /// The records so far.
    pub bytes: Vec<u8>,
    /// Rare fields of the tasks that have some.
    pub rare: Vec<Rare>,
}

impl Encoder {
    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.rare.clear();
    }

    /// Appends an operation; of a submission it takes what only policies read.
    #[inline]
    pub fn push(&mut self, operation: Operation, task: &mut Submit) {
        match operation {
            Operation::Submit => self.submit(task),
            Operation::ScopeBegin => self.bytes.push(SCOPE_BEGIN),
            Operation::ScopeEnd => self.bytes.push(SCOPE_END),
            Operation::Buffer { buffer, bytes } => {
                self.bytes.push(BUFFER);
                self.put(&size_record(buffer, bytes));
            }
        }
    }

    fn put(&mut self, record: &(impl IntoBytes + Immutable)) {
        self.bytes.extend_from_slice(record.as_bytes());
    }

    fn submit(&mut self, task: &mut Submit) {
        let lists = [&task.reads, &task.writes, &task.updates];
        let counts = counts(task);
        let is_wide = counts.iter().any(|&count| count > usize::from(u8::MAX));
        let has_rows = lists.into_iter().flatten().any(|region| region.rows != 1);
        let rare = Rare::taken_from(task);
        let flags = flag(task.sync_start, SYNC_START)
            | flag(task.fault, FAULT)
            | flag(task.cost.is_some(), COST)
            | flag(matches!(task.cost, Some(Cost::PerKind { .. })), PER_KIND)
            | flag(task.out_bytes != 0, OUT_BYTES)
            | flag(has_rows, ROWS)
            | flag(rare.is_some(), RARELY)
            | flag(is_wide, WIDE);
        self.rare.extend(rare);
        self.put(&task_record(task, flags, if is_wide { [0; N_LISTS] } else { counts.map(|count| count as u8) }));
        if is_wide {
            let wide: WideCounts = counts.map(|count| u32::try_from(count).expect("fewer than 2^32 entries").into());
            self.put(&wide);
        }
        if let Some(Cost::PerKind { vector, .. }) = task.cost {
            self.put(&vector.to_le_bytes());
        }
        if task.out_bytes != 0 {
            self.put(&task.out_bytes.to_le_bytes());
        }
        self.lists(task, has_rows);
    }

    fn lists(&mut self, task: &Submit, has_rows: bool) {
        for producer in &task.deps {
            self.put(&producer.0.to_le_bytes());
        }
        for region in task.reads.iter().chain(&task.writes).chain(&task.updates) {
            if has_rows {
                self.put(&rows_record(region));
            } else {
                self.put(&region_record(region));
            }
        }
        for &NewBuffer { buffer, bytes } in &task.allocates {
            self.put(&size_record(buffer, bytes));
        }
        for &(Symbol(name), value) in &task.params {
            self.put(&ParamRecord { name: name.into(), bits: value.to_bits().into() });
        }
    }
}

fn counts(task: &Submit) -> [usize; N_LISTS] {
    [task.deps.len(), task.reads.len(), task.writes.len(), task.updates.len(), task.allocates.len(), task.params.len()]
}

fn flag(is_set: bool, flag: u8) -> u8 {
    if is_set { flag } else { 0 }
}

fn task_record(task: &Submit, flags: u8, counts: [u8; N_LISTS]) -> TaskRecord {
    let symbol = |symbol: Option<Symbol>| symbol.map_or(0, |Symbol(number)| number + 1).into();
    let cost = match task.cost {
        None => 0,
        Some(Cost::Cycles(cycles)) => cycles,
        Some(Cost::PerKind { cube, .. }) => cube,
    };
    TaskRecord {
        code: SUBMIT,
        flags,
        kind: task.kind.map_or(0, |kind| kind as u8 + 1),
        units: task.units.cube | task.units.vector << 4,
        name: symbol(task.name),
        kernel: symbol(task.kernel),
        blocks: task.blocks.into(),
        cost: cost.into(),
        counts,
        reserved: [0; 2],
    }
}

fn region_record(region: &Region) -> RegionRecord {
    RegionRecord { buffer: region.buffer.0.into(), offset: region.offset.into(), bytes: region.row_bytes.into() }
}

fn rows_record(region: &Region) -> RowsRecord {
    RowsRecord {
        buffer: region.buffer.0.into(),
        offset: region.offset.into(),
        row_bytes: region.row_bytes.into(),
        rows: region.rows.into(),
        stride: region.stride.into(),
    }
}

fn size_record(BufferId(buffer): BufferId, bytes: u64) -> SizeRecord {
    SizeRecord { buffer: buffer.into(), bytes: bytes.into() }
}

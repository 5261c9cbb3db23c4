//! Records as operations. Every number in them is checked before it is believed.

use super::layout::{
    BUFFER, COST, FAULT, N_LISTS, OUT_BYTES, PER_KIND, ParamRecord, RARELY, ROWS, RegionRecord, RowsRecord,
    SCOPE_BEGIN, SCOPE_END, SUBMIT, SYNC_START, SizeRecord, TaskRecord, WIDE, WideCounts,
};
use super::rare::Rare;
use crate::id::{BufferId, Symbol, TaskId, TaskType};
use crate::workload::trace::{MAX_SCOPES, resolve};
use crate::workload::{Cost, NewBuffer, Operation, Region, Submit, Units};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// What is wrong with a record.
pub type Fault = String;

/// What the records so far mean for those to come.
#[derive(Default)]
pub struct Decoder {
    /// Tasks so far.
    tasks: u64,
    /// Size of the buffer that each name is bound to; as many as there are names.
    sizes: Vec<Option<u64>>,
    /// Names of kernels, tasks and parameters that there are.
    n_symbols: u32,
    open_scopes: u32,
}

/// Records that are being read.
pub struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    /// Stands before the first record in `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Records<'a> {
        Records { rest: bytes }
    }

    /// Bytes that were not read yet.
    #[inline]
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    fn one<T: FromBytes + KnownLayout + Immutable + zerocopy::Unaligned>(&mut self) -> Result<&'a T, Fault> {
        let (found, rest) = T::ref_from_prefix(self.rest).map_err(|_| cut_off())?;
        self.rest = rest;
        Ok(found)
    }

    #[inline]
    fn list<T: FromBytes + Immutable + zerocopy::Unaligned>(&mut self, count: u32) -> Result<&'a [T], Fault>
    where
        [T]: KnownLayout<PointerMetadata = usize>,
    {
        let list = <[T]>::ref_from_prefix_with_elems(self.rest, count as usize);
        let (found, rest) = list.map_err(|_| cut_off())?;
        self.rest = rest;
        Ok(found)
    }
}

#[cold]
fn cut_off() -> Fault {
    "its record is cut off".into()
}

impl Decoder {
    /// Tells how many names there are now.
    pub fn know(&mut self, n_symbols: usize, n_buffers: usize) {
        self.n_symbols = n_symbols as u32;
        self.sizes.resize(n_buffers, None);
    }

    /// Reads the next operation, if there is one; `rare` gives rare fields where a task has some.
    ///
    /// # Errors
    /// When a record is not what an encoder writes.
    #[inline]
    pub fn next(
        &mut self,
        records: &mut Records<'_>,
        rare: impl FnOnce() -> Result<Rare, Fault>,
        task: &mut Submit,
    ) -> Result<Option<Operation>, Fault> {
        let Some(&code) = records.rest.first() else { return Ok(None) };
        if code == SUBMIT {
            self.submit(records, rare, task)?;
            return Ok(Some(Operation::Submit));
        }
        records.rest = &records.rest[1..];
        self.other(code, records).map(Some)
    }

    /// Closes the innermost scope that was left open.
    pub fn close_scope(&mut self) -> Option<Operation> {
        self.open_scopes = self.open_scopes.checked_sub(1)?;
        Some(Operation::ScopeEnd)
    }

    fn other(&mut self, code: u8, records: &mut Records<'_>) -> Result<Operation, Fault> {
        match code {
            SCOPE_BEGIN if self.open_scopes == MAX_SCOPES => Err(format!("more than {MAX_SCOPES} scopes are open")),
            SCOPE_BEGIN => {
                self.open_scopes += 1;
                Ok(Operation::ScopeBegin)
            }
            SCOPE_END => self.close_scope().ok_or_else(|| "a scope ends that did not begin".into()),
            BUFFER => {
                let NewBuffer { buffer, bytes } = self.bound(records.one()?)?;
                Ok(Operation::Buffer { buffer, bytes })
            }
            _ => Err(format!("code {code} is unknown")),
        }
    }

    #[inline]
    fn submit(
        &mut self,
        records: &mut Records<'_>,
        rare: impl FnOnce() -> Result<Rare, Fault>,
        task: &mut Submit,
    ) -> Result<(), Fault> {
        let record: &TaskRecord = records.one()?;
        task.clear();
        task.name = self.symbol(record.name.get())?;
        task.kernel = self.symbol(record.kernel.get())?;
        let counts = match record.flags & WIDE {
            0 => record.counts.map(u32::from),
            _ => records.one::<WideCounts>()?.map(U32::get),
        };
        plain(record, records, task)?;
        self.lists(records, counts, record.flags & ROWS != 0, task)?;
        if record.flags & RARELY != 0 {
            rare()?.give(task, self.tasks)?;
        }
        self.tasks += 1;
        Ok(())
    }

    #[inline]
    fn lists(
        &mut self,
        records: &mut Records<'_>,
        [deps, reads, writes, updates, news, params]: [u32; N_LISTS],
        has_rows: bool,
        task: &mut Submit,
    ) -> Result<(), Fault> {
        if deps > 0 {
            let producers: &[U64] = records.list(deps)?;
            task.deps.extend(producers.iter().map(|producer| TaskId(producer.get())));
            if task.deps.iter().any(|producer| producer.0 >= self.tasks) {
                return Err("a producer does not come earlier".into());
            }
        }
        for (list, count) in [(&mut task.reads, reads), (&mut task.writes, writes), (&mut task.updates, updates)] {
            if count > 0 {
                self.regions(records, count, has_rows, list)?;
            }
        }
        if news > 0 {
            for record in records.list(news)? {
                task.allocates.push(self.bound(record)?);
            }
        }
        if params > 0 {
            for record in records.list(params)? {
                task.params.push(self.param(record)?);
            }
        }
        Ok(())
    }

    #[inline]
    fn regions(
        &self,
        records: &mut Records<'_>,
        count: u32,
        has_rows: bool,
        list: &mut Vec<Region>,
    ) -> Result<(), Fault> {
        if has_rows {
            for record in records.list::<RowsRecord>(count)? {
                let numbers = [record.offset.get(), record.row_bytes.get(), record.rows.get(), record.stride.get()];
                let buffer = record.buffer.get();
                list.push(resolve::rows("a buffer", Region::range(BufferId(buffer), 0, self.size(buffer)?), numbers)?);
            }
            return Ok(());
        }
        for record in records.list::<RegionRecord>(count)? {
            let (buffer, offset, bytes) = (record.buffer.get(), record.offset.get(), record.bytes.get());
            let size = self.size(buffer)?;
            if offset.checked_add(bytes).is_none_or(|end| end > size) {
                return Err(format!("{bytes} bytes from byte {offset} on, of a buffer of {size}"));
            }
            list.push(Region::range(BufferId(buffer), offset, bytes));
        }
        Ok(())
    }

    #[inline]
    fn size(&self, buffer: u32) -> Result<u64, Fault> {
        let size = self.sizes.get(buffer as usize).copied().flatten();
        size.ok_or_else(|| format!("buffer {buffer} is not there yet"))
    }

    #[inline]
    fn bound(&mut self, record: &SizeRecord) -> Result<NewBuffer, Fault> {
        let (buffer, bytes) = (record.buffer.get(), record.bytes.get());
        let size = self.sizes.get_mut(buffer as usize).ok_or_else(|| format!("buffer {buffer} has no name"))?;
        *size = Some(bytes);
        Ok(NewBuffer { buffer: BufferId(buffer), bytes })
    }

    /// A symbol, written as its number + 1.
    #[inline]
    fn symbol(&self, written: u32) -> Result<Option<Symbol>, Fault> {
        match written.checked_sub(1) {
            Some(number) if number >= self.n_symbols => Err(format!("name {number} is unknown")),
            number => Ok(number.map(Symbol)),
        }
    }

    #[inline]
    fn param(&self, record: &ParamRecord) -> Result<(Symbol, f64), Fault> {
        let (name, value) = (record.name.get(), f64::from_bits(record.bits.get()));
        if name >= self.n_symbols || !value.is_finite() {
            return Err(format!("its parameter {name} is unknown or not a finite number"));
        }
        Ok((Symbol(name), value))
    }
}

/// What stands in the record itself, and the numbers right behind it.
#[inline]
fn plain(record: &TaskRecord, records: &mut Records<'_>, task: &mut Submit) -> Result<(), Fault> {
    const KINDS: usize = TaskType::ALL.len();
    let flag = |flag: u8| record.flags & flag != 0;
    task.kind = match record.kind as usize {
        0 => None,
        place @ 1..=KINDS => Some(TaskType::ALL[place - 1]),
        place => return Err(format!("task type {place} is unknown")),
    };
    task.units = Units { cube: record.units & 15, vector: record.units >> 4 };
    if task.units.cube > 1 || task.units.vector > 2 || record.units == 0 {
        return Err(format!("units {:#04x} are not what a block can take", record.units));
    }
    task.blocks = record.blocks.get();
    if task.blocks == 0 {
        return Err("a task of 0 blocks".into());
    }
    task.sync_start = flag(SYNC_START);
    task.fault = flag(FAULT);
    let cost = record.cost.get();
    task.cost = match (flag(COST), flag(PER_KIND)) {
        (false, false) => None,
        (true, false) => Some(Cost::Cycles(cost)),
        (true, true) if task.kind == Some(TaskType::Mix) => {
            Some(Cost::PerKind { cube: cost, vector: records.one::<U64>()?.get() })
        }
        (_, true) => return Err("cycles per kind of a task that is not MIX or has no cycles".into()),
    };
    if flag(OUT_BYTES) {
        task.out_bytes = records.one::<U64>()?.get();
    }
    Ok(())
}

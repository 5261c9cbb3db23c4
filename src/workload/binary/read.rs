//! A binary trace as a stream of operations. Every number in it is checked before it is believed.

use super::Image;
use super::layout::{
    BUFFER, COST, FAULT, PER_KIND, ParamRecord, RegionRecord, SCOPE_BEGIN, SCOPE_END, SUBMIT, SYNC_START, SizeRecord,
    TaskRecord,
};
use super::rare::Rare;
use crate::id::{BufferId, Symbol, TaskId, TaskType};
use crate::workload::trace::{MAX_SCOPES, resolve};
use crate::workload::{Cost, NewBuffer, Operation, Region, Source, Submit, Symbols, Units, WorkloadError};
use std::sync::Arc;
use zerocopy::FromBytes;

/// A binary trace being read.
pub struct Reader {
    image: Arc<Image>,
    cursor: Cursor,
}

/// Entries of each list that were taken, and what they mean for those to come.
#[derive(Default)]
struct Cursor {
    operation: usize,
    task: usize,
    dep: usize,
    region: usize,
    new: usize,
    buffer: usize,
    param: usize,
    rare: usize,
    /// Size of the buffer that each name is bound to.
    sizes: Vec<Option<u64>>,
    open_scopes: u32,
}

impl Reader {
    /// Starts with the first operation.
    pub fn new(image: Arc<Image>) -> Reader {
        let cursor = Cursor { sizes: vec![None; image.buffers.len()], ..Cursor::default() };
        Reader { image, cursor }
    }

    #[cold]
    fn error(&self, message: &str) -> WorkloadError {
        let (path, operation) = (&self.image.path, self.cursor.operation.saturating_sub(1));
        WorkloadError::Input(format!("{path}: operation {operation}: {message}; write the file again"))
    }
}

impl Cursor {
    fn step(&mut self, image: &Image, code: u8, task: &mut Submit) -> Result<Operation, String> {
        match code {
            SUBMIT => self.submit(image, task).map(|()| Operation::Submit),
            SCOPE_BEGIN if self.open_scopes == MAX_SCOPES => Err(format!("more than {MAX_SCOPES} scopes are open")),
            SCOPE_BEGIN => {
                self.open_scopes += 1;
                Ok(Operation::ScopeBegin)
            }
            SCOPE_END => {
                self.open_scopes = self.open_scopes.checked_sub(1).ok_or("a scope ends that did not begin")?;
                Ok(Operation::ScopeEnd)
            }
            BUFFER => {
                let record = taken(image.declared(), &mut self.buffer, 1).ok_or("no buffer is left")?;
                self.bind(&record[0]).map(|(buffer, bytes)| Operation::Buffer { buffer, bytes })
            }
            _ => Err(format!("code {code} is unknown")),
        }
    }

    fn submit(&mut self, image: &Image, task: &mut Submit) -> Result<(), String> {
        let record = image.tasks().get(self.task).ok_or("no task is left")?;
        task.clear();
        task.name = image.symbol(record.name.get())?;
        task.kernel = image.symbol(record.kernel.get())?;
        plain(record, task)?;
        let deps = taken(image.deps(), &mut self.dep, record.n_deps.get()).ok_or("no producers are left")?;
        task.deps.extend(deps.iter().map(|producer| TaskId(producer.get())));
        if task.deps.iter().any(|producer| producer.0 >= self.task as u64) {
            return Err("a producer does not come earlier".into());
        }
        self.regions(image, record, task)?;
        let params = taken(image.params(), &mut self.param, record.n_params.get()).ok_or("no parameters are left")?;
        for record in params {
            task.params.push(param(record, image.symbols.len())?);
        }
        if record.rare.get() > 0 {
            let text = taken(image.rare(), &mut self.rare, record.rare.get()).ok_or("no rare fields are left")?;
            let rare: Rare = serde_json::from_slice(text).map_err(|error| format!("rare fields: {error}"))?;
            rare.give(task, self.task as u64)?;
        }
        self.task += 1;
        Ok(())
    }

    fn regions(&mut self, image: &Image, record: &TaskRecord, task: &mut Submit) -> Result<(), String> {
        let counts = [record.n_reads.get(), record.n_writes.get(), record.n_updates.get()];
        for (list, count) in [&mut task.reads, &mut task.writes, &mut task.updates].into_iter().zip(counts) {
            let records = taken(image.regions(), &mut self.region, count).ok_or("no regions are left")?;
            for record in records {
                list.push(self.checked(record)?);
            }
        }
        let records = taken(image.news(), &mut self.new, record.n_new.get()).ok_or("no allocations are left")?;
        for record in records {
            let (buffer, bytes) = self.bind(record)?;
            task.allocates.push(NewBuffer { buffer, bytes });
        }
        Ok(())
    }

    fn checked(&self, record: &RegionRecord) -> Result<Region, String> {
        let number = record.buffer.get();
        let bytes = self.sizes.get(number as usize).copied().flatten();
        let bytes = bytes.ok_or_else(|| format!("buffer {number} is not there yet"))?;
        let numbers = [record.offset.get(), record.row_bytes.get(), record.rows.get(), record.stride.get()];
        resolve::rows("a buffer", Region::range(BufferId(number), 0, bytes), numbers)
    }

    fn bind(&mut self, record: &SizeRecord) -> Result<(BufferId, u64), String> {
        let (number, bytes) = (record.buffer.get(), record.bytes.get());
        let size = self.sizes.get_mut(number as usize).ok_or_else(|| format!("buffer {number} has no name"))?;
        *size = Some(bytes);
        Ok((BufferId(number), bytes))
    }

    /// Closes the innermost scope that the program leaves open.
    fn close_scope(&mut self) -> Option<Operation> {
        self.open_scopes = self.open_scopes.checked_sub(1)?;
        Some(Operation::ScopeEnd)
    }
}

impl Source for Reader {
    fn next(&mut self, task: &mut Submit) -> Result<Option<Operation>, WorkloadError> {
        let Some(&code) = self.image.operations().get(self.cursor.operation) else {
            return Ok(self.cursor.close_scope());
        };
        self.cursor.operation += 1;
        self.cursor.step(&self.image, code, task).map(Some).map_err(|message| self.error(&message))
    }

    fn symbols(&self) -> &Symbols {
        &self.image.symbols
    }

    fn buffers(&self) -> &Symbols {
        &self.image.buffers
    }
}

/// The next `count` entries of a list.
fn taken<'a, T: FromBytes>(list: &'a [T], next: &mut usize, count: u32) -> Option<&'a [T]> {
    let end = next.checked_add(count as usize)?;
    let found = list.get(*next..end)?;
    *next = end;
    Some(found)
}

/// The fields that stand in the record itself.
fn plain(record: &TaskRecord, task: &mut Submit) -> Result<(), String> {
    let flag = |flag: u8| record.flags & flag != 0;
    task.kind = match record.kind {
        0 => None,
        place => Some(*TaskType::ALL.get(place as usize - 1).ok_or_else(|| format!("task type {place} is unknown"))?),
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
    task.out_bytes = record.out_bytes.get();
    let cost = record.cost.get();
    task.cost = match (flag(COST), flag(PER_KIND)) {
        (false, _) => None,
        (true, false) => Some(Cost::Cycles(cost)),
        (true, true) if task.kind == Some(TaskType::Mix) => {
            Some(Cost::PerKind { cube: cost, vector: record.vector_cost.get() })
        }
        (true, true) => return Err("cycles per kind of a task that is not MIX".into()),
    };
    Ok(())
}

/// A parameter of a task.
fn param(record: &ParamRecord, n_symbols: usize) -> Result<(Symbol, f64), String> {
    let (name, value) = (record.name.get(), f64::from_bits(record.bits.get()));
    if name as usize >= n_symbols || !value.is_finite() {
        return Err(format!("its parameter {name} is unknown or not a finite number"));
    }
    Ok((Symbol(name), value))
}

/// A symbol of the file, written as its number + 1.
pub fn symbol(written: u32, n_symbols: usize) -> Result<Option<Symbol>, String> {
    match written.checked_sub(1) {
        None => Ok(None),
        Some(number) if (number as usize) < n_symbols => Ok(Some(Symbol(number))),
        Some(number) => Err(format!("name {number} is unknown")),
    }
}

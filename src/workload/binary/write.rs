//! Writes a workload as a binary trace.

use super::About;
use super::layout::{
    ABOUT, BUFFER, BUFFER_NAMES, BUFFERS, COST, DEPS, FAULT, Header, MAGIC, N_SECTIONS, NEWS, OPERATIONS, PARAMS,
    PER_KIND, ParamRecord, RARE, REGIONS, RegionRecord, SCOPE_BEGIN, SCOPE_END, SUBMIT, SYMBOL_ENDS, SYMBOLS,
    SYNC_START, Section, SizeRecord, TASKS, TaskRecord, VERSION, seal,
};
use super::rare::Rare;
use crate::id::{Symbol, TaskType};
use crate::workload::{Cost, Operation, Region, Submit, Symbols, Workload, WriteError};
use std::io::Write;
use zerocopy::IntoBytes;

/// Writes a workload as a binary trace and returns the number of its tasks. The whole file is built in memory.
///
/// # Errors
/// When the workload cannot be read or the output fails.
pub fn write_binary(workload: &dyn Workload, output: &mut dyn Write) -> Result<u64, WriteError> {
    let mut sections: [Vec<u8>; N_SECTIONS] = Default::default();
    let mut source = workload.open()?;
    let (mut task, mut n_tasks) = (Submit::default(), 0);
    while let Some(operation) = source.next(&mut task)? {
        sections[OPERATIONS].push(match operation {
            Operation::Submit => SUBMIT,
            Operation::ScopeBegin => SCOPE_BEGIN,
            Operation::ScopeEnd => SCOPE_END,
            Operation::Buffer { .. } => BUFFER,
        });
        match operation {
            Operation::Submit => {
                submit(&task, &mut sections);
                n_tasks += 1;
            }
            Operation::Buffer { buffer, bytes } => {
                let record = SizeRecord { buffer: buffer.0.into(), reserved: 0.into(), bytes: bytes.into() };
                sections[BUFFERS].extend_from_slice(record.as_bytes());
            }
            Operation::ScopeBegin | Operation::ScopeEnd => {}
        }
    }
    names(source.symbols(), &mut sections);
    for (_, name) in source.buffers().iter() {
        sections[BUFFER_NAMES].extend_from_slice(&(name.len() as u32).to_le_bytes());
        sections[BUFFER_NAMES].extend_from_slice(name.as_bytes());
    }
    let about = About { name: workload.name(), controls: workload.controls()?, notes: workload.notes() };
    sections[ABOUT] = serde_json::to_vec(&about).expect("texts and numbers can be written");
    output.write_all(&assembled(&sections))?;
    output.flush()?;
    Ok(n_tasks)
}

fn submit(task: &Submit, sections: &mut [Vec<u8>; N_SECTIONS]) {
    let rare = Rare::of(task).map(|rare| serde_json::to_vec(&rare).expect("texts and numbers can be written"));
    let (cost_flag, cost, vector_cost) = match task.cost {
        None => (0, 0, 0),
        Some(Cost::Cycles(cycles)) => (COST, cycles, 0),
        Some(Cost::PerKind { cube, vector }) => (COST | PER_KIND, cube, vector),
    };
    let place =
        |kind: TaskType| TaskType::ALL.iter().position(|&known| known == kind).map_or(0, |place| place as u8 + 1);
    let symbol = |symbol: Option<Symbol>| symbol.map_or(0, |Symbol(number)| number + 1).into();
    let sync_start = if task.sync_start { SYNC_START } else { 0 };
    let count = |count: usize| u32::try_from(count).expect("a task has fewer than 2^32 entries of a kind").into();
    let record = TaskRecord {
        name: symbol(task.name),
        kernel: symbol(task.kernel),
        kind: task.kind.map_or(0, place),
        units: task.units.cube | task.units.vector << 4,
        flags: cost_flag | sync_start | if task.fault { FAULT } else { 0 },
        reserved: 0,
        blocks: task.blocks.into(),
        cost: cost.into(),
        vector_cost: vector_cost.into(),
        out_bytes: task.out_bytes.into(),
        n_deps: count(task.deps.len()),
        n_reads: count(task.reads.len()),
        n_writes: count(task.writes.len()),
        n_updates: count(task.updates.len()),
        n_new: count(task.allocates.len()),
        n_params: count(task.params.len()),
        rare: count(rare.as_ref().map_or(0, Vec::len)),
    };
    sections[TASKS].extend_from_slice(record.as_bytes());
    for producer in &task.deps {
        sections[DEPS].extend_from_slice(&producer.0.to_le_bytes());
    }
    for region in task.reads.iter().chain(&task.writes).chain(&task.updates) {
        sections[REGIONS].extend_from_slice(region_record(region).as_bytes());
    }
    for new in &task.allocates {
        let record = SizeRecord { buffer: new.buffer.0.into(), reserved: 0.into(), bytes: new.bytes.into() };
        sections[NEWS].extend_from_slice(record.as_bytes());
    }
    for &(Symbol(name), value) in &task.params {
        let record = ParamRecord { name: name.into(), reserved: 0.into(), bits: value.to_bits().into() };
        sections[PARAMS].extend_from_slice(record.as_bytes());
    }
    sections[RARE].extend(rare.into_iter().flatten());
}

fn region_record(region: &Region) -> RegionRecord {
    RegionRecord {
        buffer: region.buffer.0.into(),
        reserved: 0.into(),
        offset: region.offset.into(),
        row_bytes: region.row_bytes.into(),
        rows: region.rows.into(),
        stride: region.stride.into(),
    }
}

fn names(symbols: &Symbols, sections: &mut [Vec<u8>; N_SECTIONS]) {
    for (_, name) in symbols.iter() {
        sections[SYMBOLS].extend_from_slice(name.as_bytes());
        let end = sections[SYMBOLS].len() as u64;
        sections[SYMBOL_ENDS].extend_from_slice(&end.to_le_bytes());
    }
}

/// Header and sections as one file.
fn assembled(sections: &[Vec<u8>; N_SECTIONS]) -> Vec<u8> {
    let mut header = Header {
        magic: MAGIC,
        version: VERSION.into(),
        reserved: 0.into(),
        file_bytes: 0.into(),
        checksum: 0.into(),
        sections: [Section { offset: 0.into(), bytes: 0.into() }; N_SECTIONS],
    };
    let mut offset = size_of::<Header>() as u64;
    for (section, content) in header.sections.iter_mut().zip(sections) {
        *section = Section { offset: offset.into(), bytes: (content.len() as u64).into() };
        offset += content.len() as u64;
    }
    let mut file = Vec::with_capacity(offset as usize);
    file.extend_from_slice(header.as_bytes());
    sections.iter().for_each(|content| file.extend_from_slice(content));
    seal(&mut file);
    file
}

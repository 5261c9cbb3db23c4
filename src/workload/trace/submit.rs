//! The fields of a `submit` line.

use super::fields::{Entries, Field, named, twice, unknown_field};
use super::json::{Cursor, Fault};
use super::policy::policy_field;
use super::resolve::Names;
use crate::id::{TaskId, TaskType};
use crate::kernel::task_type;
use crate::workload::{Cost, NewBuffer, Region, Submit, Units};

/// How a region is written.
const REGION: &str = "a region is \"buf\", [\"buf\", offset, bytes] or [\"buf\", offset, row_bytes, rows, stride]";

/// Reads the rest of a `submit` line into `task`.
pub fn submit(entries: &mut Entries<'_>, names: &mut Names, task: &mut Submit) -> Result<(), Fault> {
    task.clear();
    let mut line = Line { names, task, spawn_offset: 0, per_kind: None };
    let mut seen = if entries.meets_op { 0 } else { bit(Field::Op) };
    while let Some(key) = entries.next_key()? {
        let Some(field) = Field::find(&key) else {
            return Err(unknown_field(&key, "submit", Field::NAMES));
        };
        if seen & bit(field) != 0 {
            return Err(twice(&key));
        }
        seen |= bit(field);
        named(&key, line.field(&mut entries.cursor, field))?;
    }
    line.finish(seen)
}

fn bit(field: Field) -> u64 {
    1 << field as u8
}

/// A submission in the making.
struct Line<'n> {
    names: &'n mut Names,
    task: &'n mut Submit,
    spawn_offset: u64,
    /// Cycles on cube and vector, if they were given apart.
    per_kind: Option<(Option<u64>, Option<u64>)>,
}

impl Line<'_> {
    fn field(&mut self, cursor: &mut Cursor<'_>, field: Field) -> Result<(), Fault> {
        let task = &mut *self.task;
        match field {
            Field::Op => cursor.raw().map(drop)?,
            Field::Kernel => task.kernel = Some(self.names.symbols.intern(&cursor.string()?)),
            Field::Name => task.name = Some(self.names.symbols.intern(&cursor.string()?)),
            Field::WorkerType => task.kind = Some(task_type(&cursor.string()?)?),
            Field::Cycles if cursor.peek() == Some(b'{') => self.per_kind = Some(per_kind(cursor)?),
            Field::Cycles => task.cost = Some(Cost::Cycles(cursor.integer()?)),
            Field::Deps => cursor.array(|cursor| {
                task.deps.push(task_reference(cursor, self.names)?);
                Ok(())
            })?,
            Field::In => regions(cursor, self.names, &mut task.reads)?,
            Field::Out => regions(cursor, self.names, &mut task.writes)?,
            Field::InOut => regions(cursor, self.names, &mut task.updates)?,
            Field::New => new_buffers(cursor, self.names, &mut task.allocates)?,
            Field::OutBytes => task.out_bytes = cursor.integer()?,
            Field::Id => self.id(cursor)?,
            Field::Blocks => task.blocks = blocks(cursor)?,
            Field::SyncStart => task.sync_start = cursor.boolean()?,
            Field::Units => task.units = units(cursor)?,
            Field::SubmitAt => task.submit_at = cursor.integer()?,
            Field::Fault => task.fault = cursor.boolean()?,
            Field::Parent => task.parent = Some((task_reference(cursor, self.names)?, 0)),
            Field::SpawnOffset => self.spawn_offset = cursor.integer()?,
            Field::Params => self.params(cursor)?,
            other => policy_field(cursor, other, task.policy.get_or_insert_default())?,
        }
        Ok(())
    }

    /// Checks what depends on several fields and binds the new buffers.
    fn finish(self, seen: u64) -> Result<(), Fault> {
        let given = |field: Field| seen & bit(field) != 0;
        let task = self.task;
        if let Some(cycles) = self.per_kind {
            task.cost = Some(cost_per_kind(cycles, task).map_err(|fault| format!("field \"cycles\": {fault}"))?);
        }
        if given(Field::Units) && task.kind != Some(TaskType::Mix) {
            return Err(
                "field \"units\": units are for MIX tasks only; add \"worker_type\":\"MIX\" or leave them out".into()
            );
        }
        match &mut task.parent {
            Some((_, offset)) => *offset = self.spawn_offset,
            None if given(Field::SpawnOffset) => {
                return Err("field \"spawn_offset\": it needs a \"parent\"; name the task that creates this one".into());
            }
            None => {}
        }
        task.kernel = task.kernel.or(task.name);
        self.names.bind_all(&task.allocates);
        self.names.submitted(task.name);
        Ok(())
    }

    fn id(&self, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        let (id, own) = (cursor.integer()?, self.names.next_task());
        if TaskId(id) == own {
            return Ok(());
        }
        Err(format!(
            "{id} is not the number of this task; tasks are numbered in file order, so write {own} or leave it out"
        ))
    }

    fn params(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        cursor.object(|cursor, key| {
            let symbol = self.names.symbols.intern(key);
            if self.task.params.iter().any(|&(known, _)| known == symbol) {
                return Err(twice(key));
            }
            let value = cursor.number().map_err(|fault| format!("\"{key}\": {fault}"))?;
            self.task.params.push((symbol, value));
            Ok(())
        })
    }
}

fn task_reference(cursor: &mut Cursor<'_>, names: &Names) -> Result<TaskId, Fault> {
    match cursor.peek() {
        Some(b'"') => names.task_by_name(&cursor.string()?),
        Some(b'-' | b'0'..=b'9') => names.task_by_id(cursor.integer()?),
        _ => Err(cursor.unexpected("the number or name of an earlier task")),
    }
}

/// The cost of a MIX task whose kinds end on their own; a kind it takes no units of may be missing.
fn cost_per_kind((cube, vector): (Option<u64>, Option<u64>), task: &Submit) -> Result<Cost, Fault> {
    if task.kind != Some(TaskType::Mix) {
        return Err("cycles per kind are for MIX tasks only; add \"worker_type\":\"MIX\" or give one number".into());
    }
    let missing =
        |kind: &str, units: u8| format!("no cycles for {kind}, of which a block takes {units}; add \"{kind}\":…");
    match (cube, vector, task.units) {
        (None, _, Units { cube: taken @ 1.., .. }) => Err(missing("CUBE", taken)),
        (_, None, Units { vector: taken @ 1.., .. }) => Err(missing("VECTOR", taken)),
        _ => Ok(Cost::PerKind { cube: cube.unwrap_or(0), vector: vector.unwrap_or(0) }),
    }
}

fn units(cursor: &mut Cursor<'_>) -> Result<Units, Fault> {
    let (cube, vector) = per_kind(cursor)?;
    let (cube, vector) = (cube.unwrap_or(0), vector.unwrap_or(0));
    match (u8::try_from(cube), u8::try_from(vector)) {
        (Ok(0), Ok(0)) => Err("a block without units; take at least one CUBE or VECTOR".into()),
        (Ok(cube @ 0..=1), Ok(vector @ 0..=2)) => Ok(Units { cube, vector }),
        _ => Err(format!(
            "{cube} CUBE and {vector} VECTOR are more than a cluster has; take at most 1 CUBE and 2 VECTOR"
        )),
    }
}

/// `{"CUBE":…,"VECTOR":…}` with either key missing.
fn per_kind(cursor: &mut Cursor<'_>) -> Result<(Option<u64>, Option<u64>), Fault> {
    let (mut cube, mut vector) = (None, None);
    cursor.object(|cursor, key| {
        let place = match TaskType::parse(key) {
            Some(TaskType::Cube) => &mut cube,
            Some(TaskType::Vector) => &mut vector,
            _ => return Err(format!("unknown kind \"{key}\"; known are CUBE, VECTOR")),
        };
        let value = cursor.integer().map_err(|fault| format!("\"{key}\": {fault}"))?;
        if place.replace(value).is_some() { Err(twice(key)) } else { Ok(()) }
    })?;
    Ok((cube, vector))
}

fn blocks(cursor: &mut Cursor<'_>) -> Result<u32, Fault> {
    match cursor.integer()? {
        0 => Err("0 blocks; a task has at least 1".into()),
        count => u32::try_from(count).map_err(|_| format!("{count} is too large; the largest is {}", u32::MAX)),
    }
}

/// A list of regions; one region may stand without the list around it.
fn regions(cursor: &mut Cursor<'_>, names: &Names, found: &mut Vec<Region>) -> Result<(), Fault> {
    if cursor.peek() == Some(b'"') {
        found.push(names.whole(&cursor.string()?)?);
        return Ok(());
    }
    cursor.open(b'[', "a list of regions")?;
    if cursor.close(b']') {
        return Ok(());
    }
    loop {
        if cursor.peek() == Some(b'[') {
            cursor.open(b'[', REGION)?;
            let name = cursor.string()?;
            let more = cursor.more(b']')?;
            found.push(if more { numbered_region(cursor, names, &name)? } else { names.whole(&name)? });
        } else {
            let name = cursor.string().map_err(|fault| format!("{fault}; {REGION}"))?;
            let more = cursor.more(b']')?;
            if more && found.is_empty() && matches!(cursor.peek(), Some(b'-' | b'0'..=b'9')) {
                found.push(numbered_region(cursor, names, &name)?);
                return Ok(());
            }
            found.push(names.whole(&name)?);
            if !more {
                return Ok(());
            }
            continue;
        }
        if !cursor.more(b']')? {
            return Ok(());
        }
    }
}

/// The numbers of a region behind its name, and the closing bracket.
fn numbered_region(cursor: &mut Cursor<'_>, names: &Names, name: &str) -> Result<Region, Fault> {
    let mut numbers = [0; 4];
    let mut count = 0;
    loop {
        let value = cursor.integer()?;
        *numbers.get_mut(count).ok_or(REGION)? = value;
        count += 1;
        if !cursor.more(b']')? {
            break;
        }
    }
    match count {
        2 => names.rows(name, [numbers[0], numbers[1], 1, numbers[1]]),
        4 => names.rows(name, numbers),
        _ => Err(REGION.into()),
    }
}

/// A list of `["buf", bytes]`; one may stand without the list around it.
fn new_buffers(cursor: &mut Cursor<'_>, names: &mut Names, found: &mut Vec<NewBuffer>) -> Result<(), Fault> {
    cursor.open(b'[', "a list of [\"buf\", bytes]")?;
    if cursor.peek() == Some(b'"') {
        found.push(new_buffer(cursor, names)?);
        return Ok(());
    }
    if cursor.close(b']') {
        return Ok(());
    }
    loop {
        cursor.open(b'[', "[\"buf\", bytes]")?;
        found.push(new_buffer(cursor, names)?);
        if !cursor.more(b']')? {
            return Ok(());
        }
    }
}

/// `"buf", bytes]`.
fn new_buffer(cursor: &mut Cursor<'_>, names: &mut Names) -> Result<NewBuffer, Fault> {
    let name = cursor.string()?;
    let buffer = names.buffer_name(&name);
    if !cursor.more(b']')? {
        return Err(format!("no size for \"{name}\"; write [\"{name}\", bytes]"));
    }
    let bytes = cursor.integer()?;
    if cursor.more(b']')? {
        return Err(format!("more than a name and a size; write [\"{name}\", {bytes}]"));
    }
    Ok(NewBuffer { buffer, bytes })
}

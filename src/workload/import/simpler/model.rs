//! The files of the simpler runtime as they are written.

use super::super::number::{Real, Whole};
use super::super::pull::{Cursor, Fault};
use super::super::text::Text;
use std::borrow::Cow;
use std::collections::HashMap;

/// `deps.json`.
#[derive(Default)]
pub struct Deps<'a> {
    pub tasks: Vec<Task<'a>>,
    pub tensors: Vec<Tensor<'a>>,
    pub edges: Vec<Edge>,
}

/// A task: which kernels it runs on cube and vectors (-1 is none), and its arguments.
#[derive(Default)]
pub struct Task<'a> {
    pub task_id: Whole,
    /// `auto` or `manual`.
    pub scope: Cow<'a, str>,
    pub early_dispatch: bool,
    pub kernel_ids: Vec<i64>,
    pub block_num: Option<Whole>,
    pub args: Vec<Arg<'a>>,
}

/// An argument; offsets, shape and strides count elements.
#[derive(Default)]
pub struct Arg<'a> {
    pub kind: Cow<'a, str>,
    pub tensor_id: Option<Whole>,
    pub dtype: Option<Cow<'a, str>>,
    pub shape: Vec<Whole>,
    pub start_offset: Option<Whole>,
    pub strides: Vec<Whole>,
}

/// Memory that arguments name.
#[derive(Default)]
pub struct Tensor<'a> {
    pub tensor_id: Whole,
    pub buffer_addr: Whole,
    pub dtype: Option<Cow<'a, str>>,
    pub buffer_numel: Option<Whole>,
}

/// A dependency that the runtime found.
#[derive(Default)]
pub struct Edge {
    pub pred: Whole,
    pub succ: Whole,
    pub tensor_id: Option<Whole>,
    /// Whether the producer made the tensor.
    pub is_creator: bool,
    /// Whether the program asked for it.
    pub is_explicit: bool,
    /// Whether the consumer does not wait; such edges only keep memory alive.
    pub only_retains: bool,
}

impl<'a> Deps<'a> {
    /// Reads the whole file.
    pub fn read(cursor: &mut Cursor<'a>) -> Result<Deps<'a>, Fault> {
        let (mut deps, mut has_tasks) = (Deps::default(), false);
        cursor.object(|cursor, key| match key {
            "tasks" => {
                has_tasks = true;
                cursor.list(|cursor| Task::read(cursor).map(|task| deps.tasks.push(task)))
            }
            "tensors" => cursor.list(|cursor| Tensor::read(cursor).map(|tensor| deps.tensors.push(tensor))),
            "edges" => cursor.list(|cursor| Edge::read(cursor).map(|edge| deps.edges.push(edge))),
            _ => cursor.pass(),
        })?;
        if has_tasks { Ok(deps) } else { Err("no \"tasks\"".into()) }
    }
}

impl<'a> Task<'a> {
    /// Whether the program itself said what it waits for.
    pub fn is_manual(&self) -> bool {
        self.scope == "manual"
    }

    fn read(cursor: &mut Cursor<'a>) -> Result<Task<'a>, Fault> {
        let (mut task, mut id) = (Task::default(), None);
        cursor.object(|cursor, key| {
            match key {
                "task_id" => id = cursor.whole()?,
                "scope" => task.scope = cursor.text()?.unwrap_or_default(),
                "early_dispatch" => task.early_dispatch = cursor.flag()?,
                "kernel_ids" => cursor.list(|cursor| {
                    task.kernel_ids.push(cursor.signed("a number of 64 bits")?);
                    Ok(())
                })?,
                "block_num" => task.block_num = cursor.whole()?,
                "args" => cursor.list(|cursor| Arg::read(cursor).map(|arg| task.args.push(arg)))?,
                _ => cursor.pass()?,
            }
            Ok(())
        })?;
        task.task_id = id.ok_or("a task without \"task_id\"")?;
        Ok(task)
    }
}

impl<'a> Arg<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Arg<'a>, Fault> {
        let mut arg = Arg::default();
        let numbers = |cursor: &mut Cursor<'a>, into: &mut Vec<Whole>| {
            cursor.list(|cursor| {
                into.extend(cursor.whole()?);
                Ok(())
            })
        };
        cursor.object(|cursor, key| {
            match key {
                "type" => arg.kind = cursor.text()?.unwrap_or_default(),
                "tensor_id" => arg.tensor_id = cursor.whole()?,
                "dtype" => arg.dtype = cursor.text()?,
                "shape" => numbers(cursor, &mut arg.shape)?,
                "start_offset" => arg.start_offset = cursor.whole()?,
                "strides" => numbers(cursor, &mut arg.strides)?,
                _ => cursor.pass()?,
            }
            Ok(())
        })?;
        if arg.kind.is_empty() { Err("an argument without \"type\"".into()) } else { Ok(arg) }
    }
}

impl<'a> Tensor<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Tensor<'a>, Fault> {
        let (mut tensor, mut id, mut address) = (Tensor::default(), None, None);
        cursor.object(|cursor, key| {
            match key {
                "tensor_id" => id = cursor.whole()?,
                "buffer_addr" => address = cursor.whole()?,
                "dtype" => tensor.dtype = cursor.text()?,
                "buffer_numel" => tensor.buffer_numel = cursor.whole()?,
                _ => cursor.pass()?,
            }
            Ok(())
        })?;
        tensor.tensor_id = id.ok_or("a tensor without \"tensor_id\"")?;
        tensor.buffer_addr = address.ok_or_else(|| format!("tensor {} without \"buffer_addr\"", tensor.tensor_id.0))?;
        Ok(tensor)
    }
}

impl Edge {
    fn read(cursor: &mut Cursor<'_>) -> Result<Edge, Fault> {
        let (mut edge, mut ends) = (Edge::default(), (None, None));
        cursor.object(|cursor, key| {
            match key {
                "pred" => ends.0 = cursor.whole()?,
                "succ" => ends.1 = cursor.whole()?,
                "source" => {
                    let source = cursor.text()?;
                    edge.is_creator = source.as_deref() == Some("creator");
                    edge.is_explicit = source.as_deref() == Some("explicit");
                }
                "flags" => edge.only_retains = !waits(cursor)?,
                "tensor_id" => edge.tensor_id = cursor.whole()?,
                _ => cursor.pass()?,
            }
            Ok(())
        })?;
        edge.pred = ends.0.ok_or("an edge without \"pred\"")?;
        edge.succ = ends.1.ok_or("an edge without \"succ\"")?;
        Ok(edge)
    }
}

/// Whether a list of flags says that the consumer waits; without a list it does.
fn waits(cursor: &mut Cursor<'_>) -> Result<bool, Fault> {
    if cursor.null() {
        return Ok(true);
    }
    let mut waits = false;
    cursor.array(|cursor| {
        waits |= cursor.text()?.as_deref() == Some("wait");
        Ok(())
    })?;
    Ok(waits)
}

/// `name_map.json`.
#[derive(serde::Deserialize)]
pub struct NameMap {
    #[serde(default)]
    pub callable_id_to_name: HashMap<String, String>,
}

/// `chip_swimlane_records.json`, as much of it as tells durations.
#[derive(Default)]
pub struct Records<'a> {
    /// Ticks a second.
    pub clock: Real,
    /// What each core is.
    pub cores: Vec<Cow<'a, str>>,
    /// Core, task, register id, start and end; what follows in the file is passed over.
    pub runs: Vec<[u64; 5]>,
}

impl<'a> Records<'a> {
    /// Reads the whole file.
    pub fn read(cursor: &mut Cursor<'a>) -> Result<Records<'a>, Fault> {
        let (mut records, mut clock) = (Records::default(), None);
        cursor.object(|cursor, key| match key {
            "metadata" => cursor.fields(|cursor, key| match key {
                "clock_freq_hz" => cursor.real().map(|hertz| clock = hertz),
                "core_types" => cursor.list(|cursor| {
                    records.cores.push(cursor.text()?.unwrap_or_default());
                    Ok(())
                }),
                _ => cursor.pass(),
            }),
            "aicore_tasks" => cursor.list(|cursor| run(cursor).map(|run| records.runs.push(run))),
            _ => cursor.pass(),
        })?;
        records.clock = clock.ok_or("no \"metadata\" with \"clock_freq_hz\"")?;
        Ok(records)
    }
}

/// The first five numbers of an entry of `aicore_tasks`.
fn run(cursor: &mut Cursor<'_>) -> Result<[u64; 5], Fault> {
    let (mut run, mut count) = ([0; 5], 0);
    cursor.array(|cursor| {
        match run.get_mut(count) {
            Some(number) => *number = cursor.whole()?.unwrap_or_default().0,
            None => cursor.pass()?,
        }
        count += 1;
        Ok(())
    })?;
    if count < run.len() { Err(format!("an entry of aicore_tasks has {count} numbers")) } else { Ok(run) }
}

/// A line of `scope_stats.jsonl` behind the first.
#[derive(serde::Deserialize)]
pub struct Boundary<'a> {
    #[serde(borrow)]
    pub phase: Text<'a>,
    pub ring: Whole,
    pub task_window_end: Whole,
    pub heap_end: Option<Whole>,
}

/// Bytes of an element; unknown types count as 4.
pub fn element_bytes(dtype: Option<&str>) -> u64 {
    let name = dtype.unwrap_or("");
    let bits = name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let length = bits.bytes().take_while(u8::is_ascii_digit).count();
    match bits[..length].parse::<u64>() {
        Ok(bits) if (1..=128).contains(&bits) => bits.div_ceil(8),
        _ if name.eq_ignore_ascii_case("bool") => 1,
        _ => 4,
    }
}

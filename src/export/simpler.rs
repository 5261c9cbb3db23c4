//! A run in the files of the simpler runtime, so that its tools work on it.
//!
//! Its ids are ring and number in the ring; a task lives in the ring that its scopes lead to. Dependencies on a task that
//! allocates memory are written as those of a tensor's creator, others as asked for by the program.

use super::Subject;
use super::json::{lines, text};
use crate::graph::Task;
use crate::id::{Symbol, TaskId, TaskType, WorkerType};
use crate::workload::Operation;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Rings of that runtime.
const RINGS: u32 = 4;

/// Writes `deps.json`.
pub fn deps(subject: &Subject<'_>, output: &mut dyn Write) -> io::Result<()> {
    let (graph, ids) = (subject.graph, ids(subject));
    let heap = |index: usize| subject.program.tasks()[index].heap_bytes();
    let kernels = kernels(subject);
    write!(output, "{{\"tasks\":[")?;
    lines(output, graph.tasks.iter().enumerate(), |output, (index, task)| {
        let kernel = kernels[&task.kernel];
        let [cube, first, second] = triple(task, kernel);
        write!(output, "{{\"task_id\":\"{}\",\"scope\":\"auto\",\"early_dispatch\":false,", ids[index])?;
        write!(output, "\"kernel_ids\":[{cube},{first},{second}],\"block_num\":{},\"args\":[", task.blocks)?;
        let mut arguments = Vec::new();
        for producer in graph.producers(TaskId(index as u64)) {
            let bytes = heap(producer.0 as usize);
            if bytes > 0 {
                arguments.push(format!(
                    "{{\"idx\":{},\"type\":\"INPUT\",\"tensor_id\":\"{}\",\"dtype\":\"UINT8\",\"shape\":[{bytes}],\
                     \"start_offset\":\"0\",\"strides\":[1]}}",
                    arguments.len(),
                    producer.0 + 1
                ));
            }
        }
        if heap(index) > 0 {
            arguments.push(format!("{{\"idx\":{},\"type\":\"OUTPUT\"}}", arguments.len()));
        }
        write!(output, "{}]}}", arguments.join(","))
    })?;
    write!(output, "\n],\"tensors\":[")?;
    let mut address = 1 << 32;
    let allocating = (0..graph.tasks.len()).filter(|&index| heap(index) > 0);
    lines(output, allocating, |output, index| {
        let (tensor, bytes) = (index + 1, heap(index));
        write!(
            output,
            "{{\"tensor_id\":\"{tensor}\",\"buffer_addr\":\"{address}\",\"version\":0,\"dtype\":\"UINT8\","
        )?;
        address += bytes;
        write!(output, "\"buffer_numel\":\"{bytes}\"}}")
    })?;
    write!(output, "\n],\"edges\":[")?;
    edges(subject, &ids, output)?;
    writeln!(output, "\n]}}")
}

/// Writes the edges; those on memory name the argument of the consumer.
fn edges(subject: &Subject<'_>, ids: &[u64], output: &mut dyn Write) -> io::Result<()> {
    let graph = subject.graph;
    let heap = |index: u64| subject.program.tasks()[index as usize].heap_bytes();
    let consumers = 0..graph.tasks.len() as u64;
    let edges = consumers.flat_map(|task| graph.producers(TaskId(task)).iter().map(move |producer| (producer.0, task)));
    let (mut last, mut argument) = (None, 0);
    lines(output, edges, |output, (producer, consumer)| {
        let (pred, succ) = (ids[producer as usize], ids[consumer as usize]);
        argument = if last.replace(consumer) == Some(consumer) { argument } else { 0 };
        write!(output, "{{\"pred\":\"{pred}\",\"succ\":\"{succ}\",\"flags\":[\"wait\",\"retain\"],")?;
        let bytes = heap(producer);
        if bytes == 0 {
            return write!(output, "\"arg\":0,\"source\":\"explicit\"}}");
        }
        argument += 1;
        write!(output, "\"arg\":{},\"source\":\"creator\",\"tensor_id\":\"{}\",", argument - 1, producer + 1)?;
        write!(output, "\"consumer_dtype\":\"UINT8\",\"consumer_shape\":[{bytes}],")?;
        write!(output, "\"consumer_start_offset\":\"0\",\"consumer_strides\":[1]}}")
    })
}

/// Writes `name_map.json`.
pub fn names(subject: &Subject<'_>, output: &mut dyn Write) -> io::Result<()> {
    let kernels = kernels(subject);
    write!(output, "{{\"callable_id_to_name\":{{")?;
    lines(output, &kernels, |output, (&kernel, number)| {
        let name = kernel.map_or("task", |kernel| subject.graph.symbols.name(kernel));
        write!(output, "\"{number}\":{}", text(name))
    })?;
    writeln!(output, "}}}}")
}

/// Writes `chip_swimlane_records.json`: what ran when; the scheduler's own phases are not recorded here.
pub fn records(subject: &Subject<'_>, output: &mut dyn Write) -> io::Result<()> {
    let (rows, ids) = (&subject.recording().rows, ids(subject));
    let workers = &subject.machine.workers;
    let kinds: Vec<String> = workers.kinds().map(|kind| text(core_type(kind))).collect();
    write!(
        output,
        "{{\"chip_swimlane_level\":4,\"metadata\":{{\"clock_freq_hz\":{},",
        subject.machine.clock_mhz * 1_000_000
    )?;
    let threads = vec!["0"; kinds.len()].join(",");
    write!(output, "\"num_cores\":{},\"core_types\":[{}],", kinds.len(), kinds.join(","))?;
    write!(output, "\"core_to_thread\":[{threads}]}},\n\"aicore_tasks\":[")?;
    let mut counts = vec![0_u64; kinds.len()];
    let numbered: Vec<u64> = rows
        .iter()
        .map(|row| {
            let count = &mut counts[row.worker.0 as usize];
            *count += 1;
            *count
        })
        .collect();
    lines(output, rows.iter().zip(&numbered), |output, (row, number)| {
        let (core, id) = (row.worker.0, ids[row.task.0 as usize]);
        write!(output, "[{core},{id},{number},{},{},0]", row.start, row.end)
    })?;
    write!(output, "\n],\"aicpu_tasks\":[")?;
    lines(output, rows.iter().zip(&numbered), |output, (row, number)| {
        write!(output, "[{},{number},{},{}]", row.worker.0, row.ready, row.end)
    })?;
    write!(output, "\n],\"aicpu_scheduler_phases\":[[]],\"aicpu_orchestrator_phases\":[[")?;
    lines(output, subject.recording().submitted.iter().enumerate(), |output, (index, cycle)| {
        write!(output, "{{\"submit_idx\":{index},\"task_id\":{},", ids[index])?;
        write!(output, "\"start_cycles\":{cycle},\"end_cycles\":{cycle}}}")
    })?;
    writeln!(output, "\n]]}}")
}

/// Writes `scope_stats.jsonl`: where scopes begin and end.
pub fn scopes(subject: &Subject<'_>, output: &mut dyn Write) -> io::Result<()> {
    let limits = &subject.machine.limits;
    let boundaries =
        subject.program.operations().iter().filter(|step| matches!(step, Operation::ScopeBegin | Operation::ScopeEnd));
    let four = |value: u64| [value; RINGS as usize].map(|value| value.to_string()).join(",");
    write!(output, "{{\"version\":6,\"fatal\":false,\"dropped\":0,\"total\":{},", boundaries.count())?;
    write!(output, "\"task_window_max\":[{}],\"heap_max\":[{}],", four(limits.window), four(limits.heap))?;
    writeln!(output, "\"dep_pool_max\":[{}],\"tensormap_max\":{}}}", four(limits.deps), limits.tensors)?;
    let (mut depth, mut next_task) = (0_u32, 0);
    let (mut counts, mut heaps) = ([0_u64; RINGS as usize], [0_u64; RINGS as usize]);
    for operation in subject.program.operations() {
        let phase = match operation {
            Operation::Buffer { .. } => continue,
            Operation::Submit => {
                let ring = ring(depth) as usize;
                counts[ring] += 1;
                heaps[ring] += subject.program.tasks()[next_task].heap_bytes();
                next_task += 1;
                continue;
            }
            Operation::ScopeBegin => "begin",
            Operation::ScopeEnd => {
                depth -= 1;
                "end"
            }
        };
        let own = depth.min(RINGS - 1) as usize;
        write!(output, "{{\"site\":\"ptosim:0\",\"phase\":\"{phase}\",\"depth\":{depth},\"ring\":{own},")?;
        write!(output, "\"task_window_start\":0,\"task_window_end\":{},", counts[own])?;
        write!(output, "\"heap_start\":0,\"heap_end\":{},", heaps[own])?;
        writeln!(output, "\"dep_pool_start\":0,\"dep_pool_end\":0,\"tensormap\":0}}")?;
        depth += u32::from(phase == "begin");
    }
    Ok(())
}

/// The ring of tasks submitted with so many scopes open.
fn ring(depth: u32) -> u32 {
    depth.clamp(1, RINGS) - 1
}

/// The runtime's id of every task.
fn ids(subject: &Subject<'_>) -> Vec<u64> {
    let mut counts = [0_u64; RINGS as usize];
    let id = |task: &Task| {
        let ring = ring(task.depth);
        let count = &mut counts[ring as usize];
        *count += 1;
        u64::from(ring) << 32 | (*count - 1)
    };
    subject.graph.tasks.iter().map(id).collect()
}

/// A number for every kernel, in order of its symbol.
fn kernels(subject: &Subject<'_>) -> BTreeMap<Option<Symbol>, usize> {
    let mut found: BTreeMap<_, usize> = subject.graph.tasks.iter().map(|task| (task.kernel, 0)).collect();
    found.values_mut().enumerate().for_each(|(number, place)| *place = number);
    found
}

/// Kernels on the cube and the two vectors; -1 is none.
fn triple(task: &Task, kernel: usize) -> [i64; 3] {
    let kernel = i64::try_from(kernel).expect("kernels are counted in memory");
    match task.kind {
        TaskType::None => [-1, -1, -1],
        TaskType::Cube => [kernel, -1, -1],
        TaskType::Vector | TaskType::AiCpu | TaskType::Accelerator => [-1, kernel, -1],
        TaskType::Mix => {
            let on = |taken: bool| if taken { kernel } else { -1 };
            [on(task.units.cube > 0), on(task.units.vector > 0), on(task.units.vector > 1)]
        }
    }
}

fn core_type(kind: WorkerType) -> &'static str {
    match kind {
        WorkerType::Cube => "aic",
        WorkerType::Vector | WorkerType::Any => "aiv",
        WorkerType::AiCpu | WorkerType::Accelerator => "aicpu",
    }
}

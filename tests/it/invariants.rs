//! What holds for every schedule, whoever computed it.

use crate::model::{Memory, Row};
use crate::program::{Op, Program};
use ptosim::config::Machine;
use ptosim::id::{TaskType, WorkerType};
use ptosim::workload::{Cost, Submit};
use std::collections::BTreeSet;

/// Checks a schedule; with `all`, every task must have run. The error says what is wrong.
pub fn check(program: &Program, machine: &Machine, rows: &[Row], all: bool) -> Result<(), String> {
    no_worker_does_two_things(rows)?;
    workers_fit(program, machine, rows)?;
    blocks_run_once(program, machine, rows, all)?;
    producers_end_first(program, machine, rows)
}

/// Busy cycles of each worker.
pub fn busy(machine: &Machine, rows: &[Row]) -> Vec<u64> {
    let mut busy = vec![0; machine.workers.total() as usize];
    for row in rows {
        busy[row.worker as usize] += row.end - row.start;
    }
    busy
}

fn no_worker_does_two_things(rows: &[Row]) -> Result<(), String> {
    let mut sorted: Vec<_> = rows.iter().collect();
    sorted.sort_by_key(|row| (row.worker, row.start, row.end));
    for pair in sorted.windows(2) {
        let [first, second] = [pair[0], pair[1]];
        if first.worker == second.worker && second.start < first.end {
            return Err(format!("overlapping rows {first:?} and {second:?}"));
        }
    }
    Ok(())
}

fn workers_fit(program: &Program, machine: &Machine, rows: &[Row]) -> Result<(), String> {
    let submits: Vec<_> = program.submits().collect();
    let kinds: Vec<_> =
        WorkerType::ALL.into_iter().flat_map(|kind| (0..machine.workers.count(kind)).map(move |_| kind)).collect();
    for row in rows {
        let kind = kinds[row.worker as usize];
        let submit = submits[row.task as usize];
        let fits = match submit.kind.expect("programs of the tests name every type") {
            TaskType::Mix => matches!(kind, WorkerType::Cube | WorkerType::Vector),
            TaskType::Cube => matches!(kind, WorkerType::Cube | WorkerType::Any),
            TaskType::Vector => matches!(kind, WorkerType::Vector | WorkerType::Any),
            TaskType::AiCpu => {
                matches!(kind, WorkerType::AiCpu | WorkerType::Any) || falls_back(machine, kind, WorkerType::AiCpu)
            }
            TaskType::Accelerator => {
                matches!(kind, WorkerType::Accelerator | WorkerType::Any)
                    || falls_back(machine, kind, WorkerType::Accelerator)
            }
            TaskType::None => false,
        };
        let cycles = match submit.cost.expect("programs of the tests give every cost") {
            Cost::Cycles(cycles) => cycles,
            Cost::PerKind { cube, vector } => {
                if kind == WorkerType::Cube {
                    cube
                } else {
                    vector
                }
            }
        };
        let in_order = row.submit <= row.ready && row.ready <= row.start && row.start + cycles == row.end;
        if !fits || !in_order {
            return Err(format!("row {row:?} on {kind} does not fit {submit:?}"));
        }
    }
    Ok(())
}

fn falls_back(machine: &Machine, kind: WorkerType, wanted: WorkerType) -> bool {
    kind == WorkerType::Vector && machine.workers.count(wanted) + machine.workers.any == 0
}

/// Every block once on as many workers as it takes, those of a MIX block in one cluster; blocks of a `sync_start` task at
/// the same cycle, if handing them out costs nothing.
fn blocks_run_once(program: &Program, machine: &Machine, rows: &[Row], all: bool) -> Result<(), String> {
    for (task, submit) in program.submits().enumerate() {
        let of_task: Vec<_> = rows.iter().filter(|row| row.task == task as u64).collect();
        let kind = submit.kind.expect("programs of the tests name every type");
        if kind == TaskType::None || (of_task.is_empty() && !all) {
            continue;
        }
        for block in 0..submit.blocks {
            let workers: Vec<_> = of_task.iter().filter(|row| row.block == block).map(|row| row.worker).collect();
            let fits = match kind {
                TaskType::Mix => is_shape(submit, machine.workers.clusters, &workers),
                _ => workers.len() == 1,
            };
            if !fits {
                return Err(format!("block {block} of task {task} ran on workers {workers:?}"));
            }
        }
        let together = of_task.iter().all(|row| row.start == of_task[0].start);
        if submit.sync_start && machine.scheduler.dispatch == 0 && !together {
            return Err(format!("the blocks of task {task} do not start together: {of_task:?}"));
        }
        if let Some(row) = of_task.iter().find(|row| row.block >= submit.blocks) {
            return Err(format!("task {task} has {} blocks, but there is {row:?}", submit.blocks));
        }
    }
    Ok(())
}

fn is_shape(submit: &Submit, clusters: u32, workers: &[u32]) -> bool {
    let cluster = |worker: u32| if worker < clusters { worker } else { (worker - clusters) / 2 };
    let cubes = workers.iter().filter(|&&worker| worker < clusters).count();
    let one_cluster = workers.iter().map(|&worker| cluster(worker)).collect::<BTreeSet<_>>().len() == 1;
    let distinct = workers.iter().collect::<BTreeSet<_>>().len() == workers.len();
    one_cluster
        && distinct
        && cubes == usize::from(submit.units.cube)
        && workers.len() - cubes == usize::from(submit.units.vector)
}

/// No block starts before every producer of its task has ended; through a NONE task its own producers count.
fn producers_end_first(program: &Program, machine: &Machine, rows: &[Row]) -> Result<(), String> {
    let mut memory = Memory::default();
    let mut ends: Vec<u64> = Vec::new();
    for op in &program.ops {
        match op {
            Op::Buffer { buffer, bytes } => memory.bind(*buffer, *bytes),
            Op::ScopeBegin | Op::ScopeEnd => {}
            Op::Submit(submit) => {
                let task = ends.len();
                let producers = memory.producers(submit, machine.rules.hazards);
                memory.record(task, submit);
                let earliest = producers.iter().map(|&producer| ends[producer]).max().unwrap_or(0);
                let of_task = rows.iter().filter(|row| row.task == task as u64);
                if let Some(early) = of_task.clone().find(|row| row.start < earliest) {
                    return Err(format!("{early:?} starts before {earliest}, the end of the producers {producers:?}"));
                }
                ends.push(of_task.map(|row| row.end).max().unwrap_or(earliest));
            }
        }
    }
    Ok(())
}

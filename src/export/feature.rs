//! What programs have that a format may not be able to hold.

use super::Target;
use crate::id::TaskType;
use crate::workload::{Cost, Operation, Program, Submit, Units, Workload, WorkloadError};

/// A property of some programs, beyond tasks, their types and cycles, and dependencies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Feature {
    /// Scopes.
    Scopes,
    /// Declared buffers and regions read and written.
    Regions,
    /// Heap allocations.
    Heap,
    /// Tasks of several blocks.
    Blocks,
    /// Blocks that start together.
    SyncStart,
    /// Units and cycles per kind of MIX tasks.
    MixShape,
    /// Times before which a task is not submitted.
    SubmitAt,
    /// Tasks that fail.
    Faults,
    /// Tasks created by others.
    Parents,
    /// Numbers for cost expressions.
    Params,
    /// Fields that only policies read.
    Policy,
    /// Timed commands.
    Controls,
}

impl Feature {
    const ALL: [Feature; 12] = [
        Feature::Scopes,
        Feature::Regions,
        Feature::Heap,
        Feature::Blocks,
        Feature::SyncStart,
        Feature::MixShape,
        Feature::SubmitAt,
        Feature::Faults,
        Feature::Parents,
        Feature::Params,
        Feature::Policy,
        Feature::Controls,
    ];

    /// What is lost with it.
    fn loss(self) -> &'static str {
        match self {
            Feature::Scopes => "scopes",
            Feature::Regions => "buffers and regions; the dependencies that they imply are kept",
            Feature::Heap => "tasks' heap allocations",
            Feature::Blocks => "tasks' numbers of blocks",
            Feature::SyncStart => "tasks' common start of all blocks",
            Feature::MixShape => "MIX tasks' units or cycles per kind; the longest remains",
            Feature::SubmitAt => "tasks' earliest submission",
            Feature::Faults => "tasks' faults",
            Feature::Parents => "tasks' parents",
            Feature::Params => "tasks' parameters",
            Feature::Policy => "tasks' fields for policies",
            Feature::Controls => "timed commands",
        }
    }

    /// How often a program has it.
    fn count(self, program: &Program) -> Result<usize, WorkloadError> {
        let tasks = |has: fn(&Submit) -> bool| program.tasks().iter().filter(|task| has(task)).count();
        let operations = |has: fn(&Operation) -> bool| program.operations().iter().filter(|step| has(step)).count();
        Ok(match self {
            Feature::Scopes => operations(|step| *step == Operation::ScopeBegin),
            Feature::Regions => {
                let regions = |task: &Submit| task.reads.len() + task.writes.len() + task.updates.len();
                let declared = operations(|step| matches!(step, Operation::Buffer { .. }));
                program.tasks().iter().map(regions).sum::<usize>() + declared
            }
            Feature::Heap => tasks(|task| task.heap_bytes() > 0),
            Feature::Blocks => tasks(|task| task.blocks > 1),
            Feature::SyncStart => tasks(|task| task.sync_start),
            Feature::MixShape => tasks(|task| {
                let is_plain = task.units == Units::default() && !matches!(task.cost, Some(Cost::PerKind { .. }));
                task.kind == Some(TaskType::Mix) && !is_plain
            }),
            Feature::SubmitAt => tasks(|task| task.submit_at > 0),
            Feature::Faults => tasks(|task| task.fault),
            Feature::Parents => tasks(|task| task.parent.is_some()),
            Feature::Params => tasks(|task| !task.params.is_empty()),
            Feature::Policy => tasks(|task| task.policy.is_some()),
            Feature::Controls => program.controls()?.len(),
        })
    }
}

/// What of a program is lost in a format, one line each.
///
/// # Errors
/// When the program cannot be read.
pub fn losses(program: &Program, target: &Target) -> Result<Vec<String>, WorkloadError> {
    let mut lines = Vec::new();
    for feature in Feature::ALL.into_iter().filter(|feature| !target.holds.contains(feature)) {
        let count = feature.count(program)?;
        if count > 0 {
            lines.push(format!("{count} {}", feature.loss()));
        }
    }
    if target.name == "simpler" {
        let named = program.tasks().iter().filter(|task| task.name.is_some()).count();
        lines.extend((named > 0).then(|| format!("{named} tasks' names; ring and number stand for them")));
        lines.extend(lost_kinds(program));
    }
    if target.name == "wfformat" {
        let mut names: Vec<_> = program.tasks().iter().filter_map(|task| task.name).collect();
        let named = names.len();
        names.sort_unstable();
        names.dedup();
        let doubled = named - names.len();
        lines.extend(
            (doubled > 0).then(|| format!("{doubled} tasks' names, which earlier tasks have; numbers stand for them")),
        );
    }
    let without_cost =
        program.tasks().iter().filter(|task| task.cost.is_none() && task.kind != Some(TaskType::None)).count();
    if without_cost > 0 {
        lines.push(format!("that {without_cost} tasks had no cycles; those of the kernel table were written"));
    }
    Ok(lines)
}

/// What three kernel numbers, of a cube and two vectors, do not tell of the tasks that have them.
fn lost_kinds(program: &Program) -> impl Iterator<Item = String> {
    let of_type = |kind: TaskType| program.tasks().iter().filter(move |task| task.kind == Some(kind));
    let on_one = |kind: &str, units: Units| {
        let count = of_type(TaskType::Mix).filter(|task| task.units == units).count();
        (count, format!("the type of {count} MIX tasks that take one {kind}; they become {kind} tasks"))
    };
    let other = |kind: TaskType| {
        let count = of_type(kind).count();
        (count, format!("the type of {count} {kind} tasks; they become VECTOR tasks"))
    };
    let dummies = of_type(TaskType::None).filter(|task| task.kernel.is_some()).count();
    let lines = [
        on_one("CUBE", Units { cube: 1, vector: 0 }),
        on_one("VECTOR", Units { cube: 0, vector: 1 }),
        other(TaskType::AiCpu),
        other(TaskType::Accelerator),
        (dummies, format!("the kernels of {dummies} NONE tasks; \"dummy\" stands for them")),
    ];
    lines.into_iter().filter(|(count, _)| *count > 0).map(|(_, line)| line)
}

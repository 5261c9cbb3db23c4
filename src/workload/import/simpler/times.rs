//! Durations of tasks from `chip_swimlane_records.json`.

use super::super::file::Input;
use super::super::number::Real;
use super::super::sketch::{FastMap, cycles};
use super::model::Records;
use crate::id::TaskType;
use crate::workload::{Cost, Units, WorkloadError};

const REMEDY: &str =
    "records have metadata.clock_freq_hz and aicore_tasks with [core, task, register id, start, end, …]";

/// Ticks of the runs of one task.
#[derive(Clone, Copy, Default)]
struct Runs {
    /// Sum and number on cubes and on vectors.
    cube: (u64, u64),
    vector: (u64, u64),
}

/// Durations by the runtime's task ids.
pub struct Times {
    runs: FastMap<u64, Runs>,
    /// Cycles of a tick.
    scale: f64,
}

impl Times {
    /// Reads the records; their clock is converted to `cycles_per_us`.
    pub fn read(input: &Input, cycles_per_us: f64) -> Result<Times, WorkloadError> {
        let records = input.pull(REMEDY, Records::read)?;
        let Real(clock) = records.clock;
        if clock <= 0.0 {
            return Err(input.error(format!("metadata.clock_freq_hz = {clock}; it must be above 0")));
        }
        let mut runs: FastMap<u64, Runs> = FastMap::default();
        for &[core, task, _, start, end] in &records.runs {
            let Some(ticks) = end.checked_sub(start) else {
                return Err(input.error(format!("task {task} ends at {end} before it starts at {start}")));
            };
            let is_cube = records.cores.get(core as usize).is_some_and(|kind| kind == "aic");
            let known = runs.entry(task).or_default();
            let (sum, count) = if is_cube { &mut known.cube } else { &mut known.vector };
            *sum = sum.saturating_add(ticks);
            *count += 1;
        }
        Ok(Times { runs, scale: cycles_per_us * 1e6 / clock })
    }

    /// Whether a MIX task of these units ran, but on one of their kinds only.
    pub fn lacks_kind(&self, id: u64, units: Units) -> bool {
        let lacks = |runs: &Runs| units.cube > 0 && runs.cube.1 == 0 || units.vector > 0 && runs.vector.1 == 0;
        self.runs.get(&id).is_some_and(lacks)
    }

    /// Cycles of a block of a task: the mean of its runs, per kind for MIX.
    pub fn of(&self, id: u64, kind: TaskType) -> Result<Option<Cost>, String> {
        let Some(&Runs { cube, vector }) = self.runs.get(&id) else { return Ok(None) };
        let mean = |(sum, count): (u64, u64)| {
            cycles(sum as f64 / (count.max(1)) as f64 * self.scale, format!("the time of task {id}"))
        };
        Ok(Some(match kind {
            TaskType::Mix => Cost::PerKind { cube: mean(cube)?, vector: mean(vector)? },
            _ => Cost::Cycles(mean((cube.0.saturating_add(vector.0), cube.1 + vector.1))?),
        }))
    }
}

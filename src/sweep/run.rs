//! Runs what is missing, side by side, and stores each result as it comes.

use super::SweepError;
use super::plan::Plan;
use super::row::Row;
use super::store::Store;
use crate::engine::{RunError, simulate_with};
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::sync::Mutex;

/// Runs points of a plan; `identities` are those of all points. `progress` is told of every run that is stored, and no run
/// begins after it has said `Break`.
///
/// # Errors
/// When a result cannot be stored; the others are.
pub fn run(
    plan: &Plan,
    identities: &[String],
    points: &[u64],
    store: &mut Store,
    progress: &(dyn Fn() -> ControlFlow<()> + Sync),
) -> Result<(), SweepError> {
    let store = Mutex::new(store);
    let ended = points.par_iter().try_for_each(|&index| {
        let row = result(plan, index, identities[index as usize].clone());
        let stored = store.lock().expect("nobody panics while holding the store").append(row);
        match stored {
            Ok(()) => progress().map_break(Ok),
            Err(error) => ControlFlow::Break(Err(error)),
        }
    });
    Ok(ended.break_value().unwrap_or(Ok(()))?)
}

fn result(plan: &Plan, index: u64, id: String) -> Row {
    let point = plan.point(index);
    let inputs = plan.inputs(&point);
    let result = match &inputs.machine {
        Err(error) => Err(RunError::Task(error.to_string())),
        Ok(machine) => plan
            .program(&point)
            .map_err(RunError::Task)
            .and_then(|program| simulate_with(&program, machine, &inputs.choice, &mut ())),
    };
    Row::new(id, point, &inputs, result)
}

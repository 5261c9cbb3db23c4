//! What other settings would change: the same workload is run again with each of them, and the answers are ranked.

use super::{Outcome, Report};
use crate::config::Machine;
use crate::engine::RunError;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Most slots of a window that stands for one without limit, and most dependency entries.
const MOST_SLOTS: u64 = 1 << 22;
const MOST_ENTRIES: u64 = 1 << 24;

/// One answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WhatIf {
    /// In words: `one more CUBE worker`.
    pub change: String,
    /// The settings to try it with, as given to `--set`.
    pub settings: Vec<String>,
    /// How that run ends.
    pub outcome: Outcome,
    /// Its makespan.
    pub makespan: u64,
    /// Cycles it is shorter; negative if it is longer. 0 if one of the two runs did not complete.
    pub gain: i64,
    /// Gain divided by the makespan of the report; 0 when that is 0.
    pub share: f64,
}

/// Runs the variations that can matter to `report` with `run`; the best one comes first. One that the policy's own settings do not
/// allow, such as more workers than they have processors for, is left out.
///
/// # Errors
/// When a variation cannot be run for another reason.
pub fn what_if(
    report: &Report,
    run: impl Fn(&Machine) -> Result<Report, RunError> + Sync,
) -> Result<Vec<WhatIf>, RunError> {
    let answers: Result<Vec<Option<WhatIf>>, RunError> =
        variations(report).into_par_iter().map(|variation| variation.answer(report, &run)).collect();
    let mut answers: Vec<WhatIf> = answers?.into_iter().flatten().collect();
    answers.sort_by_key(|answer| (answer.outcome != Outcome::Completed, answer.makespan));
    Ok(answers)
}

/// A change to try.
struct Variation {
    change: String,
    settings: Vec<String>,
}

impl Variation {
    fn answer(
        self,
        report: &Report,
        run: &(impl Fn(&Machine) -> Result<Report, RunError> + Sync),
    ) -> Result<Option<WhatIf>, RunError> {
        let mut machine = report.machine.clone();
        machine.apply(&self.settings)?;
        let other = match run(&machine) {
            Err(RunError::Config(_)) => return Ok(None),
            other => other?,
        };
        let is_comparable = report.outcome == Outcome::Completed && other.outcome == Outcome::Completed;
        let less = i128::from(report.makespan) - i128::from(other.makespan);
        let gain = if is_comparable { i64::try_from(less).unwrap_or(0) } else { 0 };
        let share = if report.makespan == 0 { 0.0 } else { gain as f64 / report.makespan as f64 };
        let Variation { change, settings } = self;
        Ok(Some(WhatIf { change, settings, outcome: other.outcome, makespan: other.makespan, gain, share }))
    }
}

/// The changes that are not without effect from the start: sizes that were never full and costs of 0 are left out.
fn variations(report: &Report) -> Vec<Variation> {
    let mut list = sizes(report);
    list.extend(costs(&report.machine));
    list.extend(workers(report));
    list
}

fn sizes(report: &Report) -> Vec<Variation> {
    let blocked = &report.orchestrator.blocked;
    let stuck_on = report.deadlock.as_ref().map(|deadlock| deadlock.resource.as_str());
    let rings = u64::from(report.machine.limits.rings).next_power_of_two();
    // How many tasks come after a deadlock is not known.
    let (slots, entries) = match stuck_on {
        Some(_) => (MOST_SLOTS, MOST_ENTRIES),
        None => (report.tasks.max(1).next_power_of_two(), 2 * report.edges + report.tasks),
    };
    let slots = slots.min(MOST_SLOTS / rings).max(report.machine.limits.window);
    let entries = entries.max(report.machine.limits.deps);
    let sizes = [
        ("window", blocked.window, format!("limits.window={slots}")),
        ("heap", blocked.heap, "limits.heap=1TiB".to_owned()),
        ("deps", blocked.deps, format!("limits.deps={entries}")),
        ("tensors", blocked.tensors, format!("limits.tensors={}", u32::MAX)),
    ];
    let matters = |name: &str, cycles: u64| cycles > 0 || stuck_on == Some(name);
    let all: Vec<String> = sizes.iter().map(|(_, _, setting)| setting.clone()).collect();
    let mut list: Vec<Variation> = sizes
        .into_iter()
        .filter(|(name, cycles, _)| matters(name, *cycles))
        .map(|(name, _, setting)| Variation { change: format!("{name} without limit"), settings: vec![setting] })
        .collect();
    if !list.is_empty() {
        list.push(Variation { change: "nothing ever full".into(), settings: all });
    }
    list
}

fn costs(machine: &Machine) -> Vec<Variation> {
    let (orchestrator, scheduler) = (&machine.orchestrator, &machine.scheduler);
    let groups: [(&str, &[(&str, u64)]); 3] = [
        (
            "no scheduler cost",
            &[
                ("scheduler.admit", scheduler.admit),
                ("scheduler.complete", scheduler.complete),
                ("scheduler.edge", scheduler.edge),
                ("scheduler.dispatch", scheduler.dispatch),
            ],
        ),
        (
            "no orchestrator cost",
            &[
                ("orchestrator.submit", orchestrator.submit),
                ("orchestrator.per_edge", orchestrator.per_edge),
                ("orchestrator.scope", orchestrator.scope),
            ],
        ),
        ("no pickup cost", &[("worker.pickup", machine.worker.pickup)]),
    ];
    let mut list = Vec::new();
    for (change, costs) in groups {
        let settings: Vec<String> =
            costs.iter().filter(|(_, cost)| *cost > 0).map(|(key, _)| format!("{key}=0")).collect();
        if !settings.is_empty() {
            list.push(Variation { change: change.into(), settings });
        }
    }
    if [scheduler.admit, scheduler.complete, scheduler.edge, scheduler.dispatch].iter().any(|&cost| cost > 0) {
        let settings = vec![format!("scheduler.threads={}", scheduler.threads + 1)];
        list.push(Variation { change: "one more scheduler thread".into(), settings });
    }
    list
}

fn workers(report: &Report) -> Vec<Variation> {
    let workers = &report.machine.workers;
    let kinds = [
        ("cluster of 1 CUBE and 2 VECTOR workers", "clusters", workers.clusters),
        ("CUBE worker", "cube", workers.cube),
        ("VECTOR worker", "vector", workers.vector),
        ("AI_CPU worker", "ai_cpu", workers.ai_cpu),
        ("ACCELERATOR worker", "accelerator", workers.accelerator),
        ("worker for ANY type", "any", workers.any),
    ];
    let present = || kinds.iter().filter(|(_, _, count)| *count > 0);
    // Workers that the configuration of a policy counts give way to those of the machine when a setting counts any.
    let has_own = workers.clusters > 0 || workers.cube > 0 || workers.vector > 0;
    let no_others = if has_own { &[][..] } else { &["workers.cube=0", "workers.vector=0"] };
    let no_others = || no_others.iter().map(|&setting| setting.to_owned());
    let set = |key: &str, count: u32| format!("workers.{key}={count}");
    let mut list: Vec<Variation> = present()
        .map(|(name, key, count)| Variation {
            change: format!("one more {name}"),
            settings: no_others().chain([set(key, count + 1)]).collect(),
        })
        .collect();
    let twice = present().map(|(_, key, count)| set(key, count.saturating_mul(2)));
    list.push(Variation { change: "twice the workers".into(), settings: no_others().chain(twice).collect() });
    list
}

//! Recordings of the simpler runtime: `deps.json`, and beside it `name_map.json`, `chip_swimlane_records.json` and
//! `scope_stats.jsonl`.
//!
//! ```text
//! deps.json ─▶ plan (tasks, alloc tasks, creators) ─▶ sketch ─▶ scopes between the tasks ─▶ buffers bound
//!                  ▲ names, times
//! ```
//!
//! Output arguments have no geometry. Their size is that of the tensor whose creator the task is, as edges tell.

mod bind;
mod model;
mod plan;
mod regions;
mod scopes;
mod times;

use super::file::Input;
use super::{Edges, Format, Options, contains};
use crate::workload::{Program, Submit, WorkloadError};
use model::{Boundary, Deps, NameMap};
use plan::Plan;
pub use scopes::Home;
use std::collections::BTreeMap;
use std::path::PathBuf;
use times::Times;

/// The format.
pub struct Simpler;

/// The names of the files that belong to a `deps.json`: names, times, scopes.
const BESIDE: [&str; 3] = ["name_map.json", "chip_swimlane_records.json", "scope_stats.jsonl"];
const REMEDY: &str = "deps.json has tasks with task_id, kernel_ids and args, tensors, and edges with pred and succ";
const NAMES_REMEDY: &str = "name_map.json is {\"callable_id_to_name\":{\"0\":\"…\"}}";

impl Format for Simpler {
    fn name(&self) -> &'static str {
        "simpler"
    }

    fn description(&self) -> &'static str {
        "simpler deps.json, with name_map, chip_swimlane_records and scope_stats beside it"
    }

    fn endings(&self) -> &'static [&'static str] {
        &["deps.json"]
    }

    fn beside(&self, _name: &str) -> Vec<String> {
        BESIDE.map(ToOwned::to_owned).into()
    }

    fn edges(&self) -> &'static [Edges] {
        &[Edges::Recorded, Edges::Infer]
    }

    fn most_with(&self) -> usize {
        3
    }

    fn recognises(&self, head: &[u8]) -> bool {
        let is_object = head.trim_ascii_start().starts_with(b"{");
        is_object && contains(head, "\"tasks\"") && contains(head, "\"task_id\"") && contains(head, "\"kernel_ids\"")
    }

    fn read(&self, input: &Input, options: &Options) -> Result<Program, WorkloadError> {
        let deps = input.pull(REMEDY, Deps::read)?;
        let companions = Companions::find(input, options)?;
        let names = companions.names.as_ref().map(|names| names.json::<NameMap>(NAMES_REMEDY)).transpose()?;
        let times =
            companions.records.as_ref().map(|records| Times::read(records, options.cycles_per_us())).transpose()?;
        let infer = options.edges == Some(Edges::Infer);
        let mut plan = Plan::new(&deps, input, infer);
        plan.tasks(names.as_ref(), times.as_ref()).and_then(|()| plan.edges()).map_err(|fault| input.error(fault))?;
        if infer {
            plan.regions().map_err(|fault| input.error(fault))?;
        }
        plan.remarks(times.is_some(), options);
        let (sketch, homes) = plan.finish();
        let (mut content, order) = sketch.settle(input, &options.rules)?;
        let homes: Vec<_> = order.iter().map(|&place| homes[place]).collect();
        let boundaries = companions.scopes.as_ref().map(scopes::boundaries).transpose()?;
        let merged = boundaries.as_ref().and_then(|boundaries| scopes::merged(&homes, boundaries));
        if boundaries.is_some() && merged.is_none() {
            content.notes.push("scope_stats.jsonl does not fit the tasks; scopes were taken from the rings".into());
        }
        content.operations.truncate(content.operations.len() - content.tasks.len());
        content.operations.extend(merged.unwrap_or_else(|| scopes::by_rings(&homes)));
        content.lines.clear();
        bind::bind(&mut content);
        let heaps = heap_remarks(&content.tasks, &homes, boundaries.as_deref().unwrap_or_default());
        content.notes.extend(heaps);
        Ok(Program { content: content.into() })
    }
}

/// Tells where the heap that tasks take here differs from what the runtime wrote down.
fn heap_remarks(tasks: &[Submit], homes: &[Home], boundaries: &[Boundary<'_>]) -> Vec<String> {
    let mut heaps: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for boundary in boundaries {
        let (recorded, _) = heaps.entry(boundary.ring.0).or_default();
        *recorded = boundary.heap_end.unwrap_or_default().0.max(*recorded);
    }
    for (task, home) in tasks.iter().zip(homes) {
        if let Some((_, here)) = heaps.get_mut(&u64::from(home.ring)) {
            *here = here.saturating_add(task.heap_bytes());
        }
    }
    let differing = heaps.into_iter().filter(|(_, (recorded, here))| recorded != here);
    let text = |(ring, (recorded, here)): (u64, (u64, u64))| {
        format!("ring {ring} took {recorded} bytes of heap when recorded and takes {here} here")
    };
    differing.map(text).collect()
}

/// The files that belong to a `deps.json`.
#[derive(Default)]
struct Companions {
    names: Option<Input>,
    records: Option<Input>,
    scopes: Option<Input>,
}

impl Companions {
    /// Those that stand beside it under their usual names, and those that the user named, which are told by their content.
    fn find(input: &Input, options: &Options) -> Result<Companions, WorkloadError> {
        let beside = |name: &str| input.beside(name).as_ref().map(|path: &PathBuf| Input::load(path)).transpose();
        let [names, records, scopes] = BESIDE.map(beside);
        let mut found = Companions { names: names?, records: records?, scopes: scopes? };
        for path in &options.with {
            let file = Input::load(path)?;
            let place = if contains(&file.bytes, "\"callable_id_to_name\"") {
                &mut found.names
            } else if contains(&file.bytes, "\"aicore_tasks\"") {
                &mut found.records
            } else if contains(&file.bytes, "\"task_window_end\"") {
                &mut found.scopes
            } else {
                return Err(
                    file.error("neither a name map nor swimlane records nor scope statistics of simpler; leave it out")
                );
            };
            *place = Some(file);
        }
        Ok(found)
    }
}

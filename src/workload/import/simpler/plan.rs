//! From the content of `deps.json` to a sketch.

use super::super::Options;
use super::super::file::{Input, shown};
use super::super::number::Whole;
use super::super::sketch::{FastMap, Places, Sketch};
use super::model::{Arg, Deps, Edge, NameMap, Task, Tensor, element_bytes};
use super::regions::regions;
use super::scopes::Home;
use super::times::Times;
use crate::id::TaskType;
use crate::workload::{NewBuffer, Submit, Units};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Tasks, memory and edges, put together.
pub struct Plan<'a> {
    deps: &'a Deps<'a>,
    sketch: Sketch,
    places: Places<u64>,
    homes: Vec<Home>,
    tensors: FastMap<u64, &'a Tensor<'a>>,
    /// Tensors by the task that made them.
    created: FastMap<u64, Vec<u64>>,
    /// Names of kernel triples.
    kernels: FastMap<&'a [i64], Rc<str>>,
    infer: bool,
    counts: Counts,
}

/// What the notes tell.
#[derive(Default)]
struct Counts {
    allocs: u64,
    without_time: u64,
    half_timed: u64,
    without_size: u64,
    retained: u64,
    rough: u64,
    unknown_args: BTreeSet<String>,
}

impl<'a> Plan<'a> {
    pub fn new(deps: &'a Deps<'a>, input: &Input, infer: bool) -> Plan<'a> {
        let mut created: FastMap<u64, Vec<u64>> = FastMap::default();
        for edge in deps.edges.iter().filter(|edge| edge.is_creator) {
            created.entry(edge.pred.0).or_default().extend(edge.tensor_id.map(|Whole(tensor)| tensor));
        }
        for tensors in created.values_mut() {
            tensors.sort_unstable();
            tensors.dedup();
        }
        Plan {
            deps,
            sketch: Sketch::new(input.title()),
            places: Places::default(),
            homes: Vec::with_capacity(deps.tasks.len()),
            tensors: deps.tensors.iter().map(|tensor| (tensor.tensor_id.0, tensor)).collect(),
            created,
            kernels: FastMap::default(),
            infer,
            counts: Counts::default(),
        }
    }

    /// Adds all tasks, and before the next one of their ring those that only edges know: they allocate memory.
    pub fn tasks(&mut self, names: Option<&NameMap>, times: Option<&Times>) -> Result<(), String> {
        let mut allocs = self.allocs()?;
        for task in &self.deps.tasks {
            let Whole(id) = task.task_id;
            let earlier = id & !u64::from(u32::MAX)..id;
            let due: Vec<u64> = allocs.range(earlier).copied().collect();
            for alloc in due {
                allocs.remove(&alloc);
                self.add(alloc, "alloc", |submit| submit.kind = Some(TaskType::None))?;
            }
            let (kind, units) = kind(&task.kernel_ids).map_err(|fault| format!("task {}: {fault}", Home::of(id)))?;
            let cost = times.map(|times| times.of(id, kind)).transpose()?.flatten();
            self.counts.without_time += u64::from(cost.is_none() && kind != TaskType::None);
            let is_half = kind == TaskType::Mix && times.is_some_and(|times| times.lacks_kind(id, units));
            self.counts.half_timed += u64::from(is_half);
            let blocks = task.block_num.unwrap_or(Whole(1)).0;
            let blocks = u32::try_from(blocks)
                .ok()
                .filter(|&blocks| blocks > 0)
                .ok_or_else(|| format!("task {}: block_num {blocks}; it must be from 1 to 2^32 - 1", Home::of(id)))?;
            let triple = task.kernel_ids.as_slice();
            let name = Rc::clone(self.kernels.entry(triple).or_insert_with(|| kernel(triple, names).into()));
            self.add(id, &name, |submit| {
                (submit.kind, submit.units, submit.cost, submit.blocks) = (Some(kind), units, cost, blocks);
            })?;
            self.counts.without_size += self.unsized_outputs(task);
        }
        for alloc in allocs {
            self.add(alloc, "alloc", |submit| submit.kind = Some(TaskType::None))?;
        }
        Ok(())
    }

    /// Tasks that are producers of edges but not in the list. Their ids lie between those of their ring, or they created a
    /// tensor; others dangle.
    fn allocs(&mut self) -> Result<BTreeSet<u64>, String> {
        let mut listed: Vec<u64> = self.deps.tasks.iter().map(|task| task.task_id.0).collect();
        listed.sort_unstable();
        let mut allocs = BTreeSet::new();
        for edge in &self.deps.edges {
            let (Whole(id), consumer) = (edge.pred, edge.succ.0);
            let Err(place) = listed.binary_search(&id) else { continue };
            let is_in_ring = listed.get(place).is_some_and(|&later| later <= id | u64::from(u32::MAX));
            if !self.created.contains_key(&id) && !is_in_ring {
                return Err(format!(
                    "an edge to task {} names task {id}, which the file does not have; add it or remove the edge",
                    Home::of(consumer)
                ));
            }
            allocs.insert(id);
        }
        self.counts.allocs = allocs.len() as u64;
        Ok(allocs)
    }

    fn add(&mut self, id: u64, kernel: &str, fill: impl FnOnce(&mut Submit)) -> Result<(), String> {
        let home = Home::of(id);
        let mut submit = self.sketch.task(&home.to_string(), kernel);
        fill(&mut submit);
        for tensor in self.created.get(&id).into_iter().flatten() {
            let Some(tensor) = self.tensors.get(tensor) else { continue };
            let elements = tensor.buffer_numel.unwrap_or_default().0;
            let bytes = elements.checked_mul(element_bytes(tensor.dtype.as_deref())).filter(|&bytes| bytes < 1 << 62);
            let bytes = bytes
                .ok_or_else(|| format!("tensor {} has {elements} elements; that is too much", tensor.tensor_id.0))?;
            if self.infer {
                let buffer = self.sketch.heap_buffer(&buffer_name(tensor));
                submit.allocates.push(NewBuffer { buffer, bytes });
            } else {
                submit.out_bytes = submit.out_bytes.saturating_add(bytes.next_multiple_of(64));
            }
        }
        let place = self.sketch.push(submit);
        self.homes.push(home);
        self.places.insert(id, place)
    }

    /// Outputs of which no edge tells the tensor.
    fn unsized_outputs(&self, task: &Task<'_>) -> u64 {
        let outputs = task.args.iter().filter(|arg| &*arg.kind == "OUTPUT").count() as u64;
        let known = self.created.get(&task.task_id.0).map_or(0, |tensors| tensors.len() as u64);
        outputs.saturating_sub(known)
    }

    /// Adds the recorded edges. When edges are inferred, only those that the program asked for and those of manual scopes.
    pub fn edges(&mut self) -> Result<(), String> {
        let manual: BTreeSet<u64> =
            self.deps.tasks.iter().filter(|task| task.is_manual()).map(|task| task.task_id.0).collect();
        for edge in &self.deps.edges {
            let (producer, consumer) = self.ends(edge)?;
            if edge.only_retains {
                self.counts.retained += 1;
            } else if !self.infer || edge.is_explicit || manual.contains(&edge.succ.0) {
                self.sketch.link(producer, consumer);
            }
        }
        Ok(())
    }

    fn ends(&self, edge: &Edge) -> Result<(usize, usize), String> {
        let [producer, consumer] = [edge.pred.0, edge.succ.0].map(Home::of);
        let to = self.places.named(&edge.succ.0, format_args!("an edge from task {producer}"))?;
        Ok((self.places.named(&edge.pred.0, format_args!("an edge to task {consumer}"))?, to))
    }

    /// Adds what tasks read and write, for the tensor map. Manual scopes do without it.
    pub fn regions(&mut self) -> Result<(), String> {
        let created: BTreeSet<u64> = self.created.values().flatten().copied().collect();
        let created: BTreeSet<u64> =
            created.iter().filter_map(|tensor| self.tensors.get(tensor)).map(|tensor| tensor.buffer_addr.0).collect();
        for task in self.deps.tasks.iter().filter(|task| !task.is_manual()) {
            let place = self.places.find(&task.task_id.0).expect("every task was added");
            for arg in &task.args {
                self.region(arg, place, &created)
                    .map_err(|fault| format!("task {}: {fault}", Home::of(task.task_id.0)))?;
            }
        }
        Ok(())
    }

    fn region(&mut self, arg: &Arg<'_>, place: usize, created: &BTreeSet<u64>) -> Result<(), String> {
        let Some(Whole(id)) = arg.tensor_id else { return Ok(()) };
        let tensor = *self.tensors.get(&id).ok_or_else(|| {
            format!("an argument names tensor {id}, which the file does not have; add it to \"tensors\"")
        })?;
        let name = buffer_name(tensor);
        let elements = tensor.buffer_numel.unwrap_or_default().0;
        let bytes = elements.saturating_mul(element_bytes(tensor.dtype.as_deref())).min(1 << 62);
        let is_heap = created.contains(&tensor.buffer_addr.0);
        let buffer = if is_heap { self.sketch.heap_buffer(&name) } else { self.sketch.buffer(&name, bytes).buffer };
        let (found, exact) = regions(arg, buffer)?;
        self.counts.rough += u64::from(!exact);
        let task = self.sketch.at(place);
        match &*arg.kind {
            "INPUT" => task.reads.extend(found),
            "INOUT" => task.updates.extend(found),
            "OUTPUT" | "OUTPUT_EXISTING" => task.writes.extend(found),
            other => _ = self.counts.unknown_args.insert(shown(other)),
        }
        Ok(())
    }

    /// Notes for the report.
    pub fn remarks(&mut self, has_times: bool, options: &Options) {
        let edges = if self.infer { "found from regions" } else { "as recorded" };
        let times = if has_times {
            format!("durations from swimlane records, {}", options.clock_note())
        } else {
            "cycles from the kernel table".into()
        };
        let has_odd_scope = |task: &&Task<'_>| !matches!(&*task.scope, "auto" | "manual" | "");
        let odd_scopes = self.deps.tasks.iter().filter(has_odd_scope).count() as u64;
        let early = self.deps.tasks.iter().filter(|task| task.early_dispatch).count() as u64;
        let counts = &self.counts;
        let lines = [
            (counts.allocs, "tasks that only edges name allocate memory and take no time"),
            (
                if has_times { counts.without_time } else { 0 },
                "tasks have no record; their cycles are the kernel table's",
            ),
            (
                counts.half_timed,
                "MIX tasks have no record on one of their kinds of workers, which takes no time; the other kind has its own",
            ),
            (counts.without_size, "outputs that nobody reads have no recorded size and take no heap"),
            (counts.retained, "edges only keep memory alive; nobody waits for them, and they were left out"),
            (counts.rough, "views are in too many pieces and were taken as all bytes from first to last"),
            (odd_scopes, "tasks are in scopes that are neither auto nor manual; they were taken as auto"),
            (early, "tasks ask for early dispatch, which is not modelled"),
        ];
        let notes = &mut self.sketch.notes;
        notes.push(format!("format simpler: edges {edges}; {times}"));
        notes.extend(lines.iter().filter(|(count, _)| *count > 0).map(|(count, text)| format!("{count} {text}")));
        notes.extend(counts.unknown_args.iter().map(|kind| format!("arguments of type \"{kind}\" were left out")));
    }

    /// The sketch, and where each of its tasks lives.
    pub fn finish(self) -> (Sketch, Vec<Home>) {
        (self.sketch, self.homes)
    }
}

fn buffer_name(tensor: &Tensor<'_>) -> String {
    format!("b{:x}", tensor.buffer_addr.0)
}

/// What a kernel triple (cube, first vector, second vector) runs on; a task without one is a joint.
fn kind(kernels: &[i64]) -> Result<(TaskType, Units), String> {
    if !matches!(kernels.len(), 0 | 3) || kernels.iter().any(|&kernel| kernel < -1) {
        return Err(format!(
            "kernel_ids {}; give three numbers, those of the kernels on the cube and the two vectors, -1 for none",
            shown(&format!("{kernels:?}"))
        ));
    }
    let has = |index: usize| kernels.get(index).is_some_and(|&kernel| kernel >= 0);
    let (cube, vector) = (u8::from(has(0)), u8::from(has(1)) + u8::from(has(2)));
    Ok(match (cube, vector) {
        (0, 0) => (TaskType::None, Units::default()),
        (1, 0) => (TaskType::Cube, Units::default()),
        (0, 1) => (TaskType::Vector, Units::default()),
        _ => (TaskType::Mix, Units { cube, vector }),
    })
}

/// The names of its kernels, joined; a kernel that both vectors run is named once.
fn kernel(kernels: &[i64], names: Option<&NameMap>) -> String {
    let name = |kernel: &i64| {
        let known = names.and_then(|names| names.callable_id_to_name.get(&kernel.to_string()));
        known.cloned().unwrap_or_else(|| format!("kernel_{kernel}"))
    };
    let mut kernels: Vec<i64> = kernels.iter().copied().filter(|&kernel| kernel >= 0).collect();
    kernels.dedup();
    let names: Vec<String> = kernels.iter().map(name).collect();
    if names.is_empty() { "dummy".into() } else { names.join("+") }
}

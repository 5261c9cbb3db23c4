//! `WfFormat`: workflows of the `WfCommons` project, in JSON. Version 1.5 tells specification and execution apart; before it,
//! each task held both.
//!
//! Dependencies are the lists of parents and children, or, on demand, what the files imply when each is a buffer.

use super::file::Input;
use super::number::{Real, Whole};
use super::sketch::{FastMap, NamedPlaces, Sketch, Use, cycles};
use super::text::Text;
use super::{Edges, Format, Options, contains};
use crate::id::TaskType;
use crate::workload::{Cost, Program, Submit, WorkloadError};
use serde::Deserialize;
use std::collections::HashSet;

/// The format.
pub struct WfFormat;

const REMEDY: &str =
    "WfFormat has workflow.specification.tasks (1.5) or workflow.tasks (before) with id, parents and children";

impl Format for WfFormat {
    fn name(&self) -> &'static str {
        "wfformat"
    }

    fn description(&self) -> &'static str {
        "WfCommons WfFormat 1.5 and before (JSON)"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".wf.json"]
    }

    fn edges(&self) -> &'static [Edges] {
        &[Edges::Recorded, Edges::Files]
    }

    fn recognises(&self, head: &[u8]) -> bool {
        head.trim_ascii_start().starts_with(b"{") && contains(head, "\"workflow\"")
    }

    fn read(&self, input: &Input, options: &Options) -> Result<Program, WorkloadError> {
        let mut file: File<'_> = input.json(REMEDY)?;
        file.workflow.divide();
        let by_files = options.edges == Some(Edges::Files);
        let mut reading = Reading::new(&file, input, options);
        reading
            .tasks()
            .and_then(|()| reading.runs())
            .and_then(|()| reading.edges())
            .map_err(|fault| input.error(fault))?;
        if by_files {
            reading.files();
        }
        reading.remarks(by_files);
        reading.sketch.finish(input, &options.rules)
    }
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(rename = "schemaVersion", borrow)]
    version: Option<Text<'a>>,
    #[serde(borrow)]
    workflow: Workflow<'a>,
}

#[derive(Deserialize)]
struct Workflow<'a> {
    #[serde(default, borrow)]
    specification: Specification<'a>,
    #[serde(default, borrow)]
    execution: Execution<'a>,
    /// Before version 1.5.
    #[serde(default, alias = "jobs", borrow)]
    tasks: Vec<OldTask<'a>>,
}

#[derive(Deserialize, Default)]
struct Specification<'a> {
    #[serde(borrow)]
    tasks: Vec<Task<'a>>,
    #[serde(default, borrow)]
    files: Vec<Data<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(default, borrow)]
    parents: Vec<Text<'a>>,
    #[serde(default, borrow)]
    children: Vec<Text<'a>>,
    #[serde(default, borrow)]
    input_files: Vec<Text<'a>>,
    #[serde(default, borrow)]
    output_files: Vec<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    size_in_bytes: Option<Whole>,
}

#[derive(Deserialize, Default)]
struct Execution<'a> {
    #[serde(default, borrow)]
    tasks: Vec<Executed<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Executed<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    runtime_in_seconds: Option<Real>,
    core_count: Option<Real>,
    #[serde(borrow)]
    command: Option<Command<'a>>,
}

#[derive(Deserialize)]
struct Command<'a> {
    #[serde(borrow)]
    program: Option<Text<'a>>,
    #[serde(default, borrow)]
    arguments: Vec<Text<'a>>,
}

/// A task before version 1.5: its specification, its execution and its files.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldTask<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(default, borrow)]
    parents: Vec<Text<'a>>,
    #[serde(default, borrow)]
    children: Vec<Text<'a>>,
    #[serde(default, borrow)]
    files: Vec<OldFile<'a>>,
    #[serde(alias = "runtime")]
    runtime_in_seconds: Option<Real>,
    #[serde(rename = "cores", alias = "coreCount")]
    core_count: Option<Real>,
    #[serde(borrow)]
    command: Option<Command<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldFile<'a> {
    #[serde(alias = "id", borrow)]
    name: Text<'a>,
    #[serde(alias = "size")]
    size_in_bytes: Option<Whole>,
    #[serde(borrow)]
    link: Text<'a>,
}

impl Workflow<'_> {
    /// Turns tasks of the time before version 1.5 into specification and execution. Some files of that time call parents
    /// and children by their ids and some by their names; names are taken as ids where no task has such an id.
    fn divide(&mut self) {
        let has_ids = self.tasks.iter().all(|task| task.id.is_some());
        let ids: HashSet<&str> = self.tasks.iter().filter_map(|task| task.id.as_deref()).collect();
        let mut relatives = self.tasks.iter().flat_map(|task| task.parents.iter().chain(&task.children));
        let by_id = has_ids && relatives.all(|relative| ids.contains(&**relative));
        for old in self.tasks.drain(..) {
            let id = old.id.filter(|_| by_id).unwrap_or_else(|| old.name.clone());
            let mut task = Task {
                name: Some(old.name),
                id: id.clone(),
                parents: old.parents,
                children: old.children,
                input_files: Vec::new(),
                output_files: Vec::new(),
            };
            for file in old.files {
                let uses = if &*file.link == "output" { &mut task.output_files } else { &mut task.input_files };
                uses.push(file.name.clone());
                self.specification.files.push(Data { id: file.name, size_in_bytes: file.size_in_bytes });
            }
            self.specification.tasks.push(task);
            let OldTask { runtime_in_seconds, core_count, command, .. } = old;
            self.execution.tasks.push(Executed { id, runtime_in_seconds, core_count, command });
        }
    }
}

/// A file on its way into a sketch.
struct Reading<'a> {
    file: &'a File<'a>,
    places: NamedPlaces,
    sketch: Sketch,
    options: &'a Options,
    without_runtime: usize,
    on_several_cores: u64,
}

impl<'a> Reading<'a> {
    fn new(file: &'a File<'a>, input: &Input, options: &'a Options) -> Reading<'a> {
        Reading {
            file,
            places: NamedPlaces::default(),
            sketch: Sketch::new(file.name.as_deref().map_or_else(|| input.title(), String::from)),
            options,
            without_runtime: 0,
            on_several_cores: 0,
        }
    }

    fn told(&self) -> &'a [Task<'a>] {
        &self.file.workflow.specification.tasks
    }

    fn tasks(&mut self) -> Result<(), String> {
        self.sketch.reserve(self.told().len());
        for told in self.told() {
            let mut task = self.sketch.task(&told.id, stem(told.name.as_deref().unwrap_or(&told.id)));
            task.kind = Some(TaskType::Vector);
            let name = task.name.expect("a task of the file has a name");
            let place = self.sketch.push(task);
            self.places.insert(&told.id, name, place)?;
        }
        Ok(())
    }

    /// Adds what was measured; it usually stands in the order of the tasks.
    fn runs(&mut self) -> Result<(), String> {
        let told = self.told();
        for (usual, run) in self.file.workflow.execution.tasks.iter().enumerate() {
            let is_usual = told.get(usual).is_some_and(|told| told.id == run.id);
            let place = if is_usual { Some(usual) } else { self.places.find(&run.id, &self.sketch) };
            let Some(place) = place else { continue };
            let cost = run.runtime_in_seconds.map(|Real(seconds)| {
                let amount = seconds * 1e6 * self.options.cycles_per_us();
                cycles(amount, format_args!("the runtime of task {}", run.id)).map(Cost::Cycles)
            });
            let kernel = run.command.as_ref().and_then(|command| command.program.as_deref());
            let kernel = kernel.map(|kernel| self.sketch.symbol(kernel));
            let task = self.sketch.at(place);
            task.cost = cost.transpose()?;
            task.kernel = kernel.or(task.kernel);
            if let Some(command) = &run.command {
                command.hints(task);
            }
            self.on_several_cores += u64::from(run.core_count.is_some_and(|Real(count)| count > 1.0));
        }
        for place in 0..told.len() {
            let task = self.sketch.at(place);
            self.without_runtime += usize::from(task.cost.is_none());
            task.cost = task.cost.or(Some(Cost::Cycles(0)));
        }
        Ok(())
    }

    /// Lists of parents and children say the same twice; each is believed.
    fn edges(&mut self) -> Result<(), String> {
        for (place, told) in self.told().iter().enumerate() {
            for parent in &told.parents {
                let parent = self.places.named(parent, &self.sketch, format_args!("task {}", told.id))?;
                self.sketch.link(parent, place);
            }
            for child in &told.children {
                let child = self.places.named(child, &self.sketch, format_args!("task {}", told.id))?;
                self.sketch.link(place, child);
            }
        }
        Ok(())
    }

    /// Takes every file as a buffer.
    fn files(&mut self) {
        let specification = &self.file.workflow.specification;
        let sizes: FastMap<&str, u64> =
            specification.files.iter().map(|file| (&*file.id, file.size_in_bytes.unwrap_or_default().0)).collect();
        let mut uses = Vec::new();
        for (place, told) in specification.tasks.iter().enumerate() {
            let inputs = told.input_files.iter().map(|file| (file, false));
            let outputs = told.output_files.iter().map(|file| (file, true));
            uses.extend(inputs.chain(outputs).map(|(file, is_output)| Use {
                place,
                file,
                is_output,
                bytes: sizes.get(&**file).copied().unwrap_or(0),
            }));
        }
        self.sketch.use_files(&uses);
    }

    fn remarks(&mut self, by_files: bool) {
        let edges = if by_files { "files are buffers" } else { "parents and children" };
        let clock = self.options.clock_note();
        let notes = &mut self.sketch.notes;
        notes.insert(0, format!("format wfformat: {clock}, tasks run on VECTOR, dependencies from {edges}"));
        if let Some(version) = self.file.version.as_deref().filter(|version| *version != "1.5") {
            notes.push(format!("schema version {version} was read as 1.5"));
        }
        if self.without_runtime > 0 {
            notes.push(format!("{} tasks have no runtime and take 0 cycles", self.without_runtime));
        }
        if self.on_several_cores > 0 {
            let count = self.on_several_cores;
            notes.push(format!("{count} tasks ran on several cores; here each takes one worker for its whole runtime"));
        }
    }
}

impl Command<'_> {
    /// What our own writer notes in the arguments, because the format has no place for it.
    fn hints(&self, task: &mut Submit) {
        for argument in &self.arguments {
            if let Some(kind) = argument.strip_prefix("--worker-type=").and_then(TaskType::parse) {
                task.kind = Some(kind);
            }
            if let Some(blocks) = argument.strip_prefix("--blocks=").and_then(|blocks| blocks.parse().ok()) {
                task.blocks = std::cmp::max(blocks, 1);
            }
        }
    }
}

/// A task's name without the number at its end, as in `mProject_ID0000001`.
fn stem(name: &str) -> &str {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let stem = stem.strip_suffix("_ID").or_else(|| stem.strip_suffix("_0")).unwrap_or(stem);
    let stem = stem.trim_end_matches('_');
    if stem.is_empty() { name } else { stem }
}

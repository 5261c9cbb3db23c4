//! `WfFormat` 1.5: workflows of the `WfCommons` project, in JSON.
//!
//! Dependencies are the lists of parents and children, or, on demand, what the files imply when each is a buffer.

use super::file::Input;
use super::number::{Real, Whole};
use super::sketch::{FastMap, Places, Sketch, Use, cycles};
use super::text::Text;
use super::{Edges, Format, Options, contains};
use crate::id::TaskType;
use crate::workload::{Cost, Program, Submit, WorkloadError};
use serde::Deserialize;

/// The format.
pub struct WfFormat;

const REMEDY: &str = "WfFormat has workflow.specification.tasks with id, parents and children";

impl Format for WfFormat {
    fn name(&self) -> &'static str {
        "wfformat"
    }

    fn description(&self) -> &'static str {
        "WfCommons WfFormat 1.5 (JSON)"
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
        let file: File<'_> = input.json(REMEDY)?;
        let by_files = options.edges == Some(Edges::Files);
        let mut reading = Reading::new(&file, input, options);
        reading.tasks().and_then(|()| reading.edges()).map_err(|fault| input.error(fault))?;
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
    #[serde(borrow)]
    specification: Specification<'a>,
    #[serde(borrow)]
    execution: Option<Execution<'a>>,
}

#[derive(Deserialize)]
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

#[derive(Deserialize)]
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

/// A file on its way into a sketch.
struct Reading<'a> {
    file: &'a File<'a>,
    executed: FastMap<&'a str, &'a Executed<'a>>,
    places: Places<&'a str>,
    sketch: Sketch,
    options: &'a Options,
    without_runtime: u64,
}

impl<'a> Reading<'a> {
    fn new(file: &'a File<'a>, input: &Input, options: &'a Options) -> Reading<'a> {
        let executed = file.workflow.execution.iter().flat_map(|execution| &execution.tasks);
        Reading {
            file,
            executed: executed.map(|task| (&*task.id, task)).collect(),
            places: Places::default(),
            sketch: Sketch::new(file.name.as_deref().map_or_else(|| input.title(), String::from)),
            options,
            without_runtime: 0,
        }
    }

    fn tasks(&mut self) -> Result<(), String> {
        for told in &self.file.workflow.specification.tasks {
            let executed = self.executed.get(&*told.id).copied();
            let command = executed.and_then(|executed| executed.command.as_ref());
            let program = command.and_then(|command| command.program.as_deref());
            let kernel = program.unwrap_or_else(|| stem(told.name.as_deref().unwrap_or(&told.id)));
            let mut task = self.sketch.task(&told.id, kernel);
            task.kind = Some(TaskType::Vector);
            let seconds = executed.and_then(|executed| executed.runtime_in_seconds);
            self.without_runtime += u64::from(seconds.is_none());
            let amount = seconds.map_or(0.0, |Real(seconds)| seconds) * 1e6 * self.options.cycles_per_us();
            task.cost = Some(Cost::Cycles(cycles(amount, format_args!("the runtime of task {}", told.id))?));
            if let Some(command) = command {
                command.hints(&mut task);
            }
            let place = self.sketch.push(task);
            self.places.insert(&told.id, place)?;
        }
        Ok(())
    }

    /// Lists of parents and children say the same twice; each is believed.
    fn edges(&mut self) -> Result<(), String> {
        for (place, told) in self.file.workflow.specification.tasks.iter().enumerate() {
            for parent in &told.parents {
                let parent = self.places.named(&&**parent, format_args!("task {}", told.id))?;
                self.sketch.link(parent, place);
            }
            for child in &told.children {
                let child = self.places.named(&&**child, format_args!("task {}", told.id))?;
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
        let wide = |task: &&&Executed<'_>| task.core_count.is_some_and(|Real(count)| count > 1.0);
        let wide = self.executed.values().filter(wide).count();
        if wide > 0 {
            notes.push(format!("{wide} tasks ran on several cores; here each takes one worker for its whole runtime"));
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

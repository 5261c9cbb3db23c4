//! `WfFormat`: workflows of the `WfCommons` project, in JSON. Version 1.5 tells specification and execution apart; before it,
//! each task held both.
//!
//! Dependencies are the lists of parents and children, or, on demand, what the files imply when each is a buffer.

use super::file::{Input, shown};
use super::number::Real;
use super::pull::{Cursor, Fault};
use super::sketch::{FastMap, NamedPlaces, Sketch, Use, cycles};
use super::{Edges, Format, Options, contains};
use crate::id::{Symbol, TaskType};
use crate::workload::{Cost, Program, Submit, WorkloadError};
use std::borrow::Cow;
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
        let mut reading = Reading::new(input, options);
        input.pull(REMEDY, |cursor| reading.file(cursor))?;
        reading
            .identify()
            .and_then(|()| reading.runs())
            .and_then(|()| reading.edges())
            .map_err(|fault| input.error(fault))?;
        if reading.by_files {
            reading.files();
        }
        reading.remarks();
        reading.sketch.finish(input, &options.rules)
    }
}

/// What was measured of a task.
#[derive(Default)]
struct Run {
    id: Option<Symbol>,
    seconds: Option<Real>,
    kernel: Option<Symbol>,
    kind: Option<TaskType>,
    blocks: Option<u32>,
    on_several_cores: bool,
}

/// Parents or children of all tasks, one list behind the other.
#[derive(Default)]
struct Relatives {
    names: Vec<Symbol>,
    /// Where the list of each task ends.
    ends: Vec<usize>,
}

impl Relatives {
    fn of(&self, place: usize) -> &[Symbol] {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.names[start..self.ends[place]]
    }
}

/// A file on its way into a sketch.
struct Reading<'a> {
    options: &'a Options,
    by_files: bool,
    sketch: Sketch,
    places: NamedPlaces,
    version: Option<Cow<'a, str>>,
    has_workflow: bool,
    /// Names of the tasks beside their ids.
    names: Vec<Option<Cow<'a, str>>>,
    parents: Relatives,
    children: Relatives,
    /// What stands apart from the tasks.
    executed: Vec<Run>,
    /// Task, file, and whether it writes it.
    uses: Vec<(usize, Cow<'a, str>, bool)>,
    sizes: FastMap<Cow<'a, str>, u64>,
    without_runtime: usize,
    on_several_cores: u64,
    /// Ids under "execution" that no task has.
    strangers: Vec<Symbol>,
}

/// What a file holds.
impl<'a> Reading<'a> {
    fn new(input: &Input, options: &'a Options) -> Reading<'a> {
        Reading {
            options,
            by_files: options.edges == Some(Edges::Files),
            sketch: Sketch::new(input.title()),
            places: NamedPlaces::default(),
            version: None,
            has_workflow: false,
            names: Vec::new(),
            parents: Relatives::default(),
            children: Relatives::default(),
            executed: Vec::new(),
            uses: Vec::new(),
            sizes: FastMap::default(),
            without_runtime: 0,
            on_several_cores: 0,
            strangers: Vec::new(),
        }
    }

    fn file(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Fault> {
        cursor.object(|cursor, key| match key {
            "name" => cursor.text().map(|name| name.into_iter().for_each(|name| self.sketch.name = name.into_owned())),
            "schemaVersion" => cursor.text().map(|version| self.version = version),
            "workflow" => {
                self.has_workflow = true;
                self.workflow(cursor)
            }
            _ => cursor.pass(),
        })?;
        if self.has_workflow { Ok(()) } else { Err("no \"workflow\"".into()) }
    }

    /// Up to version 1.4 the tasks stand directly in it.
    fn workflow(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Fault> {
        cursor.object(|cursor, key| match key {
            "specification" => cursor.fields(|cursor, key| match key {
                "tasks" => cursor.list(|cursor| self.task(cursor)),
                "files" => cursor.list(|cursor| self.file_size(cursor)),
                _ => cursor.pass(),
            }),
            "execution" => cursor.fields(|cursor, key| match key {
                "tasks" => cursor.list(|cursor| self.execution(cursor)),
                _ => cursor.pass(),
            }),
            "tasks" | "jobs" => cursor.list(|cursor| self.task(cursor)),
            _ => cursor.pass(),
        })
    }

    fn task(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Fault> {
        let place = self.sketch.tasks().len();
        let (mut name, mut run) = (None, Run::default());
        cursor.object(|cursor, key| {
            match key {
                "name" => name = cursor.text()?,
                "parents" => relatives(cursor, &mut self.sketch, &mut self.parents)?,
                "children" => relatives(cursor, &mut self.sketch, &mut self.children)?,
                "inputFiles" if self.by_files => self.used(cursor, place, false)?,
                "outputFiles" if self.by_files => self.used(cursor, place, true)?,
                "files" if self.by_files => cursor.list(|cursor| self.used_and_sized(cursor, place))?,
                _ => self.measured(cursor, key, &mut run)?,
            }
            Ok(())
        })?;
        self.parents.ends.push(self.parents.names.len());
        self.children.ends.push(self.children.names.len());
        let kernel = match (&name, run.id) {
            (Some(name), _) => self.sketch.symbol(stem(name)),
            (None, Some(id)) => {
                let id = self.sketch.text(id).to_owned();
                self.sketch.symbol(stem(&id))
            }
            (None, None) => return Err(format!("task {place} of the list has neither \"id\" nor \"name\"")),
        };
        let (kernel, kind) = (Some(kernel), Some(TaskType::Vector));
        self.sketch.push(Submit { name: run.id, kernel, kind, ..Submit::default() });
        self.names.push(name);
        self.measure(place, &run)
    }

    fn execution(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Fault> {
        let mut run = Run::default();
        cursor.object(|cursor, key| self.measured(cursor, key, &mut run))?;
        self.executed.push(run);
        Ok(())
    }

    /// A field of what was measured, or one that nobody needs.
    fn measured(&mut self, cursor: &mut Cursor<'a>, key: &str, run: &mut Run) -> Result<(), Fault> {
        match key {
            "id" => run.id = cursor.text()?.map(|id| self.sketch.symbol(&id)),
            "runtimeInSeconds" | "runtime" => run.seconds = cursor.real()?,
            "coreCount" | "cores" => run.on_several_cores = cursor.real()?.is_some_and(|Real(count)| count > 1.0),
            "command" => self.command(cursor, run)?,
            _ => cursor.pass()?,
        }
        Ok(())
    }

    /// The program is the kernel. Our own writer notes in the arguments what the format has no place for.
    fn command(&mut self, cursor: &mut Cursor<'a>, run: &mut Run) -> Result<(), Fault> {
        cursor.fields(|cursor, key| match key {
            "program" => cursor.text().map(|program| run.kernel = program.map(|program| self.sketch.symbol(&program))),
            "arguments" => cursor.list(|cursor| {
                let argument = cursor.text()?.unwrap_or_default();
                run.kind = argument.strip_prefix("--worker-type=").and_then(TaskType::parse).or(run.kind);
                let blocks = argument.strip_prefix("--blocks=").and_then(|blocks| blocks.parse().ok());
                run.blocks = blocks.map(|blocks: u32| blocks.max(1)).or(run.blocks);
                Ok(())
            }),
            _ => cursor.pass(),
        })
    }

    fn used(&mut self, cursor: &mut Cursor<'a>, place: usize, is_output: bool) -> Result<(), Fault> {
        cursor.list(|cursor| {
            self.uses.extend(cursor.text()?.map(|file| (place, file, is_output)));
            Ok(())
        })
    }

    /// A file of a task before version 1.5.
    fn used_and_sized(&mut self, cursor: &mut Cursor<'a>, place: usize) -> Result<(), Fault> {
        let (mut name, mut size, mut is_output) = (None, None, false);
        cursor.object(|cursor, key| {
            match key {
                "name" | "id" => name = cursor.text()?,
                "sizeInBytes" | "size" => size = cursor.whole()?,
                "link" => is_output = cursor.text()?.as_deref() == Some("output"),
                _ => cursor.pass()?,
            }
            Ok(())
        })?;
        let name = name.ok_or("a file without \"name\"")?;
        self.sizes.insert(name.clone(), size.unwrap_or_default().0);
        self.uses.push((place, name, is_output));
        Ok(())
    }

    fn file_size(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Fault> {
        if !self.by_files {
            return cursor.pass();
        }
        let (mut id, mut size) = (None, None);
        cursor.object(|cursor, key| {
            match key {
                "id" => id = cursor.text()?,
                "sizeInBytes" => size = cursor.whole()?,
                _ => cursor.pass()?,
            }
            Ok(())
        })?;
        self.sizes.insert(id.ok_or("a file without \"id\"")?, size.unwrap_or_default().0);
        Ok(())
    }
}

/// Adds a list of parents or children.
fn relatives(cursor: &mut Cursor<'_>, sketch: &mut Sketch, into: &mut Relatives) -> Result<(), Fault> {
    cursor.list(|cursor| {
        into.names.extend(cursor.text()?.map(|name| sketch.symbol(&name)));
        Ok(())
    })
}

/// What it means.
impl Reading<'_> {
    /// Finds the tasks by what parents and children are called: ids, or else, as in some files before version 1.5, names.
    fn identify(&mut self) -> Result<(), Fault> {
        let has_ids = self.sketch.tasks().iter().all(|task| task.name.is_some());
        if has_ids {
            self.places = NamedPlaces::of(&self.sketch)?;
            if self.relatives().all(|name| self.places.find(name).is_some()) || !self.is_by_name() {
                return Ok(());
            }
        }
        for (place, name) in self.names.iter().enumerate() {
            let name = name.as_deref().map(|name| self.sketch.symbol(name));
            let task = self.sketch.at(place);
            task.name = name.or(task.name);
        }
        self.places = NamedPlaces::of(&self.sketch)?;
        Ok(())
    }

    fn relatives(&self) -> impl Iterator<Item = Symbol> {
        self.parents.names.iter().chain(&self.children.names).copied()
    }

    /// Whether every parent and child is the name of a task.
    fn is_by_name(&self) -> bool {
        let names: HashSet<Symbol> = self.names.iter().flatten().filter_map(|name| self.sketch.find(name)).collect();
        self.relatives().all(|name| names.contains(&name))
    }

    /// Adds what stands apart from the tasks.
    fn runs(&mut self) -> Result<(), Fault> {
        for run in std::mem::take(&mut self.executed) {
            match run.id.and_then(|id| self.places.find(id)) {
                Some(place) => self.measure(place, &run)?,
                None => self.strangers.extend(run.id),
            }
        }
        for place in 0..self.sketch.tasks().len() {
            let task = self.sketch.at(place);
            self.without_runtime += usize::from(task.cost.is_none());
            task.cost = task.cost.or(Some(Cost::Cycles(0)));
        }
        Ok(())
    }

    /// Adds what was measured to a task.
    fn measure(&mut self, place: usize, run: &Run) -> Result<(), Fault> {
        let cost = run.seconds.map(|Real(seconds)| {
            let amount = seconds * 1e6 * self.options.cycles_per_us();
            let wrong = |fault| format!("task {}: {fault}", self.sketch.label(place));
            cycles(amount, "its runtime").map(Cost::Cycles).map_err(wrong)
        });
        let cost = cost.transpose()?;
        let task = self.sketch.at(place);
        task.cost = cost.or(task.cost);
        task.kernel = run.kernel.or(task.kernel);
        task.kind = run.kind.or(task.kind);
        task.blocks = run.blocks.unwrap_or(task.blocks);
        self.on_several_cores += u64::from(run.on_several_cores);
        Ok(())
    }

    /// Lists of parents and children say the same twice; each is believed.
    fn edges(&mut self) -> Result<(), Fault> {
        for place in 0..self.sketch.tasks().len() {
            for &parent in self.parents.of(place) {
                let parent = self.places.named(parent, &self.sketch, place)?;
                self.sketch.link(parent, place);
            }
            for &child in self.children.of(place) {
                let child = self.places.named(child, &self.sketch, place)?;
                self.sketch.link(place, child);
            }
        }
        Ok(())
    }

    /// Takes every file as a buffer.
    fn files(&mut self) {
        let size = |file: &str| self.sizes.get(file).copied().unwrap_or(0);
        let uses: Vec<Use<'_>> = self
            .uses
            .iter()
            .map(|(place, file, is_output)| Use { place: *place, file, is_output: *is_output, bytes: size(file) })
            .collect();
        self.sketch.use_files(&uses);
    }

    fn remarks(&mut self) {
        let edges = if self.by_files { "files as buffers" } else { "parents and children" };
        let clock = self.options.clock_note();
        let first = self.strangers.first().map(|&name| shown(self.sketch.text(name)));
        let notes = &mut self.sketch.notes;
        notes.extend(first.map(|first| {
            format!("{} runtimes of unknown tasks were left out; the first is that of {first}", self.strangers.len())
        }));
        notes.insert(0, format!("format wfformat: {clock}, tasks run on VECTOR, dependencies from {edges}"));
        if let Some(version) = self.version.as_deref().filter(|version| *version != "1.5") {
            notes.push(format!("schema version {} was read as 1.5", shown(version)));
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

/// A task's name without the number at its end, as in `mProject_ID0000001`.
fn stem(name: &str) -> &str {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let stem = stem.strip_suffix("_ID").or_else(|| stem.strip_suffix("_0")).unwrap_or(stem);
    let stem = stem.trim_end_matches('_');
    if stem.is_empty() { name } else { stem }
}

//! hicann/pypto task topology in JSON, with the times of a device run if they stand beside it.
//!
//! `successors` are the truth: `predecessors` may be empty although there are some.

use super::file::Input;
use super::number::{Real, Whole, or_default};
use super::sketch::{FastMap, Places, Sketch, cycles};
use super::text::Text;
use super::{Format, Options, contains};
use crate::id::TaskType;
use crate::workload::{Cost, Program, WorkloadError};
use serde::Deserialize;

/// The format.
pub struct Hicann;

const REMEDY: &str = "a topology is an array of {\"taskId\":0,\"funcName\":\"…\",\"successors\":[…]}";
const PROFILE: &str = "tilefwk_prof_data.json";
const PROFILE_REMEDY: &str =
    "profile data are an array of {\"coreType\":\"AIV\",\"tasks\":[{\"taskId\":0,\"execStart\":0,\"execEnd\":1}]}";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task<'a> {
    task_id: Whole,
    #[serde(borrow)]
    func_name: Option<Text<'a>>,
    #[serde(borrow)]
    core_type: Option<Text<'a>>,
    exec_time: Option<Real>,
    #[serde(default, deserialize_with = "or_default")]
    successors: Vec<Whole>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Core<'a> {
    #[serde(borrow)]
    core_type: Option<Text<'a>>,
    tasks: Vec<Run>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    task_id: Whole,
    exec_start: Whole,
    exec_end: Whole,
}

/// What was measured of a task: its type and the cycles of its longest run.
type Measured = FastMap<u64, (Option<TaskType>, u64)>;

impl Format for Hicann {
    fn name(&self) -> &'static str {
        "hicann"
    }

    fn description(&self) -> &'static str {
        "hicann/pypto task topology (JSON), with tilefwk_prof_data.json"
    }

    fn endings(&self) -> &'static [&'static str] {
        &["topo.json"]
    }

    fn beside(&self, name: &str) -> Vec<String> {
        let prefix = name.split_once("topo").map_or("", |(prefix, _)| prefix);
        vec![format!("{prefix}{PROFILE}"), PROFILE.into()]
    }

    fn most_with(&self) -> usize {
        1
    }

    fn recognises(&self, head: &[u8]) -> bool {
        head.trim_ascii_start().starts_with(b"[") && contains(head, "\"taskId\"") && contains(head, "\"successors\"")
    }

    fn read(&self, input: &Input, options: &Options) -> Result<Program, WorkloadError> {
        let told: Vec<Task<'_>> = input.json(REMEDY)?;
        let measured = measured(input, options)?;
        let mut sketch = Sketch::new(input.title());
        let mut places = Places::default();
        let mut without_time = 0_u64;
        for task in &told {
            let Whole(id) = task.task_id;
            let run = measured.as_ref().and_then(|measured| measured.get(&id));
            let own = task.core_type.as_deref().map(core_type).transpose();
            let own = own.map_err(|fault| input.error(format!("task {id}: {fault}")))?;
            let mut submit = sketch.task(&format!("t{id}"), task.func_name.as_deref().unwrap_or("unknown"));
            submit.kind = own.or(run.and_then(|run| run.0));
            let told = task.exec_time.map(|Real(time)| cycles(time, format_args!("the time of task {id}"))).transpose();
            let time = run.map(|run| run.1).or(told.map_err(|fault| input.error(fault))?);
            without_time += u64::from(time.is_none());
            submit.cost = Some(Cost::Cycles(time.unwrap_or(0)));
            let place = sketch.push(submit);
            places.insert(id, place).map_err(|fault| input.error(fault))?;
        }
        for (place, task) in told.iter().enumerate() {
            for &Whole(successor) in &task.successors {
                let by = format!("task {}", task.task_id.0);
                let consumer = places.named(&successor, by).map_err(|fault| input.error(fault))?;
                sketch.link(place, consumer);
            }
        }
        let times = if measured.is_some() { "measured ticks" } else { "execTime" };
        sketch.notes.insert(0, format!("format hicann: cycles are {times}, AIC is CUBE and AIV is VECTOR"));
        if without_time > 0 {
            sketch.notes.push(format!("{without_time} tasks have no time and take 0 cycles"));
        }
        sketch.finish(input, &options.rules)
    }
}

fn core_type(name: &str) -> Result<TaskType, String> {
    match name.to_ascii_uppercase().as_str() {
        "AIC" => Ok(TaskType::Cube),
        "AIV" => Ok(TaskType::Vector),
        "AICPU" | "AI_CPU" => Ok(TaskType::AiCpu),
        "MIX" => Ok(TaskType::Mix),
        "HUB" | "FAKE" | "NONE" => Ok(TaskType::None),
        _ => Err(format!("unknown coreType \"{}\"; known are AIC, AIV, AICPU, MIX, HUB", super::file::shown(name))),
    }
}

/// The times of the file that was named, or else of one beside the topology that is called like it.
fn measured(input: &Input, options: &Options) -> Result<Option<Measured>, WorkloadError> {
    let name = input.path.as_ref().and_then(|path| path.file_name()).unwrap_or_default().to_string_lossy();
    let beside = Hicann.beside(&name).iter().find_map(|name| input.beside(name));
    let Some(path) = options.with.first().cloned().or(beside) else { return Ok(None) };
    let profile = Input::load(&path)?;
    let cores: Vec<Core<'_>> = profile.json(PROFILE_REMEDY)?;
    let mut measured = Measured::default();
    for core in &cores {
        let kind = core.core_type.as_deref().map(core_type).transpose().map_err(|fault| profile.error(fault))?;
        for run in &core.tasks {
            let Some(cycles) = run.exec_end.0.checked_sub(run.exec_start.0) else {
                return Err(profile.error(format!("task {} ends before it starts; measure again", run.task_id.0)));
            };
            let known = measured.entry(run.task_id.0).or_insert((kind, cycles));
            known.1 = known.1.max(cycles);
        }
    }
    Ok(Some(measured))
}

//! Chrome trace JSON: timelines of this program and of the PTO runtimes, and others as far as they tell tasks and flows.
//!
//! Tasks are complete events that have a task id among their arguments, those of the view of the workers if there are
//! several views; without ids all complete events. Events of one id are blocks of one task. Producers come from the
//! arguments (`producers`, `fanin-hint`), or from flow events that connect two tasks. Files of `run --chrome` say more about
//! their slices, see [`timeline`].

mod event;
mod flows;
mod timeline;

use super::file::Input;
use super::number::Real;
use super::simpler::Home;
use super::sketch::{Places, Sketch, cycles};
use super::{Format, Options, contains};
use crate::id::TaskType;
use crate::workload::{Cost, Program, Submit, Units, WorkloadError};
use event::{Event, Key, file};
use std::collections::{BTreeMap, HashMap};

/// The format.
pub struct Chrome;

/// Processes in which the PTO runtimes show what ran on workers; other processes show the same tasks again.
const WORKER_VIEWS: [&str; 2] = ["Worker View", "Machine View"];

impl Format for Chrome {
    fn name(&self) -> &'static str {
        "chrome"
    }

    fn description(&self) -> &'static str {
        "Chrome trace JSON (this program, PTO runtimes, msprof)"
    }

    fn endings(&self) -> &'static [&'static str] {
        &["swimlane.json", ".trace.json", ".chrome.json"]
    }

    fn recognises(&self, head: &[u8]) -> bool {
        let start = head.trim_ascii_start();
        let is_object = start.starts_with(b"{") && contains(head, "\"traceEvents\"");
        is_object || (start.starts_with(b"[") && contains(head, "\"ph\""))
    }

    fn read(&self, input: &Input, options: &Options) -> Result<Program, WorkloadError> {
        let file = file(input)?;
        let is_ruled = options.rules.clock_mhz.is_some();
        let (cycles_per_us, clock) = if file.counts_cycles() && !is_ruled {
            (1000.0, "1 ns of the file is 1 cycle, as it says".into())
        } else {
            (options.cycles_per_us(), options.clock_note())
        };
        if file.counts_cycles() {
            return timeline::read(&file.events, (cycles_per_us, &clock), input, options);
        }
        let chosen = choose(&file.events);
        let sketch = Sketch::new(input.title());
        let mut reading = Reading { events: &file.events, places: Places::default(), sketch, cycles_per_us };
        let groups = Reading::groups(&chosen);
        let built = reading.tasks(&groups).and_then(|()| reading.edges(&groups));
        let from_flows = built.map_err(|fault| input.error(fault))?;
        let has_edges = reading.sketch.tasks().iter().any(|task| !task.deps.is_empty());
        let edges = match (from_flows, has_edges) {
            (false, _) => "dependencies from arguments",
            (true, true) => "dependencies from flow events",
            (true, false) => "no dependencies, because no flow event connects two tasks",
        };
        reading.sketch.notes.push(format!("format chrome: {clock}; {edges}"));
        reading.sketch.finish(input, &options.rules)
    }
}

/// Which events are runs of tasks.
fn choose<'a>(events: &'a [Event<'a>]) -> Vec<&'a Event<'a>> {
    let is_view = |event: &&Event<'_>| event.ph == "M" && event.name == "process_name";
    let is_workers = |event: &&Event<'_>| event.text("name").is_some_and(|name| WORKER_VIEWS.contains(&name));
    let views: Vec<&Key> = events.iter().filter(is_view).filter(is_workers).map(|event| &event.pid).collect();
    let in_view = |event: &&Event<'_>| views.is_empty() || views.contains(&&event.pid);
    let with_id = |event: &&Event<'_>| matches!(&*event.ph, "X" | "i") && task_id(event).is_some();
    let chosen: Vec<_> = events.iter().filter(with_id).filter(in_view).collect();
    if chosen.is_empty() { events.iter().filter(|event| event.ph == "X").collect() } else { chosen }
}

fn task_id(event: &Event<'_>) -> Option<u64> {
    event.number("task_id").or_else(|| event.number("taskId")).or_else(|| {
        let is_ours = event.cat == "task";
        event.number("task").filter(|_| is_ours)
    })
}

/// A file on its way into a sketch.
struct Reading<'a> {
    events: &'a [Event<'a>],
    places: Places<u64>,
    sketch: Sketch,
    cycles_per_us: f64,
}

/// The runs of one task; its own or an invented id.
type Groups<'a> = BTreeMap<u64, Vec<&'a Event<'a>>>;

impl<'a> Reading<'a> {
    /// The chosen events by task, in order of ids, or of time when there are none.
    fn groups(chosen: &[&'a Event<'a>]) -> Groups<'a> {
        let mut ordered = chosen.to_vec();
        ordered.sort_by(|left, right| left.ts.0.total_cmp(&right.ts.0));
        let mut groups = Groups::new();
        for (index, event) in ordered.into_iter().enumerate() {
            groups.entry(task_id(event).unwrap_or(index as u64)).or_default().push(event);
        }
        groups
    }

    fn tasks(&mut self, groups: &Groups<'a>) -> Result<(), String> {
        let threads = threads(self.events);
        for (&id, runs) in groups {
            let first = runs[0];
            let label = label(id, first);
            let kernel = first.text("kernel").map_or_else(|| kernel(&first.name), str::to_owned);
            let name = first.text("name").map_or(label, str::to_owned);
            let mut task = self.sketch.task(&name, &kernel);
            self.fill(&mut task, runs, &threads)?;
            let place = self.sketch.push(task);
            self.places.insert(id, place)?;
        }
        Ok(())
    }

    /// Type, blocks and cycles of a task: as its arguments say, or else as its runs show.
    fn fill(&self, task: &mut Submit, runs: &[&Event<'_>], threads: &Threads<'_>) -> Result<(), String> {
        let kind_of = |event: &Event<'_>| {
            let thread = threads.get(&(&event.pid, &event.tid)).map_or("", String::as_str);
            event.text("Task Type").and_then(kind_of_name).or_else(|| kind_of_name(thread))
        };
        let (mut cube, mut vector) = ((0.0, 0_u32), (0.0, 0_u32));
        for run in runs {
            let Real(micros) =
                run.args.get("kernel-duration-us").and_then(serde_json::Value::as_f64).map_or(run.dur, Real);
            let (sum, count) = if kind_of(run) == Some(TaskType::Cube) { &mut cube } else { &mut vector };
            *sum += micros;
            *count += 1;
        }
        let first = runs[0];
        let told = first.text("worker_type").and_then(TaskType::parse);
        let is_mix = cube.1 > 0 && vector.1 > 0;
        task.kind = told.or(if is_mix { Some(TaskType::Mix) } else { kind_of(first) });
        let scale = self.cycles_per_us;
        let mean = |(sum, count): (f64, u32)| {
            cycles(sum / f64::from(count.max(1)) * scale, format!("task \"{}\"", super::file::shown(&first.name)))
        };
        task.cost = Some(match first.number("cycles") {
            Some(cycles) => Cost::Cycles(cycles),
            None if is_mix => Cost::PerKind { cube: mean(cube)?, vector: mean(vector)? },
            None => Cost::Cycles(mean((cube.0 + vector.0, cube.1 + vector.1))?),
        });
        if is_mix {
            task.units = Units { cube: 1, vector: vector.1.div_ceil(cube.1).clamp(1, 2) as u8 };
        }
        let shown = if is_mix { cube.1 } else { cube.1 + vector.1 };
        let blocks = first.number("blocks").and_then(|blocks| u32::try_from(blocks).ok()).unwrap_or(shown);
        task.blocks = blocks.max(1);
        Ok(())
    }

    /// Adds dependencies and tells whether they come from flow events.
    fn edges(&mut self, groups: &Groups<'a>) -> Result<bool, String> {
        let labels: HashMap<String, u64> = groups.iter().map(|(&id, runs)| (label(id, runs[0]), id)).collect();
        let mut told = false;
        for (id, runs) in groups {
            let consumer = self.places.find(id).expect("every task was added");
            let by = || format!("task {}", label(*id, runs[0]));
            if let Some(producers) = runs[0].args.get("producers").and_then(serde_json::Value::as_array) {
                told = true;
                for producer in producers.iter().filter_map(serde_json::Value::as_u64) {
                    self.sketch.link(self.places.named(&producer, by())?, consumer);
                }
            } else if let Some(hint) = runs[0].text("fanin-hint") {
                told = true;
                for producer in hinted(hint) {
                    let Some(producer) = labels.get(producer) else {
                        return Err(format!(
                            "{} names producer {}, which the file does not have; add it or remove the name",
                            by(),
                            super::file::shown(producer)
                        ));
                    };
                    self.sketch.link(self.places.named(producer, by())?, consumer);
                }
            }
        }
        if told {
            return Ok(false);
        }
        for (producer, consumer) in flows::edges(self.events, groups) {
            let ends = (self.places.find(&producer), self.places.find(&consumer));
            if let (Some(producer), Some(consumer)) = ends {
                self.sketch.link(producer, consumer);
            }
        }
        Ok(true)
    }
}

/// What threads are called, by process and thread.
type Threads<'a> = HashMap<(&'a Key, &'a Key), String>;

/// What the threads are called, and the processes behind it.
fn threads<'a>(events: &'a [Event<'a>]) -> Threads<'a> {
    let named = |what: &'static str| events.iter().filter(move |event| event.ph == "M" && event.name == what);
    let processes: HashMap<&Key, &str> =
        named("process_name").filter_map(|event| Some((&event.pid, event.text("name")?))).collect();
    let mut threads = HashMap::new();
    for event in events {
        let process = processes.get(&event.pid).copied().unwrap_or_default();
        threads.entry((&event.pid, &event.tid)).or_insert_with(|| process.to_owned());
    }
    for event in named("thread_name") {
        let process = processes.get(&event.pid).copied().unwrap_or_default();
        let name = format!("{} {process}", event.text("name").unwrap_or_default());
        threads.insert((&event.pid, &event.tid), name);
    }
    threads
}

/// The names in `2: [t0, r1t2]`.
fn hinted(hint: &str) -> impl Iterator<Item = &str> {
    let inside = hint.split_once('[').and_then(|(_, rest)| rest.rsplit_once(']')).map_or("", |(inside, _)| inside);
    inside.split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// What a task is called: as in its hints, or by the ring in its id.
fn label(id: u64, event: &Event<'_>) -> String {
    let hint =
        event.text("event-hint").and_then(|hint| hint.strip_prefix("Task:")).and_then(|hint| hint.split(',').next());
    hint.map_or_else(|| Home::of(id).to_string(), |hint| hint.trim().to_owned())
}

/// The name of an event without the task in parentheses.
fn kernel(name: &str) -> String {
    let stem = name.strip_suffix(')').and_then(|name| name.rsplit_once('(')).map_or(name, |(stem, _)| stem);
    if stem.is_empty() { name.to_owned() } else { stem.to_owned() }
}

/// The type that the name of a thread, a process or a kind of task tells.
fn kind_of_name(name: &str) -> Option<TaskType> {
    let name = name.to_ascii_uppercase();
    let words = [
        ("AICPU", TaskType::AiCpu),
        ("AI_CPU", TaskType::AiCpu),
        ("MIX_AIC", TaskType::Cube),
        ("AIVEC", TaskType::Vector),
        ("AIV", TaskType::Vector),
        ("VECTOR", TaskType::Vector),
        ("AIC", TaskType::Cube),
        ("CUBE", TaskType::Cube),
        ("ACCEL", TaskType::Accelerator),
    ];
    words.into_iter().find(|(word, _)| name.contains(word)).map(|(_, kind)| kind)
}

//! Timelines that `run --chrome` writes: what ran on workers, with the number of its task, beside slices of the orchestrator
//! and of the scheduler, which are no tasks.
//!
//! A slice of a block has the moment of submission among its arguments. A block of a MIX task has a slice on each worker that
//! it took. Arrows, where they were asked for, stand right behind the slice at which they arrive.

use super::super::Options;
use super::super::file::Input;
use super::super::sketch::{FastMap, Places, Sketch, cycles};
use super::event::{Event, Key};
use super::{Threads, kind_of_name, threads};
use crate::id::TaskType;
use crate::workload::{Cost, Program, Submit, Units, WorkloadError};
use std::collections::BTreeMap;

/// What a slice is called when its task has neither kernel nor name.
const UNNAMED: &str = "task";

/// A slice of a block on one of its workers.
struct Run<'a> {
    event: &'a Event<'a>,
    task: u64,
    block: u32,
    /// `None` on a worker of any type.
    kind: Option<TaskType>,
}

/// A moment on a track, in nanoseconds.
type Moment<'a> = (&'a Key, &'a Key, u64);

/// A file on its way into a sketch.
struct Reading<'a> {
    runs: Vec<Run<'a>>,
    sketch: Sketch,
    places: Places<u64>,
    /// Cycles a nanosecond.
    scale: f64,
    counts: Counts,
}

/// What the notes tell.
#[derive(Default)]
struct Counts {
    missing: u64,
    of_any: u64,
    arrows: u64,
    loose: u64,
    several: u64,
}

/// Reads the events of such a file; `cycles_per_us` and `clock` say what its times mean.
pub fn read(
    events: &[Event<'_>],
    (cycles_per_us, clock): (f64, &str),
    input: &Input,
    options: &Options,
) -> Result<Program, WorkloadError> {
    let runs = runs(events);
    let (sketch, places) = (Sketch::new(input.title()), Places::default());
    let mut reading = Reading { runs, sketch, places, scale: cycles_per_us / 1000.0, counts: Counts::default() };
    reading.tasks(events).map_err(|fault| input.error(fault))?;
    reading.arrows(events);
    reading.remarks(clock);
    reading.sketch.finish(input, &options.rules)
}

/// The slices of blocks, in the order of the file.
fn runs<'a>(events: &'a [Event<'a>]) -> Vec<Run<'a>> {
    let threads = threads(events);
    events.iter().filter_map(|event| run(event, &threads)).collect()
}

/// The slice of a block, if an event is one.
fn run<'a>(event: &'a Event<'a>, threads: &Threads<'a>) -> Option<Run<'a>> {
    let (task, _) = (event.number("task").filter(|_| event.ph == "X")?, event.number("submit")?);
    let block = event.number("block").and_then(|block| u32::try_from(block).ok()).unwrap_or(0);
    let kind = threads.get(&(&event.pid, &event.tid)).and_then(|thread| kind_of_name(thread));
    Some(Run { event, task, block, kind })
}

impl<'a> Reading<'a> {
    /// Adds the tasks in the order of their numbers, which is that of their submission.
    fn tasks(&mut self, events: &[Event<'_>]) -> Result<(), String> {
        let mut groups: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (index, run) in self.runs.iter().enumerate() {
            groups.entry(run.task).or_default().push(index);
        }
        for (&id, indices) in &groups {
            let runs: Vec<&Run<'_>> = indices.iter().map(|&index| &self.runs[index]).collect();
            let task = task(&mut self.sketch, &runs, self.scale)?;
            self.counts.of_any += u64::from(task.kind.is_none());
            let place = self.sketch.push(task);
            if place as u64 != id && self.sketch.at(place).name.is_none() {
                self.sketch.at(place).name = Some(self.sketch.symbol(&format!("task{id}")));
            }
            self.places.insert(id, place)?;
        }
        // Jobs of the scheduler tell of tasks that took no worker, too.
        let last = events.iter().filter_map(|event| event.number("task")).max();
        self.counts.missing = last.map_or(0, |last| last.saturating_add(1)) - groups.len() as u64;
        Ok(())
    }

    /// Lets tasks wait for those from which arrows come.
    fn arrows(&mut self, events: &'a [Event<'a>]) {
        let mut ends: FastMap<Moment<'a>, Vec<usize>> = FastMap::default();
        let (mut next, mut begun): (usize, Option<(&Key, Vec<usize>)>) = (0, None);
        for event in events {
            match &*event.ph {
                "X" if self.runs.get(next).is_some_and(|run| std::ptr::eq(run.event, event)) => {
                    let end = nanos(event.ts.0).saturating_add(nanos(event.dur.0));
                    ends.entry((&event.pid, &event.tid, end)).or_default().push(next);
                    next += 1;
                }
                "s" => {
                    let from = ends.get(&(&event.pid, &event.tid, nanos(event.ts.0)));
                    begun = Some((&event.id, from.cloned().unwrap_or_default()));
                }
                "f" => {
                    let from = begun.take().filter(|(id, _)| *id == &event.id).map(|(_, from)| from);
                    self.arrow(&from.unwrap_or_default(), next.checked_sub(1), event);
                }
                _ => {}
            }
        }
    }

    /// An arrow that comes from one of some runs and arrives at the run before it in the file.
    fn arrow(&mut self, from: &[usize], to: Option<usize>, event: &Event<'_>) {
        self.counts.arrows += 1;
        let arrives =
            |run: &&Run<'_>| (&run.event.pid, &run.event.tid, run.event.ts) == (&event.pid, &event.tid, event.ts);
        let consumer = to.map(|to| &self.runs[to]).filter(arrives);
        let Some(consumer) = consumer.map(|run| run.task) else { return self.counts.loose += 1 };
        // Arrows leave the first block, and producers are submitted before their consumers.
        let is_producer = |run: &&Run<'_>| run.block == 0 && run.task < consumer;
        let mut producers: Vec<u64> =
            from.iter().map(|&index| &self.runs[index]).filter(is_producer).map(|run| run.task).collect();
        producers.dedup();
        let Some(&producer) = producers.last() else { return self.counts.loose += 1 };
        self.counts.several += u64::from(producers.len() > 1);
        let place = |task: u64| self.places.find(&task).expect("every run has a task");
        let (producer, consumer) = (place(producer), place(consumer));
        self.sketch.link(producer, consumer);
    }

    fn remarks(&mut self, clock: &str) {
        let Counts { missing, of_any, arrows, loose, several } = self.counts;
        let edges = if arrows > 0 {
            "dependencies from flow events"
        } else {
            "no dependencies, because there are no flow events; `run --chrome` needs --flows"
        };
        let lines = [
            (missing, "tasks ran on no worker and are not in the file, nor are dependencies on them"),
            (of_any, "tasks ran on ANY workers, so that their type is that which their kernel's name suggests"),
            (loose, "flow events connect no two tasks and were left out"),
            (several, "flow events leave where several tasks ended at once; the last of them was taken"),
        ];
        let notes = &mut self.sketch.notes;
        notes.push(format!("format chrome: {clock}; {edges}"));
        notes.extend(lines.iter().filter(|(count, _)| *count > 0).map(|(count, text)| format!("{count} {text}")));
    }
}

/// The task of some runs, as far as they show it.
fn task(sketch: &mut Sketch, runs: &[&Run<'_>], scale: f64) -> Result<Submit, String> {
    let first = runs[0];
    let (title, label) = (&*first.event.name, first.event.text("label"));
    let mut task = Submit {
        name: label.map(|label| sketch.symbol(label)),
        kernel: (title != UNNAMED || label.is_some()).then(|| sketch.symbol(title)),
        blocks: runs.iter().map(|run| run.block).max().unwrap_or(0).saturating_add(1),
        kind: first.kind,
        ..Submit::default()
    };
    let is_cube = |run: &Run<'_>| run.kind == Some(TaskType::Cube);
    let mean = |on_cube: bool| {
        let of_kind = runs.iter().filter(|run| is_cube(run) == on_cube);
        let spans: Vec<f64> = of_kind.map(|run| nanos(run.event.dur.0) as f64).collect();
        let mean = spans.iter().sum::<f64>() / spans.len().max(1) as f64;
        cycles(mean * scale, format_args!("task {}", first.task))
    };
    // All workers of a block start together.
    let is_crew = |run: &&&Run<'_>| (run.block, run.event.ts) == (first.block, first.event.ts);
    let (on_cube, crew) = runs.iter().filter(is_crew).fold((0_u8, 0_u8), |(on_cube, crew), run| {
        (on_cube.saturating_add(u8::from(is_cube(run))), crew.saturating_add(1))
    });
    let (cube, vector) = (mean(true)?, mean(false)?);
    if crew > 1 {
        task.kind = Some(TaskType::Mix);
        task.units = Units { cube: on_cube.min(1), vector: (crew - on_cube).min(2) };
    }
    task.cost = Some(match (on_cube, crew - on_cube) {
        (0, _) => Cost::Cycles(vector),
        (_, 0) => Cost::Cycles(cube),
        _ if cube == vector => Cost::Cycles(cube),
        _ => Cost::PerKind { cube, vector },
    });
    Ok(task)
}

/// Nanoseconds of a time in microseconds, which the file gives with three digits.
fn nanos(micros: f64) -> u64 {
    (micros * 1000.0).round() as u64
}

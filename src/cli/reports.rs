//! The reports that people look at: which files were asked for, what must be recorded for them, and writing them.

use super::Failure;
use ptosim::config::Machine;
use ptosim::engine::{BlockRow, JobStep, Observer, Phase, Placed, SchedulerJob};
use ptosim::graph::Graph;
use ptosim::id::{TaskId, TaskType};
use ptosim::report::{
    Chrome, Export, MOST_TASKS, Output, PathRecorder, PathReport, PathStep, Perfetto, Recording, Report, Timeline,
    write_dot, write_html, write_paths,
};
use ptosim::sync::Local;
use ptosim::window::{SlotRef, Window};
use ptosim::workload::{Symbols, Workload};
use std::io;

/// The options that ask for such reports.
#[derive(clap::Args, Debug)]
pub struct ReportArgs {
    /// Write a report with a timeline as one HTML file, to be opened in any browser
    #[arg(long, value_name = "FILE")]
    html: Option<String>,
    /// Write the timeline for Perfetto; one cycle is one nanosecond
    #[arg(long, value_name = "FILE")]
    perfetto: Option<String>,
    /// Write the timeline as Chrome trace events in JSON; one cycle is one nanosecond
    #[arg(long, value_name = "FILE")]
    chrome: Option<String>,
    /// Draw arrows for dependencies in --perfetto and --chrome
    #[arg(long)]
    flows: bool,
    /// Write the graph of a small program for Graphviz
    #[arg(long, value_name = "FILE")]
    dot: Option<String>,
    /// Write the observed and the static critical path as CSV
    #[arg(long, value_name = "FILE")]
    critical_path: Option<String>,
    /// Run again with larger sizes, no costs or more workers, and rank what that gains
    #[arg(long)]
    pub what_if: bool,
}

impl ReportArgs {
    /// The files asked for, with the options that name them.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            ("--html", &self.html),
            ("--perfetto", &self.perfetto),
            ("--chrome", &self.chrome),
            ("--dot", &self.dot),
            ("--critical-path", &self.critical_path),
        ]
        .into_iter()
        .filter_map(|(option, path)| Some((option, path.as_deref()?)))
    }

    /// Refuses what does not go together.
    pub fn check(&self) -> Result<(), Failure> {
        if self.flows && self.perfetto.is_none() && self.chrome.is_none() {
            return Err(Failure::Usage("--flows draws arrows in --perfetto or --chrome; give one of them too".into()));
        }
        Ok(())
    }
}

/// What is recorded and written for them.
#[derive(Default)]
pub struct Reports {
    timeline: Option<Timeline>,
    path: Option<PathRecorder>,
    /// What the recorder found, after the run.
    found: Option<(Vec<PathStep>, Symbols)>,
    chrome: Option<Export<Chrome, Output>>,
    perfetto: Option<Export<Perfetto, Output>>,
    html: Option<Output>,
    critical_path: Option<Output>,
    dot: Option<Output>,
    graph: Option<Graph>,
}

impl Reports {
    /// Opens the files, before the run.
    pub fn open(args: &ReportArgs, workload: &dyn Workload, machine: &Machine) -> Result<Reports, Failure> {
        let open = |path: &Option<String>| path.as_deref().map(Output::open).transpose();
        let (html, critical_path, dot) = (open(&args.html)?, open(&args.critical_path)?, open(&args.dot)?);
        let (chrome, perfetto) = (open(&args.chrome)?, open(&args.perfetto)?);
        let load = || Graph::load(workload, machine);
        let graph = if dot.is_some() || critical_path.is_some() { Some(load()?) } else { None };
        if let (Some(path), Some(graph)) = (&args.dot, &graph)
            && graph.tasks.len() > MOST_TASKS
        {
            let tasks = graph.tasks.len();
            return Err(Failure::Usage(format!(
                "--dot {path}: {tasks} tasks are too many to draw; use at most {MOST_TASKS}, or --html"
            )));
        }
        let arrows = || if args.flows { load().map(Some) } else { Ok(None) };
        let name = workload.name();
        let chrome = chrome.map(|output| Ok(Export::new(Chrome::default(), output, &name, machine, arrows()?)));
        let perfetto = perfetto.map(|output| Ok(Export::new(Perfetto::default(), output, &name, machine, arrows()?)));
        Ok(Reports {
            timeline: html.is_some().then(Timeline::new),
            path: (html.is_some() || critical_path.is_some()).then(PathRecorder::new),
            found: None,
            chrome: chrome.transpose().map_err(|error: ptosim::engine::RunError| Failure::from(error))?,
            perfetto: perfetto.transpose().map_err(|error: ptosim::engine::RunError| Failure::from(error))?,
            html,
            critical_path,
            dot,
            graph,
        })
    }

    /// Whether nothing watches the run.
    pub fn is_idle(&self) -> bool {
        self.timeline.is_none() && self.path.is_none() && self.chrome.is_none() && self.perfetto.is_none()
    }

    /// Adds to the report what was found out beside it.
    pub fn complete(&mut self, report: &mut Report) {
        self.found = self.path.take().map(PathRecorder::finish);
        report.path = self.found.as_ref().map(|(steps, names)| PathReport::new(steps, names));
    }

    /// Writes what is left to write; the files are handed on in order to be put into place together.
    pub fn write(self, args: &ReportArgs, report: &Report, finish: &mut Finish<'_>) -> Result<(), Failure> {
        let (steps, names) = self.found.unwrap_or_default();
        if let Some(export) = self.chrome {
            finish(&args.chrome, export.finish())?;
        }
        if let Some(export) = self.perfetto {
            finish(&args.perfetto, export.finish())?;
        }
        if let (Some(mut output), Some(mut timeline)) = (self.html, self.timeline) {
            let recording = Recording { timeline: &mut timeline, path: &steps };
            finish(&args.html, write_html(report, Some(recording), &mut output).map(|()| output))?;
        }
        let Some(graph) = self.graph else { return Ok(()) };
        if let Some(mut output) = self.dot {
            finish(&args.dot, write_dot(&graph, &report.workload, &mut output).map(|()| output))?;
        }
        if let Some(mut output) = self.critical_path {
            let written = write_paths(&steps, &names, &graph, &mut output);
            finish(&args.critical_path, written.map(|()| output))?;
        }
        Ok(())
    }
}

/// Takes a file that is complete, or the reason why it is not.
pub type Finish<'a> = dyn FnMut(&Option<String>, io::Result<Output>) -> Result<(), ptosim::report::OutputError> + 'a;

/// Passes what is told on to everybody who records.
macro_rules! pass_on {
    ($self:ident, $call:ident($($argument:expr),*)) => {
        if let Some(timeline) = &mut $self.timeline {
            timeline.$call($($argument),*);
        }
        if let Some(path) = &mut $self.path {
            path.$call($($argument),*);
        }
        if let Some(chrome) = &mut $self.chrome {
            chrome.$call($($argument),*);
        }
        if let Some(perfetto) = &mut $self.perfetto {
            perfetto.$call($($argument),*);
        }
    };
}

impl Observer for Reports {
    #[inline]
    fn block(&mut self, row: &BlockRow, names: &Symbols) {
        pass_on!(self, block(row, names));
    }

    #[inline]
    fn submitted(&mut self, task: TaskId, slot: SlotRef, window: &Window<Local>, now: u64) {
        pass_on!(self, submitted(task, slot, window, now));
    }

    #[inline]
    fn consumed(&mut self, task: TaskId, now: u64) {
        pass_on!(self, consumed(task, now));
    }

    #[inline]
    fn ready(&mut self, task: TaskId, slot: SlotRef, kind: TaskType, now: u64) {
        pass_on!(self, ready(task, slot, kind, now));
    }

    fn withdrawn(&mut self, kind: TaskType, now: u64) {
        pass_on!(self, withdrawn(kind, now));
    }

    #[inline]
    fn placed(&mut self, placed: &Placed<'_>, now: u64) {
        pass_on!(self, placed(placed, now));
    }

    #[inline]
    fn job(&mut self, job: &SchedulerJob, step: JobStep, now: u64) {
        pass_on!(self, job(job, step, now));
    }

    #[inline]
    fn orchestrator(&mut self, phase: Phase, from: u64, now: u64) {
        pass_on!(self, orchestrator(phase, from, now));
    }

    #[inline]
    fn occupied(&mut self, ring: u32, window: &Window<Local>, now: u64) {
        pass_on!(self, occupied(ring, window, now));
    }

    #[inline]
    fn policy_acts(&mut self, now: u64) {
        pass_on!(self, policy_acts(now));
    }

    fn child_released(&mut self, slot: SlotRef, now: u64) {
        pass_on!(self, child_released(slot, now));
    }

    fn finished(&mut self, names: &Symbols, now: u64) {
        pass_on!(self, finished(names, now));
    }
}

//! The reports that people look at: which files were asked for, what must be recorded for them, and writing them.

use super::Failure;
use ptosim::config::Machine;
use ptosim::engine::Journal;
use ptosim::engine::journal::{Names, Reading};
use ptosim::graph::{Graph, StaticPath, count_tasks};
use ptosim::report::{
    Arrows, Chrome, Export, MOST_TASKS, Output, PathRecorder, PathRows, PathWriter, Perfetto, Recording, Report,
    ScheduleWriter, Sheet, StaticRows, Timeline, path_rows, write_dot, write_html,
};
use ptosim::workload::Workload;
use std::io;
use std::panic::resume_unwind;
use std::thread::ScopedJoinHandle;

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
    /// Whether the critical path is to be written by itself.
    pub fn wants_path(&self) -> bool {
        self.critical_path.is_some()
    }

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

/// What lists everything while it happens: those on one thread, because much of their work is the same.
type Lists = (Option<ScheduleWriter<Output>>, Option<Export<Sheets>>);
type Sheets = (Option<Sheet<Chrome, Output>>, Option<Sheet<Perfetto, Output>>);
/// What is looked at as a whole, on another thread.
type Pictures = (Option<Timeline>, Option<PathRecorder<PathWriter<Output>>>);

/// What reads along in a run, and the files that are written after it.
pub struct Reports {
    journal: Journal,
    lists: Option<Reading<Lists>>,
    pictures: Option<Reading<Pictures>>,
    /// The timeline and the path, after the run.
    found: (Option<Timeline>, Option<PathWriter<Output>>),
    html: Option<Output>,
    dot: Option<Output>,
    /// The graph for a drawing.
    graph: Option<Graph>,
    /// The longest path through the graph, until the run begins.
    static_rows: Option<StaticRows<Output>>,
}

impl Reports {
    /// Opens the files, before the run.
    pub fn open(
        args: &ReportArgs,
        schedule: Option<Output>,
        workload: &dyn Workload,
        machine: &Machine,
    ) -> Result<Reports, Failure> {
        let open = |path: &Option<String>| path.as_deref().map(Output::open).transpose();
        let (html, critical_path, dot) = (open(&args.html)?, open(&args.critical_path)?, open(&args.dot)?);
        let (chrome, perfetto) = (open(&args.chrome)?, open(&args.perfetto)?);
        if let Some(path) = &args.dot {
            let n_tasks = count_tasks(workload)?;
            if n_tasks > MOST_TASKS {
                return Err(Failure::Usage(format!(
                    "--dot {path}: {n_tasks} tasks are too many to draw; use at most {MOST_TASKS}, or --html"
                )));
            }
        }
        if critical_path.is_some() {
            StaticPath::check_size(workload)?;
        }
        let graph = dot.is_some().then(|| Graph::load(workload, machine)).transpose()?;
        let arrows = args.flows.then(|| Arrows::load(workload, machine)).transpose()?;
        let name = workload.name();
        let chrome = chrome.map(|output| Sheet::new(Chrome::default(), output, &name, machine));
        let perfetto = perfetto.map(|output| Sheet::new(Perfetto::default(), output, &name, machine));
        let mut journal = Journal::new();
        let has_path = html.is_some() || critical_path.is_some();
        let (static_rows, path_rows) = critical_path.map(path_rows).unzip();
        let path = has_path.then(|| PathRecorder::new(PathWriter::new(html.is_some(), path_rows)));
        let has_sheets = chrome.is_some() || perfetto.is_some();
        let has_lists = schedule.is_some() || has_sheets;
        let export = has_sheets.then(|| Export::new((chrome, perfetto), machine, arrows));
        let lists = (schedule.map(ScheduleWriter::new), export);
        let timeline = html.is_some().then(Timeline::new);
        Ok(Reports {
            pictures: path.is_some().then(|| journal.add((timeline, path))),
            lists: has_lists.then(|| journal.add(lists)),
            journal,
            found: (None, None),
            html,
            dot,
            graph,
            static_rows,
        })
    }

    /// Runs something that tells the journal what happens. What is not found out by watching is found out beside it.
    pub fn watch(
        &mut self,
        workload: &dyn Workload,
        machine: &Machine,
        run: impl FnOnce(&mut Journal) -> Result<Report, Failure>,
    ) -> Result<Report, Failure> {
        let Some(rows) = self.static_rows.take() else { return run(&mut self.journal) };
        std::thread::scope(|scope| {
            let loading = scope.spawn(move || StaticPath::load(workload, machine).map(|path| rows.write(&path)));
            let report = run(&mut self.journal)?;
            ended(loading)?;
            Ok(report)
        })
    }

    /// The journal of the run.
    pub fn journal(&mut self) -> &mut Journal {
        &mut self.journal
    }

    /// Waits for the path, if it is looked for, and adds to the report what was found out beside it.
    pub fn complete(&mut self, report: &mut Report) -> Names {
        self.journal.seal();
        let Some(reading) = self.pictures.take() else { return Names::default() };
        let ((timeline, path), names) = reading.end();
        let path = path.map(|path| path.finish(&names));
        report.path = path.as_ref().map(|path| path.report(&names));
        self.found = (timeline, path);
        names
    }

    /// Writes what is left to write; the files are handed on in order to be put into place together.
    pub fn write(
        self,
        (args, schedule): (&ReportArgs, &Option<String>),
        (report, names): (&Report, &Names),
        finish: &mut Finish<'_>,
    ) -> Result<(), Failure> {
        let (timeline, path) = self.found;
        let (packed, rows) = path.map_or((None, None), |path| (path.packed, path.rows));
        std::thread::scope(|scope| {
            // The lists may still be in the making: the page is written beside them.
            let html = self.html.zip(timeline).map(|(mut output, mut timeline)| {
                scope.spawn(move || {
                    let recording = Recording { timeline: &mut timeline, path: &packed.unwrap_or_default(), names };
                    write_html(report, Some(recording), &mut output).map(|()| output)
                })
            });
            let (csv, export) = self.lists.map_or((None, None), |reading| reading.end().0);
            let (chrome, perfetto) = export.map(Export::finish).unwrap_or_default();
            let mut finish = |path: &Option<String>, written: Option<io::Result<Output>>| {
                written.map_or(Ok(()), |written| finish(path, written))
            };
            finish(&args.html, html.map(ended))?;
            finish(schedule, csv.map(ScheduleWriter::finish))?;
            finish(&args.chrome, chrome.map(Sheet::finish))?;
            finish(&args.perfetto, perfetto.map(Sheet::finish))?;
            let dot = self
                .dot
                .zip(self.graph.as_ref())
                .map(|(mut output, graph)| write_dot(graph, &report.workload, &mut output).map(|()| output));
            finish(&args.dot, dot)?;
            finish(&args.critical_path, rows.map(PathRows::finish))?;
            Ok(())
        })
    }
}

/// What a thread comes to.
fn ended<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Takes a file that is complete, or the reason why it is not.
pub type Finish<'a> = dyn FnMut(&Option<String>, io::Result<Output>) -> Result<(), ptosim::report::OutputError> + 'a;

//! `ptosim report`: the page of a result that was written before.

use super::diff::load;
use super::files::{self, Files};
use super::{Ending, Failure};
use ptosim::engine::BlockRow;
use ptosim::engine::journal::{Names, Reader};
use ptosim::id::{TaskId, TaskType, WorkerId};
use ptosim::report::{Output, PackedPath, Recording, Report, Timeline, write_html};
use std::path::Path;

/// Make a report from a result file
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A result holds no timeline; `run --html` writes the whole page. With the schedule of the same run the page
shows when and where blocks ran, without the names of kernels and without dependencies.

Examples:
  ptosim report result.json --html report.html
  ptosim report result.json --schedule schedule.csv --html report.html")]
pub struct Args {
    /// Result of `run --json`
    result: String,
    /// Schedule of the same run, written by `run --schedule`
    #[arg(long, value_name = "FILE")]
    schedule: Option<String>,
    /// Where to write the page
    #[arg(long, value_name = "FILE|-")]
    html: String,
}

pub fn run(args: &Args) -> Result<Ending, Failure> {
    let read = Files::default().reads("the result", Some(&args.result)).reads("the schedule", args.schedule.as_ref());
    read.writes("--html", Some(&args.html)).check()?;
    let report = load(Path::new(&args.result))?;
    let mut output = Output::open(&args.html)?;
    let mut timeline = args.schedule.as_deref().map(|path| timeline(path, &report)).transpose()?;
    let (path, names) = (&PackedPath::default(), &Names::default());
    let recording = timeline.as_mut().map(|timeline| Recording { timeline, path, names });
    write_html(&report, recording, &mut output).map_err(|source| Output::error(&args.html, source))?;
    output.commit()?;
    Ok(Ending::Good)
}

/// The blocks of a schedule; kernels and dependencies do not stand in it.
fn timeline(path: &str, report: &Report) -> Result<Timeline, Failure> {
    let workers = report.machine.workers.total();
    let wrong = |line: u64, problem: String| Failure::Usage(format!("{path}:{line}: {problem}"));
    let file = files::open(Path::new(path)).map_err(|error| Failure::Usage(format!("{path}: {error}")))?;
    let mut reader = csv::Reader::from_reader(file);
    let (mut timeline, names) = (Timeline::new(), Names::default());
    let mut seen = vec![Seen::default(); workers as usize];
    for (index, row) in reader.deserialize::<[u64; 7]>().enumerate() {
        let line = index as u64 + 2;
        let [task, block, worker, submit, ready, start, end] =
            row.map_err(|error| wrong(line, format!("not a row of a schedule: {error}")))?;
        let Some(seen) = seen.get_mut(worker as usize) else {
            return Err(wrong(line, format!("worker {worker}: the machine of the result has {workers} workers")));
        };
        if start < seen.end || end < start || ready > start || submit > ready {
            return Err(wrong(line, "times are out of order; give the schedule of the same run, unsorted".into()));
        }
        *seen = Seen { blocks: seen.blocks + 1, end };
        let (task, worker, block) = (TaskId(task), WorkerId(worker as u32), block as u32);
        let row =
            BlockRow { task, block, worker, submit, ready, start, end, name: None, kernel: None, kind: TaskType::None };
        timeline.block(&row, &names);
    }
    check(&seen, report).map_err(|problem| {
        Failure::Usage(format!("{path}: {problem}; give the schedule of the run that wrote the result"))
    })?;
    timeline.finished(report.finish);
    Ok(timeline)
}

/// What a schedule says of a worker.
#[derive(Clone, Default)]
struct Seen {
    blocks: u64,
    end: u64,
}

/// Compares a schedule with the result; a MIX block has a row for each of its workers, and counts for each of them.
fn check(seen: &[Seen], report: &Report) -> Result<(), String> {
    let (here, there): (u64, u64) =
        (seen.iter().map(|seen| seen.blocks).sum(), report.workers.iter().map(|worker| worker.blocks).sum());
    if here != there {
        return Err(format!("blocks of all workers: {here} here and {there} in the result"));
    }
    for (worker, seen) in report.workers.iter().zip(seen) {
        if worker.blocks != seen.blocks {
            let (id, here, there) = (worker.id.0, seen.blocks, worker.blocks);
            return Err(format!("blocks of worker {id}: {here} here and {there} in the result"));
        }
    }
    let end = seen.iter().map(|seen| seen.end).max().unwrap_or(0);
    if end != report.makespan {
        return Err(format!("the last block ends at cycle {end} here and at {} in the result", report.makespan));
    }
    Ok(())
}

//! What watches a run from the outside: the writer of the schedule and the sign of life on a terminal.

use super::reports::Reports;
use indicatif::{ProgressBar, ProgressStyle};
use ptosim::engine::{BlockRow, JobStep, Observer, Phase, Placed, SchedulerJob};
use ptosim::id::{TaskId, TaskType};
use ptosim::report::{Output, ScheduleWriter, group};
use ptosim::sync::Local;
use ptosim::window::{SlotRef, Window};
use ptosim::workload::Symbols;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Runs shorter than this show no sign of life.
const PATIENCE: Duration = Duration::from_secs(1);
/// Blocks between two looks at the host's clock, less one.
const INTERVAL_MASK: u64 = (1 << 16) - 1;

/// All observers that were asked for.
pub struct Watch {
    /// Writes the schedule.
    pub schedule: Option<ScheduleWriter<Output>>,
    /// Shows how far the run is.
    pub progress: Option<Progress>,
    /// Records what the other files need.
    pub reports: Reports,
}

impl Watch {
    /// Whether nobody watches, so that the engine need not tell anything.
    pub fn is_idle(&self) -> bool {
        self.schedule.is_none() && self.progress.is_none() && self.reports.is_idle()
    }
}

impl Observer for Watch {
    fn block(&mut self, row: &BlockRow, names: &Symbols) {
        if let Some(schedule) = &mut self.schedule {
            schedule.block(row, names);
        }
        if let Some(progress) = &mut self.progress {
            progress.block(row, names);
        }
        self.reports.block(row, names);
    }

    #[inline]
    fn submitted(&mut self, task: TaskId, slot: SlotRef, window: &Window<Local>, now: u64) {
        self.reports.submitted(task, slot, window, now);
    }

    #[inline]
    fn consumed(&mut self, task: TaskId, now: u64) {
        self.reports.consumed(task, now);
    }

    #[inline]
    fn ready(&mut self, task: TaskId, slot: SlotRef, kind: TaskType, now: u64) {
        self.reports.ready(task, slot, kind, now);
    }

    fn withdrawn(&mut self, kind: TaskType, now: u64) {
        self.reports.withdrawn(kind, now);
    }

    #[inline]
    fn placed(&mut self, placed: &Placed<'_>, now: u64) {
        self.reports.placed(placed, now);
    }

    #[inline]
    fn job(&mut self, job: &SchedulerJob, step: JobStep, now: u64) {
        self.reports.job(job, step, now);
    }

    #[inline]
    fn orchestrator(&mut self, phase: Phase, from: u64, now: u64) {
        self.reports.orchestrator(phase, from, now);
    }

    #[inline]
    fn occupied(&mut self, ring: u32, window: &Window<Local>, now: u64) {
        self.reports.occupied(ring, window, now);
    }

    #[inline]
    fn policy_acts(&mut self, now: u64) {
        self.reports.policy_acts(now);
    }

    fn child_released(&mut self, slot: SlotRef, now: u64) {
        self.reports.child_released(slot, now);
    }

    fn finished(&mut self, names: &Symbols, now: u64) {
        self.reports.finished(names, now);
    }
}

/// A line on the terminal of a long run. How many tasks will come is not known, so it counts.
pub struct Progress {
    blocks: u64,
    started: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// One that shows something only when standard error is a terminal.
    pub fn on_terminal() -> Option<Progress> {
        std::io::stderr().is_terminal().then(|| Progress { blocks: 0, started: Instant::now(), bar: None })
    }

    fn show(&mut self, cycle: u64) {
        if self.started.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{spinner} {elapsed_precise}  {msg}");
            ProgressBar::new_spinner().with_style(style.expect("the template is right"))
        });
        bar.set_message(format!("{} blocks, cycle {}", group(self.blocks), group(cycle)));
        bar.tick();
    }
}

impl Observer for Progress {
    fn block(&mut self, row: &BlockRow, _names: &Symbols) {
        self.blocks += 1;
        if self.blocks & INTERVAL_MASK == 0 {
            self.show(row.start);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

//! The sign of life of a long run on a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use ptosim::engine::journal::SignOfLife;
use ptosim::report::group;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Runs shorter than this show no sign of life.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between two looks of it.
const INTERVAL: Duration = Duration::from_millis(100);

/// A line on the terminal of a long run. How many tasks will come is not known, so it counts.
struct Progress {
    next: Instant,
    bar: Option<ProgressBar>,
}

/// Shows how far the run is, if standard error is a terminal.
pub fn on_terminal() -> Option<SignOfLife> {
    std::io::stderr().is_terminal().then(|| {
        let mut progress = Progress { next: Instant::now() + PATIENCE, bar: None };
        Box::new(move |blocks, cycle| progress.show(blocks, cycle)) as SignOfLife
    })
}

impl Progress {
    fn show(&mut self, blocks: u64, cycle: u64) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + INTERVAL;
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{spinner} {elapsed_precise}  {msg}");
            ProgressBar::new_spinner().with_style(style.expect("the template is right"))
        });
        bar.set_message(format!("{} blocks, cycle {}", group(blocks), group(cycle)));
        bar.tick();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

//! `run --progress-cycles N` and `--progress-seconds S`: how far the run is, in a line every so often.

use ptosim::engine::threads::Counts;
use ptosim::engine::{JobStep, Observer, Retired};
use ptosim::id::TaskId;
use ptosim::sync::Local;
use ptosim::window::{SlotRef, Window};
use ptosim::workload::Symbols;
use std::io::Write;

/// Counts tasks, and tells the counts on standard error.
pub struct Progress {
    every: u64,
    /// The cycle to be told next, once it is over.
    next: u64,
    submitted: u64,
    completed: u64,
    consumed: u64,
    /// `last_task_alive` of each ring.
    last_alive: Vec<u64>,
    /// How many were completed when a line was written last.
    told: u64,
}

impl Progress {
    /// Tells every so many cycles, of a window with so many rings.
    pub fn new(every: u64, rings: u32) -> Progress {
        let last_alive = vec![0; rings as usize];
        Progress { every, next: every, submitted: 0, completed: 0, consumed: 0, last_alive, told: 0 }
    }

    /// Tells the cycles before `now`, in which nothing changes any more.
    fn reach(&mut self, now: u64) {
        while self.next < now {
            say(&format!("cycle {}", self.next), &self.counts());
            self.told = self.completed;
            self.next = self.next.saturating_add(self.every);
        }
    }

    fn counts(&self) -> Counts {
        let Progress { submitted, completed, consumed, .. } = *self;
        let is_stuck = completed == self.told && completed < submitted;
        Counts { submitted, completed, consumed, last_alive: self.last_alive.clone(), is_stuck, ..Counts::default() }
    }
}

/// Tells how far a run on host threads is.
pub fn tell(counts: &Counts) {
    say(&format!("{:.1} s", counts.elapsed.as_secs_f64()), counts);
}

fn say(when: &str, counts: &Counts) {
    let Counts { submitted, completed, consumed, .. } = counts;
    let rings: Vec<String> = counts.last_alive.iter().map(u64::to_string).collect();
    let stuck = if counts.is_stuck { " STUCK" } else { "" };
    let last_alive = rings.join("/");
    let line = format!(
        "{when}: submitted {submitted}, completed {completed}, consumed {consumed}, last_task_alive {last_alive}{stuck}"
    );
    // Who does not want to hear it any more loses nothing else.
    let _ = writeln!(anstream::stderr(), "{line}");
}

impl Observer for Progress {
    fn heeds(&self, _: JobStep) -> bool {
        false
    }

    fn submitted(&mut self, _: TaskId, _: SlotRef, _: &Window<Local>, now: u64) {
        self.reach(now);
        self.submitted += 1;
    }

    fn completed(&mut self, _: TaskId, now: u64) {
        self.reach(now);
        self.completed += 1;
    }

    fn consumed(&mut self, _: TaskId, now: u64) {
        self.reach(now);
        self.consumed += 1;
    }

    fn retired(&mut self, retired: &Retired, now: u64) {
        self.reach(now);
        self.last_alive[retired.ring as usize] += 1;
    }

    fn finished(&mut self, _: &Symbols, now: u64) {
        self.reach(now.saturating_add(1));
    }
}

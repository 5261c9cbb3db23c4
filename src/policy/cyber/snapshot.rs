//! What every processor is doing at a cycle, in the words of Apollo's `CheckSchedStatus`.

use std::fmt::Write;

/// One run of a routine on a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Activity<'a> {
    /// Where.
    pub processor: u32,
    /// Its name.
    pub routine: &'a str,
    /// From this cycle.
    pub start: u64,
    /// Up to this one.
    pub end: u64,
}

/// The line of a cycle: each processor with its routine and how long that has run, or `idle`.
///
/// ```
/// use ptosim::policy::cyber::{Activity, snapshot};
/// let rows = [Activity { processor: 1, routine: "C", start: 10, end: 20 }];
/// assert_eq!(snapshot(&rows, 2, 15), "0:idle, 1:C:5, timestamp: 15");
/// ```
#[must_use]
pub fn snapshot(rows: &[Activity<'_>], n_processors: u32, cycle: u64) -> String {
    let mut line = String::new();
    for processor in 0..n_processors {
        let running = rows.iter().find(|row| row.processor == processor && row.start <= cycle && cycle < row.end);
        let written = match running {
            Some(row) => write!(line, "{processor}:{}:{}, ", row.routine, cycle - row.start),
            None => write!(line, "{processor}:idle, "),
        };
        written.expect("a text takes everything");
    }
    line + &format!("timestamp: {cycle}")
}

//! Makes of a critical path what was asked for, while it is found.

use super::blame::{PathReport, PathStep, PathSums};
use super::critical_path::Steps;
use super::pack::PackedPath;
use super::path_csv::PathRows;
use crate::engine::journal::Names;
use std::io::Write;

/// The numbers of a path, the path for a page, and its rows in a file.
pub struct PathWriter<W> {
    /// The numbers.
    sums: PathSums,
    /// The path for a page; empty if there is none.
    pub packed: Option<PackedPath>,
    /// Its rows, if they are wanted.
    pub rows: Option<PathRows<W>>,
}

impl<W: Write> PathWriter<W> {
    /// Before the run.
    #[must_use]
    pub fn new(for_page: bool, rows: Option<PathRows<W>>) -> PathWriter<W> {
        let packed = for_page.then(PackedPath::default);
        PathWriter { sums: PathSums::default(), packed, rows }
    }

    /// The path in numbers.
    #[must_use]
    pub fn report(&self, names: &Names) -> PathReport {
        self.sums.report(names)
    }
}

impl<W: Write + Send + 'static> Steps for PathWriter<W> {
    fn is_open(&mut self) -> bool {
        self.rows.as_mut().is_none_or(PathRows::is_open)
    }

    #[inline]
    fn step(&mut self, step: &PathStep, names: &Names) {
        self.sums.add(step);
        if let Some(packed) = &mut self.packed {
            packed.add(step);
        }
        if let Some(rows) = &mut self.rows {
            rows.step(step, names);
        }
    }
}

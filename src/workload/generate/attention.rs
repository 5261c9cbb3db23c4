//! One step of attention with online softmax, shared by the generators that contain attention.
//!
//! ```text
//! q, keys ─▶ qk_matmul ─S▶ online_softmax ─P▶ pv_matmul ─T▶ rescale_add ─▶ output
//!                           (stats in place) ─────F──────────▶
//! ```
//! The scores S, probabilities P, factors F and partial result T live in one scope.

use super::indexed::Kernel;
use super::parts::{Names, Part};
use crate::id::{BufferId, Symbol, TaskType};
use crate::workload::Region;

/// Kernels and buffer names of attention.
pub struct Attention {
    qk: Kernel,
    softmax: Kernel,
    pv: Kernel,
    rescale: Kernel,
    normalize: Kernel,
    scores: BufferId,
    probabilities: BufferId,
    factors: BufferId,
    partial: BufferId,
    sides: [Symbol; 3],
}

/// One block of keys and values for one block of queries.
pub struct Step<'a> {
    /// Queries.
    pub queries: Region,
    /// Pieces of the keys.
    pub keys: &'a [Region],
    /// Pieces of the values.
    pub values: &'a [Region],
    /// Largest score and sum of every query so far: 8 bytes a row.
    pub stats: Region,
    /// Result so far.
    pub output: Region,
    /// Queries in the block.
    pub rows: u64,
    /// Keys in the block.
    pub columns: u64,
    /// Elements of a head.
    pub dim: u64,
    /// Whether it is the first block of keys.
    pub first: bool,
}

impl Attention {
    /// Names everything.
    pub fn new(names: &mut Names) -> Attention {
        Attention {
            qk: names.kernel("qk_matmul", TaskType::Cube),
            softmax: names.kernel("online_softmax", TaskType::Vector),
            pv: names.kernel("pv_matmul", TaskType::Cube),
            rescale: names.kernel("rescale_add", TaskType::Vector),
            normalize: names.kernel("normalize_mul", TaskType::Vector),
            scores: names.heap("S"),
            probabilities: names.heap("P"),
            factors: names.heap("F"),
            partial: names.heap("T"),
            sides: names.sides(),
        }
    }

    /// Adds one step in a scope of its own. Scores and sums have 4 bytes an element, everything else 2.
    pub fn step(&self, part: &mut Part, step: &Step<'_>) {
        let (rows, columns, dim) = (step.rows, step.columns, step.dim);
        let whole = |buffer: BufferId, bytes: u64| Region::range(buffer, 0, bytes);
        part.scope_begin();
        let task = part.task(self.qk).reads(step.queries);
        let task = step.keys.iter().fold(task, |task, &keys| task.reads(keys));
        task.allocates(self.scores, rows * columns * 4).sides(self.sides, [rows, columns, dim]);
        part.task(self.softmax)
            .reads(whole(self.scores, rows * columns * 4))
            .starts_or_updates(step.first, step.stats)
            .allocates(self.probabilities, rows * columns * 2)
            .allocates(self.factors, rows * 4);
        let task = part.task(self.pv).reads(whole(self.probabilities, rows * columns * 2));
        let task = step.values.iter().fold(task, |task, &values| task.reads(values));
        task.allocates(self.partial, rows * dim * 4).sides(self.sides, [rows, dim, columns]);
        part.task(self.rescale)
            .reads(whole(self.partial, rows * dim * 4))
            .reads(whole(self.factors, rows * 4))
            .starts_or_updates(step.first, step.output);
        part.scope_end();
    }

    /// Divides the result by the sums, at the end.
    pub fn normalize(&self, part: &mut Part, stats: Region, output: Region) {
        part.task(self.normalize).reads(stats).updates(output);
    }
}

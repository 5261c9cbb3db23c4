//! What one actor did when: every span in a few bytes as long as there is room for that, then as bins.

use super::spread::{Bins, Busy};
use super::varint::{Packed, pop, unzigzag, zigzag};

/// A worker, the orchestrator or a scheduler thread over time. Spans follow each other and do not overlap.
///
/// ```text
/// bytes of a span: gap to the one before | length | task difference × 2 + has part | [part] | extra
/// ```
#[derive(Clone, Default)]
pub(super) struct Track {
    /// One entry a span; nothing once there was no room.
    pub(super) spans: Packed,
    /// Nothing before that.
    pub(super) bins: Bins<Busy>,
    pub(super) count: u64,
    end: u64,
    task: u64,
}

/// One span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) from: u64,
    pub(super) to: u64,
    /// What it is about.
    pub(super) task: u64,
    /// Which part of it; 0 takes no room.
    pub(super) part: u32,
    /// Colour in the bins.
    pub(super) label: u32,
    /// Another number that goes with it.
    pub(super) extra: u64,
}

impl Track {
    /// Adds a span; `in_detail` as long as there is room.
    #[inline(always)]
    pub(super) fn add(&mut self, span: &Span, in_detail: bool) {
        self.count += 1;
        if in_detail {
            let mut line = self.spans.room();
            line.varint(span.from - self.end);
            line.varint(span.to - span.from);
            line.varint(zigzag(span.task, self.task) << 1 | u64::from(span.part > 0));
            if span.part > 0 {
                line.varint(span.part.into());
            }
            line.varint(span.extra);
            let length = line.length();
            self.spans.advance(length);
            (self.end, self.task) = (span.to, span.task);
        } else {
            self.bins.over(span.from, span.to, |bin, cycles| bin.add(span.label, cycles));
        }
    }

    /// Turns all spans so far into bins; `label` tells the colour of a span from its task and its other number.
    pub(super) fn coarsen(&mut self, label: impl Fn(u64, u64) -> u32) {
        let spans = std::mem::take(&mut self.spans);
        let (mut end, mut task) = (0, 0);
        for mut bytes in spans.pieces() {
            while !bytes.is_empty() {
                let from = end + pop(&mut bytes);
                end = from + pop(&mut bytes);
                let number = pop(&mut bytes);
                task = unzigzag(number >> 1, task);
                if number & 1 == 1 {
                    pop(&mut bytes);
                }
                let label = label(task, pop(&mut bytes));
                self.bins.over(from, end, |bin, cycles| bin.add(label, cycles));
            }
        }
    }
}

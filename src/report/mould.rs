//! A slice of a Perfetto trace as a mould for those that follow: they mostly differ in nothing but their numbers.

use super::export::PlainBlock;
use super::line::Line;
use super::pen::ROOM;

/// A slice of a worker without its numbers, of which that of its name takes one byte: those that follow mostly differ in nothing else.
pub(super) struct Mould {
    /// Bytes of moments and of tasks.
    pub(super) widths: [u8; 2],
    /// The numbers stand in it as zeros.
    text: [u8; Mould::ROOM + 8],
    length: usize,
    places: Places,
}

/// Where the numbers of a slice stand, in the order in which they are written. Where READY is not told, its place is not used.
#[derive(Clone, Copy, Default)]
pub(super) struct Places {
    pub(super) from: u8,
    pub(super) name: u8,
    pub(super) task: u8,
    pub(super) submit: u8,
    pub(super) ready: u8,
    pub(super) to: u8,
}

impl Mould {
    /// Most bytes of a slice that leaves one.
    const MOST: usize = 80;
    /// Places for them, a power of two.
    const ROOM: usize = 128;

    /// What is left of the slice of a block for those to come.
    #[cold]
    #[inline(never)]
    pub(super) fn of(line: &Line<'_, ROOM>, places: Places, widths: [u8; 2]) -> Option<Mould> {
        let (mut text, length): ([u8; Mould::ROOM + 8], usize) = (line.copy(), line.length());
        let Places { from, name, task, submit, ready, to } = places;
        let [moment_bytes, task_bytes] = widths;
        let numbers = [(from, moment_bytes), (name, 1), (task, task_bytes), (submit, moment_bytes), (to, moment_bytes)];
        let ready = (ready > 0).then_some((ready, moment_bytes));
        for (place, bytes) in numbers.into_iter().chain(ready) {
            let number = text.get_mut(place.into()..usize::from(place + bytes))?;
            number.iter_mut().for_each(|byte| *byte &= 0x80);
        }
        (length <= Mould::MOST).then_some(Mould { widths, text, length, places })
    }

    /// Whether all numbers are below 2^28.
    #[inline(always)]
    pub(super) fn is_narrow(&self) -> bool {
        self.widths[0] <= 4 && self.widths[1] <= 4
    }

    /// A slice with these numbers, each as `sevens` spreads it. They are put in from the first to the last, each with what follows it:
    /// what is read is the mould, because a processor waits where it reads what it has just written in other pieces.
    #[inline(always)]
    pub(super) fn cast(&self, line: &mut Line<'_, ROOM>, block: &PlainBlock, sevens: impl Fn(u64) -> u64) {
        line.beginning::<{ Mould::MOST }>(self.text.first_chunk().expect("it is shorter than that"), self.length);
        let Places { from, name, task, submit, ready, to } = self.places;
        self.fill(line, from, sevens(block.from));
        self.fill(line, name, block.name_id);
        self.fill(line, task, sevens(block.task.0));
        self.fill(line, submit, sevens(block.submit));
        if block.ready != block.from {
            self.fill(line, ready, sevens(block.ready));
        }
        self.fill(line, to, sevens(block.to));
    }

    /// Puts a number into its place.
    #[inline(always)]
    fn fill(&self, line: &mut Line<'_, ROOM>, at: u8, bits: u64) {
        let at = usize::from(at) & (Mould::ROOM - 1);
        let text: &[u8; 8] = self.text[at..].first_chunk().expect("there is room behind a slice");
        line.replace(at, &(u64::from_le_bytes(*text) | bits).to_le_bytes());
    }
}

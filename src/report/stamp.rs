//! Texts that are written again and again.

use super::line::Line;
use super::pen::{Pen, ROOM};
use std::io::Write;

/// A text that is written again and again: in one piece where it is short.
#[derive(Clone, Debug)]
pub(super) enum Stamp {
    Short([u8; Stamp::SHORT], usize),
    Long(Box<[u8]>),
}

impl Stamp {
    const SHORT: usize = 64;

    pub(super) fn new(text: &[u8]) -> Stamp {
        let mut short = [0; Stamp::SHORT];
        match short.get_mut(..text.len()) {
            Some(place) => {
                place.copy_from_slice(text);
                Stamp::Short(short, text.len())
            }
            None => Stamp::Long(text.into()),
        }
    }

    /// Begins a line with the text, in the room of a pen.
    #[inline(always)]
    pub(super) fn begin<'a, W: Write>(&self, pen: &'a mut Pen<W>) -> Line<'a, ROOM> {
        match self {
            Stamp::Short(text, length) => {
                let mut line = pen.room();
                line.beginning(text, *length);
                line
            }
            Stamp::Long(text) => {
                pen.text(text);
                pen.room()
            }
        }
    }

    /// A line that begins with the text.
    #[inline(always)]
    pub(super) fn line<W: Write>(&self, pen: &mut Pen<W>, write: impl FnOnce(&mut Line<'_, ROOM>)) {
        let mut line = self.begin(pen);
        write(&mut line);
        let length = line.length();
        pen.advance(length);
    }
}

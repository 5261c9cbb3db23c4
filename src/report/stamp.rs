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

    /// Begins a line with the text.
    #[inline(always)]
    pub(super) fn line<W: Write>(&self, pen: &mut Pen<W>, write: impl FnOnce(&mut Line<'_, ROOM>)) {
        let short = match self {
            Stamp::Short(text, length) => Some((text, *length)),
            Stamp::Long(text) => {
                pen.text(text);
                None
            }
        };
        pen.line(|line| {
            if let Some((text, length)) = short {
                line.beginning(text, length);
            }
            write(line);
        });
    }
}

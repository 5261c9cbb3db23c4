//! Texts that are written again and again.

use super::line::Line;
use super::pen::{Pen, ROOM};
use crate::id::WorkerId;
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
        Stamp::joined(text, b"")
    }

    /// Two texts, one behind the other.
    pub(super) fn joined(first: &[u8], second: &[u8]) -> Stamp {
        let (mut short, length) = ([0; Stamp::SHORT], first.len() + second.len());
        if length > short.len() {
            return Stamp::Long([first, second].concat().into());
        }
        short[..first.len()].copy_from_slice(first);
        short[first.len()..length].copy_from_slice(second);
        Stamp::Short(short, length)
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

/// What is written of every worker, made when it comes for the first time.
#[derive(Clone, Debug)]
pub(super) struct WorkerTexts {
    /// What stands before and behind its number.
    around: [&'static str; 2],
    texts: Vec<([u8; WorkerTexts::MOST], usize)>,
}

impl WorkerTexts {
    /// Most bytes of a text.
    const MOST: usize = 16;

    pub(super) fn new(before: &'static str, behind: &'static str) -> WorkerTexts {
        WorkerTexts { around: [before, behind], texts: Vec::new() }
    }

    /// Writes the text of a worker.
    #[inline(always)]
    pub(super) fn put(&mut self, line: &mut Line<'_, ROOM>, worker: WorkerId) {
        if worker.0 as usize >= self.texts.len() {
            self.add(worker);
        }
        let (text, length) = &self.texts[worker.0 as usize];
        line.beginning(text, *length);
    }

    /// Adds the texts of all workers up to this one.
    #[cold]
    fn add(&mut self, last: WorkerId) {
        let [before, behind] = self.around;
        for worker in self.texts.len() as u32..=last.0 {
            let (mut place, text) = ([0; WorkerTexts::MOST], format!("{before}{worker}{behind}"));
            place[..text.len()].copy_from_slice(text.as_bytes());
            self.texts.push((place, text.len()));
        }
    }
}

/// Short texts that depend on a number, each kept in the place that the number says until another one needs it: most kernels take one
/// of a few lengths.
#[derive(Clone)]
pub(super) struct Phrases([Phrase; Phrases::PLACES]);

/// One of them. All of it is copied, which takes no call.
#[derive(Clone, Copy)]
pub(super) struct Phrase {
    /// The number + 1; 0 is none.
    key: u64,
    pub(super) text: [u8; 48],
    pub(super) length: usize,
}

impl Default for Phrases {
    fn default() -> Phrases {
        Phrases([Phrase { key: 0, text: [0; 48], length: 0 }; Phrases::PLACES])
    }
}

impl Phrases {
    const PLACES: usize = 32;

    /// The text of a number below `u64::MAX`, as `write` puts it together when it is not kept.
    #[inline(always)]
    pub(super) fn of(&mut self, number: u64, write: impl FnOnce(&mut Line<'_, 128>)) -> &Phrase {
        let place = (number >> 1 ^ number >> 5) as usize % Phrases::PLACES;
        let phrase = &mut self.0[place];
        if phrase.key != number + 1 {
            *phrase = Phrase::new(number + 1, write);
        }
        phrase
    }
}

impl Phrase {
    #[cold]
    #[inline(never)]
    fn new(key: u64, write: impl FnOnce(&mut Line<'_, 128>)) -> Phrase {
        let mut bytes = [0; 128];
        let mut line = Line::new(&mut bytes);
        write(&mut line);
        let length = line.length();
        Phrase { key, text: *bytes.first_chunk().expect("it is shorter than that"), length }
    }
}

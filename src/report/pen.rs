//! Writes into a buffer of fixed size, which is handed to a writer whenever it is full.

use super::line::Line;
use std::io::{self, Write};

const BUFFER_BYTES: usize = 1 << 18;
/// Twice the most bytes of a line.
pub(super) const ROOM: usize = 1 << 10;

/// A writer with a buffer. Its first error is kept for [`Pen::finish`]; nothing is written after it.
pub struct Pen<W> {
    writer: W,
    bytes: Box<[u8]>,
    /// Bytes of the buffer in use.
    at: usize,
    error: Option<io::Error>,
}

impl<W: Write> Pen<W> {
    pub(super) fn new(writer: W) -> Pen<W> {
        Pen { writer, bytes: vec![0; BUFFER_BYTES].into(), at: 0, error: None }
    }

    /// Hands everything on and gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.drain();
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.writer),
        }
    }

    /// Hands everything on and takes the writer in exchange for another.
    pub(super) fn exchange(&mut self, writer: W) -> W {
        self.drain();
        std::mem::replace(&mut self.writer, writer)
    }

    #[cold]
    fn drain(&mut self) {
        if self.error.is_none() {
            self.error = self.writer.write_all(&self.bytes[..self.at]).err();
        }
        self.at = 0;
    }

    /// Room for something short: at most half of [`ROOM`] bytes. [`Pen::advance`] keeps what was put there.
    #[inline(always)]
    pub(super) fn room(&mut self) -> Line<'_, ROOM> {
        if self.at + ROOM > self.bytes.len() {
            self.drain();
        }
        Line::new(self.bytes[self.at..].first_chunk_mut().expect("there is room"))
    }

    /// So many bytes were put into the room.
    #[inline(always)]
    pub(super) fn advance(&mut self, length: usize) {
        self.at += length;
    }

    /// Something short, as `write` puts it together.
    #[inline(always)]
    pub(super) fn line(&mut self, write: impl FnOnce(&mut Line<'_, ROOM>)) {
        let mut line = self.room();
        write(&mut line);
        let length = line.length();
        self.advance(length);
    }

    /// A text of any length behind so many bytes that were put into the room, and room behind it.
    pub(super) fn text_within(&mut self, length: usize, text: &[u8]) -> Line<'_, ROOM> {
        self.advance(length);
        self.text(text);
        self.room()
    }

    /// A text of any length.
    pub(super) fn text(&mut self, mut text: &[u8]) {
        while text.len() > self.bytes.len() - self.at {
            let (now, later) = text.split_at(self.bytes.len() - self.at);
            self.bytes[self.at..].copy_from_slice(now);
            self.at = self.bytes.len();
            self.drain();
            text = later;
        }
        self.bytes[self.at..self.at + text.len()].copy_from_slice(text);
        self.at += text.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_arrive_whole() {
        let mut pen = Pen::new(Vec::new());
        let text: Vec<u8> = (0..3 * BUFFER_BYTES + 5).map(|index| (index % 251) as u8).collect();
        pen.line(|line| line.literal(b"start"));
        pen.text(&text);
        let bytes = pen.finish().expect("memory does not fail");
        assert!(bytes.starts_with(b"start") && bytes[5..] == text);
    }
}

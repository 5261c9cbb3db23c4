//! Writes into a buffer of fixed size, which is handed to a writer whenever it is full.

use super::line::Line;
use std::io::{self, Write};

/// Bytes that are handed on at once. Always as many, and a power of two: the system takes half the time for writes that begin and end
/// with a page of its cache.
const BUFFER_BYTES: usize = 1 << 18;
/// Twice the most bytes of a line.
pub(super) const ROOM: usize = 1 << 10;

/// A writer with a buffer. Its first error is kept for [`Pen::finish`]; nothing is written after it.
pub struct Pen<W> {
    writer: W,
    /// The buffer, and room for what begins in it.
    bytes: Box<[u8; BUFFER_BYTES + ROOM]>,
    /// Bytes in use.
    at: usize,
    error: Option<io::Error>,
}

impl<W: Write> Pen<W> {
    pub(super) fn new(writer: W) -> Pen<W> {
        let bytes = vec![0; BUFFER_BYTES + ROOM].try_into().expect("so many bytes were asked for");
        Pen { writer, bytes, at: 0, error: None }
    }

    /// Hands everything on and gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.hand_on(self.at);
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.writer),
        }
    }

    fn hand_on(&mut self, length: usize) {
        if self.error.is_none() {
            self.error = self.writer.write_all(&self.bytes[..length]).err();
        }
    }

    /// Hands the buffer on; what stands behind it comes to its beginning.
    #[cold]
    #[inline(never)]
    fn drain(&mut self) {
        self.hand_on(BUFFER_BYTES);
        self.bytes.copy_within(BUFFER_BYTES..self.at, 0);
        self.at -= BUFFER_BYTES;
    }

    /// Room for something short: at most half of [`ROOM`] bytes. [`Pen::advance`] keeps what was put there.
    #[inline(always)]
    pub(super) fn room(&mut self) -> Line<'_, ROOM> {
        if self.at >= BUFFER_BYTES {
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

    /// At most [`ROOM`] bytes, as `write` puts them into place; it tells how many.
    #[inline(always)]
    pub(super) fn put(&mut self, write: impl FnOnce(&mut [u8; ROOM]) -> usize) {
        if self.at >= BUFFER_BYTES {
            self.drain();
        }
        self.at += write(self.bytes[self.at..].first_chunk_mut().expect("there is room"));
    }

    /// A text of any length behind so many bytes that were put into the room, and room behind it.
    pub(super) fn text_within(&mut self, length: usize, text: &[u8]) -> Line<'_, ROOM> {
        self.advance(length);
        self.text(text);
        self.room()
    }

    /// A text of any length.
    pub(super) fn text(&mut self, mut text: &[u8]) {
        while !text.is_empty() {
            let (now, later) = text.split_at(text.len().min(self.bytes.len() - self.at));
            self.bytes[self.at..self.at + now.len()].copy_from_slice(now);
            self.at += now.len();
            if self.at >= BUFFER_BYTES {
                self.drain();
            }
            text = later;
        }
    }
}

/// Never fails: an error is kept for [`Pen::finish`].
impl<W: Write> Write for Pen<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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

    /// Notes how much is written at once.
    #[derive(Default)]
    struct Lengths(Vec<usize>);

    impl Write for Lengths {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn everything_but_the_end_is_written_in_whole_buffers() {
        let mut pen = Pen::new(Lengths::default());
        for length in 0..5000 {
            pen.line(|line| line.beginning(&[b'x'; 500], length % 500));
            pen.text(&vec![b'y'; length % 1999]);
        }
        let lengths = pen.finish().expect("nothing fails").0;
        let (last, others) = lengths.split_last().expect("something was written");
        assert!(
            others.len() > 10 && others.iter().all(|&length| length == BUFFER_BYTES) && *last < BUFFER_BYTES + ROOM
        );
    }
}

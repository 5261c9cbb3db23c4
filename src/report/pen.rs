//! Writes bytes and digits into a buffer of fixed size, which is handed to a writer whenever it is full.
//!
//! Reports of long runs consist of millions of short numbers, so these take no call and no search for room each.

use std::io::{self, Write};

const BUFFER_BYTES: usize = 1 << 18;
/// Room that is always there after [`Pen::make_room`].
pub(super) const ROOM: usize = 1 << 9;

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

    #[cold]
    fn drain(&mut self) {
        if self.error.is_none() {
            self.error = self.writer.write_all(&self.bytes[..self.at]).err();
        }
        self.at = 0;
    }

    /// From here on [`ROOM`] bytes can be written by the calls for short pieces.
    #[inline]
    pub(super) fn make_room(&mut self) {
        if self.at + ROOM > self.bytes.len() {
            self.drain();
        }
    }

    /// Bytes in use; what lies behind it can still be changed until room is made.
    #[inline]
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Changes one byte that was written before.
    #[inline]
    pub(super) fn amend(&mut self, at: usize, byte: u8) {
        self.bytes[at] = byte;
    }

    /// One byte.
    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes[self.at] = byte;
        self.at += 1;
    }

    /// A short text that is known when this is compiled.
    #[inline]
    pub(super) fn literal<const N: usize>(&mut self, text: &[u8; N]) {
        self.bytes[self.at..self.at + N].copy_from_slice(text);
        self.at += N;
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

    /// A number in decimal digits.
    #[inline]
    pub(super) fn number(&mut self, number: u64) {
        const EIGHT_DIGITS: u64 = 100_000_000;
        if number < 10 {
            return self.byte(b'0' + number as u8);
        }
        if number < EIGHT_DIGITS {
            return self.short_number(number);
        }
        let (high, low) = (number / EIGHT_DIGITS, number % EIGHT_DIGITS);
        if high < EIGHT_DIGITS {
            self.short_number(high);
        } else {
            self.short_number(high / EIGHT_DIGITS);
            self.literal(&eight_digits(high % EIGHT_DIGITS).to_le_bytes());
        }
        self.literal(&eight_digits(low).to_le_bytes());
    }

    /// A number of at most eight digits: all eight are written, and those that lead in vain are shifted out.
    #[inline]
    fn short_number(&mut self, number: u64) {
        let digits = eight_digits(number);
        let zeros = ((digits & !ZEROS).trailing_zeros() / 8).min(7);
        self.literal(&(digits >> (8 * zeros)).to_le_bytes());
        self.at -= zeros as usize;
    }

    /// A number as a varint.
    #[inline]
    pub(super) fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }
}

const ZEROS: u64 = u64::from_le_bytes(*b"00000000");

/// The eight digits of a number below 10^8, the first in the lowest byte: halves, quarters and digits all at once.
#[inline]
fn eight_digits(number: u64) -> u64 {
    let halves = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((halves * 10_486) >> 20) & 0x7f_0000_007f;
    let pairs = hundreds | ((halves - 100 * hundreds) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    (tens | ((pairs - 10 * tens) << 8)) + ZEROS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_have_their_digits() {
        let mut pen = Pen::new(Vec::new());
        let mut expected = Vec::new();
        let powers = (0..20).map(|exponent| 10_u64.pow(exponent));
        let around = powers.flat_map(|power| [power - 1, power, power + 1, power.saturating_mul(7)]);
        for number in around.chain([u64::MAX, 12_345_678, 123_456_789, 9_999, 10_000, 305_070_901_020_304]) {
            pen.make_room();
            pen.number(number);
            pen.byte(b' ');
            expected.push(number.to_string());
        }
        let bytes = pen.finish().expect("memory does not fail");
        assert_eq!(String::from_utf8(bytes).expect("digits").trim_end(), expected.join(" "));
        assert!((0..100_000_000).step_by(997).all(|n| eight_digits(n).to_le_bytes() == format!("{n:08}").as_bytes()));
    }

    #[test]
    fn long_texts_arrive_whole() {
        let mut pen = Pen::new(Vec::new());
        let text: Vec<u8> = (0..3 * BUFFER_BYTES + 5).map(|index| (index % 251) as u8).collect();
        pen.literal(b"start");
        pen.text(&text);
        let bytes = pen.finish().expect("memory does not fail");
        assert!(bytes.starts_with(b"start") && bytes[5..] == text);
    }
}

//! A few bytes and numbers in the making, in a place of fixed size. Where the line ends stays in a register as long as everything
//! here is put in line, which makes the difference between millions of numbers a second and many more.

use super::varint;

/// What is put together in a place of `ROOM` bytes, of which a line takes at most half: that it never ends behind the middle is
/// seen by the compiler, so that nothing needs to be checked where something is added.
pub(super) struct Line<'a, const ROOM: usize> {
    bytes: &'a mut [u8; ROOM],
    at: usize,
}

impl<'a, const ROOM: usize> Line<'a, ROOM> {
    #[inline(always)]
    pub(super) fn new(bytes: &'a mut [u8; ROOM]) -> Line<'a, ROOM> {
        Line { bytes, at: 0 }
    }

    /// Bytes in use.
    #[inline(always)]
    pub(super) fn length(&self) -> usize {
        self.at
    }

    /// Changes a byte that was written before.
    #[inline(always)]
    pub(super) fn amend(&mut self, at: usize, byte: u8) {
        self.bytes[at] = byte;
    }

    /// So many bytes from the first on.
    pub(super) fn copy<const N: usize>(&self) -> [u8; N] {
        *self.bytes.first_chunk().expect("it is less than half the room")
    }

    /// Writes over bytes that were written before, as many as the text has.
    #[inline(always)]
    pub(super) fn replace<const N: usize>(&mut self, at: usize, text: &[u8; N]) {
        *self.bytes[at & (ROOM / 2 - 1)..].first_chunk_mut().expect("it is less than half the room") = *text;
    }

    /// One byte.
    #[inline(always)]
    pub(super) fn byte(&mut self, byte: u8) {
        self.literal(&[byte]);
    }

    /// A short text that is known when this is compiled.
    #[inline(always)]
    pub(super) fn literal<const N: usize>(&mut self, text: &[u8; N]) {
        self.beginning(text, N);
    }

    /// The first bytes of a text; all of it is copied, because that takes no call, and what comes next is written over the rest.
    #[inline(always)]
    pub(super) fn beginning<const N: usize>(&mut self, text: &[u8; N], length: usize) {
        const { assert!(ROOM.is_power_of_two() && N <= ROOM / 2) };
        debug_assert!(self.at < ROOM / 2, "a line is never full");
        let at = self.at & (ROOM / 2 - 1);
        *self.bytes[at..].first_chunk_mut().expect("it is as much as half the room") = *text;
        self.at = at + length;
    }

    /// A number in decimal digits.
    #[inline(always)]
    pub(super) fn number(&mut self, number: u64) {
        if number < FOUR_DIGITS {
            return self.small(number);
        }
        let (text, length) = digits(number / FOUR_DIGITS);
        self.beginning(&text, length);
        self.literal(&four_digits(number % FOUR_DIGITS).to_le_bytes());
    }

    /// A number of at most four digits.
    #[inline(always)]
    fn small(&mut self, number: u64) {
        let digits = four_digits(number);
        let zeros = ((digits & !ZEROS).trailing_zeros() / 8).min(3);
        self.beginning(&(digits >> (8 * zeros)).to_le_bytes(), 4 - zeros as usize);
    }

    /// A number of a column, behind the text of the column.
    #[inline(always)]
    pub(super) fn column<const N: usize>(&mut self, column: &mut Column<N>, number: u64) {
        let mut low = number.wrapping_sub(column.base);
        if low >= FOUR_DIGITS {
            if number < FOUR_DIGITS {
                self.beginning(&column.text, column.before);
                return self.small(number);
            }
            if !column.move_to(number) {
                self.beginning(&column.text, column.before);
                return self.number(number);
            }
            low = number % FOUR_DIGITS;
        }
        self.beginning(&column.text, column.length);
        self.literal(&four_digits(low).to_le_bytes());
    }

    /// A fraction of three digits, behind its point.
    #[inline(always)]
    pub(super) fn thousandths(&mut self, number: u32) {
        let digits = four_digits(number.into()) & !0xff | u32::from(b'.');
        self.literal(&digits.to_le_bytes());
    }

    /// A number below the limit of `width` as a varint that wide.
    #[inline(always)]
    pub(super) fn wide(&mut self, width: &varint::Width, number: u64) {
        self.beginning(&width.spread(number), width.bytes());
    }

    /// A number as a varint.
    #[inline(always)]
    pub(super) fn varint(&mut self, mut number: u64) {
        if number < 0x4000 {
            // Whether a second byte is needed is hard to foresee.
            let is_long = number >= 0x80;
            let bytes = [number as u8 | u8::from(is_long) << 7, (number >> 7) as u8];
            return self.beginning(&bytes, 1 + usize::from(is_long));
        }
        while number >= 1 << 56 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        let (bytes, length) = varint::spread(number);
        self.beginning(&bytes, length);
    }
}

const FOUR_DIGITS: u64 = 10_000;
const EIGHT_DIGITS: u64 = 100_000_000;
const ZEROS: u32 = u32::from_le_bytes(*b"0000");

/// Numbers behind a text that is always the same, as in a column of a table. Numbers that follow each other mostly begin alike, so
/// that beginning is kept together with the text.
#[derive(Clone)]
pub(super) struct Column<const N: usize> {
    /// A number that ends with four zeros. Those that differ from it in their last four digits begin alike.
    base: u64,
    /// The text and what these numbers begin with.
    text: [u8; N],
    length: usize,
    /// Bytes of the text alone.
    before: usize,
}

impl<const N: usize> Column<N> {
    /// A column with a text of fewer than `N` bytes.
    pub(super) fn new(before: &[u8]) -> Column<N> {
        let mut column = Column { base: FOUR_DIGITS, text: [0; N], length: before.len() + 1, before: before.len() };
        column.text[..before.len()].copy_from_slice(before);
        column.text[before.len()] = b'1';
        column
    }

    /// Keeps what a number of more than four digits begins with; false if that is too long.
    #[cold]
    #[inline(never)]
    fn move_to(&mut self, number: u64) -> bool {
        let (high, last) = (number / FOUR_DIGITS, number % FOUR_DIGITS);
        let (text, length) = digits(high);
        let Some(place) = self.text.get_mut(self.before..self.before + length) else { return false };
        place.copy_from_slice(&text[..length]);
        (self.base, self.length) = (number - last, self.before + length);
        true
    }
}

/// The digits of a number of at most sixteen, and how many. All are found at once, and those that lead in vain are shifted out.
#[inline(never)]
fn digits(number: u64) -> ([u8; 16], usize) {
    let (left, right) = (eight_digits(number / EIGHT_DIGITS), eight_digits(number % EIGHT_DIGITS));
    let digits = u128::from(left) | u128::from(right) << 64;
    let zeros = ((digits & !(u128::MAX / 0xff * 0x30)).trailing_zeros() / 8).min(15);
    ((digits >> (8 * zeros)).to_le_bytes(), 16 - zeros as usize)
}

/// The eight digits of a number below 10^8, the first in the lowest byte.
#[inline]
fn eight_digits(number: u64) -> u64 {
    let (left, right) = (number / FOUR_DIGITS, number % FOUR_DIGITS);
    u64::from(four_digits(left)) | u64::from(four_digits(right)) << 32
}

/// The four digits of a number below 10^4, the first in the lowest byte.
#[inline(always)]
fn four_digits(number: u64) -> u32 {
    FOURS[number as usize]
}

/// The digits of all numbers below 10^4.
static FOURS: [u32; FOUR_DIGITS as usize] = {
    let mut fours = [0; FOUR_DIGITS as usize];
    let mut number = 0;
    while number < fours.len() {
        let [a, b, c, d] = [number / 1000, number / 100 % 10, number / 10 % 10, number % 10];
        fours[number] = ZEROS + (a | b << 8 | c << 16 | d << 24) as u32;
        number += 1;
    }
    fours
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_have_their_digits() {
        let powers = (0..20).map(|exponent| 10_u64.pow(exponent));
        let around = powers.flat_map(|power| [power - 1, power, power + 1, power.saturating_mul(7)]);
        let (mut narrow, mut wide) = (Column::<16>::new(b","), Column::<32>::new(b",\"ready\":"));
        for number in around.chain([u64::MAX, 12_345_678, 12_345_679, 123_456_789, 9_999, 10_000, 305_070_901_020_304])
        {
            let mut bytes = [0; 256];
            let mut line = Line::new(&mut bytes);
            line.number(number);
            for _ in 0..2 {
                line.column(&mut narrow, number);
                line.column(&mut wide, number);
            }
            let length = line.length();
            let twice = format!(",{number},\"ready\":{number}").repeat(2);
            assert_eq!(bytes[..length], *format!("{number}{twice}").as_bytes());
        }
        assert!((0..10_000).all(|number| four_digits(number).to_le_bytes() == format!("{number:04}").as_bytes()));
    }
}

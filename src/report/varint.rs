//! Numbers in as few bytes as they need: seven bits a byte, the lowest first.

use super::line::Line;
use crate::large;

/// Appends a number.
#[inline]
pub(super) fn push(into: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

/// Takes the next number.
///
/// # Panics
/// When there is none.
pub(super) fn pop(from: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = from.split_first().expect("a number ends");
        *from = rest;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return number;
        }
    }
}

/// A number below 2^56, and how many of these bytes it takes.
#[inline(always)]
pub(super) fn spread(number: u64) -> ([u8; 8], usize) {
    let length = length(number);
    ((sevens(number) | marks(length)).to_le_bytes(), length)
}

/// The bits of a number below 2^56, seven a byte. They are spread by halves: 56 become twice 28, 14, 7.
#[inline(always)]
pub(super) fn sevens(number: u64) -> u64 {
    let spread = (number & 0x0fff_ffff) | (number & 0xff_ffff_f000_0000) << 4;
    let spread = (spread & 0x3fff_0000_3fff) | (spread & 0xfff_c000_0fff_c000) << 2;
    (spread & 0x7f_007f_007f_007f) | (spread & 0x3f80_3f80_3f80_3f80) << 1
}

/// The same of a number below 2^28.
#[inline(always)]
pub(super) fn few_sevens(number: u64) -> u64 {
    let spread = (number & 0x3fff) | (number & 0xfff_c000) << 2;
    (spread & 0x7f_007f) | (spread & 0x3f80_3f80) << 1
}

/// What says in each of so many bytes but the last that another follows.
#[inline(always)]
fn marks(length: usize) -> u64 {
    MARKS[length & 15]
}

/// Of numbers of 0, 1, 2, … bytes; longer ones are not written in one piece.
static MARKS: [u64; 16] = {
    let mut marks = [0; 16];
    let mut length = 2;
    while length <= 8 {
        marks[length] = 0x8080_8080_8080_8080 >> (72 - 8 * length);
        length += 1;
    }
    marks
};

/// Bytes of a number by the zeros it begins with.
static LENGTHS: [u8; 64] = {
    let mut lengths = [1; 64];
    let mut zeros = 0;
    while zeros < 64 {
        lengths[zeros] = (64 - zeros).div_ceil(7) as u8;
        zeros += 1;
    }
    lengths
};

/// Varints of one width, which grows with the largest number: a smaller one is filled up with bytes that add nothing, which every
/// reader of varints takes. So their lengths are known before the numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Width {
    bytes: usize,
    marks: u64,
    limit: u64,
}

impl Default for Width {
    fn default() -> Width {
        Width { bytes: 1, marks: 0, limit: 1 << 7 }
    }
}

impl Width {
    /// The width of a number below 2^56 by itself.
    #[inline(always)]
    pub(super) fn of(number: u64) -> Width {
        let bytes = length(number);
        Width { bytes, marks: marks(bytes), limit: 1 << (7 * bytes) }
    }

    /// Whether the number fits.
    #[inline(always)]
    pub(super) fn holds(&self, number: u64) -> bool {
        number < self.limit
    }

    /// Grows until the number fits; false if it never does.
    #[inline(always)]
    pub(super) fn fits(&mut self, number: u64) -> bool {
        number < self.limit || self.grow(number)
    }

    #[cold]
    fn grow(&mut self, number: u64) -> bool {
        let fits = length(number) <= 8;
        if fits {
            *self = Width::of(number);
        }
        fits
    }

    /// Bytes of each.
    #[inline(always)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    #[inline(always)]
    pub(super) fn spread(&self, number: u64) -> [u8; 8] {
        debug_assert!(number < self.limit, "{number} in {} bytes", self.bytes);
        (sevens(number) | self.marks).to_le_bytes()
    }
}

/// The bytes that a number takes.
#[inline]
pub(super) fn length(number: u64) -> usize {
    LENGTHS[(number | 1).leading_zeros() as usize & 63].into()
}

/// The difference `new - old` as a number that is small when the two are close: 0, -1, 1, -2, … become 0, 1, 2, 3, …
#[inline]
pub(super) fn zigzag(new: u64, old: u64) -> u64 {
    let difference = new.wrapping_sub(old).cast_signed();
    ((difference << 1) ^ (difference >> 63)).cast_unsigned()
}

/// The number that is so far from `old`; see [`zigzag`].
pub(super) fn unzigzag(difference: u64, old: u64) -> u64 {
    old.wrapping_add((difference >> 1) ^ (difference & 1).wrapping_neg())
}

/// Records of a few numbers, one after the other. They never move: when a piece of memory is full another is taken.
#[derive(Clone, Default)]
pub(super) struct Packed {
    full: Vec<Vec<u8>>,
    /// Bytes of all that are full.
    before: usize,
    /// The piece in use, and room for more.
    bytes: Vec<u8>,
    used: usize,
}

impl Packed {
    /// Twice the most bytes of a record: ten of the longest numbers and a few bytes more.
    const ROOM: usize = 256;
    /// Bytes of the first piece, and of those that many may have at once.
    const FEW: usize = 1 << 10;
    const MANY: usize = 1 << 16;
    /// Bytes of records that only few have, and that go on in large pages.
    const VERY_MANY: usize = 1 << 19;

    /// Room for a record. [`Packed::advance`] keeps what was put there.
    #[inline(always)]
    pub(super) fn room(&mut self) -> Line<'_, { Packed::ROOM }> {
        if self.used + Packed::ROOM > self.bytes.len() {
            self.go_on();
        }
        Line::new(self.bytes[self.used..].first_chunk_mut().expect("there is room"))
    }

    /// So many bytes were put into the room.
    #[inline(always)]
    pub(super) fn advance(&mut self, length: usize) {
        self.used += length;
    }

    /// Takes another piece, as large as all before it together within limits.
    #[cold]
    fn go_on(&mut self) {
        let is_large = self.length() > Packed::VERY_MANY;
        let room = if is_large { large::TWO_PAGES } else { self.length().clamp(Packed::FEW, Packed::MANY) };
        let mut full = std::mem::replace(&mut self.bytes, large::zeroed(room));
        full.truncate(self.used);
        self.full.push(full);
        self.before = self.length();
        self.used = 0;
    }

    /// All records, in pieces.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.full.iter().map(Vec::as_slice).chain([&self.bytes[..self.used]])
    }

    /// Bytes of all records.
    #[inline]
    pub(super) fn length(&self) -> usize {
        self.before + self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_take_one_byte_and_differences_keep_their_sign() {
        let mut bytes = Vec::new();
        for number in [0, 127, 128, 300, u64::MAX] {
            push(&mut bytes, number);
        }
        assert_eq!(bytes[..6], [0, 127, 0x80, 1, 0xac, 2]);
        assert_eq!(bytes.len(), 6 + 10);
        assert_eq!([0, 127, 128, 300, u64::MAX].map(length), [1, 1, 2, 2, 10]);
        let pairs = [(5, 5), (4, 5), (6, 5), (3, 5), (7, 5), (u64::MAX, 5), (0, u64::MAX)];
        assert_eq!(pairs.map(|(new, old)| zigzag(new, old))[..5], [0, 1, 2, 3, 4]);
        assert!(pairs.iter().all(|&(new, old)| unzigzag(zigzag(new, old), old) == new));
        let mut rest = &bytes[..];
        assert_eq!([(); 5].map(|()| pop(&mut rest)), [0, 127, 128, 300, u64::MAX]);
    }

    #[test]
    fn numbers_of_every_length_come_back_from_many_records() {
        let numbers = (0..64).flat_map(|bit| [1 << bit, (1 << bit) - 1, (1 << bit) | 1]).chain([u64::MAX]);
        let (mut packed, mut expected) = (Packed::default(), Vec::new());
        for number in numbers {
            let mut line = packed.room();
            [number, 0, number].into_iter().for_each(|number| line.varint(number));
            let length = line.length();
            packed.advance(length);
            for mut rest in [number, 0, number] {
                while rest >= 0x80 {
                    expected.push(rest as u8 | 0x80);
                    rest >>= 7;
                }
                expected.push(rest as u8);
            }
        }
        assert_eq!(packed.pieces().collect::<Vec<_>>().concat(), expected);
    }

    #[test]
    fn numbers_filled_up_to_one_width_keep_their_values() {
        let mut width = Width::default();
        for number in [0, 5, 127, 128, 3, 70_000, 1 << 40, 6, (1 << 56) - 1, 9] {
            assert!(width.fits(number));
            let bytes = &width.spread(number)[..width.bytes()];
            let (last, before) = bytes.split_last().expect("a byte at least");
            assert!(before.iter().all(|byte| *byte >= 0x80) && *last < 0x80);
            assert!(number >= 1 << 28 || few_sevens(number) == sevens(number));
            let value = bytes.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f));
            assert_eq!(value, number);
        }
        assert!(!width.fits(1 << 56));
    }
}

//! A scanner over bytes for text that is expected to be written in one way. It looks at eight bytes at a time and gives up,
//! without saying why, where the text is written in another way.

use crate::workload::symbols::{Hashed, Hasher};

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);

/// A place in a text.
pub struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    /// Stands at the beginning of `bytes`, which may go on behind what is to be scanned.
    pub fn new(bytes: &'a [u8]) -> Scan<'a> {
        Scan { bytes, at: 0 }
    }

    /// Bytes before this place.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Moves over `literal` if it comes next.
    #[inline(always)]
    pub fn meets<const N: usize>(&mut self, literal: &[u8; N]) -> bool {
        let found = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>()) == Some(literal);
        self.at += if found { N } else { 0 };
        found
    }

    /// Moves over `literal`, which must come next.
    #[inline(always)]
    pub fn take<const N: usize>(&mut self, literal: &[u8; N]) -> Option<()> {
        self.meets(literal).then_some(())
    }

    /// A text without escapes, and its closing quote.
    #[inline]
    pub fn text(&mut self) -> Option<Hashed<'a>> {
        let start = self.at;
        let mut hasher = Hasher::default();
        loop {
            let word = self.word()?;
            let special = equal(word, b'"') | equal(word, b'\\') | below_space(word);
            if special == 0 {
                hasher.word(word);
                self.at += 8;
                continue;
            }
            let length = special.trailing_zeros() / 8;
            if (word >> (8 * length)) as u8 != b'"' {
                return None;
            }
            let last = word & ((1 << (8 * length)) - 1);
            let bytes = &self.bytes[start..self.at + length as usize];
            self.at += length as usize + 1;
            return Some(Hashed { bytes, hash: hasher.finish(last, bytes.len()) });
        }
    }

    /// A whole number of at most 19 digits. What follows must be looked at by the caller.
    #[inline]
    pub fn integer(&mut self) -> Option<u64> {
        let digits = self.word()? ^ (ONES * u64::from(b'0'));
        let others = (digits.wrapping_add(ONES * (0x80 - 10)) | digits) & HIGH;
        let length = others.trailing_zeros() / 8;
        let has_leading_zero = digits as u8 == 0 && length > 1;
        if length == 0 || has_leading_zero {
            return None;
        }
        if length == 8 {
            return self.long_integer();
        }
        self.at += length as usize;
        Some(eight_digits(digits << (64 - 8 * length)))
    }

    fn long_integer(&mut self) -> Option<u64> {
        let digits = self.bytes[self.at..].iter().map(|byte| byte.wrapping_sub(b'0')).take_while(|&digit| digit < 10);
        let (mut value, mut length) = (0_u64, 0);
        for digit in digits.take(20) {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            length += 1;
        }
        self.at += length;
        (length < 20).then_some(value)
    }

    #[inline(always)]
    fn word(&self) -> Option<u64> {
        self.bytes.get(self.at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
    }
}

/// The high bit of every byte of `word` that is `byte`. Bytes above the lowest such one may be marked too.
#[inline(always)]
fn equal(word: u64, byte: u8) -> u64 {
    let zero = word ^ (ONES * u64::from(byte));
    zero.wrapping_sub(ONES) & !zero & HIGH
}

/// The high bit of every byte that is a control character. Bytes above the lowest such one may be marked too.
#[inline(always)]
fn below_space(word: u64) -> u64 {
    word.wrapping_sub(ONES * u64::from(b' ')) & !word & HIGH
}

/// The number that eight digits make, the first of them in the lowest byte. Neighbours are joined to pairs, and pairs to the
/// whole by two multiplications whose upper halves add up.
#[inline(always)]
fn eight_digits(digits: u64) -> u64 {
    const EVERY_SECOND_PAIR: u64 = 0x0000_00FF_0000_00FF;
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let first = (pairs & EVERY_SECOND_PAIR).wrapping_mul(100 + (1_000_000 << 32));
    let second = (pairs >> 16 & EVERY_SECOND_PAIR).wrapping_mul(1 + (10_000 << 32));
    first.wrapping_add(second) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Symbols;

    #[test]
    fn numbers_of_all_lengths() {
        for length in 1..=19 {
            let text = format!("{}]}}        ", &"1234567890987654321"[..length]);
            let mut scan = Scan::new(text.as_bytes());
            assert_eq!(scan.integer(), text[..length].parse().ok());
            assert!(scan.meets(b"]}") && scan.at() == length + 2);
        }
        for value in (0..70_000).chain([99_999_999, 100_000_000, 9_999_999]) {
            assert_eq!(Scan::new(format!("{value},      ").as_bytes()).integer(), Some(value));
        }
        for text in ["", "x       ", "-1       ", "01       ", "12345678901234567890     ", "1"] {
            assert_eq!(Scan::new(text.as_bytes()).integer(), None, "{text}");
        }
    }

    #[test]
    fn texts_of_all_lengths_have_the_hash_of_the_table() {
        let mut symbols = Symbols::default();
        for length in 0..40 {
            let name = "abc\u{e4}\u{7f}defghijklmnopqrstuvwxyz_0123456789".chars().take(length).collect::<String>();
            let expected = symbols.intern(&name);
            let text = format!("{name}\",        ");
            let mut scan = Scan::new(text.as_bytes());
            let found = scan.text().expect("a whole text");
            assert_eq!(found.bytes, name.as_bytes());
            assert_eq!(symbols.find_hashed(found), Some(expected));
            assert!(scan.meets(b","));
            for special in ['\\', '\n', '\u{1f}'] {
                assert!(Scan::new(format!("{name}{special}\",        ").as_bytes()).text().is_none());
            }
        }
        assert!(Scan::new(b"cut off and no quote").text().is_none());
    }
}

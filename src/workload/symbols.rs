//! Interned names: every different text gets a number, and the texts lie one behind the other in one piece of memory.

use crate::id::Symbol;

/// Interned names, numbered in order of first appearance.
#[derive(Clone, Default, Debug)]
pub struct Symbols {
    /// All names, without anything between them.
    text: String,
    /// Where each name ends in `text`.
    ends: Vec<usize>,
    /// Open-addressed hash table. Its length is 0 or a power of two.
    places: Vec<Place>,
}

/// One place of the table; the default is an empty one.
#[derive(Clone, Copy, Default, Debug)]
struct Place {
    /// Number of the name + 1.
    number: u32,
    /// The upper half of its hash, so that other names are seldom looked at.
    tag: u32,
}

/// A name with its hash, which a scanner finds on its way over the name.
#[derive(Clone, Copy)]
pub(super) struct Hashed<'a> {
    /// The name; nobody has looked whether it is UTF-8.
    pub bytes: &'a [u8],
    /// What [`Hasher`] makes of it.
    pub hash: u64,
}

impl Symbols {
    /// The number of `name`, given out at its first use.
    ///
    /// # Panics
    /// Beyond 2^32 - 2 different names.
    pub fn intern(&mut self, name: &str) -> Symbol {
        self.intern_hashed(Hashed::new(name.as_bytes())).expect("a text is UTF-8")
    }

    /// The number of a name, given out at its first use; `None` when it is not UTF-8.
    pub(super) fn intern_hashed(&mut self, name: Hashed<'_>) -> Option<Symbol> {
        if self.places.len() < 2 * (self.len() + 1) {
            self.grow();
        }
        match self.place(name) {
            Ok(symbol) => Some(symbol),
            Err(place) => self.insert(place, name),
        }
    }

    #[cold]
    fn insert(&mut self, place: usize, name: Hashed<'_>) -> Option<Symbol> {
        let number = u32::try_from(self.len()).ok().filter(|&number| number < u32::MAX - 1);
        let number = number.expect("fewer than 2^32 - 2 names");
        self.text.push_str(std::str::from_utf8(name.bytes).ok()?);
        self.ends.push(self.text.len());
        self.places[place] = Place { number: number + 1, tag: name.tag() };
        Some(Symbol(number))
    }

    /// The number of `name` if it was seen before.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Symbol> {
        self.find_hashed(Hashed::new(name.as_bytes()))
    }

    /// The number of a name if it was seen before.
    #[inline]
    pub(super) fn find_hashed(&self, name: Hashed<'_>) -> Option<Symbol> {
        if self.is_empty() { None } else { self.place(name).ok() }
    }

    /// The text of a symbol.
    ///
    /// # Panics
    /// When the symbol comes from another table.
    #[must_use]
    pub fn name(&self, symbol: Symbol) -> &str {
        let index = symbol.0 as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }

    /// How many names there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no name was seen yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All names in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Symbol, &str)> {
        (0..self.len() as u32).map(|number| (Symbol(number), self.name(Symbol(number))))
    }

    /// The bytes of a name.
    fn bytes(&self, number: u32) -> &[u8] {
        let index = number as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text.as_bytes()[start..self.ends[index]]
    }

    /// The number of `name`, or else the empty place where it belongs.
    #[inline]
    fn place(&self, name: Hashed<'_>) -> Result<Symbol, usize> {
        let mask = self.places.len() - 1;
        let mut place = name.hash as usize & mask;
        loop {
            match self.places[place] {
                Place { number: 0, .. } => return Err(place),
                Place { number, tag } if tag == name.tag() && self.bytes(number - 1) == name.bytes => {
                    return Ok(Symbol(number - 1));
                }
                _ => place = (place + 1) & mask,
            }
        }
    }

    /// Doubles the table; at most half of it is ever in use.
    fn grow(&mut self) {
        self.places = vec![Place::default(); (2 * self.places.len()).max(16)];
        for number in 0..self.len() as u32 {
            let name = Hashed::new(self.bytes(number));
            let place = self.place(name).expect_err("names in the table are different");
            self.places[place] = Place { number: number + 1, tag: name.tag() };
        }
    }
}

impl<'a> Hashed<'a> {
    fn new(bytes: &'a [u8]) -> Hashed<'a> {
        let mut hasher = Hasher::default();
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| hasher.word(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        Hashed { bytes, hash: hasher.finish(u64::from_le_bytes(last), bytes.len()) }
    }

    fn tag(self) -> u32 {
        (self.hash >> 32) as u32
    }
}

/// Mixes a name eight bytes at a time, as little-endian words.
#[derive(Default)]
pub(super) struct Hasher {
    state: u64,
}

impl Hasher {
    /// Eight more bytes.
    #[inline]
    pub fn word(&mut self, word: u64) {
        self.state = (self.state.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    /// Fewer than eight bytes, filled up with zeros, end a name of `length` bytes. The upper half of the product moves down,
    /// because the table uses low bits.
    #[inline]
    pub fn finish(mut self, last: u64, length: usize) -> u64 {
        self.word(last);
        self.word(length as u64);
        self.state ^ (self.state >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_numbers_through_growth() {
        let mut symbols = Symbols::default();
        assert_eq!(symbols.find("x0"), None);
        for number in 0..10_000 {
            assert_eq!(symbols.intern(&format!("x{number}")), Symbol(number));
        }
        for number in 0..10_000 {
            let name = format!("x{number}");
            assert_eq!(symbols.intern(&name), Symbol(number));
            assert_eq!(symbols.find(&name), Some(Symbol(number)));
            assert_eq!(symbols.name(Symbol(number)), name);
        }
        assert_eq!(symbols.find("x10000"), None);
        assert_eq!(symbols.len(), 10_000);
    }

    #[test]
    fn the_empty_name_is_a_name() {
        let mut symbols = Symbols::default();
        let empty = symbols.intern("");
        assert_ne!(symbols.intern("a"), empty);
        assert_eq!(symbols.intern(""), empty);
        assert_eq!(symbols.name(empty), "");
        assert_eq!(symbols.iter().map(|(_, name)| name).collect::<Vec<_>>(), ["", "a"]);
    }
}

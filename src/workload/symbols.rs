//! Interned names: every different text gets a number, and the texts lie one behind the other in one piece of memory.

use crate::id::Symbol;

/// Interned names, numbered in order of first appearance.
#[derive(Clone, Default, Debug)]
pub struct Symbols {
    /// All names, without anything between them.
    text: String,
    /// Where each name ends in `text`.
    ends: Vec<usize>,
    /// Open-addressed hash table of number + 1; 0 is an empty place. Its length is 0 or a power of two.
    places: Vec<u32>,
}

impl Symbols {
    /// The number of `name`, given out at its first use.
    ///
    /// # Panics
    /// Beyond 2^32 - 2 different names.
    pub fn intern(&mut self, name: &str) -> Symbol {
        if self.places.len() < 2 * (self.len() + 1) {
            self.grow();
        }
        match self.place(name) {
            Ok(symbol) => symbol,
            Err(place) => {
                let number = u32::try_from(self.len()).ok().filter(|&number| number < u32::MAX - 1);
                let number = number.expect("fewer than 2^32 - 2 names");
                self.text.push_str(name);
                self.ends.push(self.text.len());
                self.places[place] = number + 1;
                Symbol(number)
            }
        }
    }

    /// The number of `name` if it was seen before.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Symbol> {
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
    fn place(&self, name: &str) -> Result<Symbol, usize> {
        let mask = self.places.len() - 1;
        let mut place = hash(name.as_bytes()) as usize & mask;
        loop {
            match self.places[place] {
                0 => return Err(place),
                number if self.bytes(number - 1) == name.as_bytes() => return Ok(Symbol(number - 1)),
                _ => place = (place + 1) & mask,
            }
        }
    }

    /// Doubles the table; at most half of it is ever in use.
    fn grow(&mut self) {
        self.places = vec![0; (2 * self.places.len()).max(16)];
        for number in 0..self.len() as u32 {
            let place = self.place(self.name(Symbol(number))).expect_err("names in the table are different");
            self.places[place] = number + 1;
        }
    }
}

/// Mixes eight bytes at a time; the upper half of a product moves down at the end, because the table uses low bits.
fn hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |state: u64, word: u64| (state.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    let mut state = bytes.len() as u64;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        state = mix(state, u64::from_le_bytes(*word));
    }
    state = mix(state, last_word(rest));
    state ^ (state >> 32)
}

/// Fewer than eight bytes as one word, which differs for different bytes of the same length.
fn last_word(rest: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
        return u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32;
    }
    match *rest {
        [] => 0,
        [first, ..] => {
            let (middle, last) = (rest[rest.len() / 2], rest[rest.len() - 1]);
            u64::from(first) | u64::from(middle) << 8 | u64::from(last) << 16
        }
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

//! A pull parser of JSON, over one line or a whole file: the caller says what it expects and gets it without intermediate values.
//!
//! Strings are borrowed from the line unless they contain escapes. Messages name the value and what was expected; the
//! caller adds the field.

use std::borrow::Cow;

/// What is wrong, in words; the caller adds where.
pub type Fault = String;

/// Values are nested at most this deep.
const MAX_DEPTH: u32 = 64;

/// A place in a JSON text.
pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Stands at the beginning of `text`.
    pub fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, at: 0 }
    }

    /// Stands behind `prefix`, if `text` begins with it.
    pub fn behind(text: &'a str, prefix: &str) -> Option<Cursor<'a>> {
        text.starts_with(prefix).then_some(Cursor { text, at: prefix.len() })
    }

    /// The next byte that is not white space, without moving over it.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            if byte > b' ' || !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    /// Bytes before this place.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Column of the next byte in its line, from 1.
    pub fn column(&self) -> usize {
        let before = &self.text[..self.at];
        before[before.rfind('\n').map_or(0, |end| end + 1)..].chars().count() + 1
    }

    /// Calls `field` for every key of an object; it must read the value.
    pub fn object(&mut self, mut field: impl FnMut(&mut Self, &str) -> Result<(), Fault>) -> Result<(), Fault> {
        self.open(b'{', "an object {…}")?;
        if self.close(b'}') {
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.take(b':')?;
            field(self, &key)?;
            if !self.more(b'}')? {
                return Ok(());
            }
        }
    }

    /// Calls `item` for every element of an array; it must read the element.
    pub fn array(&mut self, mut item: impl FnMut(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        self.open(b'[', "a list […]")?;
        if self.close(b']') {
            return Ok(());
        }
        loop {
            item(self)?;
            if !self.more(b']')? {
                return Ok(());
            }
        }
    }

    /// Moves over the opening bracket of an object or array.
    #[inline]
    pub fn open(&mut self, bracket: u8, what: &str) -> Result<(), Fault> {
        if self.peek() == Some(bracket) {
            self.at += 1;
            return Ok(());
        }
        Err(self.unexpected(what))
    }

    /// Moves over a closing bracket if it comes next.
    #[inline]
    pub fn close(&mut self, bracket: u8) -> bool {
        let found = self.peek() == Some(bracket);
        self.at += usize::from(found);
        found
    }

    /// Moves over a comma (true) or the closing bracket (false).
    #[inline]
    pub fn more(&mut self, bracket: u8) -> Result<bool, Fault> {
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == bracket => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.no_more(bracket)),
        }
    }

    /// Moves over one byte of punctuation.
    #[inline]
    pub fn take(&mut self, byte: u8) -> Result<(), Fault> {
        if self.close(byte) { Ok(()) } else { Err(self.missing(byte)) }
    }

    /// A string.
    #[inline]
    pub fn string(&mut self) -> Result<Cow<'a, str>, Fault> {
        match self.plain_string() {
            Some(text) => Ok(Cow::Borrowed(text)),
            None => self.rare_string(),
        }
    }

    /// The next key of an object behind another one, if both are written in the usual way: `,"key":`.
    #[inline]
    pub fn usual_key(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        let start = self.at + 2;
        if !bytes.get(self.at..)?.starts_with(b",\"") {
            return None;
        }
        let end = start + find_special(&bytes[start..])?;
        if !bytes[end..].starts_with(b"\":") {
            return None;
        }
        self.at = end + 2;
        Some(&self.text[start..end])
    }

    /// A string without escapes, if that comes next.
    #[inline]
    fn plain_string(&mut self) -> Option<&'a str> {
        if self.peek() != Some(b'"') {
            return None;
        }
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let end = start + find_special(&bytes[start..])?;
        if bytes[end] != b'"' {
            return None;
        }
        self.at = end + 1;
        Some(&self.text[start..end])
    }

    /// A string with escapes, or none at all.
    #[cold]
    fn rare_string(&mut self) -> Result<Cow<'a, str>, Fault> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("a text in quotes"));
        }
        let start = self.at + 1;
        match find_special(&self.text.as_bytes()[start..]) {
            Some(length) if self.text.as_bytes()[start + length] == b'\\' => self.escaped(start).map(Cow::Owned),
            Some(length) => {
                self.at = start + length;
                Err(self.syntax("control character in a text; write it as an escape such as \\n"))
            }
            None => Err(self.syntax("text without closing quote")),
        }
    }

    /// A whole number from 0 to 2^64 - 1.
    #[inline]
    pub fn integer(&mut self) -> Result<u64, Fault> {
        self.peek();
        let digits = &self.text.as_bytes()[self.at..];
        let (mut value, mut length) = (0_u64, 0);
        for digit in digits.iter().map(|byte| byte.wrapping_sub(b'0')).take_while(|&digit| digit < 10) {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            length += 1;
        }
        // Nineteen digits always fit, more may not.
        let too_large = length > 19 && self.text[self.at..self.at + length].parse() != Ok(value);
        let leading_zero = length > 1 && digits[0] == b'0';
        if length == 0 || too_large || leading_zero || matches!(digits.get(length), Some(b'.' | b'e' | b'E')) {
            return Err(self.bad_integer());
        }
        self.at += length;
        Ok(value)
    }

    /// A whole number that may be negative, within the bounds of `T`.
    pub fn signed<T: TryFrom<i128>>(&mut self, bounds: &str) -> Result<T, Fault> {
        let start = self.at;
        let negative = self.close(b'-');
        if negative && !self.text.as_bytes().get(self.at).is_some_and(u8::is_ascii_digit) {
            return Err(self.syntax("expected a digit after '-'"));
        }
        let magnitude = i128::from(self.integer()?);
        let value = if negative { -magnitude } else { magnitude };
        T::try_from(value).map_err(|_| format!("{} is out of range; use {bounds}", self.text[start..self.at].trim()))
    }

    /// Any finite number.
    pub fn number(&mut self) -> Result<f64, Fault> {
        if !matches!(self.peek(), Some(b'-' | b'0'..=b'9')) {
            return Err(self.unexpected("a number"));
        }
        let raw = self.raw_number()?;
        if let Some(whole) = small_whole(raw) {
            return Ok(f64::from(whole));
        }
        let value = raw.parse::<f64>().map_err(|_| format!("{raw} is not a number"))?;
        if value.is_finite() { Ok(value) } else { Err(format!("{raw} is too large; use a finite number")) }
    }

    /// `true` or `false`.
    pub fn boolean(&mut self) -> Result<bool, Fault> {
        if self.word("true") {
            Ok(true)
        } else if self.word("false") {
            Ok(false)
        } else {
            Err(self.unexpected("true or false"))
        }
    }

    /// Moves over `null` if it comes next.
    pub fn null(&mut self) -> bool {
        self.word("null")
    }

    /// Moves over any value and returns its text.
    pub fn raw(&mut self) -> Result<&'a str, Fault> {
        self.peek();
        let start = self.at;
        self.skip(0)?;
        Ok(&self.text[start..self.at])
    }

    /// Makes sure that nothing follows.
    pub fn end(&mut self) -> Result<(), Fault> {
        if self.peek().is_none() { Ok(()) } else { Err(self.syntax("one operation a line, but more text follows")) }
    }

    /// The message of a value of the wrong type.
    #[cold]
    pub fn unexpected(&mut self, wanted: &str) -> Fault {
        if self.peek().is_none() {
            return self.syntax(&format!("expected {wanted}"));
        }
        let start = self.at;
        match self.skip(0) {
            Ok(()) => {
                let value = shorten(&self.text[start..self.at]);
                self.at = start;
                format!("expected {wanted}, found {value}")
            }
            Err(fault) => fault,
        }
    }

    /// The message of text that is no JSON.
    #[cold]
    pub fn syntax(&mut self, message: &str) -> Fault {
        let column = self.column();
        match self.text[self.at..].chars().next() {
            Some(found) if found.is_control() => {
                format!("not valid JSON at column {column}: {message}, found '{}'", found.escape_debug())
            }
            Some(found) => format!("not valid JSON at column {column}: {message}, found '{found}'"),
            None => format!("not valid JSON: {message}, but the text ends; is it cut off?"),
        }
    }

    #[cold]
    fn no_more(&mut self, bracket: u8) -> Fault {
        self.syntax(&format!("expected ',' or '{}'", bracket as char))
    }

    #[cold]
    fn missing(&mut self, byte: u8) -> Fault {
        self.syntax(&format!("expected '{}'", byte as char))
    }

    #[cold]
    fn bad_integer(&mut self) -> Fault {
        let start = self.at;
        if !matches!(self.peek(), Some(b'-' | b'0'..=b'9')) {
            return self.unexpected("a whole number");
        }
        let raw = match self.raw_number() {
            Ok(raw) => raw,
            Err(fault) => return fault,
        };
        self.at = start;
        if raw.contains(['.', 'e', 'E']) {
            return format!("{raw} is not a whole number; write it without fraction and exponent");
        }
        if raw.starts_with('-') {
            return format!("{raw} is negative; use a whole number from 0");
        }
        format!("{} is too large; the largest is {} (2^64 - 1)", shorten(raw), u64::MAX)
    }

    fn word(&mut self, word: &str) -> bool {
        self.peek();
        let rest = &self.text.as_bytes()[self.at..];
        let found = rest.starts_with(word.as_bytes()) && !rest.get(word.len()).is_some_and(u8::is_ascii_alphanumeric);
        self.at += if found { word.len() } else { 0 };
        found
    }

    /// Moves over a number in JSON's grammar.
    fn raw_number(&mut self) -> Result<&'a str, Fault> {
        let start = self.at;
        self.at += usize::from(self.text.as_bytes().get(self.at) == Some(&b'-'));
        let whole = self.digits()?;
        if whole > 1 && self.text.as_bytes()[self.at - whole] == b'0' {
            let raw = &self.text[start..self.at];
            return Err(format!("not valid JSON: {} begins with 0; leave the zero out", shorten(raw)));
        }
        if self.text.as_bytes().get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.text.as_bytes().get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.text.as_bytes().get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(&self.text[start..self.at])
    }

    fn digits(&mut self) -> Result<usize, Fault> {
        let rest = &self.text.as_bytes()[self.at..];
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += length;
        if length == 0 { Err(self.syntax("expected a digit")) } else { Ok(length) }
    }

    fn skip(&mut self, depth: u32) -> Result<(), Fault> {
        if depth > MAX_DEPTH {
            return Err(self.syntax("values nested more than 64 deep"));
        }
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'{') => self.object(|cursor, _| cursor.skip(depth + 1)),
            Some(b'[') => self.array(|cursor| cursor.skip(depth + 1)),
            Some(b'-' | b'0'..=b'9') => self.raw_number().map(drop),
            _ if self.word("true") || self.word("false") || self.word("null") => Ok(()),
            _ => Err(self.syntax("expected a value")),
        }
    }

    /// A string with escapes; `start` is the byte behind its opening quote.
    #[cold]
    fn escaped(&mut self, start: usize) -> Result<String, Fault> {
        self.at = start;
        let mut decoded = String::new();
        loop {
            let Some(found) = self.text[self.at..].chars().next() else {
                return Err(self.syntax("text without closing quote"));
            };
            match found {
                '\0'..='\x1f' => {
                    return Err(self.syntax("control character in a text; write it as an escape such as \\n"));
                }
                '"' => {
                    self.at += 1;
                    return Ok(decoded);
                }
                '\\' => decoded.push(self.escape()?),
                plain => {
                    decoded.push(plain);
                    self.at += plain.len_utf8();
                }
            }
        }
    }

    /// One escape, from its backslash.
    fn escape(&mut self) -> Result<char, Fault> {
        let code = self.text.as_bytes().get(self.at + 1).copied();
        let decoded = match code {
            Some(plain @ (b'"' | b'\\' | b'/')) => plain as char,
            Some(b'b') => '\x08',
            Some(b'f') => '\x0c',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.syntax("unknown escape; known are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX")),
        };
        self.at += 2;
        Ok(decoded)
    }

    /// `\uXXXX`, and the second half of a surrogate pair.
    fn unicode(&mut self) -> Result<char, Fault> {
        let mut unit = || -> Option<u32> {
            let digits = self.text.get(self.at..self.at + 6)?.strip_prefix("\\u")?;
            let value = u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?;
            self.at += 6;
            Some(value)
        };
        let decoded = match unit() {
            Some(high @ 0xD800..0xDC00) => unit()
                .filter(|low| (0xDC00..0xE000).contains(low))
                .and_then(|low| char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))),
            Some(code) => char::from_u32(code),
            None => None,
        };
        decoded.ok_or_else(|| self.syntax("wrong \\u escape"))
    }
}

/// The value of a number that is nothing but a few digits.
fn small_whole(raw: &str) -> Option<u32> {
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u32::from(byte - b'0'));
    let digits = Some(raw.as_bytes()).filter(|digits| digits.len() < 10)?;
    digits.iter().try_fold(0, |value, byte| Some(value * 10 + digit(byte)?))
}

/// Which bytes end the plain part of a text: quote, backslash and control characters.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        special[byte] = true;
        byte += 1;
    }
    special[b'"' as usize] = true;
    special[b'\\' as usize] = true;
    special
};

/// The place of the first quote, backslash or control character. Most texts are so short that looking at one byte after the
/// other is fastest.
#[inline]
fn find_special(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&byte| SPECIAL[usize::from(byte)])
}

/// At most 60 characters of a value, for messages.
pub fn shorten(value: &str) -> Cow<'_, str> {
    match value.char_indices().nth(60) {
        Some((end, _)) => Cow::Owned(format!("{}…", &value[..end])),
        None => Cow::Borrowed(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integer(text: &str) -> Result<u64, String> {
        Cursor::new(text).integer()
    }

    #[test]
    fn integers_are_exact_and_nothing_else_is_an_integer() {
        assert_eq!(integer(" 18446744073709551615"), Ok(u64::MAX));
        assert_eq!(integer("0"), Ok(0));
        let wrong = |text: &str| integer(text).unwrap_err();
        assert_eq!(
            wrong("18446744073709551616"),
            "18446744073709551616 is too large; the largest is 18446744073709551615 (2^64 - 1)"
        );
        assert_eq!(wrong("1e3"), "1e3 is not a whole number; write it without fraction and exponent");
        assert_eq!(wrong("100.0"), "100.0 is not a whole number; write it without fraction and exponent");
        assert_eq!(wrong("-5"), "-5 is negative; use a whole number from 0");
        assert_eq!(wrong("007"), "not valid JSON: 007 begins with 0; leave the zero out");
        assert_eq!(wrong("\"5\""), "expected a whole number, found \"5\"");
        assert_eq!(wrong("[1, 2]"), "expected a whole number, found [1, 2]");
        assert_eq!(wrong(""), "not valid JSON: expected a whole number, but the text ends; is it cut off?");
    }

    #[test]
    fn signed_integers_stay_within_their_type() {
        assert_eq!(Cursor::new("-2147483648").signed::<i32>("32 bits"), Ok(i32::MIN));
        let wrong = Cursor::new("2147483648").signed::<i32>("32 bits").unwrap_err();
        assert_eq!(wrong, "2147483648 is out of range; use 32 bits");
        assert!(Cursor::new("-").signed::<i32>("32 bits").is_err());
    }

    #[test]
    fn strings_agree_with_another_parser() {
        for text in [r#""plain""#, r#""ü \" \\ \/ \b\f\n\r\t \u0041""#, r#""\ud83d\ude00 \uffff😀""#, r#""""#] {
            let expected: String = serde_json::from_str(text).expect("valid");
            assert_eq!(Cursor::new(text).string().expect("valid"), expected);
        }
        for text in [
            "\"open",
            "\"\u{1}\"",
            r#""\x""#,
            r#""\ud83d""#,
            r#""\ud83d\u0041""#,
            r#""\ude00""#,
            r#""\u+123""#,
            "\"\\u12\"",
            "\"\\",
        ] {
            assert!(serde_json::from_str::<String>(text).is_err());
            assert!(Cursor::new(text).string().is_err(), "{text}");
        }
    }

    #[test]
    fn special_bytes_are_found_at_every_place() {
        for length in 0..40 {
            for special in [b'"', b'\\', 0, 0x1f] {
                for filler in [b' ', b'!', b'#', b']', 0x7f, 0x80, 0xff] {
                    let mut text = vec![filler; 48];
                    assert_eq!(find_special(&text), None);
                    text[length..].fill(special);
                    assert_eq!(find_special(&text), Some(length));
                    assert_eq!(find_special(&text[..=length]), Some(length));
                }
            }
        }
    }

    #[test]
    fn raw_accepts_exactly_json() {
        let valid = ["{}", "[]", "[1,-2.5e+3,true,false,null,\"x\",{\"a\":[{}]}]", "0", "-0.0", " [ 1 , 2 ] "];
        let wrong = ["{", "[1,]", "{\"a\"}", "{\"a\":1,}", "{a:1}", "01", "1.", ".5", "1e", "tru", "nulls", "'x'", "-"];
        for text in valid {
            let mut cursor = Cursor::new(text);
            assert_eq!(cursor.raw().expect("valid"), text.trim());
            cursor.end().expect("nothing follows");
        }
        for text in wrong {
            let mut cursor = Cursor::new(text);
            assert!(cursor.raw().is_err() || cursor.end().is_err(), "{text}");
        }
        assert!(Cursor::new(&"[".repeat(100_000)).raw().is_err());
    }
}

//! Large JSON files, read with the pull parser of native traces: nothing of them is kept but what a reader takes.
//!
//! Values as other programs write them: numbers as texts, names as numbers, `null` for what is not there.

pub use crate::workload::trace::json::{Cursor, Fault};

use super::file::Input;
use super::number::{Real, Whole};
use crate::workload::WorkloadError;
use std::borrow::Cow;

impl Input {
    /// Reads the one value of the file; `remedy` says what the format looks like.
    ///
    /// # Errors
    /// When it is not JSON or not what `read` expects; names line, column, value and what is wrong.
    pub fn pull<'a, T>(
        &'a self,
        remedy: &str,
        read: impl FnOnce(&mut Cursor<'a>) -> Result<T, Fault>,
    ) -> Result<T, WorkloadError> {
        let mut cursor = Cursor::new(self.text()?);
        let value = read(&mut cursor).and_then(|value| match cursor.peek() {
            None => Ok(value),
            Some(_) => Err(cursor.syntax("more text follows the last bracket")),
        });
        value.map_err(|fault| {
            let place =
                if fault.contains(" at column ") { String::new() } else { format!("column {}: ", cursor.column()) };
            self.error_at(cursor.at(), format!("{place}{fault}; {remedy}"))
        })
    }
}

impl<'a> Cursor<'a> {
    /// Calls `item` for every element of an array that may be missing.
    pub fn list(&mut self, item: impl FnMut(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        if self.null() { Ok(()) } else { self.array(item) }
    }

    /// Calls `field` for every key of an object that may be missing.
    pub fn fields(&mut self, field: impl FnMut(&mut Self, &str) -> Result<(), Fault>) -> Result<(), Fault> {
        if self.null() { Ok(()) } else { self.object(field) }
    }

    /// Moves over a value that nobody needs.
    pub fn pass(&mut self) -> Result<(), Fault> {
        self.raw().map(drop)
    }

    /// A text; a number is its digits.
    #[inline]
    pub fn text(&mut self) -> Result<Option<Cow<'a, str>>, Fault> {
        match self.peek() {
            Some(b'"') => self.string().map(Some),
            Some(b'-' | b'0'..=b'9') => self.raw().map(|digits| Some(digits.into())),
            _ if self.null() => Ok(None),
            _ => Err(self.unexpected("a text in quotes")),
        }
    }

    /// A whole number from 0, perhaps in quotes, perhaps with a fraction of zero.
    #[inline]
    pub fn whole(&mut self) -> Result<Option<Whole>, Fault> {
        match self.peek() {
            Some(b'"') => {
                let text = self.string()?;
                let wrong = || format!("\"{}\" is not a whole number from 0 to 2^64 - 1", super::file::shown(&text));
                Whole::parse(&text).map(Some).ok_or_else(wrong)
            }
            _ if self.null() => Ok(None),
            _ => match self.integer() {
                Ok(value) => Ok(Some(Whole(value))),
                Err(fault) => self.number().ok().and_then(Whole::of).map(Some).ok_or(fault),
            },
        }
    }

    /// `true` or `false`, perhaps in quotes or as 1 or 0; what is missing is false.
    pub fn flag(&mut self) -> Result<bool, Fault> {
        match self.peek() {
            Some(b't' | b'f') => self.boolean(),
            _ => match self.text()?.as_deref() {
                Some("true" | "True" | "1") => Ok(true),
                None | Some("false" | "False" | "0") => Ok(false),
                Some(other) => Err(format!("\"{}\" is neither true nor false", super::file::shown(other))),
            },
        }
    }

    /// A finite number, perhaps in quotes.
    pub fn real(&mut self) -> Result<Option<Real>, Fault> {
        match self.peek() {
            Some(b'"') => {
                let text = self.string()?;
                let wrong = || format!("\"{}\" is not a finite number", super::file::shown(&text));
                Real::parse(&text).map(Some).ok_or_else(wrong)
            }
            _ if self.null() => Ok(None),
            _ => self.number().map(|value| Some(Real(value))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_be_written_in_several_ways() {
        let whole = |text: &str| Cursor::new(text).whole().map(|value| value.map(|Whole(value)| value));
        assert_eq!([whole("7"), whole("\"7\""), whole("7.0"), whole("7e0")], [const { Ok(Some(7)) }; 4]);
        assert_eq!(whole("null"), Ok(None));
        assert!(whole("7.5").is_err() && whole("-7").is_err() && whole("\"x\"").is_err() && whole("[]").is_err());
        let real = |text: &str| Cursor::new(text).real().map(|value| value.map(|Real(value)| value));
        assert_eq!([real("1.5"), real("\" 1.5\\t\"")], [const { Ok(Some(1.5)) }; 2]);
        assert!(real("\"NaN\"").is_err() && real("NaN").is_err() && real("1e400").is_err());
        let text = |text: &'static str| Cursor::new(text).text();
        assert_eq!([text("17"), text("\"17\"")], [const { Ok(Some(Cow::Borrowed("17"))) }; 2]);
        assert!(text("{}").is_err() && text("true").is_err());
        let flag = |text: &str| Cursor::new(text).flag();
        assert_eq!([flag("true"), flag("1"), flag("\"True\"")], [const { Ok(true) }; 3]);
        assert_eq!([flag("false"), flag("0"), flag("null")], [const { Ok(false) }; 3]);
        assert!(flag("2").is_err() && flag("[]").is_err());
    }
}

//! Sizes in bytes as people write them: `64MiB`, `1 GiB`, `1024`.

use serde::de::{Error, Visitor};
use serde::{Deserializer, de};
use std::fmt;

const UNITS: [(&str, u64); 5] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

/// The number of bytes that `text` means.
///
/// # Errors
/// The message names the text and what would be right.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = (&text[..digits], text[digits..].trim());
    let number: u64 = number.parse().map_err(|_| format!("`{text}` is not a size; write 1048576, 1024KiB or 1MiB"))?;
    if unit.starts_with('.') {
        return Err(format!("`{text}`: a size is a whole number; use a smaller unit, such as 1536KiB for 1.5MiB"));
    }
    let unit = if unit.is_empty() { "B" } else { unit };
    let (_, factor) = UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))
        .ok_or_else(|| format!("`{text}`: unknown unit `{unit}`; use B, KiB, MiB, GiB or TiB"))?;
    number.checked_mul(*factor).ok_or_else(|| format!("`{text}` is more than 2^64 bytes"))
}

/// `bytes` in the largest unit that leaves at least 1, exact when it can be: `64 MiB`, `1.50 KiB`, `340 B`.
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    let (unit, factor) = UNITS.into_iter().rfind(|(_, factor)| bytes >= *factor).unwrap_or(UNITS[0]);
    if bytes.is_multiple_of(factor) {
        format!("{} {unit}", bytes / factor)
    } else {
        format!("{:.2} {unit}", bytes as f64 / factor as f64)
    }
}

/// Reads a size from a number or a text.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_any(Size)
}

struct Size;

impl Visitor<'_> for Size {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes as a whole number or a text such as \"64MiB\"")
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<u64, E> {
        Ok(bytes)
    }

    fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<u64, E> {
        u64::try_from(bytes).map_err(|_| E::invalid_value(de::Unexpected::Signed(bytes), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        parse_bytes(text).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_unit() {
        assert_eq!(parse_bytes("1024"), Ok(1024));
        assert_eq!(parse_bytes("64MiB"), Ok(64 << 20));
        assert_eq!(parse_bytes(" 1 gib "), Ok(1 << 30));
        assert_eq!(parse_bytes("0B"), Ok(0));
    }

    #[test]
    fn a_wrong_size_says_what_would_be_right() {
        assert_eq!(parse_bytes("64MB"), Err("`64MB`: unknown unit `MB`; use B, KiB, MiB, GiB or TiB".into()));
        let told = "`1.5MiB`: a size is a whole number; use a smaller unit, such as 1536KiB for 1.5MiB";
        assert_eq!(parse_bytes("1.5MiB"), Err(told.into()));
        assert_eq!(parse_bytes("-1"), Err("`-1` is not a size; write 1048576, 1024KiB or 1MiB".into()));
        assert_eq!(parse_bytes(""), Err("`` is not a size; write 1048576, 1024KiB or 1MiB".into()));
        assert_eq!(parse_bytes("99999999TiB"), Err("`99999999TiB` is more than 2^64 bytes".into()));
    }

    #[test]
    fn sizes_are_written_in_the_largest_unit() {
        assert_eq!(format_bytes(0), "0 B");
        assert_eq!(format_bytes(340), "340 B");
        assert_eq!(format_bytes(64 << 20), "64 MiB");
        assert_eq!(format_bytes(7_143_424), "6.81 MiB");
    }
}

//! Parameters of a generator: what was typed, checked against what is known.

use super::Generator;
use crate::nearest::suggestion;
use std::ops::RangeInclusive;

/// The parameters given to one generator; the others have their defaults.
#[derive(Clone, Debug)]
pub struct Values {
    generator: &'static Generator,
    given: Vec<(&'static str, String)>,
}

impl Values {
    /// Reads `key=value,key=value`.
    pub(super) fn parse(generator: &'static Generator, text: &str) -> Result<Values, String> {
        let mut values = Values { generator, given: Vec::new() };
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(format!("{}: \"{part}\" is no parameter; write key=value", generator.name));
            };
            values.set(key.trim(), value.trim())?;
        }
        Ok(values)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let (name, parameters) = (self.generator.name, self.generator.parameters);
        let Some(parameter) = parameters.iter().find(|parameter| parameter.name == key) else {
            let known = suggestion(key, parameters.iter().map(|parameter| parameter.name));
            return Err(format!("{name}: no such parameter \"{key}\"; {known}"));
        };
        if self.given.iter().any(|(given, _)| *given == key) {
            return Err(format!("{name}: parameter \"{key}\" is given twice; keep one"));
        }
        self.given.push((parameter.name, value.into()));
        Ok(())
    }

    /// The generator they belong to.
    pub(super) fn generator_name(&self) -> &'static str {
        self.generator.name
    }

    /// The text of a parameter.
    pub(super) fn text(&self, key: &str) -> &str {
        let given = self.given.iter().find(|(given, _)| *given == key).map(|(_, value)| value.as_str());
        let default = self.generator.parameters.iter().find(|parameter| parameter.name == key);
        given.or(default.map(|parameter| parameter.default)).expect("generators ask for their own parameters")
    }

    /// A whole number, any.
    pub(super) fn number(&self, key: &str) -> Result<u64, String> {
        self.number_in(key, 0..=u64::MAX)
    }

    /// A whole number from 1.
    pub(super) fn count(&self, key: &str) -> Result<u64, String> {
        self.number_in(key, 1..=u64::MAX)
    }

    /// A whole number within bounds.
    pub(super) fn number_in(&self, key: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
        let text = self.text(key);
        let value = parse_number(text)
            .ok_or_else(|| format!("{key}={text} is not a whole number; write it like 1000, 1e6, 64k, 100M or 1G"))?;
        if range.contains(&value) {
            return Ok(value);
        }
        let (start, end) = range.into_inner();
        let bounds = if end == u64::MAX { format!("at least {start}") } else { format!("{start} to {end}") };
        Err(format!("{key}={text} is out of range; use {bounds}"))
    }

    /// One of several words, by its place in the list.
    pub(super) fn choice(&self, key: &str, choices: &[&'static str]) -> Result<usize, String> {
        let text = self.text(key);
        let found = choices.iter().position(|choice| *choice == text);
        found.ok_or_else(|| format!("{key}={text} is unknown; {}", suggestion(text, choices.iter().copied())))
    }
}

/// The product of sizes, or a message when it does not fit 64 bits.
pub(super) fn product(factors: &[u64]) -> Result<u64, String> {
    let product = factors.iter().try_fold(1_u64, |product, &factor| product.checked_mul(factor));
    product.ok_or_else(|| format!("{factors:?} multiplied is beyond 2^64; use smaller sizes"))
}

/// A whole number with decimal suffix (k, M, G, T) or exponent; a fraction is fine if the result is whole.
fn parse_number(text: &str) -> Option<u64> {
    let text = text.replace('_', "");
    let (text, scale) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 3),
        b'M' => (&text[..text.len() - 1], 6),
        b'G' => (&text[..text.len() - 1], 9),
        b'T' => (&text[..text.len() - 1], 12),
        _ => (&text[..], 0),
    };
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent = exponent.strip_prefix('+').unwrap_or(exponent);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if digits.is_empty() || !all_digits(&digits) || exponent.is_empty() || !all_digits(exponent) {
        return None;
    }
    let power = i64::from(exponent.parse::<u16>().ok()?) + scale - i64::try_from(fraction.len()).ok()?;
    let magnitude = 10_u128.checked_pow(u32::try_from(power.unsigned_abs()).ok()?);
    let digits = digits.parse::<u128>().ok()?;
    let value = match (power >= 0, magnitude) {
        (true, Some(magnitude)) => digits.checked_mul(magnitude)?,
        (false, Some(magnitude)) if digits.is_multiple_of(magnitude) => digits / magnitude,
        (true, None) if digits == 0 => 0,
        _ => return None,
    };
    u64::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_decimal_suffixes_and_exponents() {
        let expected = [
            ("0", 0),
            ("64", 64),
            ("64k", 64_000),
            ("100M", 100_000_000),
            ("1G", 1_000_000_000),
            ("1e6", 1_000_000),
            ("1.5M", 1_500_000),
            ("2.50e1", 25),
            ("1_000", 1000),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, value) in expected {
            assert_eq!(parse_number(text), Some(value), "{text}");
        }
        for text in ["", "k", "-1", "1.5", "1e", "e3", "0x10", "1e400", "18446744073709551616", "ten", "1e-3", "."] {
            assert_eq!(parse_number(text), None, "{text}");
        }
    }
}

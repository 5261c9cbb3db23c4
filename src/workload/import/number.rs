//! Numbers as other programs write them: as JSON numbers or as texts, whole numbers also with a fraction of zero.

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use std::fmt;

/// A whole number that is not negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Whole(pub u64);

/// A finite number.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Real(pub f64);

impl Whole {
    /// Reads digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Whole> {
        text.trim().parse().ok().map(Whole)
    }

    /// The number that a fraction is, if it is a whole one that a fraction can hold.
    #[must_use]
    pub fn of(value: f64) -> Option<Whole> {
        let is_whole = value >= 0.0 && value.fract() == 0.0 && value < 9_007_199_254_740_992.0;
        is_whole.then_some(Whole(value as u64))
    }
}

impl Real {
    /// Reads a finite number; a trailing tab or blank does not matter.
    #[must_use]
    pub fn parse(text: &str) -> Option<Real> {
        text.trim().parse().ok().filter(|value: &f64| value.is_finite()).map(Real)
    }
}

/// `true` or `false`, also as texts or as 1 and 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flag(pub bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Flag, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        match value.as_str().map_or_else(|| value.to_string(), str::to_owned).as_str() {
            "true" | "True" | "1" => Ok(Flag(true)),
            "false" | "False" | "0" => Ok(Flag(false)),
            other => Err(D::Error::custom(format!("{} is neither true nor false", super::file::shown(other)))),
        }
    }
}

/// For fields in which `null` means the same as nothing.
pub fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

struct WholeVisitor;

impl Visitor<'_> for WholeVisitor {
    type Value = Whole;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0 to 2^64 - 1")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Whole, E> {
        Ok(Whole(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Whole, E> {
        u64::try_from(value).map(Whole).map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Whole, E> {
        Whole::of(value).ok_or_else(|| E::invalid_value(Unexpected::Float(value), &self))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Whole, E> {
        Whole::parse(value).ok_or_else(|| E::invalid_value(Unexpected::Str(value), &self))
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Whole, D::Error> {
        deserializer.deserialize_any(WholeVisitor)
    }
}

struct RealVisitor;

impl Visitor<'_> for RealVisitor {
    type Value = Real;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a finite number")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Real, E> {
        Ok(Real(value as f64))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Real, E> {
        Ok(Real(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Real, E> {
        Ok(Real(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Real, E> {
        Real::parse(value).ok_or_else(|| E::invalid_value(Unexpected::Str(value), &self))
    }
}

impl<'de> Deserialize<'de> for Real {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Real, D::Error> {
        deserializer.deserialize_any(RealVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_be_texts_but_not_nonsense() {
        let whole = |text: &str| serde_json::from_str::<Whole>(text).ok().map(|Whole(value)| value);
        assert_eq!(whole("\"18446744073709551615\""), Some(u64::MAX));
        assert_eq!(whole("3.0"), Some(3));
        assert_eq!([whole("-1"), whole("1.5"), whole("\"x\""), whole("1e300"), whole("null")], [None; 5]);
        let real = |text: &str| serde_json::from_str::<Real>(text).ok().map(|Real(value)| value);
        assert_eq!(real("\"1784177220816722.850\\t\""), Some(1_784_177_220_816_722.8));
        let flag = |text: &str| serde_json::from_str::<Flag>(text).ok().map(|Flag(value)| value);
        assert_eq!(
            [flag("true"), flag("1"), flag("\"false\""), flag("2")],
            [Some(true), Some(true), Some(false), None]
        );
        assert_eq!([real("\"NaN\""), real("\"inf\""), real("[]"), real("\"\"")], [None; 4]);
    }
}

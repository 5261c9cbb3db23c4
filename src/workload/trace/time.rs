//! Dates and times of RFC 3339, to the microsecond and in UTC.

use super::json::Fault;

const MICROS: i64 = 1_000_000;

/// Microseconds since 1970-01-01T00:00:00Z of a text such as `2026-03-01T09:30:00.25+01:00`.
pub fn parse(text: &str) -> Result<i64, Fault> {
    let wrong = || format!("\"{text}\" is not a time; write it like 2026-03-01T09:30:00Z");
    let bytes = text.as_bytes();
    let well_formed = bytes.len() >= 19
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && matches!(bytes[10], b'T' | b't' | b' ')
        && bytes[13] == b':'
        && bytes[16] == b':';
    let number = |from: usize, to: usize| digits(bytes, from, to).ok_or_else(wrong);
    if !well_formed {
        return Err(wrong());
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let in_range = (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !in_range {
        return Err(format!("\"{text}\" is not a time: a part is out of its range"));
    }
    let (micros, rest) = fraction(&bytes[19..]).ok_or_else(wrong)?;
    let offset = offset(text, rest)?;
    let seconds = days_before(year, month, day) * 86_400 + (hour * 60 + minute) * 60 + second - offset * 60;
    Ok(seconds * MICROS + micros)
}

/// The text of a time, in UTC.
pub fn format(utc_micros: i64) -> String {
    let (seconds, micros) = (utc_micros.div_euclid(MICROS), utc_micros.rem_euclid(MICROS));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

fn digits(bytes: &[u8], from: usize, to: usize) -> Option<i64> {
    let part = bytes.get(from..to)?;
    part.iter().try_fold(0, |value, byte| byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0')))
}

/// Microseconds of a fraction, cut behind the sixth digit, and what follows it.
fn fraction(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let Some(part) = bytes.strip_prefix(b".") else { return Some((0, bytes)) };
    let length = part.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 {
        return None;
    }
    let micros = (0..6).fold(0, |value, place| {
        let digit = if place < length { i64::from(part[place] - b'0') } else { 0 };
        value * 10 + digit
    });
    Some((micros, &part[length..]))
}

/// Minutes east of UTC.
fn offset(text: &str, rest: &[u8]) -> Result<i64, Fault> {
    match rest {
        [] => Err(format!("\"{text}\" has no offset from UTC; add an offset such as Z")),
        [b'Z' | b'z'] => Ok(0),
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let parts = digits(rest, 1, 3).zip(digits(rest, 4, 6));
            let Some((hours, minutes)) = parts.filter(|&(hours, minutes)| hours < 24 && minutes < 60) else {
                return Err(format!("\"{text}\" has a wrong offset; write it like +08:00"));
            };
            let total = hours * 60 + minutes;
            Ok(if *sign == b'-' { -total } else { total })
        }
        _ => Err(format!("\"{text}\" has a wrong offset; write Z or one like +08:00")),
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let leap_days = |year: i64| year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let years = (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969);
    let months: i64 = (1..month).map(|month| days_in_month(year, month)).sum();
    years + months + day - 1
}

/// The date that is `days` after 1970-01-01.
fn date(days: i64) -> (i64, i64, i64) {
    let mut year = 1970 + days.div_euclid(365).min(days.div_euclid(366));
    while days_before(year + 1, 1, 1) <= days {
        year += 1;
    }
    let mut month = 1;
    while month < 12 && days_before(year, month + 1, 1) <= days {
        month += 1;
    }
    (year, month, days - days_before(year, month, 1) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        assert_eq!(parse("1970-01-01T00:00:00Z"), Ok(0));
        assert_eq!(parse("1970-01-01t01:00:00.5+01:00"), Ok(500_000));
        assert_eq!(parse("2000-02-29 23:59:59z"), Ok(951_868_799_000_000));
        assert_eq!(parse("1969-12-31T23:59:59.123456789Z"), Ok(-876_544));
        assert_eq!(parse("2026-03-01T09:30:00-00:30"), parse("2026-03-01T10:00:00Z"));
    }

    #[test]
    fn every_time_survives_writing_and_reading() {
        let mut micros: i64 = -62_167_219_200_000_000;
        while micros < 253_402_300_799_999_999 {
            assert_eq!(parse(&format(micros)), Ok(micros));
            micros += 86_399_999_999 * 37;
        }
    }

    #[test]
    fn wrong_times_say_what_to_write() {
        let naive = parse("2026-03-01T09:30:00").unwrap_err();
        assert_eq!(naive, "\"2026-03-01T09:30:00\" has no offset from UTC; add an offset such as Z");
        for text in ["", "now", "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z", "2026-02-01T24:00:00Z"] {
            assert!(parse(text).is_err(), "{text}");
        }
        for text in
            ["2026-02-01T00:00:00.Z", "2026-02-01T00:00:00+8", "2026-02-01T00:00:00+25:00", "２026-02-01T00:00:00Z"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}

//! Numbers and sentences as people read them.

/// `1234567` as `1 234 567`.
#[must_use]
pub fn group(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A mean as `1 234.5`.
pub(super) fn decimal(number: f64) -> String {
    let tenths = (number * 10.0).round() as u64;
    format!("{}.{}", group(tenths / 10), tenths % 10)
}

/// `part` of `whole`, from 0 to 1; 0 of nothing is 0.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A share for a table: `61.4 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A share for a sentence: `61 %`, `0.4 %`. Only the whole is 100 %, only nothing is 0 %.
pub(super) fn about(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 || percent >= 100.0 {
        format!("{percent:.0} %")
    } else if !(1.0..99.0).contains(&percent) {
        format!("{:.1} %", percent.clamp(0.1, 99.9))
    } else {
        format!("{percent:.0} %")
    }
}

/// A count with its noun: `1 task`, `2 tasks`.
pub fn count(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", group(number))
}

/// Text without what moves the cursor of a terminal.
#[must_use]
pub fn plain(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// A name as it fits into a line of text: not too long, and without what moves the cursor of a terminal.
pub(super) fn short(name: &str) -> String {
    const MOST_CHARACTERS: usize = 48;
    let mut short: String = plain(name).chars().take(MOST_CHARACTERS).collect();
    if name.chars().nth(MOST_CHARACTERS).is_some() {
        short.pop();
        short.push('…');
    }
    short
}

/// `cycles` at `mhz` as a time: `18.9 µs`.
pub(super) fn duration(cycles: u64, mhz: u64) -> String {
    let micros = cycles as f64 / mhz.max(1) as f64;
    match micros {
        us if us < 1.0 => format!("{:.0} ns", us * 1e3),
        us if us < 1e3 => format!("{us:.2} µs"),
        us if us < 1e6 => format!("{:.2} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// `text` in lines of at most `width` characters; a longer word gets a line of its own. Numbers stay whole, and an option
/// such as `--set` stays with its value.
#[must_use]
pub fn wrap(text: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut used = 0;
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let mut piece = word.to_owned();
        while let Some(next) = words.next_if(|next| belongs_together(&piece, next)) {
            piece = format!("{piece} {next}");
        }
        let length = piece.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push('\n');
            used = 0;
        } else if used > 0 {
            lines.push(' ');
            used += 1;
        }
        lines.push_str(&piece);
        used += length;
    }
    lines
}

/// Whether a line must not break between these two: the groups of a number, a number and its `%`, an option and its value.
fn belongs_together(before: &str, after: &str) -> bool {
    let is_number = before.ends_with(|c: char| c.is_ascii_digit());
    let is_group = after.len() >= 3 && after.bytes().take(3).all(|byte| byte.is_ascii_digit());
    let is_option = before.starts_with("--") && !before.contains(' ');
    is_option || is_number && (is_group || after.starts_with('%'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        assert_eq!(group(0), "0");
        assert_eq!(group(999), "999");
        assert_eq!(group(1000), "1 000");
        assert_eq!(decimal(1234.56), "1 234.6");
        assert_eq!(group(u64::MAX), "18 446 744 073 709 551 615");
    }

    #[test]
    fn nearly_all_is_not_all_and_hardly_anything_is_not_nothing() {
        assert_eq!(about(0.0), "0 %");
        assert_eq!(about(0.00001), "0.1 %");
        assert_eq!(about(0.614), "61 %");
        assert_eq!(about(0.99999), "99.9 %");
        assert_eq!(about(1.0), "100 %");
    }

    #[test]
    fn long_names_are_cut_and_no_name_moves_the_cursor() {
        assert_eq!(short("gemm \"<b>\" 😀"), "gemm \"<b>\" 😀");
        assert_eq!(short("a\nb\u{1b}[2J"), "a b [2J");
        assert_eq!(short(&"é".repeat(48)), "é".repeat(48));
        assert_eq!(short(&"é".repeat(10_000)), "é".repeat(47) + "…");
    }

    #[test]
    fn times_take_the_fitting_unit() {
        assert_eq!(duration(185, 1850), "100 ns");
        assert_eq!(duration(34_900, 1850), "18.86 µs");
        assert_eq!(duration(1850 * 1_500_000, 1850), "1.50 s");
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("one two three", 7), "one two\nthree");
        assert_eq!(wrap("try --set a=1 or --set b=2", 12), "try\n--set a=1 or\n--set b=2");
        assert_eq!(wrap("now 12 345 678 cycles", 12), "now\n12 345 678\ncycles");
        assert_eq!(wrap("a part of 98 % here", 11), "a part of\n98 % here");
        assert_eq!(wrap("incomprehensible to me", 5), "incomprehensible\nto me");
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }
}

//! The report as one HTML file that needs nothing else: style, scripts and data are inside, and no name of a trace is ever
//! read as markup.
//!
//! ```text
//! page.html with style.css and the scripts | the report as JSON | head of the timeline as JSON | its bytes in base64
//! ```

use super::blame::PathStep;
use super::pack::pack;
use super::{Report, Timeline};
use serde::Serialize;
use std::io::{self, BufWriter, Write};

const PAGE: &str = include_str!("assets/page.html");
const STYLE: &str = include_str!("assets/style.css");
const SCRIPTS: [&str; 7] = [
    include_str!("assets/basics.js"),
    include_str!("assets/data.js"),
    include_str!("assets/colours.js"),
    include_str!("assets/timeline.js"),
    include_str!("assets/browse.js"),
    include_str!("assets/charts.js"),
    include_str!("assets/page.js"),
];

/// What was recorded while a run went on.
pub struct Recording<'a> {
    /// What ran when.
    pub timeline: &'a mut Timeline,
    /// The observed critical path; empty when it was not recorded.
    pub path: &'a [PathStep],
}

/// Writes the page of a report; without a recording it has no timeline and says so.
///
/// # Errors
/// Those of `writer`.
pub fn write_html(report: &Report, recording: Option<Recording<'_>>, writer: impl Write) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(1 << 16, writer);
    let (before_style, rest) = PAGE.split_once("/*style*/").expect("the page has a place for its style");
    let (before_data, rest) = rest.split_once("<!--data-->").expect("the page has a place for its data");
    let (before_scripts, rest) = rest.split_once("/*scripts*/").expect("the page has a place for its scripts");
    writer.write_all(before_style.as_bytes())?;
    writer.write_all(STYLE.as_bytes())?;
    writer.write_all(before_data.as_bytes())?;
    json(&mut writer, "ptosim-report", report)?;
    if let Some(Recording { timeline, path }) = recording {
        let (head, bytes) = pack(timeline, path, &report.machine);
        json(&mut writer, "ptosim-timeline", &head)?;
        writer.write_all(b"<script type=\"text/plain\" id=\"ptosim-bytes\">")?;
        base64(&mut writer, &bytes)?;
        writer.write_all(b"</script>\n")?;
    }
    writer.write_all(before_scripts.as_bytes())?;
    for script in SCRIPTS {
        writer.write_all(script.as_bytes())?;
    }
    writer.write_all(rest.as_bytes())?;
    writer.flush()
}

/// A value as a block of JSON. In JSON a `<` can only stand inside a text, where it may also be written as a number; so the
/// block cannot be ended by anything in it.
fn json(writer: &mut impl Write, id: &str, value: &impl Serialize) -> io::Result<()> {
    write!(writer, "<script type=\"application/json\" id=\"{id}\">")?;
    let text = serde_json::to_string(value)?;
    writer.write_all(text.replace('<', "\\u003c").as_bytes())?;
    writer.write_all(b"</script>\n")
}

fn base64(writer: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |word: u32, place: u32| DIGITS[(word >> (6 * place) & 63) as usize];
    let mut line = Vec::with_capacity(4 << 12);
    for piece in bytes.chunks(3 << 12) {
        line.clear();
        let (triples, rest) = piece.as_chunks::<3>();
        for &[a, b, c] in triples {
            let word = u32::from(a) << 16 | u32::from(b) << 8 | u32::from(c);
            line.extend_from_slice(&[digit(word, 3), digit(word, 2), digit(word, 1), digit(word, 0)]);
        }
        match *rest {
            [a] => {
                let word = u32::from(a) << 16;
                line.extend_from_slice(&[digit(word, 3), digit(word, 2), b'=', b'=']);
            }
            [a, b] => {
                let word = u32::from(a) << 16 | u32::from(b) << 8;
                line.extend_from_slice(&[digit(word, 3), digit(word, 2), digit(word, 1), b'=']);
            }
            _ => {}
        }
        writer.write_all(&line)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn bytes_become_base64() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            let mut out = Vec::new();
            base64(&mut out, bytes.as_bytes()).expect("memory does not fail");
            assert_eq!(String::from_utf8(out).expect("digits"), text);
        }
    }

    #[test]
    fn no_name_can_end_the_data() {
        let mut report = sample::waits_for_dependencies();
        report.workload = "</script><script>alert(1)</script><!--".into();
        report.kernels[0].name = "<b>&\"'".into();
        let mut page = Vec::new();
        write_html(&report, None, &mut page).expect("memory does not fail");
        let page = String::from_utf8(page).expect("a page is UTF-8");
        assert!(!page.contains("alert(1)</script>") && !page.contains("<b>&"));
        let data = page.split("id=\"ptosim-report\">").nth(1).and_then(|rest| rest.split("</script>").next());
        let back: Report = serde_json::from_str(data.expect("the data are there")).expect("still JSON");
        assert_eq!(back, report);
    }

    #[test]
    fn a_page_asks_nothing_of_the_network() {
        for text in SCRIPTS.iter().chain([&PAGE, &STYLE]) {
            for mark in ["http:", "https:", "@import", "src=", "url(", "innerHTML", "fetch(", "eval("] {
                assert!(!text.replace("http://www.w3.org/2000/svg", "").contains(mark), "{mark}");
            }
        }
    }
}

//! The report as one HTML file with a timeline.
//!
//! ```text
//! blocks of data: the report as JSON | head of the timeline as JSON | its bytes in base64
//! ```

use super::pack::{PackedPath, pack};
use super::page::{json_block, write_page};
use super::{Report, Timeline};
use crate::engine::journal::Names;
use std::io::{self, BufWriter, Write};

const SCRIPTS: [&str; 5] = [
    include_str!("assets/data.js"),
    include_str!("assets/timeline.js"),
    include_str!("assets/browse.js"),
    include_str!("assets/workers.js"),
    include_str!("assets/page.js"),
];

/// What was recorded while a run went on.
pub struct Recording<'a> {
    /// What ran when.
    pub timeline: &'a mut Timeline,
    /// The observed critical path; empty when it was not recorded.
    pub path: &'a PackedPath,
    /// Names of tasks and kernels.
    pub names: &'a Names,
}

/// Writes the page of a report; without a recording it has no timeline and says so.
///
/// # Errors
/// Those of `writer`.
pub fn write_html(report: &Report, recording: Option<Recording<'_>>, writer: impl Write) -> io::Result<()> {
    let data = |writer: &mut BufWriter<_>| {
        json_block(writer, "ptosim-report", report)?;
        let Some(Recording { timeline, path, names }) = recording else { return Ok(()) };
        let (head, pieces) = pack(timeline, path, names, &report.machine);
        json_block(writer, "ptosim-timeline", &head)?;
        writer.write_all(b"<script type=\"text/plain\" id=\"ptosim-bytes\">")?;
        base64(writer, pieces.iter().map(|piece| &**piece))?;
        writer.write_all(b"</script>\n")
    };
    write_page(writer, data, &SCRIPTS)
}

/// Bytes that come in pieces as one text. What is left of a piece goes together with the beginning of the next.
fn base64<'a>(writer: &mut impl Write, pieces: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
    let mut line = vec![[0; 4]; 1 << 14];
    let mut left = Vec::with_capacity(3);
    for mut piece in pieces {
        if !left.is_empty() {
            let (few, rest) = piece.split_at(piece.len().min(3 - left.len()));
            left.extend_from_slice(few);
            let &[triple] = left.as_chunks::<3>().0 else { continue };
            writer.write_all(&digits(triple))?;
            left.clear();
            piece = rest;
        }
        let (triples, rest) = piece.as_chunks::<3>();
        for some in triples.chunks(line.len()) {
            line.iter_mut().zip(some).for_each(|(four, &triple)| *four = digits(triple));
            writer.write_all(line[..some.len()].as_flattened())?;
        }
        left.extend_from_slice(rest);
    }
    if !left.is_empty() {
        let n_digits = left.len() + 1;
        left.resize(3, 0);
        let mut last = digits([left[0], left[1], left[2]]);
        last[n_digits..].fill(b'=');
        writer.write_all(&last)?;
    }
    Ok(())
}

#[inline(always)]
fn digits([a, b, c]: [u8; 3]) -> [u8; 4] {
    let word = u32::from(a) << 16 | u32::from(b) << 8 | u32::from(c);
    let [high, low] = [PAIRS[(word >> 12) as usize], PAIRS[(word & 0xfff) as usize]];
    [high[0], high[1], low[0], low[1]]
}

/// The two digits of every twelve bits.
static PAIRS: [[u8; 2]; 1 << 12] = {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut pairs = [[0; 2]; 1 << 12];
    let mut bits = 0;
    while bits < pairs.len() {
        pairs[bits] = [DIGITS[bits >> 6], DIGITS[bits & 63]];
        bits += 1;
    }
    pairs
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::page::assert_self_contained;
    use crate::report::sample;

    #[test]
    fn bytes_become_base64_however_they_are_cut() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            for cut in 1..=7 {
                let mut out = Vec::new();
                base64(&mut out, bytes.as_bytes().chunks(cut).chain([&[][..]])).expect("memory does not fail");
                assert_eq!(String::from_utf8(out).expect("digits"), text);
            }
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
        assert_self_contained(&SCRIPTS);
    }
}

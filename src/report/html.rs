//! The report as one HTML file with a timeline.
//!
//! ```text
//! blocks of data: the report as JSON | head of the timeline as JSON | its bytes in base64
//! ```

use super::behind::behind;
use super::pack::{PackedPath, pack};
use super::page::{json_block, write_page};
use super::pen::{Pen, ROOM};
use super::{Report, Timeline};
use crate::engine::journal::Names;
use std::io::{self, Write};

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
pub fn write_html(report: &Report, recording: Option<Recording<'_>>, writer: impl Write + Send) -> io::Result<()> {
    let data = |pen: &mut Pen<_>| {
        json_block(pen, "ptosim-report", report)?;
        let Some(Recording { timeline, path, names }) = recording else { return Ok(()) };
        let (head, pieces) = pack(timeline, path, names, &report.machine);
        json_block(pen, "ptosim-timeline", &head)?;
        pen.text(b"<script type=\"text/plain\" id=\"ptosim-bytes\">");
        base64(pen, pieces.iter().map(|piece| &**piece));
        pen.text(b"</script>\n");
        Ok(())
    };
    behind(writer, |writer| write_page(writer, data, &SCRIPTS))
}

/// Bytes that come in pieces as one text. What is left of a piece goes together with the beginning of the next.
fn base64<'a, W: Write>(pen: &mut Pen<W>, pieces: impl Iterator<Item = &'a [u8]>) {
    let mut left = Vec::with_capacity(6);
    for mut piece in pieces {
        if !left.is_empty() {
            let (few, rest) = piece.split_at(piece.len().min(6 - left.len()));
            left.extend_from_slice(few);
            let &[six] = left.as_chunks::<6>().0 else { continue };
            pen.text(&digits(six));
            left.clear();
            piece = rest;
        }
        let (sixes, rest) = piece.as_chunks::<6>();
        for some in sixes.chunks(ROOM / 8) {
            pen.put(|place| {
                let places = place.as_chunks_mut::<8>().0;
                places.iter_mut().zip(some).for_each(|(eight, &six)| *eight = digits(six));
                8 * some.len()
            });
        }
        left.extend_from_slice(rest);
    }
    let (n_digits, n_bytes) = ((left.len() * 4).div_ceil(3), left.len().div_ceil(3) * 4);
    left.resize(6, 0);
    let mut last = digits(*left.first_chunk().expect("six bytes"));
    last[n_digits..].fill(b'=');
    pen.text(&last[..n_bytes]);
}

/// Six bytes as eight digits.
#[inline(always)]
fn digits(six: [u8; 6]) -> [u8; 8] {
    let mut word = [0; 8];
    word[2..].copy_from_slice(&six);
    let word = u64::from_be_bytes(word);
    let pair = |shift: u32| u64::from(PAIRS[(word >> shift & 0xfff) as usize]);
    (pair(36) | pair(24) << 16 | pair(12) << 32 | pair(0) << 48).to_le_bytes()
}

/// The two digits of every twelve bits, the first in the lower byte.
static PAIRS: [u16; 1 << 12] = {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut pairs = [0; 1 << 12];
    let mut bits = 0;
    while bits < pairs.len() {
        pairs[bits] = u16::from_le_bytes([DIGITS[bits >> 6], DIGITS[bits & 63]]);
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
        let texts = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy", "Zm9vYmFyLg=="];
        for (length, text) in texts.into_iter().enumerate() {
            for cut in 1..=9 {
                let mut pen = Pen::new(Vec::new());
                base64(&mut pen, b"foobar."[..length].chunks(cut).chain([&[][..]]));
                assert_eq!(pen.finish().expect("memory does not fail"), text.as_bytes());
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

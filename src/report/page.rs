//! One HTML file that needs nothing else: style, scripts and data are inside, and no name of a trace is ever read as markup.
//!
//! ```text
//! page.html with style.css | blocks of data | scripts that draw them
//! ```

use super::pen::Pen;
use serde::Serialize;
use std::io::{self, Write};

const PAGE: &str = include_str!("assets/page.html");
const STYLE: &str = include_str!("assets/style.css");
/// What the scripts of every page start with.
const BASICS: [&str; 3] =
    [include_str!("assets/basics.js"), include_str!("assets/colours.js"), include_str!("assets/charts.js")];

/// Writes a page whose blocks come from `data` and are drawn by `scripts`.
///
/// # Errors
/// Those of `writer`.
pub(crate) fn write_page<W: Write>(
    writer: W,
    data: impl FnOnce(&mut Pen<W>) -> io::Result<()>,
    scripts: &[&str],
) -> io::Result<()> {
    let mut pen = Pen::new(writer);
    let (before_style, rest) = PAGE.split_once("/*style*/").expect("the page has a place for its style");
    let (before_data, rest) = rest.split_once("<!--data-->").expect("the page has a place for its data");
    let (before_scripts, rest) = rest.split_once("/*scripts*/").expect("the page has a place for its scripts");
    [before_style, STYLE, before_data].iter().for_each(|text| pen.text(text.as_bytes()));
    data(&mut pen)?;
    pen.text(before_scripts.as_bytes());
    BASICS.iter().chain(scripts).chain([&rest]).for_each(|text| pen.text(text.as_bytes()));
    pen.finish()?.flush()
}

/// A value as a block of JSON. In JSON a `<` can only stand inside a text, where it may also be written as a number; so the
/// block cannot be ended by anything in it.
///
/// # Errors
/// Those of `writer`.
pub(crate) fn json_block(writer: &mut impl Write, id: &str, value: &impl Serialize) -> io::Result<()> {
    write!(writer, "<script type=\"application/json\" id=\"{id}\">")?;
    let text = serde_json::to_string(value)?;
    writer.write_all(text.replace('<', "\\u003c").as_bytes())?;
    writer.write_all(b"</script>\n")
}

/// Whether a part of a page asks something of the network or reads a text as markup.
#[cfg(test)]
pub(crate) fn assert_self_contained(texts: &[&str]) {
    for text in texts.iter().chain(&BASICS).chain([&PAGE, &STYLE]) {
        for mark in ["http:", "https:", "@import", "src=", "url(", "innerHTML", "fetch(", "eval("] {
            assert!(!text.replace("http://www.w3.org/2000/svg", "").contains(mark), "{mark}");
        }
    }
}

//! A comparison of policies as one HTML file: makespans against the lower bound, where the cycles went, and the table.

use super::Comparison;
use super::page::{json_block, write_page};
use std::io::{self, Write};

const SCRIPTS: [&str; 1] = [include_str!("assets/compare.js")];

/// Writes the page of a comparison.
///
/// # Errors
/// Those of `writer`.
pub fn write_comparison(comparison: &Comparison, writer: impl Write) -> io::Result<()> {
    write_page(writer, |writer| json_block(writer, "ptosim-comparison", comparison), &SCRIPTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::page::assert_self_contained;
    use crate::report::{Row, sample};

    #[test]
    fn the_page_holds_the_comparison_and_no_name_ends_it() {
        let report = sample::waits_for_dependencies();
        let rows = vec![Row::of(&report), Row::failed("lifo", "</script><script>alert(1)</script>".into())];
        let comparison = Comparison::new("<b>\u{2028}'\"".into(), &report.machine, rows);
        let mut page = Vec::new();
        write_comparison(&comparison, &mut page).expect("memory does not fail");
        let page = String::from_utf8(page).expect("a page is UTF-8");
        assert!(!page.contains("alert(1)</script>") && !page.contains("<b>\u{2028}"));
        let data = page.split("id=\"ptosim-comparison\">").nth(1).and_then(|rest| rest.split("</script>").next());
        let back: Comparison = serde_json::from_str(data.expect("the data are there")).expect("still JSON");
        assert_eq!(back, comparison);
    }

    #[test]
    fn a_page_asks_nothing_of_the_network() {
        assert_self_contained(&SCRIPTS);
    }
}

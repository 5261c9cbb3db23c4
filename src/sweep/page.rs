//! A sweep as one HTML page without anything from outside: a scatter plot and a heat map to play with, and a table.

use super::row::Row;
use crate::report::page::{json_block, write_page};
use serde_json::{Value, json};

const SCRIPTS: [&str; 1] = [include_str!("page.js")];

/// The page of a sweep.
#[must_use]
pub fn page(name: &str, rows: &[Row], keys: &[String]) -> String {
    let rows: Vec<Value> = rows.iter().map(|row| cells(row, keys)).collect();
    let data = json!({ "name": name, "keys": keys, "rows": rows });
    let mut page = Vec::new();
    write_page(&mut page, |writer| json_block(writer, "ptosim-sweep", &data), &SCRIPTS).expect("memory does not fail");
    String::from_utf8(page).expect("a page is UTF-8")
}

fn cells(row: &Row, keys: &[String]) -> Value {
    let settings: Vec<&str> = keys.iter().map(|key| row.settings.get(key).map_or("", String::as_str)).collect();
    json!([
        row.workload,
        row.machine,
        row.policy,
        row.outcome,
        row.makespan,
        row.workers,
        row.memory,
        row.efficiency,
        settings
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::page::assert_self_contained;

    #[test]
    fn nothing_in_a_name_can_end_the_data() {
        let text = page("</script><b>", &[], &["a".into()]);
        assert!(!text.contains("</script><b>") && text.contains("\\u003c/script>\\u003cb>"));
    }

    #[test]
    fn a_page_asks_nothing_of_the_network() {
        assert_self_contained(&SCRIPTS);
    }
}

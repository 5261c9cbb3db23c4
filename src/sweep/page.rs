//! A sweep as one HTML page without anything from outside: a scatter plot and a heat map to play with, and a table.

use super::row::Row;
use super::summary::Summary;
use serde_json::{Value, json};

const PAGE: &str = include_str!("page.html");

/// The page of a sweep.
#[must_use]
pub fn page(name: &str, rows: &[Row], keys: &[String], summary: &Summary) -> String {
    let front: Vec<usize> = summary.best.iter().flat_map(|best| best.front.iter().copied()).collect();
    let rows: Vec<Value> = rows.iter().map(|row| cells(row, keys)).collect();
    let data = json!({ "name": name, "keys": keys, "rows": rows, "front": front, "effects": summary.effects });
    // Inside a script only the end of the script could be mistaken.
    let data = data.to_string().replace("</", "<\\/").replace("<!--", "<\\!--");
    PAGE.replace("\"@DATA@\"", &data)
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
    use crate::sweep::summarize;

    #[test]
    fn nothing_in_a_name_can_end_the_script() {
        let text = page("</script><b>", &[], &["a".into()], &summarize(&[], &[]));
        assert!(!text.contains("</script><b>") && text.contains("<\\/script><b>"));
        assert!(!text.contains("@DATA@") && !text.contains("http://") && !text.contains("https://"));
    }
}

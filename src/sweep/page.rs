//! A sweep as one HTML page without anything from outside: a scatter plot and a heat map to play with, and a table.

use super::row::Row;
use serde_json::{Value, json};

const PAGE: &str = include_str!("page.html");

/// The page of a sweep.
#[must_use]
pub fn page(name: &str, rows: &[Row], keys: &[String]) -> String {
    let data =
        json!({ "name": name, "keys": keys, "rows": rows.iter().map(|row| cells(row, keys)).collect::<Vec<_>>() });
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

    #[test]
    fn nothing_in_a_name_can_end_the_script() {
        let text = page("</script><b>", &[], &["a".into()]);
        assert!(!text.contains("</script><b>") && text.contains("<\\/script><b>"));
        assert!(!text.contains("@DATA@") && !text.contains("http://") && !text.contains("https://"));
    }
}

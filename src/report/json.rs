//! The report as JSON: indented, keys in the order of the values, a line feed at the end.

use super::Report;
use serde::Serialize;
use std::io::{self, Write};

/// Writes the `--json` form of `report`.
///
/// # Errors
/// Those of `writer`.
pub fn write_json(report: &Report, writer: impl Write) -> io::Result<()> {
    write_pretty(report, writer)
}

/// Writes a value as indented JSON with a line feed at the end.
///
/// # Errors
/// Those of `writer`.
pub fn write_pretty(value: &impl Serialize, mut writer: impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut writer, value)?;
    writer.write_all(b"\n")?;
    writer.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn json_comes_back_as_the_same_report() {
        for report in [sample::waits_for_dependencies(), sample::deadlock()] {
            let mut bytes = Vec::new();
            write_json(&report, &mut bytes).expect("memory does not fail");
            assert!(bytes.ends_with(b"}\n"));
            let back: Report = serde_json::from_slice(&bytes).expect("our own form");
            assert_eq!(back, report);
        }
    }

    #[test]
    fn keys_stand_in_the_documented_order() {
        let mut bytes = Vec::new();
        write_json(&sample::deadlock(), &mut bytes).expect("memory does not fail");
        let text = String::from_utf8(bytes).expect("JSON is UTF-8");
        let keys: Vec<&str> =
            text.lines().filter(|line| line.starts_with("  \"")).filter_map(|line| line.split('"').nth(1)).collect();
        let expected = "format version workload machine policy engine outcome makespan finish tasks edges blocks ended \
                        workers orchestrator scheduler bounds high_water latency kernels deadlock notes policy_report \
                        verdict";
        assert_eq!(keys.join(" "), expected);
    }
}

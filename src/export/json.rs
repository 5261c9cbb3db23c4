//! JSON text, written piece by piece.

use std::io::{self, Write};

/// A text with quotes, as JSON has it.
pub fn text(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}

/// Writes items one a line, with commas between them.
pub fn lines<T>(
    output: &mut dyn Write,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut dyn Write, T) -> io::Result<()>,
) -> io::Result<()> {
    for (place, item) in items.into_iter().enumerate() {
        output.write_all(if place == 0 { b"\n" } else { b",\n" })?;
        write(output, item)?;
    }
    Ok(())
}

/// Numbers with commas between them.
pub fn numbers(values: impl IntoIterator<Item = u64>) -> String {
    values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>().join(",")
}

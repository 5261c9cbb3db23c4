//! Tables without lines, for the texts people read.

use comfy_table::{Cell, CellAlignment, Color, Table, presets};

/// Rows under a header: the first column to the left, numbers to the right. Ends with a line feed, empty without rows.
#[must_use]
pub fn columns(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = plain(header);
    table.add_rows(rows);
    numbers(table).map_or(String::new(), |table| table.trim_fmt() + "\n")
}

/// A table without lines, two spaces between its columns.
pub(super) fn plain(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).enforce_styling();
    table.style_text_only();
    if !header.is_empty() {
        // A styled empty cell would leave blanks at the end of the line.
        table.set_header(header.iter().map(|title| match *title {
            "" => Cell::new(""),
            title => Cell::new(title).fg(Color::DarkGrey),
        }));
    }
    table
}

/// Aligns all columns but the first to the right and sets the gaps, once the rows are there.
pub(super) fn numbers(mut table: Table) -> Option<Table> {
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    (!table.is_empty()).then_some(table)
}

//! Tables without lines, for the texts people read.

use comfy_table::{Cell, CellAlignment, Color, Table, presets};

/// Rows under a header, which may be absent: words and the first column to the left, numbers to the right. Ends with a line
/// feed; empty without rows.
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

/// Sets gaps and alignment once the rows are there: columns of numbers to the right. Nothing without rows.
pub(super) fn numbers(mut table: Table) -> Option<Table> {
    let columns = table.column_count();
    // A formula begins like a number, but reads from the left.
    let is_number = |cell: &Cell| {
        let text = cell.content();
        text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains('+')
    };
    let numeric: Vec<bool> =
        (0..columns).map(|index| index > 0 && table.column_cells_iter(index).flatten().all(is_number)).collect();
    for (column, numeric) in table.column_iter_mut().zip(numeric) {
        column.set_padding((0, 2));
        if numeric {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    (!table.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anstream::adapter::strip_str;

    #[test]
    fn numbers_stand_to_the_right_and_words_and_formulas_to_the_left() {
        let rows = [["1", "7", "1 + n"], ["beta", "12 %", "3"]].map(|row| row.map(str::to_owned).to_vec());
        let text = columns(&["name", "part", "words"], &rows);
        assert_eq!(strip_str(&text).to_string(), "name  part  words\n1        7  1 + n\nbeta  12 %  3\n");
        assert_eq!(columns(&["name"], &[]), "");
        assert_eq!(columns(&[], &rows[..1]), "1  7  1 + n\n");
    }
}

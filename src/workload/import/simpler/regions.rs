//! Views of tensors as regions of bytes.

use super::super::number::Whole;
use super::model::{Arg, element_bytes};
use crate::id::BufferId;
use crate::workload::Region;

/// A view that is in more pieces than this is taken as all bytes from its first to its last.
const PIECES: u64 = 4096;

/// The bytes of an argument, and whether they are exact.
///
/// # Errors
/// When the numbers do not fit into 64 bits or do not belong together.
pub fn regions(arg: &Arg<'_>, buffer: BufferId) -> Result<(Vec<Region>, bool), String> {
    if arg.strides.len() != arg.shape.len() && !arg.strides.is_empty() {
        return Err(format!("{} strides for {} dimensions; give as many", arg.strides.len(), arg.shape.len()));
    }
    let too_large = || "the view ends beyond 2^63 bytes; check shape, strides and start_offset".to_owned();
    let element = element_bytes(arg.dtype.as_deref());
    let offset = arg.start_offset.unwrap_or_default().0.checked_mul(element).ok_or_else(too_large)?;
    let Some(dimensions) = dimensions(arg, element).ok_or_else(too_large)? else {
        return Ok((vec![Region::range(buffer, offset, 0)], true));
    };
    let span =
        dimensions.iter().try_fold(0_u64, |span, &(count, stride)| span.checked_add((count - 1).checked_mul(stride)?));
    let end = span.and_then(|span| span.checked_add(element)?.checked_add(offset));
    let end = end.filter(|&end| end < 1 << 63).ok_or_else(too_large)?;
    let (row, rows, outer) = split(&dimensions, element);
    let pieces = outer.iter().try_fold(1_u64, |pieces, &(count, _)| pieces.checked_mul(count));
    if pieces.is_none_or(|pieces| pieces > PIECES) || rows.is_some_and(|(count, stride)| count > 1 && stride < row) {
        return Ok((vec![Region::range(buffer, offset, end - offset)], false));
    }
    let mut starts = vec![offset];
    for &(count, stride) in outer {
        starts = starts.iter().flat_map(|start| (0..count).map(move |index| start + index * stride)).collect();
    }
    let region = |offset| match rows {
        Some((rows, stride)) => Region { buffer, offset, row_bytes: row, rows, stride },
        None => Region::range(buffer, offset, row),
    };
    Ok((starts.into_iter().map(region).collect(), true))
}

/// Count and stride in bytes of the dimensions that have more than one element, outermost first. The inner `None` is an empty
/// view, the outer one a number that is too large.
fn dimensions(arg: &Arg<'_>, element: u64) -> Option<Option<Vec<(u64, u64)>>> {
    let mut found = Vec::new();
    let mut dense = element;
    for (index, &Whole(count)) in arg.shape.iter().enumerate().rev() {
        if count == 0 {
            return Some(None);
        }
        let stride = match arg.strides.get(index) {
            Some(&Whole(stride)) => stride.checked_mul(element)?,
            None => dense,
        };
        dense = dense.checked_mul(count)?;
        if count > 1 && stride > 0 {
            found.push((count, stride));
        }
    }
    found.reverse();
    Some(Some(found))
}

/// How often, and how many bytes apart.
type Dimension = (u64, u64);

/// The bytes of one row, the rows, and what is left outside of them. Dimensions that touch become one.
fn split(dimensions: &[Dimension], element: u64) -> (u64, Option<Dimension>, &[Dimension]) {
    let (mut row, mut left) = (element, dimensions);
    while let Some((&(count, stride), outer)) = left.split_last() {
        if stride != row {
            break;
        }
        row *= count;
        left = outer;
    }
    match left.split_last() {
        Some((&rows, outer)) => (row, Some(rows), outer),
        None => (row, None, left),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(shape: &[u64], strides: &[u64], offset: u64) -> Result<(Vec<Region>, bool), String> {
        let numbers = |values: &[u64]| values.iter().copied().map(Whole).collect();
        let arg = Arg {
            kind: "INPUT".into(),
            tensor_id: None,
            dtype: Some("FLOAT16".into()),
            shape: numbers(shape),
            start_offset: Some(Whole(offset)),
            strides: numbers(strides),
        };
        regions(&arg, BufferId(0))
    }

    #[test]
    fn views_become_rows_of_bytes() {
        let buffer = BufferId(0);
        let one = |shape: &[u64], strides: &[u64]| view(shape, strides, 8).expect("fits").0;
        assert_eq!(one(&[4, 16], &[16, 1]), [Region::range(buffer, 16, 128)]);
        assert_eq!(one(&[1, 16], &[999, 1]), [Region::range(buffer, 16, 32)]);
        let rows = Region { buffer, offset: 16, row_bytes: 32, rows: 4, stride: 200 };
        assert_eq!(one(&[4, 16], &[100, 1]), [rows]);
        assert_eq!(one(&[2, 4, 16], &[1000, 100, 1]), [rows, Region { offset: 2016, ..rows }]);
        assert_eq!(one(&[0, 16], &[16, 1]), [Region::range(buffer, 16, 0)]);
        assert_eq!(one(&[], &[]), [Region::range(buffer, 16, 2)]);
        assert_eq!(view(&[5000, 2, 2], &[100, 10, 3], 0), Ok((vec![Region::range(buffer, 0, 999_828)], false)));
        assert!(view(&[u64::MAX, 3], &[u64::MAX, 1], 0).expect_err("large").contains("2^63"));
        assert!(view(&[3, 3], &[1], 0).expect_err("short").contains("1 strides for 2 dimensions"));
    }
}

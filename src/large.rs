//! Lists that grow large, in large pages where the system has them: a page of 4 KiB that is used for the first time costs microseconds.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "advice on memory takes an address"))]

/// Values of the first piece of memory.
const FEW: usize = 1 << 12;

/// Appends a value.
#[inline(always)]
pub(crate) fn push<T>(list: &mut Vec<T>, value: T) {
    if list.len() == list.capacity() {
        grow(list);
    }
    list.push(value);
}

#[cold]
#[inline(never)]
fn grow<T>(list: &mut Vec<T>) {
    list.reserve(list.len().max(FEW));
    prefer_large_pages(list);
}

/// Asks for large pages for a list that takes several of them. It makes no difference but in time, so a refusal is no error.
///
/// The pages at both ends are asked for as a whole: a large list has them for itself, and can only be moved by the system without
/// being copied as long as all its pages are of one sort.
#[cfg(target_os = "linux")]
fn prefer_large_pages<T>(list: &mut Vec<T>) {
    use rustix::mm::{Advice, madvise};
    const PAGE: usize = 1 << 12;
    const LARGE_PAGE: usize = 1 << 21;
    let start = list.as_mut_ptr().cast::<u8>();
    let before = start.addr() % PAGE;
    let length = (before + list.capacity() * size_of::<T>()).next_multiple_of(PAGE);
    if length >= 2 * LARGE_PAGE {
        // SAFETY: the advice changes nothing about what is in the memory, neither in that of the list nor beside it.
        let _ = unsafe { madvise(start.wrapping_sub(before).cast(), length, Advice::LinuxHugepage) };
    }
}

#[cfg(not(target_os = "linux"))]
fn prefer_large_pages<T>(_list: &mut Vec<T>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_list_holds_what_was_appended() {
        let mut list = Vec::new();
        (0..3_000_000_u64).for_each(|number| push(&mut list, number));
        assert!(list.into_iter().eq(0..3_000_000));
    }
}

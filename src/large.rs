//! Lists that grow large, in large pages where the system has them: a page of 4 KiB that is used for the first time costs microseconds.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "advice on memory takes an address"))]

/// Values of the first piece of memory.
const FEW: usize = 1 << 12;
/// Bytes beyond which a list is moved to large pages: by then it will hardly stay much smaller than one of them.
const SMALL: usize = 1 << 18;
/// Bytes of which one large page at least is a part, wherever they begin.
pub(crate) const LARGE: usize = 1 << 22;

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
    let least = if list.len() * size_of::<T>() < SMALL { FEW } else { LARGE / size_of::<T>() };
    reserve(list, list.len().max(least));
}

/// Makes room for so many more values.
pub(crate) fn reserve<T>(list: &mut Vec<T>, more: usize) {
    list.reserve(more);
    prefer_large_pages(list);
}

/// Makes the list one of so many equal values.
pub(crate) fn fill<T: Clone>(list: &mut Vec<T>, length: usize, value: T) {
    list.clear();
    if length > list.capacity() {
        reserve(list, length);
    }
    list.resize(length, value);
}

/// So many zeros.
pub(crate) fn zeros(length: usize) -> Vec<u8> {
    let mut list = vec![0; length];
    prefer_large_pages(&mut list);
    list
}

/// Asks for large pages for a list that takes several of them. It makes no difference but in time, so a refusal is no error.
///
/// The pages at both ends are asked for as a whole: a large list has them for itself, and can only be moved by the system without
/// being copied as long as all its pages are of one sort.
#[cfg(target_os = "linux")]
fn prefer_large_pages<T>(list: &mut Vec<T>) {
    use rustix::mm::{Advice, madvise};
    const PAGE: usize = 1 << 12;
    let start = list.as_mut_ptr().cast::<u8>();
    let before = start.addr() % PAGE;
    let length = (before + list.capacity() * size_of::<T>()).next_multiple_of(PAGE);
    if length >= LARGE {
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
        assert!(list.iter().copied().eq(0..3_000_000));
        fill(&mut list, 5_000_000, 7);
        assert!(list.len() == 5_000_000 && list.iter().all(|&number| number == 7));
        assert!(zeros(LARGE + 1).iter().all(|&number| number == 0));
    }
}

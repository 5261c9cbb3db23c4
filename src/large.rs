//! Lists that grow large, in large pages where the system has them: a page of 4 KiB that is used for the first time costs microseconds.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "advice on memory takes an address"))]

use zerocopy::FromZeros;

/// Values of the first piece of memory, if nobody knows how many to expect.
const FEW: usize = 1 << 12;

/// Bytes beyond which a list that grows is moved to large pages: by then it will hardly stay much smaller than one of them.
const SMALL: usize = 1 << 18;

const LARGE_PAGE: usize = 1 << 21;

/// A list that takes less than this stays in small pages: a large one costs as much as a quarter of its small ones.
const LARGE: usize = LARGE_PAGE / 2;

/// What the allocator and rounding may take of the pages of a list.
const SPARE: usize = 64;

/// Bytes that fill two large pages.
pub(crate) const TWO_PAGES: usize = 2 * LARGE_PAGE - SPARE;

/// Has the allocator of this process give every large list memory of its own from the system, however many it has freed. Otherwise it
/// puts the later ones behind each other, where large pages do not fit. For programs, not for libraries, to decide.
pub fn keep_apart() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// What is as large as this stands apart.
        const BYTES: libc::c_int = 1 << 20;
        // SAFETY: it sets a number that the allocator looks at under its own lock.
        let _ = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, BYTES) };
    }
}

/// Appends a value.
#[inline(always)]
pub(crate) fn push<T>(list: &mut Vec<T>, value: T) {
    push_expecting(list, value, || FEW);
}

/// Appends a value to a list that will have about so many. What is expected and does not come takes no memory.
#[inline(always)]
pub(crate) fn push_expecting<T>(list: &mut Vec<T>, value: T, expected: impl FnOnce() -> usize) {
    if list.len() < list.capacity() {
        list.push(value);
    } else {
        let more = if list.is_empty() { expected() } else { list.len() };
        push_growing(list, value, more);
    }
}

/// Appends some values to a list that will have about so many.
#[inline(always)]
pub(crate) fn extend_expecting<T>(
    list: &mut Vec<T>,
    values: impl ExactSizeIterator<Item = T>,
    expected: impl FnOnce() -> usize,
) {
    if list.capacity() - list.len() < values.len() {
        let more = if list.is_empty() { expected() } else { list.len() };
        grow(list, more.max(values.len()));
    }
    list.extend(values);
}

/// An empty list with room for `count` values.
pub(crate) fn with_capacity<T>(count: usize) -> Vec<T> {
    let mut list = Vec::new();
    reserve(&mut list, count);
    list
}

/// A list of `count` zeros.
pub(crate) fn zeroed<T: FromZeros>(count: usize) -> Vec<T> {
    let mut list = T::new_vec_zeroed(filling_pages::<T>(count)).expect("there is memory for a list of every task");
    prefer_large_pages(&mut list);
    list.truncate(count);
    list
}

#[cold]
#[inline(never)]
fn push_growing<T>(list: &mut Vec<T>, value: T, more: usize) {
    grow(list, more);
    list.push(value);
}

#[cold]
#[inline(never)]
fn grow<T>(list: &mut Vec<T>, more: usize) {
    let least = if list.len() * size_of::<T>() < SMALL { 1 } else { LARGE / size_of::<T>() };
    reserve(list, more.max(least));
}

/// Makes room for so many more values.
pub(crate) fn reserve<T>(list: &mut Vec<T>, more: usize) {
    let capacity = filling_pages::<T>(list.len() + more);
    list.reserve_exact(capacity - list.len());
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

/// How many values fill the large pages that so many take. The system puts memory that is as long as some large pages where they can
/// begin.
fn filling_pages<T>(count: usize) -> usize {
    let bytes = count * size_of::<T>();
    if bytes < LARGE {
        return count;
    }
    ((bytes + SPARE).next_multiple_of(LARGE_PAGE) - SPARE) / size_of::<T>()
}

/// Asks for large pages for a list that takes any. It makes no difference but in time, so a refusal is no error.
///
/// The pages at both ends are asked for as a whole: a large list has them for itself, and can only be moved by the system without
/// being copied as long as all its pages are of one sort. The allocator has used the first small page by now, so the first large one
/// must be asked for by itself.
#[cfg(target_os = "linux")]
fn prefer_large_pages<T>(list: &mut Vec<T>) {
    const PAGE: usize = 1 << 12;
    let start = list.as_mut_ptr().cast::<u8>();
    let before = start.addr() % PAGE;
    let length = (before + list.capacity() * size_of::<T>()).next_multiple_of(PAGE);
    if length >= LARGE_PAGE {
        let begin = start.wrapping_sub(before).cast();
        // SAFETY: the advice changes nothing about what is in the memory, neither in that of the list nor beside it.
        let _ = unsafe { libc::madvise(begin, length, libc::MADV_HUGEPAGE) };
        // SAFETY: as above.
        let _ = unsafe { libc::madvise(begin, LARGE_PAGE, libc::MADV_COLLAPSE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn prefer_large_pages<T>(_list: &mut Vec<T>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_list_holds_what_was_appended() {
        for expected in [0, 1, 1_000, 400_000, 5_000_000] {
            let mut list = Vec::new();
            (0..3_000_000_u64).for_each(|number| push_expecting(&mut list, number, || expected));
            assert!(list.into_iter().eq(0..3_000_000));
        }
        let mut list = Vec::new();
        (0..3_000_000_u64).for_each(|number| push(&mut list, number));
        assert!(list.iter().copied().eq(0..3_000_000));
        fill(&mut list, 5_000_000, 7);
        assert!(list.len() == 5_000_000 && list.iter().all(|&number| number == 7));
    }

    #[test]
    fn zeros_are_as_many_as_asked_for() {
        for count in [0, 1, 1_000, LARGE / 8, 3_000_000] {
            let list: Vec<u64> = zeroed(count);
            assert!(list.len() == count && list.iter().all(|&number| number == 0));
            assert!(with_capacity::<u64>(count).capacity() >= count);
        }
    }
}

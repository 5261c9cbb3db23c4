//! Where the window's arrays live: in the heap of the process or in a mapped file. Both look like a slice.
#![expect(unsafe_code, reason = "a mapped file is seen as a slice of words")]

use super::zeroed;
#[cfg(not(loom))]
use memmap2::MmapMut;
use memmap2::MmapRaw;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
#[cfg(not(loom))]
use zerocopy::FromZeros;

/// Bytes of a large page.
#[cfg(not(loom))]
const LARGE_PAGE: usize = 1 << 21;

/// An array that never moves.
pub struct Span<T> {
    first: NonNull<T>,
    len: usize,
    /// The mapping that must outlive it; `None` when it is a box of its own.
    mapping: Option<Arc<MmapRaw>>,
}

/// A type that the bytes of a file may be seen as: plain atomic words, valid whatever the bytes say.
///
/// # Safety
/// Every bit pattern must be a valid value, and every change must go through atomics.
pub unsafe trait AnyBytes {}

// SAFETY: an atomic integer is valid for every bit pattern and changed atomically only.
unsafe impl AnyBytes for std::sync::atomic::AtomicU32 {}
// SAFETY: as above.
unsafe impl AnyBytes for std::sync::atomic::AtomicU64 {}
// SAFETY: `repr(C)` structures of atomic integers of the shared kind.
#[cfg(not(loom))]
unsafe impl AnyBytes for super::Slot<crate::sync::Shared> {}
// SAFETY: as above.
#[cfg(not(loom))]
unsafe impl AnyBytes for super::Ring<crate::sync::Shared> {}
// SAFETY: as above.
#[cfg(not(loom))]
unsafe impl AnyBytes for super::Entry<crate::sync::Shared> {}

impl<T> From<Box<[T]>> for Span<T> {
    fn from(array: Box<[T]>) -> Span<T> {
        let len = array.len();
        let first = NonNull::from(Box::leak(array)).cast();
        Span { first, len, mapping: None }
    }
}

#[cfg(not(loom))]
impl<T: FromZeros> Span<T> {
    /// Zeroed memory that the system hands out as it is touched: large arrays in large pages, where it has them. `None` if there is
    /// not so much.
    #[must_use]
    pub fn try_zeroed(len: usize) -> Option<Span<T>> {
        let bytes = len.checked_mul(size_of::<T>())?;
        if cfg!(miri) || bytes < LARGE_PAGE {
            return Some(zeroed(len).into());
        }
        // Arrays of whole large pages begin with one.
        let mapping = MmapMut::map_anon(bytes.checked_next_multiple_of(LARGE_PAGE)?).ok()?;
        // It makes no difference but in time, so a refusal is no error.
        #[cfg(target_os = "linux")]
        let _ = mapping.advise(memmap2::Advice::HugePage);
        let mapping = MmapRaw::from(mapping);
        let first = NonNull::new(mapping.as_mut_ptr().cast::<T>()).expect("a mapping lies somewhere");
        assert!(first.is_aligned(), "pages are aligned for everything");
        Some(Span { first, len, mapping: Some(Arc::new(mapping)) })
    }
}

#[cfg(loom)]
impl<T: Default> Span<T> {
    /// Vacant slots, free entries, empty rings.
    #[must_use]
    pub fn try_zeroed(len: usize) -> Option<Span<T>> {
        Some(zeroed(len).into())
    }
}

impl<T: AnyBytes> Span<T> {
    /// `len` values from byte `offset` of a mapping on; `None` when they would not lie inside it or not be aligned.
    #[must_use]
    pub fn mapped(mapping: &Arc<MmapRaw>, offset: usize, len: usize) -> Option<Span<T>> {
        let end = len.checked_mul(size_of::<T>())?.checked_add(offset)?;
        if end > mapping.len() || !offset.is_multiple_of(align_of::<T>()) {
            return None;
        }
        // SAFETY: `offset` is at most the length of the mapping.
        let first = unsafe { mapping.as_mut_ptr().add(offset) };
        let first = NonNull::new(first.cast::<T>()).filter(|first| first.is_aligned())?;
        Some(Span { first, len, mapping: Some(Arc::clone(mapping)) })
    }
}

impl<T> Deref for Span<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the box is owned, or the mapping is held; both contain `len` valid values, changed through atomics or by one thread.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

impl<T> Drop for Span<T> {
    fn drop(&mut self) {
        if self.mapping.is_none() {
            let array = std::ptr::slice_from_raw_parts_mut(self.first.as_ptr(), self.len);
            // SAFETY: it came from a box of this length, which nobody else owns.
            drop(unsafe { Box::from_raw(array) });
        }
    }
}

// SAFETY: it owns its values like a box, or shares them like a reference to `Sync` ones.
unsafe impl<T: Send + Sync> Send for Span<T> {}
// SAFETY: it gives out shared references only.
unsafe impl<T: Sync> Sync for Span<T> {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    #[test]
    fn a_mapping_gives_out_only_what_lies_inside_it() {
        let mapping: Arc<MmapRaw> = Arc::new(memmap2::MmapMut::map_anon(4096).expect("a page").into());
        let words = Span::<AtomicU64>::mapped(&mapping, 8, 511).expect("inside");
        words[510].store(7, Relaxed);
        assert_eq!(words[510].load(Relaxed), 7);
        assert!(Span::<AtomicU64>::mapped(&mapping, 8, 512).is_none(), "one word too many");
        assert!(Span::<AtomicU64>::mapped(&mapping, 4, 1).is_none(), "not aligned");
        assert!(Span::<AtomicU64>::mapped(&mapping, usize::MAX - 7, 1).is_none(), "overflows");
    }
}

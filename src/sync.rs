//! Words of memory that one thread owns or several share.
//!
//! The window is written once, over a [`Sharing`]: the virtual engine takes [`Local`], plain cells without any
//! synchronisation; threads and processes take [`Shared`], atomics. Both have the same size and layout.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64};
use std::cell::Cell;
use std::sync::atomic::Ordering;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64};

#[cfg(loom)]
pub use loom::thread::{Thread, current, park};
#[cfg(not(loom))]
pub use std::thread::{Thread, current, park};

/// A type of which all zeros is a valid value. Models under loom cannot use zeroed memory and take the default instead.
#[cfg(not(loom))]
pub use zerocopy::FromZeros as Zeroed;

/// A type of which all zeros is a valid value. Models under loom cannot use zeroed memory and take the default instead.
#[cfg(loom)]
pub trait Zeroed: Default {}
#[cfg(loom)]
impl<T: Default> Zeroed for T {}

/// A word of memory that is read and changed through a shared reference.
pub trait Word<T>: Default {
    /// A word that holds `value`.
    fn new(value: T) -> Self;
    /// Its value.
    fn load(&self, order: Ordering) -> T;
    /// Gives it a value.
    fn store(&self, value: T, order: Ordering);
    /// Gives it a value and returns the old one.
    fn swap(&self, value: T, order: Ordering) -> T;
    /// Adds, and returns the old value.
    fn fetch_add(&self, value: T, order: Ordering) -> T;
    /// Subtracts, and returns the old value.
    fn fetch_sub(&self, value: T, order: Ordering) -> T;
    /// Sets bits, and returns the old value.
    fn fetch_or(&self, value: T, order: Ordering) -> T;
    /// Keeps bits, and returns the old value.
    fn fetch_and(&self, value: T, order: Ordering) -> T;
    /// Makes it at least `value`, and returns the old value.
    fn fetch_max(&self, value: T, order: Ordering) -> T;
    /// Stores `new` if the value is `current`.
    ///
    /// # Errors
    /// The value found, if it was another.
    fn compare_exchange(&self, current: T, new: T, success: Ordering, failure: Ordering) -> Result<T, T>;
}

/// Which words a structure is made of.
pub trait Sharing: Default + 'static {
    /// Whether others may change the words at the same time.
    const SHARED: bool;
    /// 32 bits.
    type U32: Word<u32> + Zeroed;
    /// 64 bits.
    type U64: Word<u64> + Zeroed;
    /// A sequentially consistent fence: of two threads that each write, pass a fence and read what the other wrote, at least
    /// one sees the other's write.
    fn fence();
}

/// Words of a single thread: every operation is a plain load or store, orderings mean nothing.
#[derive(Debug, Default)]
pub struct Local;

/// Words of several threads or processes.
#[derive(Debug, Default)]
pub struct Shared;

impl Sharing for Local {
    const SHARED: bool = false;
    type U32 = Cell<u32>;
    type U64 = Cell<u64>;
    #[inline]
    fn fence() {}
}

impl Sharing for Shared {
    const SHARED: bool = true;
    type U32 = AtomicU32;
    type U64 = AtomicU64;
    #[inline]
    fn fence() {
        #[cfg(loom)]
        loom::sync::atomic::fence(Ordering::SeqCst);
        #[cfg(not(loom))]
        std::sync::atomic::fence(Ordering::SeqCst);
    }
}

macro_rules! words {
    ($value:ty, $atomic:ty) => {
        impl Word<$value> for Cell<$value> {
            #[inline]
            fn new(value: $value) -> Self {
                Cell::new(value)
            }
            #[inline]
            fn load(&self, _: Ordering) -> $value {
                self.get()
            }
            #[inline]
            fn store(&self, value: $value, _: Ordering) {
                self.set(value);
            }
            #[inline]
            fn swap(&self, value: $value, _: Ordering) -> $value {
                self.replace(value)
            }
            #[inline]
            fn fetch_add(&self, value: $value, _: Ordering) -> $value {
                self.replace(self.get().wrapping_add(value))
            }
            #[inline]
            fn fetch_sub(&self, value: $value, _: Ordering) -> $value {
                self.replace(self.get().wrapping_sub(value))
            }
            #[inline]
            fn fetch_or(&self, value: $value, _: Ordering) -> $value {
                self.replace(self.get() | value)
            }
            #[inline]
            fn fetch_and(&self, value: $value, _: Ordering) -> $value {
                self.replace(self.get() & value)
            }
            #[inline]
            fn fetch_max(&self, value: $value, _: Ordering) -> $value {
                self.replace(self.get().max(value))
            }
            #[inline]
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                _: Ordering,
                _: Ordering,
            ) -> Result<$value, $value> {
                if self.get() == current { Ok(self.replace(new)) } else { Err(self.get()) }
            }
        }

        impl Word<$value> for $atomic {
            fn new(value: $value) -> Self {
                <$atomic>::new(value)
            }
            #[inline]
            fn load(&self, order: Ordering) -> $value {
                self.load(order)
            }
            #[inline]
            fn store(&self, value: $value, order: Ordering) {
                self.store(value, order);
            }
            #[inline]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.swap(value, order)
            }
            #[inline]
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.fetch_add(value, order)
            }
            #[inline]
            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.fetch_sub(value, order)
            }
            #[inline]
            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.fetch_or(value, order)
            }
            #[inline]
            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.fetch_and(value, order)
            }
            #[inline]
            fn fetch_max(&self, value: $value, order: Ordering) -> $value {
                self.fetch_max(value, order)
            }
            #[inline]
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }
        }
    };
}

words!(u32, AtomicU32);
words!(u64, AtomicU64);

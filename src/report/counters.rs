//! The numbers over time of an export: what changes within an instant is told once it is over, and only if it is another value.

use super::export::Sheets;

/// Values of the present instant, written when time moves on.
pub(super) struct Counters {
    values: Vec<Value>,
    now: u64,
    /// Those that differ from what was written: a bit for each place.
    changed: Vec<u64>,
}

#[derive(Clone, Copy, Default)]
struct Value {
    now: u64,
    written: Option<u64>,
}

impl Counters {
    /// All are to be written.
    pub(super) fn new(n_counters: usize) -> Counters {
        let changed = (0..n_counters.div_ceil(64)).map(|word| u64::MAX >> (64 - (n_counters - 64 * word).min(64)));
        Counters { values: vec![Value::default(); n_counters], now: 0, changed: changed.collect() }
    }

    /// Values that are changed from here on are those of `now`.
    #[inline(always)]
    pub(super) fn advance(&mut self, now: u64, sheets: &mut impl Sheets) {
        if now != self.now {
            self.write(sheets);
            self.now = now;
        }
    }

    /// Changes some that follow each other.
    #[inline(always)]
    pub(super) fn change<const N: usize>(&mut self, first: usize, change: impl FnOnce([u64; N]) -> [u64; N]) {
        let values: &mut [Value; N] = self.values[first..].first_chunk_mut().expect("there are so many counters");
        let new = change(values.map(|value| value.now));
        for ((value, new), place) in values.iter_mut().zip(new).zip(first..) {
            value.now = new;
            let (word, bit) = (&mut self.changed[place / 64], 1 << (place % 64));
            // Most changes are taken back within the instant.
            *word = if value.written == Some(new) { *word & !bit } else { *word | bit };
        }
    }

    /// Writes those that differ from what was written.
    #[inline]
    pub(super) fn write(&mut self, sheets: &mut impl Sheets) {
        if self.changed.iter().any(|&changed| changed != 0) {
            self.write_changed(sheets);
        }
    }

    #[inline(never)]
    fn write_changed(&mut self, sheets: &mut impl Sheets) {
        for (word, changed) in self.changed.iter_mut().enumerate() {
            let mut bits = std::mem::take(changed);
            while bits != 0 {
                let index = 64 * word + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let value = &mut self.values[index];
                value.written = Some(value.now);
                tell_counter(sheets, index, value.now, self.now);
            }
        }
    }
}

/// Most looks find nothing to tell, so that nothing is prepared for it before.
#[inline(never)]
fn tell_counter(sheets: &mut impl Sheets, counter: usize, value: u64, now: u64) {
    sheets.counter(counter, value, now);
}

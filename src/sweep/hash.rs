//! FNV-1a in 128 bits: the same on every machine and in every version, short enough to read in a table.

const START: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// A hash in the making.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hash(u128);

impl Hash {
    /// Of nothing.
    pub fn new() -> Hash {
        Hash(START)
    }

    /// With more bytes, and their number, so that two parts never look like one.
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Hash {
        let length = (bytes.len() as u64).to_le_bytes();
        let mut state = self.0;
        for &byte in bytes.iter().chain(&length) {
            state = (state ^ u128::from(byte)).wrapping_mul(PRIME);
        }
        Hash(state)
    }

    /// As 32 hexadecimal digits.
    pub fn text(self) -> String {
        format!("{:032x}", self.0)
    }
}

/// `SplitMix64` of three numbers: the dice of random sweeps.
pub fn dice(seed: u64, point: u64, axis: u64) -> u64 {
    let mut z = seed;
    for number in [point, axis] {
        z = z.wrapping_add(number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
    }
    z
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fixed_and_parts_do_not_run_into_each_other() {
        assert_eq!(Hash::new().text(), "6c62272e07bb014262b821756295c58d");
        assert_ne!(Hash::new().with(b"ab").with(b"c"), Hash::new().with(b"a").with(b"bc"));
        assert_ne!(Hash::new().with(b"").with(b"a"), Hash::new().with(b"a").with(b""));
    }

    #[test]
    fn dice_depend_on_all_three_numbers() {
        assert_ne!(dice(1, 2, 3), dice(1, 3, 2));
        assert_ne!(dice(1, 2, 3), dice(2, 2, 3));
        assert_eq!(dice(7, 8, 9), dice(7, 8, 9));
    }
}

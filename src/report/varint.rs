//! Numbers in as few bytes as they need: seven bits a byte, the lowest first.

/// Appends a number.
#[inline]
pub(super) fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// A few numbers that are put together here and appended at once, which takes a fraction of the time.
pub(super) struct Record {
    bytes: [u8; Record::ROOM],
    length: usize,
}

impl Record {
    /// Bytes that fit: six of the longest numbers and a few bytes more.
    const ROOM: usize = 64;

    #[inline]
    pub(super) fn new() -> Record {
        Record { bytes: [0; Record::ROOM], length: 0 }
    }

    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
    }

    #[inline]
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    /// Appends the numbers. Copying all the room and cutting it off takes no call, other than copying what is in use.
    #[inline]
    pub(super) fn append_to(&self, bytes: &mut Vec<u8>) {
        let end = bytes.len() + self.length;
        bytes.extend_from_slice(&self.bytes);
        bytes.truncate(end);
    }
}

/// The bytes that [`push`] appends.
#[inline]
pub(super) fn length(number: u64) -> usize {
    (u64::BITS - (number | 1).leading_zeros()).div_ceil(7) as usize
}

/// The difference `new - old` as a number that is small when the two are close: 0, -1, 1, -2, … become 0, 1, 2, 3, …
#[inline]
pub(super) fn zigzag(new: u64, old: u64) -> u64 {
    let difference = new.wrapping_sub(old).cast_signed();
    ((difference << 1) ^ (difference >> 63)).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_take_one_byte_and_differences_keep_their_sign() {
        let mut bytes = Vec::new();
        for number in [0, 127, 128, 300, u64::MAX] {
            push(&mut bytes, number);
        }
        assert_eq!(bytes[..6], [0, 127, 0x80, 1, 0xac, 2]);
        assert_eq!(bytes.len(), 6 + 10);
        assert_eq!([0, 127, 128, 300, u64::MAX].map(length), [1, 1, 2, 2, 10]);
        let (mut record, mut appended) = (Record::new(), vec![1, 2, 3]);
        [0, 127, 128, 300, u64::MAX].into_iter().for_each(|number| record.number(number));
        record.append_to(&mut appended);
        assert_eq!((&appended[..3], &appended[3..]), (&[1, 2, 3][..], &bytes[..]));
        assert_eq!([(5, 5), (4, 5), (6, 5), (3, 5), (7, 5)].map(|(new, old)| zigzag(new, old)), [0, 1, 2, 3, 4]);
    }
}

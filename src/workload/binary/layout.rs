//! The layout of a binary trace. All numbers are little-endian, nothing needs alignment.
//!
//! ```text
//! 0   magic "PTOTRACE"      16  bytes of the whole file     32  offset and bytes of each section
//! 8   version               24  checksum of all behind it   …   the sections themselves
//! ```
//!
//! The operations are records one behind the other, each beginning with its code. A [`TaskRecord`] is followed by what its
//! flags and counts say, in this order:
//!
//! ```text
//! WideCounts   if WIDE            producers    8 bytes each
//! vector cost  if PER_KIND, 8     regions      RegionRecord, or RowsRecord if ROWS: reads, writes, updates
//! out_bytes    if OUT_BYTES, 8    allocations  SizeRecord each, then ParamRecord each
//! ```

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// How a file begins.
pub const MAGIC: [u8; 8] = *b"PTOTRACE";
/// The only version that is read and written.
pub const VERSION: u32 = 2;
/// The first byte that the checksum covers.
pub const COVERED: usize = 32;

/// Number of sections.
pub const N_SECTIONS: usize = 6;
/// The records of all operations.
pub const OPERATIONS: usize = 0;
/// Rare fields of the tasks that have the flag: length in 4 bytes and JSON.
pub const RARE: usize = 1;
/// Ends of the names of kernels and tasks, 8 bytes each.
pub const SYMBOL_ENDS: usize = 2;
/// All names of kernels and tasks.
pub const SYMBOLS: usize = 3;
/// Names of buffers: length in 4 bytes and text.
pub const BUFFER_NAMES: usize = 4;
/// Name of the workload, timed commands and notes, as JSON.
pub const ABOUT: usize = 5;

/// A [`TaskRecord`] and what follows it.
pub const SUBMIT: u8 = 0;
/// Opens a scope.
pub const SCOPE_BEGIN: u8 = 1;
/// Closes a scope.
pub const SCOPE_END: u8 = 2;
/// Declares a buffer; a [`SizeRecord`] follows.
pub const BUFFER: u8 = 3;

/// All blocks start together.
pub const SYNC_START: u8 = 1;
/// The task fails.
pub const FAULT: u8 = 2;
/// `cost` is given.
pub const COST: u8 = 4;
/// `cost` is for the cube, and one for the vectors follows.
pub const PER_KIND: u8 = 8;
/// An anonymous allocation follows.
pub const OUT_BYTES: u8 = 16;
/// Regions are written with rows and stride.
pub const ROWS: u8 = 32;
/// It has an entry among the rare fields.
pub const RARELY: u8 = 64;
/// Counts follow that need more than a byte.
pub const WIDE: u8 = 128;

/// The head of a file.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    pub magic: [u8; 8],
    pub version: U32,
    pub reserved: U32,
    pub file_bytes: U64,
    pub checksum: U64,
    pub sections: [Section; N_SECTIONS],
}

/// Where a section is.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Section {
    pub offset: U64,
    pub bytes: U64,
}

/// How many entries of each list a task has, in the order in which they follow: producers, regions read, written and updated,
/// allocations, parameters.
pub const N_LISTS: usize = 6;

/// A task.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct TaskRecord {
    /// [`SUBMIT`].
    pub code: u8,
    pub flags: u8,
    /// Place among all task types + 1; 0 is none.
    pub kind: u8,
    /// Cubes in the lower, vectors in the upper four bits.
    pub units: u8,
    /// Symbol + 1; 0 is none.
    pub name: U32,
    /// Symbol + 1; 0 is none.
    pub kernel: U32,
    pub blocks: U32,
    pub cost: U64,
    /// Entries of its lists, unless they are [`WIDE`].
    pub counts: [u8; N_LISTS],
    pub reserved: [u8; 2],
}

/// Entries of the lists of a task that has many.
pub type WideCounts = [U32; N_LISTS];

/// A region of one row.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RegionRecord {
    pub buffer: U32,
    pub offset: U64,
    pub bytes: U64,
}

/// A region of any number of rows.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RowsRecord {
    pub buffer: U32,
    pub offset: U64,
    pub row_bytes: U64,
    pub rows: U64,
    pub stride: U64,
}

/// A buffer and its size.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SizeRecord {
    pub buffer: U32,
    pub bytes: U64,
}

/// A number for cost expressions.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ParamRecord {
    /// Symbol of its name.
    pub name: U32,
    /// The bits of the number.
    pub bits: U64,
}

/// Writes length and checksum into the header of a file that is whole otherwise. A file without a whole header stays as it is.
pub fn seal(file: &mut [u8]) {
    let length = (file.len() as u64).to_le_bytes();
    if let Some((header, covered)) = file.split_at_mut_checked(COVERED) {
        header[16..24].copy_from_slice(&length);
        header[24..].copy_from_slice(&checksum(covered).to_le_bytes());
    }
}

/// A checksum that any flipped bit changes; four independent lanes, so that it is faster than memory.
pub fn checksum(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |state: u64, word: u64| (state ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let mut lanes = [1, 2, 3, bytes.len() as u64];
    let (blocks, rest) = bytes.as_chunks::<32>();
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = mix(*lane, u64::from_le_bytes(*word));
        }
    }
    let tail = rest.iter().fold(0, |state, &byte| mix(state, u64::from(byte)));
    lanes.into_iter().fold(tail, mix)
}

//! The bytes of a whole trace: a mapped file, or memory.
#![expect(unsafe_code, reason = "mapping a file is unsafe, because another process may change it")]

use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::ops::Deref;

/// Bytes that are there to be read.
#[derive(Debug)]
pub enum Bytes {
    /// A file, mapped.
    Mapped(Mmap),
    /// Memory.
    Owned(Vec<u8>),
}

impl Bytes {
    /// Maps a file.
    pub fn map(file: &File) -> io::Result<Bytes> {
        // SAFETY: the bytes are only read, every value in them is valid for its type, and every access is checked, so that a
        // file that changes meanwhile gives wrong numbers or an error. One that is made shorter ends the program with a signal.
        unsafe { Mmap::map(file) }.map(Bytes::Mapped)
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

//! Binary traces (`.ptob`): the native format for programs that are read often or are very large.
//!
//! A file is mapped and read in place. Its length and checksum are verified once, when it is opened; every number that
//! leads elsewhere is checked when it is used. `layout.rs` tells what stands where.

mod decode;
mod encode;
mod layout;
pub(super) mod map;
mod rare;
mod read;
mod write;

pub(super) use decode::{Decoder, Records};
pub(super) use encode::Encoder;
pub use layout::seal;
pub use write::write_binary;

use super::{Control, Source, Symbols, Workload, WorkloadError};
use crate::id::Symbol;
use layout::{
    ABOUT, BUFFER_NAMES, COVERED, Header, MAGIC, N_SECTIONS, OPERATIONS, RARE, SYMBOL_ENDS, SYMBOLS, VERSION, checksum,
};
use map::Bytes;
use read::Reader;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use zerocopy::FromBytes;
use zerocopy::little_endian::U64;

/// Whether a file that begins like this is a binary trace.
#[must_use]
pub fn is_binary(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

/// What a file says about itself.
#[derive(Serialize, Deserialize)]
struct About {
    name: String,
    #[serde(default)]
    controls: Vec<Control>,
    #[serde(default)]
    notes: Vec<String>,
}

/// A binary trace.
#[derive(Clone)]
pub struct BinaryTrace {
    image: Arc<Image>,
}

/// A verified file.
struct Image {
    path: String,
    bytes: Bytes,
    sections: [Range<usize>; N_SECTIONS],
    symbols: Symbols,
    buffers: Symbols,
    about: About,
}

impl BinaryTrace {
    /// Maps and verifies a file.
    ///
    /// # Errors
    /// When it cannot be read, is not a binary trace, or is damaged.
    pub fn open(path: &Path) -> Result<BinaryTrace, WorkloadError> {
        let label = path.display().to_string();
        let bytes = File::open(path).and_then(|file| Bytes::map(&file));
        let bytes = bytes.map_err(|source| WorkloadError::Io { path: label.clone(), source })?;
        BinaryTrace::new(bytes, &label)
    }

    /// Verifies a file that is in memory; `label` is for messages.
    ///
    /// # Errors
    /// As [`BinaryTrace::open`].
    pub fn from_memory(bytes: Vec<u8>, label: &str) -> Result<BinaryTrace, WorkloadError> {
        BinaryTrace::new(Bytes::Owned(bytes), label)
    }

    pub(super) fn new(bytes: Bytes, label: &str) -> Result<BinaryTrace, WorkloadError> {
        let wrong = |message: String| WorkloadError::Input(format!("{label}: {message}"));
        let sections = sections(&bytes).map_err(wrong)?;
        let symbols =
            symbols(&bytes[sections[SYMBOL_ENDS].clone()], &bytes[sections[SYMBOLS].clone()]).map_err(wrong)?;
        let buffers = buffers(&bytes[sections[BUFFER_NAMES].clone()]).map_err(wrong)?;
        let about = serde_json::from_slice(&bytes[sections[ABOUT].clone()]);
        let about =
            about.map_err(|error| wrong(format!("the description is damaged ({error}); write the file again")))?;
        let image = Image { path: label.into(), bytes, sections, symbols, buffers, about };
        Ok(BinaryTrace { image: Arc::new(image) })
    }
}

impl Workload for BinaryTrace {
    fn name(&self) -> String {
        self.image.about.name.clone()
    }

    fn open(&self) -> Result<Box<dyn Source>, WorkloadError> {
        Ok(Box::new(Reader::new(Arc::clone(&self.image))))
    }

    fn controls(&self) -> Result<Vec<Control>, WorkloadError> {
        Ok(self.image.about.controls.clone())
    }

    fn notes(&self) -> Vec<String> {
        self.image.about.notes.clone()
    }
}

/// Verifies header, length and checksum and finds the sections.
fn sections(bytes: &[u8]) -> Result<[Range<usize>; N_SECTIONS], String> {
    let (header, _) = Header::ref_from_prefix(bytes)
        .map_err(|_| format!("{} bytes; a binary trace has at least {}", bytes.len(), size_of::<Header>()))?;
    if header.magic != MAGIC {
        return Err("not a binary trace; it begins with PTOTRACE".into());
    }
    if header.version.get() != VERSION {
        return Err(format!(
            "version {} of the binary trace; this program reads {VERSION}, so write the file again with `ptosim convert`",
            header.version
        ));
    }
    if header.file_bytes.get() != bytes.len() as u64 {
        let (written, found) = (header.file_bytes.get(), bytes.len());
        return Err(format!("{found} bytes where {written} were written; the file is cut off, copy it again"));
    }
    if header.checksum.get() != checksum(&bytes[COVERED..]) {
        return Err("the checksum is wrong; the file is damaged, copy it again".into());
    }
    let mut found: [Range<usize>; N_SECTIONS] = Default::default();
    for (number, (range, section)) in found.iter_mut().zip(&header.sections).enumerate() {
        let start = section.offset.get();
        let end = start.checked_add(section.bytes.get()).filter(|&end| end <= bytes.len() as u64);
        let end = end.ok_or_else(|| format!("section {number} lies outside of the file; write it again"))?;
        *range = start as usize..end as usize;
    }
    Ok(found)
}

fn symbols(ends: &[u8], text: &[u8]) -> Result<Symbols, String> {
    let wrong = || "the names are damaged; write the file again".to_owned();
    let ends = <[U64]>::ref_from_bytes(ends).map_err(|_| wrong())?;
    let text = std::str::from_utf8(text).map_err(|_| wrong())?;
    let (mut symbols, mut start) = (Symbols::default(), 0);
    for (number, end) in ends.iter().enumerate() {
        let name = usize::try_from(end.get()).ok().and_then(|end| text.get(start..end)).ok_or_else(wrong)?;
        if symbols.intern(name) != Symbol(number as u32) {
            return Err(wrong());
        }
        start += name.len();
    }
    Ok(symbols)
}

fn buffers(mut rest: &[u8]) -> Result<Symbols, String> {
    let wrong = || "the names of buffers are damaged; write the file again".to_owned();
    let mut symbols = Symbols::default();
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let name = behind.get(..length).and_then(|name| std::str::from_utf8(name).ok()).ok_or_else(wrong)?;
        let next = Symbol(symbols.len() as u32);
        if symbols.intern(name) != next {
            return Err(wrong());
        }
        rest = &behind[length..];
    }
    if rest.is_empty() { Ok(symbols) } else { Err(wrong()) }
}

impl Image {
    fn operations(&self) -> &[u8] {
        &self.bytes[self.sections[OPERATIONS].clone()]
    }

    fn rare(&self) -> &[u8] {
        &self.bytes[self.sections[RARE].clone()]
    }
}

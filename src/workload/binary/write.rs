//! Writes a workload as a binary trace.

use super::About;
use super::encode::Encoder;
use super::layout::{
    ABOUT, BUFFER_NAMES, Header, MAGIC, N_SECTIONS, OPERATIONS, RARE, SYMBOL_ENDS, SYMBOLS, Section, VERSION, seal,
};
use crate::workload::{Operation, Submit, Symbols, Workload, WriteError};
use std::io::Write;
use zerocopy::IntoBytes;

/// Writes a workload as a binary trace and returns the number of its tasks. The whole file is built in memory.
///
/// # Errors
/// When the workload cannot be read or the output fails.
pub fn write_binary(workload: &dyn Workload, output: &mut dyn Write) -> Result<u64, WriteError> {
    let mut sections: [Vec<u8>; N_SECTIONS] = Default::default();
    let mut encoder = Encoder::default();
    let mut source = workload.open()?;
    let (mut task, mut n_tasks) = (Submit::default(), 0);
    while let Some(operation) = source.next(&mut task)? {
        n_tasks += u64::from(operation == Operation::Submit);
        encoder.push(operation, &mut task);
        for rare in encoder.rare.drain(..) {
            let text = serde_json::to_vec(&rare).expect("texts and numbers can be written");
            sections[RARE].extend_from_slice(&(text.len() as u32).to_le_bytes());
            sections[RARE].extend_from_slice(&text);
        }
    }
    sections[OPERATIONS] = encoder.bytes;
    names(source.symbols(), &mut sections);
    for (_, name) in source.buffers().iter() {
        sections[BUFFER_NAMES].extend_from_slice(&(name.len() as u32).to_le_bytes());
        sections[BUFFER_NAMES].extend_from_slice(name.as_bytes());
    }
    let about = About { name: workload.name(), controls: workload.controls()?, notes: workload.notes() };
    sections[ABOUT] = serde_json::to_vec(&about).expect("texts and numbers can be written");
    output.write_all(&assembled(&sections))?;
    output.flush()?;
    Ok(n_tasks)
}

fn names(symbols: &Symbols, sections: &mut [Vec<u8>; N_SECTIONS]) {
    for (_, name) in symbols.iter() {
        sections[SYMBOLS].extend_from_slice(name.as_bytes());
        let end = sections[SYMBOLS].len() as u64;
        sections[SYMBOL_ENDS].extend_from_slice(&end.to_le_bytes());
    }
}

/// Header and sections as one file.
fn assembled(sections: &[Vec<u8>; N_SECTIONS]) -> Vec<u8> {
    let mut header = Header {
        magic: MAGIC,
        version: VERSION.into(),
        reserved: 0.into(),
        file_bytes: 0.into(),
        checksum: 0.into(),
        sections: [Section { offset: 0.into(), bytes: 0.into() }; N_SECTIONS],
    };
    let mut offset = size_of::<Header>() as u64;
    for (section, content) in header.sections.iter_mut().zip(sections) {
        *section = Section { offset: offset.into(), bytes: (content.len() as u64).into() };
        offset += content.len() as u64;
    }
    let mut file = Vec::with_capacity(offset as usize);
    file.extend_from_slice(header.as_bytes());
    sections.iter().for_each(|content| file.extend_from_slice(content));
    seal(&mut file);
    file
}

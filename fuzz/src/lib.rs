//! What every target does with its bytes: read them as a program of one format, and walk over all of it.

use ptosim::workload::import::{Options, open_stream};
use ptosim::workload::{Submit, WorkloadError};
use std::io::Cursor;

/// Reads `bytes` as a program of `format`. What is wrong with them is an error with a message, never a crash.
pub fn read(format: &str, bytes: &[u8]) {
    if let Err(error) = walk(format, bytes) {
        let message = error.to_string();
        assert!(!message.is_empty() && message.len() < 4096, "a message of {} bytes", message.len());
    }
}

fn walk(format: &str, bytes: &[u8]) -> Result<(), WorkloadError> {
    let options = Options { from: Some(format.into()), ..Options::default() };
    let workload = open_stream("input", Box::new(Cursor::new(bytes.to_vec())), &options)?;
    let (mut source, mut task) = (workload.open()?, Submit::default());
    while source.next(&mut task)?.is_some() {}
    workload.controls().map(drop)
}

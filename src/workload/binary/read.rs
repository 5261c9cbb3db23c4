//! A binary trace as a stream of operations.

use super::Image;
use super::decode::{Decoder, Fault, Records};
use super::rare::Rare;
use crate::workload::{Operation, Source, Submit, Symbols, WorkloadError};
use std::sync::Arc;

/// A binary trace being read.
pub struct Reader {
    image: Arc<Image>,
    decoder: Decoder,
    /// Bytes read of the operations.
    at: usize,
    /// Bytes read of the rare fields.
    rare: usize,
    /// Operations read.
    operations: u64,
}

impl Reader {
    /// Starts with the first operation.
    pub fn new(image: Arc<Image>) -> Reader {
        let mut decoder = Decoder::default();
        decoder.know(image.symbols.len(), image.buffers.len());
        Reader { image, decoder, at: 0, rare: 0, operations: 0 }
    }

    #[cold]
    fn error(&self, message: &str) -> WorkloadError {
        let (path, operation) = (&self.image.path, self.operations);
        WorkloadError::Input(format!("{path}: operation {operation}: {message}; write the file again"))
    }
}

impl Source for Reader {
    fn next(&mut self, task: &mut Submit) -> Result<Option<Operation>, WorkloadError> {
        let all = self.image.operations();
        let mut records = Records::new(&all[self.at..]);
        let (texts, rare) = (self.image.rare(), &mut self.rare);
        match self.decoder.next(&mut records, || rare_fields(texts, rare), task) {
            Ok(Some(operation)) => {
                self.at = all.len() - records.left();
                self.operations += 1;
                Ok(Some(operation))
            }
            Ok(None) => Ok(self.decoder.close_scope()),
            Err(message) => Err(self.error(&message)),
        }
    }

    fn symbols(&self) -> &Symbols {
        &self.image.symbols
    }

    fn buffers(&self) -> &Symbols {
        &self.image.buffers
    }
}

/// The next rare fields; `at` moves over them.
fn rare_fields(texts: &[u8], at: &mut usize) -> Result<Rare, Fault> {
    let (length, behind) = texts[*at..].split_first_chunk().ok_or("no rare fields are left")?;
    let length = u32::from_le_bytes(*length) as usize;
    let text = behind.get(..length).ok_or("its rare fields are cut off")?;
    *at += 4 + length;
    serde_json::from_slice(text).map_err(|error| format!("rare fields: {error}"))
}

//! Reading ahead of the engine: another thread parses the text, and the engine's thread only takes operations out of batches.
//!
//! ```text
//! file ─▶ pump (gzip only, its own thread) ─▶ reader (its own thread) ─▶ batches of records ─▶ engine
//!                                                └──────────◀ emptied batches ◀──────────┘
//! ```
//!
//! The records are those of the binary trace. There are never more than a few batches, so that memory stays bounded.

use super::pump::Pump;
use super::reader::Reader;
use crate::workload::binary::{Decoder, Encoder, Records};
use crate::workload::{Operation, Source, Submit, Symbols, WorkloadError};
use std::io::Read;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// Operations of a batch at most.
const OPERATIONS: usize = 1024;
/// A batch is full when its records have so many bytes.
const BYTES: usize = 1 << 16;
/// Full batches that wait for the engine at most.
const WAITING: usize = 8;

/// A trace that another thread reads.
pub struct Ahead {
    full: Receiver<Batch>,
    empty: Sender<Batch>,
    batch: Batch,
    /// Operations taken from the batch.
    taken: usize,
    /// Bytes of their records.
    at: usize,
    decoder: Decoder,
    symbols: Symbols,
    buffers: Symbols,
    path: String,
    line: u64,
}

/// Some operations in a row.
#[derive(Default)]
struct Batch {
    records: Encoder,
    /// The line of each operation.
    lines: Vec<u64>,
    /// Names that no batch before had.
    symbols: NewNames,
    buffers: NewNames,
    /// How the trace ends, in the last batch.
    end: Option<Result<(), WorkloadError>>,
}

/// Names in the order of their numbers.
#[derive(Default)]
struct NewNames {
    text: String,
    ends: Vec<usize>,
}

impl Ahead {
    /// Reads the header and starts the threads that read the rest; `path` is for messages.
    ///
    /// # Errors
    /// When the input cannot be read or does not begin with a header.
    pub fn new(input: Box<dyn Read + Send>, path: &str) -> Result<Ahead, WorkloadError> {
        let reader = Reader::new(Pump::over_gzip(input, path)?, path)?;
        let (send_full, full) = sync_channel(WAITING);
        let (empty, take_empty) = channel();
        let started =
            thread::Builder::new().name("read ahead".into()).spawn(move || read_all(reader, &send_full, &take_empty));
        started.map_err(|source| WorkloadError::Io { path: path.into(), source })?;
        Ok(Ahead {
            full,
            empty,
            batch: Batch::default(),
            taken: 0,
            at: 0,
            decoder: Decoder::default(),
            symbols: Symbols::default(),
            buffers: Symbols::default(),
            path: path.into(),
            line: 1,
        })
    }

    /// Gives the batch back and waits for the next one; false at the end of the trace.
    #[cold]
    fn next_batch(&mut self) -> Result<bool, WorkloadError> {
        match self.batch.end.take() {
            Some(Err(error)) => {
                self.batch.end = Some(Ok(()));
                return Err(error);
            }
            Some(Ok(())) => {
                self.batch.end = Some(Ok(()));
                return Ok(false);
            }
            None => {}
        }
        let Ok(next) = self.full.recv() else {
            return Err(WorkloadError::Input(format!("{}: the thread that reads it ended early", self.path)));
        };
        // The reader may have come to the end and need no more batches.
        let _ = self.empty.send(std::mem::replace(&mut self.batch, next));
        (self.taken, self.at) = (0, 0);
        self.batch.symbols.names().for_each(|name| _ = self.symbols.intern(name));
        self.batch.buffers.names().for_each(|name| _ = self.buffers.intern(name));
        self.decoder.know(self.symbols.len(), self.buffers.len());
        self.batch.records.rare.reverse();
        Ok(true)
    }
}

impl Source for Ahead {
    #[inline]
    fn next(&mut self, task: &mut Submit) -> Result<Option<Operation>, WorkloadError> {
        loop {
            let Encoder { bytes, rare } = &mut self.batch.records;
            let mut records = Records::new(&bytes[self.at..]);
            let rare = || rare.pop().ok_or_else(|| "no rare fields are left".into());
            let operation = self.decoder.next(&mut records, rare, task).expect("a record made of a checked operation");
            self.at = bytes.len() - records.left();
            if operation.is_some() {
                self.line = self.batch.lines[self.taken];
                self.taken += 1;
                return Ok(operation);
            }
            if !self.next_batch()? {
                return Ok(None);
            }
        }
    }

    fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    fn buffers(&self) -> &Symbols {
        &self.buffers
    }

    fn origin(&self) -> Option<&str> {
        Some(&self.path)
    }

    fn has_lines(&self) -> bool {
        true
    }

    fn line(&self) -> Option<u64> {
        Some(self.line)
    }
}

/// Reads until the end of the trace, or until nobody wants more of it.
fn read_all(mut reader: Reader, full: &SyncSender<Batch>, empty: &Receiver<Batch>) {
    let (mut task, mut symbols, mut buffers) = (Submit::default(), 0, 0);
    loop {
        let mut batch: Batch = empty.try_recv().unwrap_or_default();
        batch.clear();
        batch.fill(&mut reader, &mut task);
        symbols = batch.symbols.collect(reader.symbols(), symbols);
        buffers = batch.buffers.collect(reader.buffers(), buffers);
        let is_last = batch.end.is_some();
        if full.send(batch).is_err() || is_last {
            return;
        }
    }
}

impl Batch {
    fn clear(&mut self) {
        self.records.clear();
        // A task with a million producers is not a reason to keep so much memory.
        self.records.bytes.shrink_to(4 * BYTES);
        self.lines.clear();
    }

    fn fill(&mut self, reader: &mut Reader, task: &mut Submit) {
        while self.lines.len() < OPERATIONS && self.records.bytes.len() < BYTES {
            match reader.next(task) {
                Ok(Some(operation)) => {
                    self.records.push(operation, task);
                    self.lines.push(reader.number());
                }
                Ok(None) => return self.end = Some(Ok(())),
                Err(error) => return self.end = Some(Err(error)),
            }
        }
    }
}

impl NewNames {
    /// Takes the names from number `first` on and returns how many there are altogether.
    fn collect(&mut self, all: &Symbols, first: usize) -> usize {
        self.text.clear();
        self.ends.clear();
        for (_, name) in all.iter().skip(first) {
            self.text.push_str(name);
            self.ends.push(self.text.len());
        }
        all.len()
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.text[start..end])
    }
}

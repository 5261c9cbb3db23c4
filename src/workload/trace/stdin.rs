//! A trace from standard input, kept in an unnamed temporary file so that it can be opened again.

use super::reader::{Reader, controls};
use crate::workload::{Control, Source, Workload, WorkloadError};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// A trace that arrives on standard input or another stream that can be read only once.
#[derive(Clone)]
pub struct Stdin {
    /// How messages call it.
    path: String,
    spool: Arc<Mutex<Spool>>,
}

/// What has arrived so far, and where more comes from.
struct Spool {
    input: Box<dyn Read + Send>,
    kept: Option<File>,
    length: u64,
    finished: bool,
}

/// One pass over the stream: first through what is kept, then on through the input.
struct Pass {
    spool: Arc<Mutex<Spool>>,
    position: u64,
}

impl Stdin {
    /// Standard input of this process.
    #[must_use]
    pub fn new() -> Stdin {
        Stdin::from_reader("<stdin>", Box::new(io::stdin()))
    }

    /// Any other stream, such as a named pipe; `path` is for messages.
    #[must_use]
    pub fn from_reader(path: impl Into<String>, input: Box<dyn Read + Send>) -> Stdin {
        let spool = Spool { input, kept: None, length: 0, finished: false };
        Stdin { path: path.into(), spool: Arc::new(Mutex::new(spool)) }
    }

    fn input(&self) -> Box<dyn Read + Send> {
        Box::new(Pass { spool: Arc::clone(&self.spool), position: 0 })
    }
}

impl Default for Stdin {
    fn default() -> Stdin {
        Stdin::new()
    }
}

impl Workload for Stdin {
    /// The name in its header.
    fn name(&self) -> String {
        let title = Reader::new(self.input(), &self.path).ok().and_then(|reader| reader.title().map(String::from));
        title.unwrap_or_else(|| "stdin".into())
    }

    fn open(&self) -> Result<Box<dyn Source>, WorkloadError> {
        Ok(Box::new(Reader::new(self.input(), &self.path)?))
    }

    fn controls(&self) -> Result<Vec<Control>, WorkloadError> {
        controls(self.input(), &self.path)
    }
}

impl Read for Pass {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut spool = self.spool.lock().unwrap_or_else(PoisonError::into_inner);
        let count = if self.position < spool.length {
            spool.read_kept(self.position, buffer)?
        } else {
            spool.read_input(buffer)?
        };
        self.position += count as u64;
        Ok(count)
    }
}

impl Spool {
    fn read_kept(&mut self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(kept) = &mut self.kept else { return Ok(0) };
        kept.seek(SeekFrom::Start(position))?;
        kept.read(buffer)
    }

    fn read_input(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.finished {
            return Ok(0);
        }
        let count = self.input.read(buffer)?;
        self.finished = count == 0;
        if self.kept.is_none() {
            self.kept = Some(tempfile::tempfile()?);
        }
        if let Some(kept) = &mut self.kept {
            kept.seek(SeekFrom::Start(self.length))?;
            kept.write_all(&buffer[..count])?;
        }
        self.length += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Operation, Submit};

    fn count(source: &mut dyn Source, limit: usize) -> usize {
        let mut task = Submit::default();
        (0..limit).take_while(|_| source.next(&mut task).expect("valid") == Some(Operation::Submit)).count()
    }

    #[test]
    fn a_stream_can_be_opened_again_at_any_moment() {
        let mut text =
            String::from("{\"op\":\"header\",\"format\":\"ptosim-trace\",\"version\":1,\"name\":\"pipe\"}\n");
        for _ in 0..50_000 {
            text.push_str("{\"op\":\"submit\",\"kernel\":\"add\"}\n");
        }
        text.push_str("{\"op\":\"control\",\"at\":5,\"cmd\":\"pause\"}\n");
        let stdin = Stdin::from_reader("pipe", Box::new(io::Cursor::new(text.into_bytes())));
        assert_eq!(stdin.name(), "pipe");
        let mut first = stdin.open().expect("header");
        assert_eq!(count(first.as_mut(), 20_000), 20_000);
        let mut second = stdin.open().expect("header");
        assert_eq!(count(second.as_mut(), usize::MAX), 50_000);
        assert_eq!(count(first.as_mut(), usize::MAX), 30_000);
        assert_eq!(stdin.controls().expect("valid")[0].at, 5);
        assert_eq!(count(stdin.open().expect("header").as_mut(), usize::MAX), 50_000);
    }
}

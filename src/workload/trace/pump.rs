//! Unpacks gzip in a thread of its own, a few blocks ahead of whoever reads them.

use super::lines::{is_gzip, unpacked};
use crate::workload::WorkloadError;
use std::io::{self, Cursor, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// Bytes of a block.
const BLOCK: usize = 1 << 18;
/// Blocks that wait at most.
const WAITING: usize = 4;

/// What another thread unpacks.
pub struct Pump {
    full: Receiver<io::Result<Vec<u8>>>,
    empty: Sender<Vec<u8>>,
    block: Cursor<Vec<u8>>,
}

impl Pump {
    /// `input` itself, or what it contains if it begins like gzip; `path` is for messages.
    ///
    /// # Errors
    /// When its first bytes cannot be read.
    pub fn over_gzip(mut input: Box<dyn Read + Send>, path: &str) -> Result<Box<dyn Read + Send>, WorkloadError> {
        let failed = |source| WorkloadError::Io { path: path.into(), source };
        let (is_packed, head) = is_gzip(&mut input).map_err(failed)?;
        let input = head.chain(input);
        if !is_packed {
            return Ok(Box::new(input));
        }
        let (send_full, full) = sync_channel(WAITING);
        let (empty, take_empty) = channel();
        let unpacked = unpacked(Box::new(input)).map_err(failed)?;
        let thread = thread::Builder::new().name("unpack".into());
        thread.spawn(move || unpack(unpacked, &send_full, &take_empty)).map_err(failed)?;
        Ok(Box::new(Pump { full, empty, block: Cursor::default() }))
    }
}

/// Sends blocks until the end, an error, or until nobody wants more of them.
fn unpack(mut input: Box<dyn Read + Send>, full: &SyncSender<io::Result<Vec<u8>>>, empty: &Receiver<Vec<u8>>) {
    loop {
        let mut block: Vec<u8> = empty.try_recv().unwrap_or_default();
        block.clear();
        let read = input.by_ref().take(BLOCK as u64).read_to_end(&mut block);
        let is_last = !matches!(read, Ok(1..));
        // What came before the damage is still good.
        if !block.is_empty() && read.is_err() && full.send(Ok(std::mem::take(&mut block))).is_err() {
            return;
        }
        if full.send(read.map(|_| block)).is_err() || is_last {
            return;
        }
    }
}

impl Read for Pump {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.block.position() == self.block.get_ref().len() as u64 {
            // The thread is gone behind the last block, which is empty, and behind an error.
            let Ok(next) = self.full.recv() else { return Ok(0) };
            let emptied = std::mem::replace(&mut self.block, Cursor::new(next?));
            let _ = self.empty.send(emptied.into_inner());
        }
        self.block.read(buffer)
    }
}

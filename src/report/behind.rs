//! A writer that is one step behind: what it is given is written by another thread, while the next bytes are put together.

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

/// Pieces that may wait to be written.
const MOST_WAITING: usize = 2;

/// Takes the bytes.
pub(super) struct Behind {
    full: SyncSender<Vec<u8>>,
    used: Receiver<Vec<u8>>,
}

/// Lets `fill` write to `writer`, one step ahead of it.
///
/// # Errors
/// Those of `fill`, and the first one of `writer`; nothing is written after it.
pub(super) fn behind<W: Write + Send>(mut writer: W, fill: impl FnOnce(Behind) -> io::Result<()>) -> io::Result<()> {
    let (full, to_write) = mpsc::sync_channel::<Vec<u8>>(MOST_WAITING);
    let (give_back, used) = mpsc::channel();
    thread::scope(|scope| {
        let writing = scope.spawn(move || {
            for bytes in to_write {
                writer.write_all(&bytes)?;
                // Whoever fills them may be done.
                let _ = give_back.send(bytes);
            }
            writer.flush()
        });
        let filled = fill(Behind { full, used });
        let written = writing.join().unwrap_or_else(|panic| resume_unwind(panic));
        // An error of the writer is also the reason why nothing more could be filled.
        written.and(filled)
    })
}

impl Write for Behind {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut piece = self.used.try_recv().unwrap_or_default();
        piece.clear();
        piece.extend_from_slice(bytes);
        self.full.send(piece).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::Full;

    #[test]
    fn everything_arrives_in_order() {
        let mut written = Vec::new();
        let pieces: Vec<Vec<u8>> = (0..100).map(|index| vec![index; 1 + usize::from(index) * 37]).collect();
        let fill = |mut behind: Behind| pieces.iter().try_for_each(|piece| behind.write_all(piece));
        behind(&mut written, fill).expect("memory does not fail");
        assert!(written == pieces.concat());
    }

    #[test]
    fn the_error_of_the_writer_is_told() {
        let fill = |mut behind: Behind| (0..100).try_for_each(|_| behind.write_all(b"0123456789"));
        let error = behind(Full(95), fill).expect_err("it is full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}

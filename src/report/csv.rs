//! The schedule as CSV: `task,block,worker,submit,ready,start,end`, one row a block and worker, written while the run goes on.

use crate::engine::{BlockRow, Observer};
use crate::workload::Symbols;
use std::io::{self, Write};

const HEADER: &[u8] = b"task,block,worker,submit,ready,start,end\n";
const BUFFER_BYTES: usize = 1 << 16;
/// Seven numbers of at most 20 digits, each with a separator.
const ROW_BYTES: usize = 7 * 21;

/// An observer that writes a row for each block it is told of.
///
/// The first error of the writer is kept for [`ScheduleWriter::finish`]; nothing is written after it.
pub struct ScheduleWriter<W: Write> {
    writer: W,
    buffer: Vec<u8>,
    digits: itoa::Buffer,
    error: Option<io::Error>,
}

impl<W: Write> ScheduleWriter<W> {
    /// Starts with the header line.
    pub fn new(writer: W) -> ScheduleWriter<W> {
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        buffer.extend_from_slice(HEADER);
        ScheduleWriter { writer, buffer, digits: itoa::Buffer::new(), error: None }
    }

    /// Writes what is left and gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer during the whole run.
    pub fn finish(mut self) -> io::Result<W> {
        self.drain();
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.writer),
        }
    }

    fn drain(&mut self) {
        if self.error.is_none() {
            self.error = self.writer.write_all(&self.buffer).err();
        }
        self.buffer.clear();
    }
}

impl<W: Write> Observer for ScheduleWriter<W> {
    fn block(&mut self, row: &BlockRow, _names: &Symbols) {
        if self.buffer.len() + ROW_BYTES > BUFFER_BYTES {
            self.drain();
        }
        let numbers = [row.task.0, row.block.into(), row.worker.0.into(), row.submit, row.ready, row.start, row.end];
        for number in numbers {
            self.buffer.extend_from_slice(self.digits.format(number).as_bytes());
            self.buffer.push(b',');
        }
        *self.buffer.last_mut().expect("a row has numbers") = b'\n';
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{TaskId, TaskType, WorkerId};

    fn row(task: u64) -> BlockRow {
        BlockRow {
            task: TaskId(task),
            block: 1,
            worker: WorkerId(2),
            submit: 3,
            ready: 4,
            start: 5,
            end: u64::MAX,
            name: None,
            kernel: None,
            kind: TaskType::Vector,
        }
    }

    #[test]
    fn each_block_is_a_row() {
        let mut schedule = ScheduleWriter::new(Vec::new());
        schedule.block(&row(0), &Symbols::default());
        schedule.block(&row(77), &Symbols::default());
        let text = String::from_utf8(schedule.finish().expect("memory does not fail")).expect("digits");
        assert_eq!(
            text,
            "task,block,worker,submit,ready,start,end\n\
             0,1,2,3,4,5,18446744073709551615\n\
             77,1,2,3,4,5,18446744073709551615\n"
        );
    }

    #[test]
    fn more_rows_than_the_buffer_holds_arrive_in_order() {
        let mut schedule = ScheduleWriter::new(Vec::new());
        (0..10_000).for_each(|task| schedule.block(&row(task), &Symbols::default()));
        let text = String::from_utf8(schedule.finish().expect("memory does not fail")).expect("digits");
        let tasks = text.lines().skip(1).map(|line| line.split(',').next().expect("a field").parse::<u64>());
        assert!(tasks.map(|task| task.expect("a number")).eq(0..10_000));
    }

    /// Takes the first few bytes and then is full.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_told_at_the_end() {
        let mut schedule = ScheduleWriter::new(Full(2 * BUFFER_BYTES));
        (0..20_000).for_each(|task| schedule.block(&row(task), &Symbols::default()));
        let error = schedule.finish().err().expect("the disk is full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}

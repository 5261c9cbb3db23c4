//! The schedule as CSV: `task,block,worker,submit,ready,start,end`, one row a block and worker, written while the run goes on.

use super::line::Column;
use super::pen::Pen;
use super::stamp::WorkerTexts;
use crate::engine::BlockRow;
use crate::engine::journal::{Names, Needs, Reader};
use std::io::{self, Write};

/// A reader of a journal that writes a row for each block.
///
/// The first error of the writer is kept for [`ScheduleWriter::finish`]; nothing is written after it.
pub struct ScheduleWriter<W: Write> {
    pen: Pen<W>,
    tasks: Column<16>,
    /// The moments, each behind its comma.
    moments: [Column<16>; 4],
    /// Block 0 of every worker, between its commas.
    workers: WorkerTexts,
}

impl<W: Write> ScheduleWriter<W> {
    /// Starts with the header line.
    pub fn new(writer: W) -> ScheduleWriter<W> {
        let mut pen = Pen::new(writer);
        pen.text(b"task,block,worker,submit,ready,start,end\n");
        let moments = [(); 4].map(|()| Column::new(b","));
        ScheduleWriter { pen, tasks: Column::new(b""), moments, workers: WorkerTexts::new(",0,", "") }
    }

    /// Writes what is left and gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer during the whole run.
    pub fn finish(self) -> io::Result<W> {
        self.pen.finish()
    }

    #[inline(always)]
    fn write(&mut self, row: &BlockRow) {
        let [submit, ready, start, end] = &mut self.moments;
        let mut line = self.pen.room();
        line.column(&mut self.tasks, row.task.0);
        if row.block == 0 {
            self.workers.put(&mut line, row.worker);
        } else {
            line.byte(b',');
            line.number(row.block.into());
            line.byte(b',');
            line.number(row.worker.0.into());
        }
        line.column(submit, row.submit);
        line.column(ready, row.ready);
        line.column(start, row.start);
        line.column(end, row.end);
        line.byte(b'\n');
        let length = line.length();
        self.pen.advance(length);
    }
}

impl<W: Write + Send + 'static> Reader for ScheduleWriter<W> {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    #[inline(always)]
    fn block(&mut self, row: &BlockRow, _names: &Names) {
        self.write(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{TaskId, TaskType, WorkerId};
    use crate::report::sample::Full;

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
        schedule.write(&row(0));
        schedule.write(&row(77));
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
        (0..10_000).for_each(|task| schedule.write(&row(task)));
        let text = String::from_utf8(schedule.finish().expect("memory does not fail")).expect("digits");
        let tasks = text.lines().skip(1).map(|line| line.split(',').next().expect("a field").parse::<u64>());
        assert!(tasks.map(|task| task.expect("a number")).eq(0..10_000));
    }

    #[test]
    fn a_full_disk_is_told_at_the_end() {
        let mut schedule = ScheduleWriter::new(Full(1 << 18));
        (0..20_000).for_each(|task| schedule.write(&row(task)));
        let error = schedule.finish().err().expect("the disk is full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}

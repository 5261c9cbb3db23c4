//! Tables of a run for analysis: tasks, blocks and dependencies, one Parquet file each.

use super::Subject;
use crate::engine::BlockRow;
use crate::id::TaskId;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::io::{self, Write};
use std::sync::Arc;

/// The values of a column.
enum Values {
    Numbers(Vec<i64>),
    Texts(Vec<ByteArray>),
}

/// Writes `tasks.parquet`: one row a task.
pub fn tasks(subject: &Subject<'_>, output: &mut dyn Write) -> io::Result<()> {
    let graph = subject.graph;
    let ids = || (0..graph.tasks.len() as u64).map(TaskId);
    let numbers = |number: &dyn Fn(TaskId) -> u64| Values::Numbers(ids().map(|id| number(id).cast_signed()).collect());
    let texts = |text: &dyn Fn(TaskId) -> String| Values::Texts(ids().map(|id| text(id).into_bytes().into()).collect());
    let task = |id: TaskId| &graph.tasks[id.0 as usize];
    let kernel = |id: TaskId| task(id).kernel.map_or(String::new(), |kernel| graph.symbols.name(kernel).to_owned());
    let columns = [
        ("id", numbers(&|id| id.0)),
        ("name", texts(&|id| graph.name(id))),
        ("kernel", texts(&kernel)),
        ("worker_type", texts(&|id| task(id).kind.to_string())),
        ("cycles", numbers(&|id| task(id).cycles())),
        ("blocks", numbers(&|id| task(id).blocks.into())),
        ("scope_depth", numbers(&|id| task(id).depth.into())),
        ("submit", numbers(&|id| subject.recording().submitted(id))),
    ];
    write(subject, &columns, output)
}

/// Writes `blocks.parquet`: what ran when, one row for each block and worker.
pub fn blocks(subject: &Subject<'_>, output: &mut dyn Write) -> io::Result<()> {
    let rows = &subject.recording().rows;
    let numbers =
        |number: fn(&BlockRow) -> u64| Values::Numbers(rows.iter().map(|row| number(row).cast_signed()).collect());
    let columns = [
        ("task", numbers(|row| row.task.0)),
        ("block", numbers(|row| row.block.into())),
        ("worker", numbers(|row| row.worker.0.into())),
        ("ready", numbers(|row| row.ready)),
        ("start", numbers(|row| row.start)),
        ("end", numbers(|row| row.end)),
    ];
    write(subject, &columns, output)
}

/// Writes `edges.parquet`: one row a dependency.
pub fn edges(subject: &Subject<'_>, output: &mut dyn Write) -> io::Result<()> {
    let (mut producers, mut consumers) = (Vec::new(), Vec::new());
    for consumer in 0..subject.graph.tasks.len() as u64 {
        for producer in subject.graph.producers(TaskId(consumer)) {
            producers.push(producer.0.cast_signed());
            consumers.push(consumer.cast_signed());
        }
    }
    write(subject, &[("pred", Values::Numbers(producers)), ("succ", Values::Numbers(consumers))], output)
}

fn write(subject: &Subject<'_>, columns: &[(&str, Values)], output: &mut dyn Write) -> io::Result<()> {
    let clock = (subject.machine.clock_mhz * 1_000_000).to_string();
    let bytes = table(columns, clock).map_err(io::Error::other)?;
    output.write_all(&bytes)
}

fn table(columns: &[(&str, Values)], clock_hz: String) -> Result<Vec<u8>> {
    let field = |(name, values): &(&str, Values)| match values {
        Values::Numbers(_) => format!("REQUIRED INT64 {name};"),
        Values::Texts(_) => format!("REQUIRED BYTE_ARRAY {name} (UTF8);"),
    };
    let fields: String = columns.iter().map(field).collect();
    let schema = Arc::new(parse_message_type(&format!("message table {{ {fields} }}"))?);
    let clock = KeyValue::new("clock_hz".into(), clock_hz);
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![clock])).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (name, values) in columns {
        let missing = || ParquetError::General(format!("no column {name}"));
        let mut column = group.next_column()?.ok_or_else(missing)?;
        match values {
            Values::Numbers(numbers) => column.typed::<Int64Type>().write_batch(numbers, None, None)?,
            Values::Texts(texts) => column.typed::<ByteArrayType>().write_batch(texts, None, None)?,
        };
        column.close()?;
    }
    group.close()?;
    writer.into_inner()
}

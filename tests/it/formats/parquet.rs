//! Tables for analysis: every number of a run stands in them.

use super::samples::{machine, target, written};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Row, RowAccessor};
use ptosim::engine::simulate;
use ptosim::export::Recording;
use ptosim::graph::Graph;
use ptosim::id::TaskId;
use ptosim::workload::generate;
use std::io::Write;

/// The rows of a table; its clock is the machine's.
fn rows(bytes: &[u8]) -> Vec<Row> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("a file");
    let reader = SerializedFileReader::new(file).expect("a table");
    let about = reader.metadata().file_metadata().key_value_metadata().expect("a clock");
    let clock = about.iter().find(|entry| entry.key == "clock_hz").and_then(|entry| entry.value.clone());
    assert_eq!(clock, Some((machine().clock_mhz * 1_000_000).to_string()));
    reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row")).collect()
}

fn numbers<const N: usize>(row: &Row) -> [u64; N] {
    std::array::from_fn(|column| row.get_long(column).expect("a number").cast_unsigned())
}

#[test]
fn tables_hold_tasks_blocks_and_edges_of_a_run() {
    for spec in ["bgemm:batch=1,m=2,n=2,k=3", "random:n=200", "flash_attention"] {
        let workload = generate::generator(spec).expect("a generator");
        let files = written(workload.as_ref(), target("parquet")).expect("it runs");
        let table = |name: &str| rows(&files.iter().find(|file| file.0 == name).expect("a table").1);
        let graph = Graph::survey(workload.as_ref(), &machine()).expect("valid");
        let mut recording = Recording::default();
        simulate(workload.as_ref(), &machine(), &mut recording).expect("it runs");

        let tasks = table("tasks.parquet");
        assert_eq!(tasks.len(), graph.tasks.len());
        for (row, (index, task)) in tasks.iter().zip(graph.tasks.iter().enumerate()) {
            let text = |column| row.get_string(column).expect("a text").clone();
            let number = |column| row.get_long(column).expect("a number").cast_unsigned();
            let id = TaskId(index as u64);
            assert_eq!((number(0), text(1), text(3)), (id.0, graph.name(id), task.kind.to_string()));
            assert_eq!(text(2), task.kernel.map_or("", |kernel| graph.symbols.name(kernel)));
            let expected = (task.cycles(), task.blocks.into(), task.depth.into(), recording.submitted(id));
            assert_eq!((number(4), number(5), number(6), number(7)), expected);
        }

        let ran = recording.rows.iter();
        let ran = ran.map(|row| [row.task.0, row.block.into(), row.worker.0.into(), row.ready, row.start, row.end]);
        assert_eq!(table("blocks.parquet").iter().map(numbers::<6>).collect::<Vec<_>>(), ran.collect::<Vec<_>>());

        let producers = |id: u64| graph.producers(TaskId(id)).iter().map(move |producer| [producer.0, id]);
        let edges: Vec<[u64; 2]> = (0..graph.tasks.len() as u64).flat_map(producers).collect();
        assert_eq!(table("edges.parquet").iter().map(numbers::<2>).collect::<Vec<_>>(), edges);
    }
}

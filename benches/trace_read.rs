//! Reading alone: what a task costs before anything runs. Guards the readers of native, binary and foreign traces.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ptosim::config::Machine;
use ptosim::export::{Subject, targets};
use ptosim::graph::Graph;
use ptosim::workload::binary::{BinaryTrace, write_binary};
use ptosim::workload::import::{Options, open_stream};
use ptosim::workload::trace::Reader;
use ptosim::workload::{Operation, Program, Source, Submit, Workload, generate, write_trace};
use std::hint::black_box;
use std::io::Cursor;

const PROGRAMS: [&str; 3] = ["chain:n=100000", "bgemm:batch=2,m=8,n=8,k=256", "random:n=100000"];

/// Reads a program to its end and counts its tasks.
fn count(source: &mut dyn Source) -> u64 {
    let (mut task, mut tasks) = (Submit::default(), 0);
    while let Some(operation) = source.next(&mut task).expect("a valid trace") {
        tasks += u64::from(operation == Operation::Submit);
        black_box(&task);
    }
    tasks
}

fn native(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("trace_read/native");
    for spec in PROGRAMS {
        let workload = generate::generator(spec).expect("a generator");
        let mut text = Vec::new();
        write_trace(workload.as_ref(), &mut text).expect("memory does not fail");
        let open = || Reader::new(Box::new(Cursor::new(text.clone())), "trace").expect("a header");
        group.throughput(Throughput::Elements(count(&mut open())));
        group.bench_function(spec, |bencher| {
            bencher.iter_batched_ref(open, |source| count(source), criterion::BatchSize::LargeInput);
        });
    }
}

fn binary(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("trace_read/binary");
    for spec in PROGRAMS {
        let workload = generate::generator(spec).expect("a generator");
        let mut bytes = Vec::new();
        write_binary(workload.as_ref(), &mut bytes).expect("memory does not fail");
        let trace = BinaryTrace::from_memory(bytes, "trace").expect("a whole file");
        let tasks = count(trace.open().expect("it was opened before").as_mut());
        group.throughput(Throughput::Elements(tasks));
        group.bench_function(spec, |bencher| {
            bencher.iter(|| count(trace.open().expect("it was opened before").as_mut()));
        });
    }
}

/// `WfFormat` and simpler files, whole, in bytes.
fn foreign(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("trace_read/foreign");
    let machine = Machine::default();
    let program = Program::load(generate::generator("random:n=20000").expect("a generator").as_ref()).expect("valid");
    let graph = Graph::survey(&program, &machine).expect("valid");
    let subject = Subject { program: &program, graph: &graph, machine: &machine, recording: None };
    for name in ["wfformat", "simpler"] {
        let target = targets().iter().find(|target| target.name == name).expect("it can be written");
        let mut text = Vec::new();
        target.files[0].1(&subject, &mut text).expect("memory does not fail");
        let options = Options { from: Some(name.into()), ..Options::default() };
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                open_stream("trace", Box::new(Cursor::new(text.clone())), &options).expect("a whole file").name()
            });
        });
    }
}

criterion_group!(benches, native, binary, foreign);
criterion_main!(benches);

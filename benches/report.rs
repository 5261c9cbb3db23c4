//! Guards what looking costs: the same run without an observer and with each kind of output. Throughput in tasks.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ptosim::config::Machine;
use ptosim::{engine, report, workload};

const TASKS: u64 = 100_000;

fn outputs(criterion: &mut Criterion) {
    let machine = Machine::load("ideal").expect("a built-in machine");
    let workload = workload::open("random:n=100000,fanin=3").expect("a generator");
    let mut group = criterion.benchmark_group("report");
    group.sample_size(10).throughput(Throughput::Elements(TASKS));
    let run = |observer: &mut dyn engine::Observer| {
        engine::run(workload.as_ref(), &machine, observer).expect("the run completes")
    };
    group.bench_function("none", |bencher| bencher.iter(|| run(&mut ())));
    group.bench_function("schedule_csv", |bencher| {
        bencher.iter(|| {
            let schedule = report::ScheduleWriter::new(std::io::sink());
            engine::read_along(schedule, |journal| run(journal)).1.finish().expect("a sink takes everything")
        });
    });
    group.bench_function("perfetto", |bencher| {
        bencher.iter(|| {
            let sheet = report::Sheet::new(report::Perfetto::default(), std::io::sink(), "random", &machine);
            let export = report::Export::new(sheet, &machine, None);
            engine::read_along(export, |journal| run(journal)).1.finish().finish().expect("a sink takes everything")
        });
    });
    group.bench_function("chrome", |bencher| {
        bencher.iter(|| {
            let sheet = report::Sheet::new(report::Chrome::default(), std::io::sink(), "random", &machine);
            let export = report::Export::new(sheet, &machine, None);
            engine::read_along(export, |journal| run(journal)).1.finish().finish().expect("a sink takes everything")
        });
    });
    group.bench_function("timeline", |bencher| {
        bencher.iter(|| engine::read_along(report::Timeline::new(), |journal| run(journal)).1.is_detailed());
    });
    group.bench_function("critical_path", |bencher| {
        bencher.iter(|| {
            let path = report::PathRecorder::new(report::PathWriter::<std::io::Sink>::new(true, None));
            let (_, path, names) = engine::read_along(path, |journal| run(journal));
            path.finish(&names).report(&names).steps
        });
    });
    group.bench_function("json", |bencher| {
        bencher.iter(|| serde_json::to_string(&run(&mut ())).expect("a report is JSON").len());
    });
    group.finish();
}

criterion_group!(benches, outputs);
criterion_main!(benches);

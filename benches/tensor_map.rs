//! Guards the tensor map: what a region adds to a task, in a buffer with one, thousands and very many live tiles, in order and at
//! random. Throughput in tasks; `named` is the same graph with the dependencies written out, so that the difference is the map.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ptosim::config::Machine;
use ptosim::engine;
use ptosim::workload::{Builder, Program};

const TASKS: u64 = 200_000;
const TILE: u64 = 256;

/// Every task updates one of `tiles` tiles of one buffer, or waits for the task that did so before.
fn updates(tiles: u64, scattered: bool, named: bool) -> Program {
    let mut builder = Builder::new("updates");
    let buffer = builder.buffer("T", tiles * TILE);
    let mut last = vec![None; tiles as usize];
    for task in 0..TASKS {
        let tile = if scattered { task.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20 } else { task } % tiles;
        let call = builder.task("tile_add").vector().cycles(10);
        if !named {
            call.updates(buffer.range(tile * TILE, TILE)).submit();
            continue;
        }
        let call = if let Some(before) = last[tile as usize] { call.after(before) } else { call };
        last[tile as usize] = Some(call.submit());
    }
    builder.build().expect("a valid program")
}

fn tensor_map(criterion: &mut Criterion) {
    let machine = Machine::load("ideal").expect("a built-in machine");
    let mut group = criterion.benchmark_group("tensor_map");
    group.throughput(Throughput::Elements(TASKS)).sample_size(10);
    for tiles in [1, 64, 4096, 16384] {
        for (order, scattered) in [("in_order", false), ("scattered", true)] {
            for (way, named) in [("regions", false), ("named", true)] {
                let program = updates(tiles, scattered, named);
                group.bench_function(BenchmarkId::new(format!("{order}/{way}"), tiles), |bencher| {
                    bencher.iter(|| engine::run(&program, &machine, &mut ()).expect("the run completes"));
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, tensor_map);
criterion_main!(benches);

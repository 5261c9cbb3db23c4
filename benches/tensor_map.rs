//! Guards the tensor map: a read and a write of a tile in a buffer with few, thousands and very many live tiles, in order and
//! at random. Throughput in regions.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ptosim::config::Machine;
use ptosim::engine;
use ptosim::workload::{Builder, Program};

const TASKS: u64 = 20_000;
const TILE: u64 = 256;

/// Every task updates one of `tiles` tiles of one buffer.
fn updates(tiles: u64, scattered: bool) -> Program {
    let mut builder = Builder::new("updates");
    let buffer = builder.buffer("T", tiles * TILE);
    for task in 0..TASKS {
        let tile = if scattered { task.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20 } else { task } % tiles;
        builder.task("tile_add").vector().cycles(10).updates(buffer.range(tile * TILE, TILE)).submit();
    }
    builder.build().expect("a valid program")
}

fn tensor_map(criterion: &mut Criterion) {
    let machine = Machine::load("ideal").expect("a built-in machine");
    let mut group = criterion.benchmark_group("tensor_map");
    group.throughput(Throughput::Elements(TASKS));
    for tiles in [1, 64, 4096, 16384] {
        for (order, scattered) in [("in_order", false), ("scattered", true)] {
            let program = updates(tiles, scattered);
            group.bench_function(BenchmarkId::new(order, tiles), |bencher| {
                bencher.iter(|| engine::run(&program, &machine, &mut ()).expect("the run completes"));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, tensor_map);
criterion_main!(benches);

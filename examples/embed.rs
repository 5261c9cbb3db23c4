//! A task graph of one's own on the runtime: a blocked sum of squares with temporaries in the heap ring.
//!
//! `cargo run --release --example embed`

use ptosim::engine::RunError;
use ptosim::id::TaskType;
use ptosim::runtime::Runtime;

const BLOCKS: usize = 64;
const BLOCK: usize = 1024;

fn main() -> Result<(), RunError> {
    let runtime = Runtime::builder()
        .workers(1, 4)
        .window(32)
        // Room for a few temporaries only: the ring is used again and again.
        .heap(32 << 10)
        .kernel_on(TaskType::Cube, "square", |inputs, outputs| {
            for (square, x) in outputs[0].iter_mut().zip(inputs[0]) {
                *square = x * x;
            }
        })
        .kernel("sum", |inputs, outputs| outputs[0][0] += inputs[0].iter().sum::<f32>())
        .build()?;

    let total = runtime.run(|session| {
        let numbers: Vec<f32> = (0..BLOCKS * BLOCK).map(|index| (index % 7) as f32).collect();
        let x = session.buffer(&numbers)?;
        let total = session.buffer(&[0.0])?;
        for block in 0..BLOCKS {
            // The temporary lives until the scope is closed and its reader has ended.
            let _scope = session.scope()?;
            let squares = session.temporary(BLOCK);
            session.submit("square", &[x.part(block * BLOCK..(block + 1) * BLOCK).read(), squares.create()])?;
            session.submit("sum", &[squares.read(), total.update()])?;
        }
        session.wait_all()?;
        Ok(session.contents(&total)[0])
    })?;

    let expected: f32 = (0..BLOCKS * BLOCK).map(|index| ((index % 7) * (index % 7)) as f32).sum();
    println!("sum of squares: {total}, expected {expected}");
    assert!((total - expected).abs() < 1.0, "a lost or early task would show here");
    Ok(())
}

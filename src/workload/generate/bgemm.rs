//! A batch of tiled matrix products.

use super::indexed::Kernel;
use super::values::product;
use super::{Generator, Values, parameter};
use crate::id::{BufferId, Symbol, TaskType};
use crate::workload::{NewBuffer, Operation, Region, Source, Submit, Symbols, WorkloadError};

/// `bgemm:batch=,m=,n=,k=,tile=,scope=`.
pub const GENERATOR: Generator = Generator {
    name: "bgemm",
    description: "a batch of matrix products in tiles: gemm_tile on CUBE multiplies a tile of A and of B into a new \
                  buffer, tile_add on VECTOR adds it to a tile of C in place",
    parameters: &[
        parameter("batch", "8", "matrix products"),
        parameter("m", "8", "rows of tiles of A and C"),
        parameter("n", "8", "columns of tiles of B and C"),
        parameter("k", "16", "products added into one tile of C"),
        parameter("tile", "8", "elements of 4 bytes along a side of a tile"),
        parameter("scope", "tile", "one scope per tile of C, batch, step (a product and its addition) or none"),
    ],
    open,
};

const A: BufferId = BufferId(0);
const B: BufferId = BufferId(1);
const C: BufferId = BufferId(2);
const PRODUCT: BufferId = BufferId(3);

/// What one scope holds.
#[derive(Clone, Copy)]
enum Scope {
    Tile,
    Batch,
    Step,
    None,
}

/// What comes next.
#[derive(Clone, Copy)]
enum Stage {
    Buffer(BufferId),
    Begin,
    Multiply,
    Add,
    End,
    Over,
}

struct Bgemm {
    batch: u64,
    m: u64,
    n: u64,
    k: u64,
    tile_bytes: u64,
    scope: Scope,
    stage: Stage,
    /// The product at hand: batch, row, column, step.
    at: [u64; 4],
    multiply: Kernel,
    add: Kernel,
    /// The parameters m, n and k of a product.
    sides: [(Symbol, f64); 3],
    symbols: Symbols,
    buffers: Symbols,
}

fn open(values: &Values) -> Result<Box<dyn Source>, String> {
    let mut symbols = Symbols::default();
    let mut buffers = Symbols::default();
    for name in ["A", "B", "C", "P"] {
        buffers.intern(name);
    }
    let [batch, m, n, k] = [values.count("batch")?, values.count("m")?, values.count("n")?, values.count("k")?];
    let tile = values.number_in("tile", 1..=1 << 20)?;
    let tile_bytes = tile * tile * 4;
    product(&[batch, m, n, k, 2])?;
    for sides in [[m, k], [k, n], [m, n]] {
        product(&[batch, sides[0], sides[1], tile_bytes])?;
    }
    let scopes = [Scope::Tile, Scope::Batch, Scope::Step, Scope::None];
    Ok(Box::new(Bgemm {
        batch,
        m,
        n,
        k,
        tile_bytes,
        scope: scopes[values.choice("scope", &["tile", "batch", "step", "none"])?],
        stage: Stage::Buffer(A),
        at: [0; 4],
        multiply: Kernel::new(&mut symbols, "gemm_tile", TaskType::Cube),
        add: Kernel::new(&mut symbols, "tile_add", TaskType::Vector),
        sides: ["m", "n", "k"].map(|name| (symbols.intern(name), tile as f64)),
        symbols,
        buffers,
    }))
}

impl Bgemm {
    fn declare(&mut self, buffer: BufferId) -> Operation {
        let (tiles, next) = match buffer {
            A => (self.m * self.k, Stage::Buffer(B)),
            B => (self.k * self.n, Stage::Buffer(C)),
            _ => (self.m * self.n, Stage::Begin),
        };
        self.stage = next;
        Operation::Buffer { buffer, bytes: self.batch * tiles * self.tile_bytes }
    }

    fn tile(&self, buffer: BufferId, index: u64) -> Region {
        Region::range(buffer, index * self.tile_bytes, self.tile_bytes)
    }

    fn multiply(&self, task: &mut Submit) {
        let [batch, row, column, step] = self.at;
        task.clear();
        self.multiply.call(task);
        task.reads.push(self.tile(A, (batch * self.m + row) * self.k + step));
        task.reads.push(self.tile(B, (batch * self.k + step) * self.n + column));
        task.allocates.push(NewBuffer { buffer: PRODUCT, bytes: self.tile_bytes });
        task.params.extend_from_slice(&self.sides);
    }

    fn add(&self, task: &mut Submit) {
        let [batch, row, column, _] = self.at;
        task.clear();
        self.add.call(task);
        task.reads.push(self.tile(PRODUCT, 0));
        task.updates.push(self.tile(C, (batch * self.m + row) * self.n + column));
    }

    fn opens_scope(&self) -> bool {
        match self.scope {
            Scope::Tile => self.at[3] == 0,
            Scope::Batch => self.at[1..] == [0, 0, 0],
            Scope::Step => true,
            Scope::None => false,
        }
    }

    /// Moves to the next product and tells whether a scope ends in between.
    fn advance(&mut self) -> bool {
        self.at[3] += 1;
        let mut finished = 0;
        for (level, size) in [(3, self.k), (2, self.n), (1, self.m)] {
            if self.at[level] == size {
                self.at[level] = 0;
                self.at[level - 1] += 1;
                finished += 1;
            }
        }
        self.stage = if self.at[0] == self.batch { Stage::Over } else { Stage::Begin };
        match self.scope {
            Scope::Tile => finished >= 1,
            Scope::Batch => finished == 3,
            Scope::Step => true,
            Scope::None => false,
        }
    }
}

impl Source for Bgemm {
    fn next(&mut self, task: &mut Submit) -> Result<Option<Operation>, WorkloadError> {
        loop {
            match self.stage {
                Stage::Buffer(buffer) => return Ok(Some(self.declare(buffer))),
                Stage::Begin => {
                    self.stage = Stage::Multiply;
                    if self.opens_scope() {
                        return Ok(Some(Operation::ScopeBegin));
                    }
                }
                Stage::Multiply => {
                    self.multiply(task);
                    self.stage = Stage::Add;
                    return Ok(Some(Operation::Submit));
                }
                Stage::Add => {
                    self.add(task);
                    self.stage = Stage::End;
                    return Ok(Some(Operation::Submit));
                }
                Stage::End => {
                    if self.advance() {
                        return Ok(Some(Operation::ScopeEnd));
                    }
                }
                Stage::Over => return Ok(None),
            }
        }
    }

    fn n_tasks(&self) -> Option<u64> {
        Some(self.batch * self.m * self.n * self.k * 2)
    }

    fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    fn buffers(&self) -> &Symbols {
        &self.buffers
    }
}

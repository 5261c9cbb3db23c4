//! Cholesky factorisation of a symmetric matrix in tiles, in place.

use super::indexed::Kernel;
use super::parts::{Names, Nest, Part, parts};
use super::values::product;
use super::{Generator, Values, parameter};
use crate::id::{BufferId, Symbol, TaskType};
use crate::workload::{Region, Source};

/// `cholesky:tiles=,tile=`.
pub const GENERATOR: Generator = Generator {
    name: "cholesky",
    description: "tiled Cholesky factorisation in place: potrf on VECTOR; trsm, syrk and gemm on CUBE",
    parameters: &[
        parameter("tiles", "24", "tiles along a side of the matrix"),
        parameter("tile", "64", "elements of 4 bytes along a side of a tile"),
    ],
    open,
};

struct Cholesky {
    tiles: u64,
    tile: u64,
    /// Column being eliminated, and the row whose tasks come next.
    at: (u64, u64),
    matrix: BufferId,
    potrf: Kernel,
    trsm: Kernel,
    syrk: Kernel,
    gemm: Kernel,
    sides: [Symbol; 3],
}

fn open(values: &Values) -> Result<Box<dyn Source>, String> {
    let (tiles, tile) = (values.count("tiles")?, values.number_in("tile", 1..=1 << 20)?);
    let mut names = Names::default();
    let nest = Cholesky {
        tiles,
        tile,
        at: (0, 0),
        matrix: names.buffer("A", product(&[tiles, tiles, tile, tile, 4])?),
        potrf: names.kernel("potrf", TaskType::Vector),
        trsm: names.kernel("trsm", TaskType::Cube),
        syrk: names.kernel("syrk", TaskType::Cube),
        gemm: names.kernel("gemm", TaskType::Cube),
        sides: names.sides(),
    };
    Ok(parts(nest, names))
}

impl Cholesky {
    fn tile(&self, row: u64, column: u64) -> Region {
        let bytes = self.tile * self.tile * 4;
        Region::range(self.matrix, (row * self.tiles + column) * bytes, bytes)
    }
}

impl Nest for Cholesky {
    fn part(&mut self, part: &mut Part) -> bool {
        let (k, row) = self.at;
        let sides = [self.tile; 3];
        if k == self.tiles {
            return false;
        }
        if row == k {
            part.task(self.potrf).updates(self.tile(k, k)).sides(self.sides, sides);
            for below in k + 1..self.tiles {
                let task = part.task(self.trsm).reads(self.tile(k, k));
                task.updates(self.tile(below, k)).sides(self.sides, sides);
            }
        } else {
            for column in k + 1..row {
                let task = part.task(self.gemm).reads(self.tile(row, k)).reads(self.tile(column, k));
                task.updates(self.tile(row, column)).sides(self.sides, sides);
            }
            let task = part.task(self.syrk).reads(self.tile(row, k));
            task.updates(self.tile(row, row)).sides(self.sides, sides);
        }
        self.at = if row + 1 == self.tiles { (k + 1, k + 1) } else { (k, row + 1) };
        true
    }
}

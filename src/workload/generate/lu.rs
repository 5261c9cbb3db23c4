//! LU factorisation of a matrix in tiles, in place and without pivoting.

use super::indexed::Kernel;
use super::parts::{Names, Nest, Part, parts};
use super::values::product;
use super::{Generator, Values, parameter};
use crate::id::{BufferId, Symbol, TaskType};
use crate::workload::{Region, Source};

/// `lu:tiles=,tile=`.
pub const GENERATOR: Generator = Generator {
    name: "lu",
    description: "tiled LU factorisation in place, without pivoting: getrf on VECTOR; trsm and gemm on CUBE",
    parameters: &[
        parameter("tiles", "20", "tiles along a side of the matrix"),
        parameter("tile", "64", "elements of 4 bytes along a side of a tile"),
    ],
    open,
};

struct Lu {
    tiles: u64,
    tile: u64,
    /// Diagonal tile being eliminated, and the row whose tasks come next.
    at: (u64, u64),
    matrix: BufferId,
    getrf: Kernel,
    trsm: Kernel,
    gemm: Kernel,
    sides: [Symbol; 3],
}

fn open(values: &Values) -> Result<Box<dyn Source>, String> {
    let (tiles, tile) = (values.count("tiles")?, values.number_in("tile", 1..=1 << 20)?);
    let mut names = Names::default();
    let nest = Lu {
        tiles,
        tile,
        at: (0, 0),
        matrix: names.buffer("A", product(&[tiles, tiles, tile, tile, 4])?),
        getrf: names.kernel("getrf", TaskType::Vector),
        trsm: names.kernel("trsm", TaskType::Cube),
        gemm: names.kernel("gemm", TaskType::Cube),
        sides: names.sides(),
    };
    Ok(parts(nest, names))
}

impl Lu {
    fn tile(&self, row: u64, column: u64) -> Region {
        let bytes = self.tile * self.tile * 4;
        Region::range(self.matrix, (row * self.tiles + column) * bytes, bytes)
    }
}

impl Nest for Lu {
    fn part(&mut self, part: &mut Part) -> bool {
        let (k, row) = self.at;
        let sides = [self.tile; 3];
        if k == self.tiles {
            return false;
        }
        if row == k {
            part.task(self.getrf).updates(self.tile(k, k)).sides(self.sides, sides);
            for other in k + 1..self.tiles {
                for tile in [self.tile(k, other), self.tile(other, k)] {
                    part.task(self.trsm).reads(self.tile(k, k)).updates(tile).sides(self.sides, sides);
                }
            }
        } else {
            for column in k + 1..self.tiles {
                let task = part.task(self.gemm).reads(self.tile(row, k)).reads(self.tile(k, column));
                task.updates(self.tile(row, column)).sides(self.sides, sides);
            }
        }
        self.at = if row + 1 == self.tiles { (k + 1, k + 1) } else { (k, row + 1) };
        true
    }
}

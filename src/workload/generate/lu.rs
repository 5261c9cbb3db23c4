//! LU factorisation of a matrix in tiles, in place and without pivoting.

use super::indexed::Kernel;
use super::parts::{Names, Nest, Part, parts};
use super::tiled::Tiled;
use super::{Generator, Values, parameter};
use crate::id::TaskType;
use crate::workload::Source;

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
    getrf: Kernel,
    trsm: Kernel,
    gemm: Kernel,
    matrix: Tiled,
}

fn open(values: &Values) -> Result<Box<dyn Source>, String> {
    let mut names = Names::default();
    let nest = Lu {
        getrf: names.kernel("getrf", TaskType::Vector),
        trsm: names.kernel("trsm", TaskType::Cube),
        gemm: names.kernel("gemm", TaskType::Cube),
        matrix: Tiled::new(values, &mut names)?,
    };
    Ok(parts(nest, names))
}

impl Nest for Lu {
    fn part(&mut self, part: &mut Part) -> bool {
        let Some((k, row)) = self.matrix.next_row() else { return false };
        let matrix = &self.matrix;
        if row == k {
            matrix.task(part, self.getrf).updates(matrix.tile(k, k));
            for other in matrix.behind(k) {
                for tile in [matrix.tile(k, other), matrix.tile(other, k)] {
                    matrix.task(part, self.trsm).reads(matrix.tile(k, k)).updates(tile);
                }
            }
        } else {
            for column in matrix.behind(k) {
                let task = matrix.task(part, self.gemm).reads(matrix.tile(row, k)).reads(matrix.tile(k, column));
                task.updates(matrix.tile(row, column));
            }
        }
        true
    }
}

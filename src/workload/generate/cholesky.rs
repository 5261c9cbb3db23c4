//! Cholesky factorisation of a symmetric matrix in tiles, in place.

use super::indexed::Kernel;
use super::parts::{Names, Nest, Part, parts};
use super::tiled::Tiled;
use super::{Generator, Values, parameter};
use crate::id::TaskType;
use crate::workload::Source;

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
    potrf: Kernel,
    trsm: Kernel,
    syrk: Kernel,
    gemm: Kernel,
    matrix: Tiled,
}

fn open(values: &Values) -> Result<Box<dyn Source>, String> {
    let mut names = Names::default();
    let nest = Cholesky {
        potrf: names.kernel("potrf", TaskType::Vector),
        trsm: names.kernel("trsm", TaskType::Cube),
        syrk: names.kernel("syrk", TaskType::Cube),
        gemm: names.kernel("gemm", TaskType::Cube),
        matrix: Tiled::new(values, &mut names)?,
    };
    Ok(parts(nest, names))
}

impl Nest for Cholesky {
    fn part(&mut self, part: &mut Part) -> bool {
        let Some((k, row)) = self.matrix.next_row() else { return false };
        let matrix = &self.matrix;
        if row == k {
            matrix.task(part, self.potrf).updates(matrix.tile(k, k));
            for below in matrix.behind(k) {
                matrix.task(part, self.trsm).reads(matrix.tile(k, k)).updates(matrix.tile(below, k));
            }
        } else {
            for column in k + 1..row {
                let task = matrix.task(part, self.gemm).reads(matrix.tile(row, k)).reads(matrix.tile(column, k));
                task.updates(matrix.tile(row, column));
            }
            matrix.task(part, self.syrk).reads(matrix.tile(row, k)).updates(matrix.tile(row, row));
        }
        true
    }
}

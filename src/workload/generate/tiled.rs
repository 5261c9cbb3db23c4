//! A square matrix in tiles that is factorised in place, one diagonal tile after the other.

use super::Values;
use super::indexed::Kernel;
use super::parts::{Names, Part, Task};
use super::values::product;
use crate::id::{BufferId, Symbol};
use crate::workload::Region;
use std::ops::Range;

/// The matrix, and how far its factorisation has come.
pub struct Tiled {
    tiles: u64,
    tile: u64,
    /// Diagonal tile being eliminated, and the row whose tasks come next.
    at: (u64, u64),
    matrix: BufferId,
    sides: [Symbol; 3],
}

impl Tiled {
    /// The matrix of the parameters `tiles` and `tile`.
    pub fn new(values: &Values, names: &mut Names) -> Result<Tiled, String> {
        let (tiles, tile) = (values.count("tiles")?, values.number_in("tile", 1..=1 << 20)?);
        let matrix = names.buffer("A", product(&[tiles, tiles, tile, tile, 4])?);
        Ok(Tiled { tiles, tile, at: (0, 0), matrix, sides: names.sides() })
    }

    /// The diagonal tile and the row whose tasks come now, if the matrix is not done.
    pub fn next_row(&mut self) -> Option<(u64, u64)> {
        let (diagonal, row) = self.at;
        if diagonal == self.tiles {
            return None;
        }
        self.at = if row + 1 == self.tiles { (diagonal + 1, diagonal + 1) } else { (diagonal, row + 1) };
        Some((diagonal, row))
    }

    /// The rows below a diagonal tile, which are also the columns behind it.
    pub fn behind(&self, diagonal: u64) -> Range<u64> {
        diagonal + 1..self.tiles
    }

    /// One tile.
    pub fn tile(&self, row: u64, column: u64) -> Region {
        let bytes = self.tile * self.tile * 4;
        Region::range(self.matrix, (row * self.tiles + column) * bytes, bytes)
    }

    /// Adds a call of `kernel` on tiles, to be filled.
    pub fn task<'p>(&self, part: &'p mut Part, kernel: Kernel) -> Task<'p> {
        part.task(kernel).sides(self.sides, [self.tile; 3])
    }
}

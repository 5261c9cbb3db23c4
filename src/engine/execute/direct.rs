//! BGEMM, Cholesky and flash attention by their formulas, in double precision, to compare with.

use super::number;
use crate::id::BufferId;
use crate::workload::generate::catalogue;

/// Device buffers and their bytes.
type Device = [(BufferId, Vec<u8>)];

/// A parameter of a generator's text `name:key=value,…`, or its default.
pub(super) fn parameter(spec: &str, key: &str) -> Option<u64> {
    let (name, parameters) = spec.split_once(':').unwrap_or((spec, ""));
    let given = parameters.split(',').filter_map(|pair| pair.split_once('=')).find(|(name, _)| *name == key);
    let default = || {
        let generator = catalogue().iter().find(|generator| generator.name == name)?;
        generator.parameters.iter().find(|parameter| parameter.name == key).map(|parameter| parameter.default)
    };
    given.map(|(_, value)| value).or_else(default)?.parse().ok()
}

/// Compares with the formula if there is one: a sentence for the report, or what is wrong.
pub(super) fn compare(spec: &str, device: &Device) -> Option<Result<String, String>> {
    match spec.split(':').next()? {
        "bgemm" => Some(bgemm(&Shape::of(spec, &["batch", "m", "n", "k", "tile"])?, device)),
        "cholesky" => Some(cholesky(&Shape::of(spec, &["tiles", "tile"])?, device)),
        "flash_attention" => {
            let causal = spec.contains("causal=yes");
            let shape = Shape::of(spec, &["batch", "heads", "queries", "keys", "tile", "dim"])?;
            Some(attention(&shape, causal, device))
        }
        _ => None,
    }
}

/// Parameters in the order in which they were asked for.
struct Shape(Vec<usize>);

impl Shape {
    fn of(spec: &str, keys: &[&str]) -> Option<Shape> {
        keys.iter().map(|key| parameter(spec, key).map(|value| value as usize)).collect::<Option<_>>().map(Shape)
    }
}

fn singles(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]).into()).collect()
}

fn halves(bytes: &[u8]) -> Vec<f64> {
    let number = |b: &[u8]| f64::from(f32::from_bits(u32::from(u16::from_le_bytes([b[0], b[1]])) << 16));
    bytes.chunks_exact(2).map(number).collect()
}

/// The largest difference, told or refused.
fn judge(what: &str, found: &[f64], expected: &[f64], tolerance: f64) -> Result<String, String> {
    let differences =
        found.iter().zip(expected).map(|(found, expected)| (found - expected).abs() / expected.abs().max(1.0));
    let (at, largest) = differences.enumerate().fold((0, 0.0), |most, (at, difference)| {
        // Not a number counts as the largest difference.
        if difference <= most.1 { most } else { (at, difference) }
    });
    if found.len() == expected.len() && largest <= tolerance {
        return Ok(format!(
            "verified: {} numbers of {what} equal the formula, largest difference {largest:.1e}",
            found.len()
        ));
    }
    Err(format!(
        "verification failed: number {at} of {what} is {}, the formula gives {}",
        found.get(at).unwrap_or(&f64::NAN),
        expected.get(at).unwrap_or(&f64::NAN)
    ))
}

/// C = C₀ + A × B for every batch; all matrices in square tiles.
#[expect(clippy::many_single_char_names, reason = "the letters of the formula")]
fn bgemm(Shape(shape): &Shape, device: &Device) -> Result<String, String> {
    let [batch, m, n, k, tile] = shape[..] else { return Err("needs five parameters".into()) };
    let (a, b) = (singles(&device[0].1), singles(&device[1].1));
    let size = tile * tile;
    let mut c: Vec<f64> = (0..batch * m * n * size).map(|at| number(device[2].0, at as u64).into()).collect();
    for index in 0..batch * m * n {
        let (batch, row, column) = (index / (m * n), index / n % m, index % n);
        for step in 0..k {
            let left = &a[((batch * m + row) * k + step) * size..][..size];
            let right = &b[((batch * k + step) * n + column) * size..][..size];
            for at in 0..size {
                let (i, j) = (at / tile, at % tile);
                c[index * size + at] += (0..tile).map(|x| left[i * tile + x] * right[x * tile + j]).sum::<f64>();
            }
        }
    }
    judge("C", &singles(&device[2].1), &c, 1e-3)
}

/// A symmetric positive definite matrix in tiles, as bytes.
pub(super) fn definite(tiles: u64, tile: u64) -> Vec<u8> {
    let side = tiles * tile;
    let element = |row: u64, column: u64| {
        let (low, high) = (row.min(column), row.max(column));
        number(BufferId(0), low * side + high) + if row == column { side as f32 } else { 0.0 }
    };
    let in_tiles = (0..side * side).map(|at| {
        let (index, inside) = (at / (tile * tile), at % (tile * tile));
        element(index / tiles * tile + inside / tile, index % tiles * tile + inside % tile)
    });
    in_tiles.flat_map(f32::to_le_bytes).collect()
}

/// L × Lᵀ must give the matrix back.
fn cholesky(Shape(shape): &Shape, device: &Device) -> Result<String, String> {
    let [tiles, tile] = shape[..] else { return Err("needs two parameters".into()) };
    let side = tiles * tile;
    let (l, a) = (singles(&device[0].1), singles(&definite(tiles as u64, tile as u64)));
    let at = |row: usize, column: usize| {
        ((row / tile) * tiles + column / tile) * tile * tile + row % tile * tile + column % tile
    };
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    for row in 0..side {
        for column in 0..=row {
            let product: f64 = (0..=column).map(|k| l[at(row, k)] * l[at(column, k)]).sum();
            found.push(product);
            expected.push(a[at(row, column)]);
        }
    }
    judge("L × Lᵀ", &found, &expected, 1e-3)
}

/// O = softmax(Q × Kᵀ / √dim) × V for every head.
fn attention(Shape(shape): &Shape, causal: bool, device: &Device) -> Result<String, String> {
    let [batch, heads, queries, keys, tile, dim] = shape[..] else { return Err("needs six parameters".into()) };
    let [q, k, v, o] = [0, 1, 2, 3].map(|index: usize| halves(&device[index].1));
    let mut expected = Vec::with_capacity(o.len());
    for row in 0..batch * heads * queries * tile {
        let (head, query) = (row / (queries * tile), row / tile % queries);
        let seen = if causal { keys.min(query + 1) } else { keys } * tile;
        let q = &q[row * dim..][..dim];
        let key = |index: usize| &k[(head * keys * tile + index) * dim..][..dim];
        let score = |index| q.iter().zip(key(index)).map(|(q, k)| q * k).sum::<f64>() / (dim as f64).sqrt();
        let powers: Vec<f64> = (0..seen).map(|index| score(index).exp()).collect();
        let sum: f64 = powers.iter().sum();
        for column in 0..dim {
            let value = |index: usize| v[(head * keys * tile + index) * dim + column];
            expected.push((0..seen).map(|index| powers[index] * value(index)).sum::<f64>() / sum);
        }
    }
    // Probabilities and results are kept with 8 bits of precision.
    judge("O", &o, &expected, 2e-2)
}

//! Kernels as functions on numbers, by the names that traces and generators use.
//!
//! Shapes follow from the sizes of the operands. Tiles are square unless the kernel says otherwise.

use super::frame::{Access, Frame};

/// A kernel.
pub(super) type Function = fn(&mut Frame) -> Result<(), String>;

/// All kernels by name.
pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("gemm_tile", gemm_tile),
    ("tile_add", accumulate),
    ("add", add),
    ("mul", mul),
    ("relu", relu),
    ("copy", copy),
    ("softmax", softmax),
    ("reduce_sum", reduce_sum),
    ("reduce_max", reduce_max),
    ("qk_matmul", qk_matmul),
    ("online_softmax", online_softmax),
    ("pv_matmul", pv_matmul),
    ("rescale_add", rescale_add),
    ("normalize_mul", normalize_mul),
    ("potrf", potrf),
    ("trsm", trsm),
    ("syrk", syrk),
    ("gemm", gemm),
];

/// Side of a square of `len` numbers.
fn side(len: usize) -> Result<usize, String> {
    let side = len.isqrt();
    if side * side == len { Ok(side) } else { Err(format!("needs a square tile, not {len} numbers")) }
}

/// New = A × B, square tiles.
fn gemm_tile(frame: &mut Frame) -> Result<(), String> {
    let (a, b) = (frame.read(0)?, frame.read(1)?);
    let n = side(a.len())?;
    if b.len() != a.len() {
        return Err(format!("multiplies tiles of {} and {} numbers", a.len(), b.len()));
    }
    let mut c = vec![0.0; n * n];
    for row in 0..n {
        for k in 0..n {
            let factor = a[row * n + k];
            for column in 0..n {
                c[row * n + column] += factor * b[k * n + column];
            }
        }
    }
    frame.result()?.set_singles(&c);
    Ok(())
}

/// Combines two operands element by element into the result.
fn zip_with(frame: &mut Frame, combine: impl Fn(f32, f32) -> f32) -> Result<(), String> {
    let (a, b) = (frame.read(0)?, frame.read(1)?);
    let c: Vec<f32> = a.iter().zip(&b).map(|(&a, &b)| combine(a, b)).collect();
    frame.result()?.set_singles(&c);
    Ok(())
}

/// C += A, C in place.
fn accumulate(frame: &mut Frame) -> Result<(), String> {
    zip_with(frame, |a, c| a + c)
}

/// The second operand may be the result itself.
fn add(frame: &mut Frame) -> Result<(), String> {
    zip_with(frame, |a, b| a + b)
}

fn mul(frame: &mut Frame) -> Result<(), String> {
    zip_with(frame, |a, b| a * b)
}

fn relu(frame: &mut Frame) -> Result<(), String> {
    let a: Vec<f32> = frame.read(0)?.iter().map(|&a| a.max(0.0)).collect();
    frame.result()?.set_singles(&a);
    Ok(())
}

fn copy(frame: &mut Frame) -> Result<(), String> {
    let bytes = frame.operand(0)?.bytes.clone();
    frame.result()?.bytes = bytes;
    Ok(())
}

/// Over all numbers of the operand.
fn softmax(frame: &mut Frame) -> Result<(), String> {
    let a = frame.read(0)?;
    let most = a.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f32> = a.iter().map(|&a| (a - most).exp()).collect();
    let sum: f32 = powers.iter().sum();
    frame.result()?.set_singles(&powers.iter().map(|power| power / sum).collect::<Vec<_>>());
    Ok(())
}

fn reduce_sum(frame: &mut Frame) -> Result<(), String> {
    let sum = frame.reads().flat_map(super::frame::Operand::singles).sum();
    frame.result()?.set_singles(&[sum]);
    Ok(())
}

fn reduce_max(frame: &mut Frame) -> Result<(), String> {
    let most = frame.reads().flat_map(super::frame::Operand::singles).fold(f32::NEG_INFINITY, f32::max);
    frame.result()?.set_singles(&[most]);
    Ok(())
}

/// Scores = Q × Kᵀ / √dim; Q and K have 2 bytes a number, the keys may come in pieces.
fn qk_matmul(frame: &mut Frame) -> Result<(), String> {
    let q = frame.operand(0)?.halves();
    let k: Vec<f32> = frame.reads().skip(1).flat_map(super::frame::Operand::halves).collect();
    let scores = frame.result()?;
    let n_scores = scores.bytes.len() / 4;
    // rows × dim, columns × dim and rows × columns are known.
    let dim = (q.len() * k.len() / n_scores.max(1)).isqrt().max(1);
    let columns = k.len() / dim;
    let scale = 1.0 / (dim as f32).sqrt();
    let score = |q: &[f32], k: &[f32]| q.iter().zip(k).map(|(q, k)| q * k).sum::<f32>() * scale;
    let all: Vec<f32> = q.chunks(dim).flat_map(|q| k.chunks(dim).map(move |k| score(q, k))).collect();
    if all.len() != n_scores {
        return Err(format!("makes {} scores for a buffer of {n_scores} ({columns} columns)", all.len()));
    }
    scores.set_singles(&all);
    Ok(())
}

/// Probabilities of one block of keys, with the largest score and the sum of every row so far in place, and the factor by which
/// earlier results shrink.
fn online_softmax(frame: &mut Frame) -> Result<(), String> {
    let scores = frame.read(0)?;
    let mut results: Vec<_> = frame.results().collect();
    let [stats, probabilities, factors] = results.as_mut_slice() else {
        return Err("needs statistics, probabilities and factors to write".into());
    };
    let rows = factors.bytes.len() / 4;
    let columns = scores.len() / rows.max(1);
    let mut so_far =
        if stats.access == Access::Update { stats.singles() } else { [f32::NEG_INFINITY, 0.0].repeat(rows) };
    let (mut all, mut shrink) = (Vec::with_capacity(scores.len()), Vec::with_capacity(rows));
    for (row, so_far) in scores.chunks(columns.max(1)).zip(so_far.chunks_exact_mut(2)) {
        let most = row.iter().copied().fold(so_far[0], f32::max);
        let factor = (so_far[0] - most).exp();
        let powers: Vec<f32> = row.iter().map(|score| (score - most).exp()).collect();
        so_far[1] = so_far[1] * factor + powers.iter().sum::<f32>();
        so_far[0] = most;
        all.extend(powers);
        shrink.push(factor);
    }
    stats.set_singles(&so_far);
    probabilities.set_halves(&all);
    factors.set_singles(&shrink);
    Ok(())
}

/// Partial = P × V; P and V have 2 bytes a number, the values may come in pieces.
fn pv_matmul(frame: &mut Frame) -> Result<(), String> {
    let p = frame.operand(0)?.halves();
    let v: Vec<f32> = frame.reads().skip(1).flat_map(super::frame::Operand::halves).collect();
    let partial = frame.result()?;
    let n_partial = partial.bytes.len() / 4;
    // rows × columns, columns × dim and rows × dim are known.
    let columns = (p.len() * v.len() / n_partial.max(1)).isqrt().max(1);
    let dim = v.len() / columns;
    let mut all = vec![0.0; n_partial];
    for (p, sums) in p.chunks(columns).zip(all.chunks_mut(dim.max(1))) {
        for (&p, v) in p.iter().zip(v.chunks(dim.max(1))) {
            sums.iter_mut().zip(v).for_each(|(sum, v)| *sum += p * v);
        }
    }
    partial.set_singles(&all);
    Ok(())
}

/// O = O × factor of the row + partial; the first time O = partial. O has 2 bytes a number.
fn rescale_add(frame: &mut Frame) -> Result<(), String> {
    let (partial, factors) = (frame.read(0)?, frame.read(1)?);
    let output = frame.result()?;
    let dim = partial.len() / factors.len().max(1);
    let old = if output.access == Access::Update { output.halves() } else { vec![0.0; partial.len()] };
    let rows = old.chunks(dim.max(1)).zip(partial.chunks(dim.max(1))).zip(&factors);
    let new: Vec<f32> = rows
        .flat_map(|((old, partial), &factor)| old.iter().zip(partial).map(move |(old, new)| old * factor + new))
        .collect();
    output.set_halves(&new);
    Ok(())
}

/// O = O / sum of the row. O has 2 bytes a number, the statistics are pairs of largest score and sum.
fn normalize_mul(frame: &mut Frame) -> Result<(), String> {
    let stats = frame.read(0)?;
    let output = frame.result()?;
    let old = output.halves();
    let dim = old.len() / (stats.len() / 2).max(1);
    let rows = old.chunks(dim.max(1)).zip(stats.chunks_exact(2));
    let new: Vec<f32> = rows.flat_map(|(row, stats)| row.iter().map(move |number| number / stats[1])).collect();
    output.set_halves(&new);
    Ok(())
}

/// A = L with L × Lᵀ = A, in place; the upper half becomes 0.
fn potrf(frame: &mut Frame) -> Result<(), String> {
    let tile = frame.result()?;
    let mut a = tile.singles();
    let n = side(a.len())?;
    for column in 0..n {
        let dot = |a: &[f32], row: usize| (0..column).map(|k| a[row * n + k] * a[column * n + k]).sum::<f32>();
        let square = a[column * n + column] - dot(&a, column);
        if square <= 0.0 {
            return Err(format!("the matrix is not positive definite at column {column}"));
        }
        let pivot = square.sqrt();
        a[column * n + column] = pivot;
        for row in column + 1..n {
            a[row * n + column] = (a[row * n + column] - dot(&a, row)) / pivot;
            a[column * n + row] = 0.0;
        }
    }
    tile.set_singles(&a);
    Ok(())
}

/// B = B × L⁻ᵀ, in place.
fn trsm(frame: &mut Frame) -> Result<(), String> {
    let l = frame.read(0)?;
    let n = side(l.len())?;
    let tile = frame.result()?;
    let mut b = tile.singles();
    for row in b.chunks_mut(n.max(1)) {
        for column in 0..n {
            let dot: f32 = (0..column).map(|k| row[k] * l[column * n + k]).sum();
            row[column] = (row[column] - dot) / l[column * n + column];
        }
    }
    tile.set_singles(&b);
    Ok(())
}

/// C = C − A × Aᵀ, in place.
fn syrk(frame: &mut Frame) -> Result<(), String> {
    let a = frame.read(0)?;
    subtract_product(frame, &a, &a)
}

/// C = C − A × Bᵀ, in place.
fn gemm(frame: &mut Frame) -> Result<(), String> {
    let (a, b) = (frame.read(0)?, frame.read(1)?);
    subtract_product(frame, &a, &b)
}

fn subtract_product(frame: &mut Frame, a: &[f32], b: &[f32]) -> Result<(), String> {
    let n = side(a.len())?;
    let tile = frame.result()?;
    let mut c = tile.singles();
    for row in 0..n {
        for column in 0..n {
            let dot: f32 = (0..n).map(|k| a[row * n + k] * b[column * n + k]).sum();
            c[row * n + column] -= dot;
        }
    }
    tile.set_singles(&c);
    Ok(())
}

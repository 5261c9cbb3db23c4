//! A decode step of a transformer: per layer qkv, attention over the cache, out and mlp.
//!
//! Activations live in device memory and are written anew in every layer; the residual stream X is updated in place at
//! the end of attention and of the mlp, which keeps the layers in order.

use super::attention::{Attention, Step};
use super::indexed::Kernel;
use super::parts::{Names, Nest, Part, parts};
use super::values::product;
use super::{Generator, Values, parameter};
use crate::id::{BufferId, Symbol, TaskType};
use crate::workload::{Region, Source};

/// `transformer:layers=,batch=,heads=,sequence=,block=,dim=`.
pub const GENERATOR: Generator = Generator {
    name: "transformer",
    description: "one decode step of a transformer: per layer rms_norm, qkv, attention over the cache, out and mlp; \
                  matrix products on CUBE, the rest on VECTOR",
    parameters: &[
        parameter("layers", "4", "decoder layers"),
        parameter("batch", "8", "requests, one new token each"),
        parameter("heads", "16", "heads; also the tiles of every matrix product"),
        parameter("sequence", "2048", "tokens in the cache of each request"),
        parameter("block", "512", "tokens of the cache handled by one task"),
        parameter("dim", "128", "elements of a head, 2 bytes each"),
    ],
    open,
};

struct Transformer {
    layers: u64,
    batch: u64,
    heads: u64,
    sequence: u64,
    block: u64,
    dim: u64,
    /// Layer, and the piece of it that comes next: qkv, every request and head, then out and mlp.
    at: (u64, u64),
    kernels: Kernels,
    buffers: Buffers,
    attention: Attention,
    sides: [Symbol; 3],
}

struct Kernels {
    norm: Kernel,
    qkv: Kernel,
    out: Kernel,
    residual: Kernel,
    gate_up: Kernel,
    silu: Kernel,
    down: Kernel,
}

struct Buffers {
    stream: BufferId,
    normed: BufferId,
    qkv: BufferId,
    context: BufferId,
    stats: BufferId,
    summand: BufferId,
    hidden: BufferId,
    weights: BufferId,
    keys: BufferId,
    values: BufferId,
    gate: BufferId,
}

/// Mlp tiles for each head: the mlp is this many times as wide as the stream.
const WIDER: u64 = 4;

fn open(values: &Values) -> Result<Box<dyn Source>, String> {
    let (layers, batch) = (values.count("layers")?, values.number_in("batch", 1..=1 << 16)?);
    let (heads, dim) = (values.number_in("heads", 1..=1 << 12)?, values.number_in("dim", 1..=1 << 12)?);
    let (sequence, block) = (values.number_in("sequence", 1..=1 << 30)?, values.number_in("block", 1..=1 << 20)?);
    let mut names = Names::default();
    let width = heads * dim;
    let cache = product(&[layers, batch, heads, sequence, dim, 2])?;
    let buffers = Buffers {
        stream: names.buffer("X", product(&[batch, width, 2])?),
        normed: names.buffer("normed", product(&[batch, width, 2])?),
        qkv: names.buffer("qkv", product(&[heads, batch, 3, dim, 2])?),
        context: names.buffer("context", product(&[batch, width, 2])?),
        stats: names.buffer("stats", product(&[batch, heads, 8])?),
        summand: names.buffer("summand", product(&[heads, batch, dim, 2])?),
        hidden: names.buffer("hidden", product(&[WIDER, heads, batch, dim, 2])?),
        weights: names.buffer("weights", product(&[layers, heads, tile_weights(width, dim)])?),
        keys: names.buffer("K", cache),
        values: names.buffer("V", cache),
        gate: names.heap("gate"),
    };
    let kernels = Kernels {
        norm: names.kernel("rms_norm", TaskType::Vector),
        qkv: names.kernel("qkv_matmul", TaskType::Cube),
        out: names.kernel("out_matmul", TaskType::Cube),
        residual: names.kernel("residual_add", TaskType::Vector),
        gate_up: names.kernel("gate_up_matmul", TaskType::Cube),
        silu: names.kernel("silu_mul", TaskType::Vector),
        down: names.kernel("down_matmul", TaskType::Cube),
    };
    let attention = Attention::new(&mut names);
    let sides = names.sides();
    let nest =
        Transformer { layers, batch, heads, sequence, block, dim, at: (0, 0), kernels, buffers, attention, sides };
    Ok(parts(nest, names))
}

/// Bytes of weights that belong to one head of one layer: qkv, out, gate and up, down.
fn tile_weights(width: u64, dim: u64) -> u64 {
    width * dim * 2 * (3 + 1 + 2 * WIDER + WIDER)
}

impl Nest for Transformer {
    fn part(&mut self, part: &mut Part) -> bool {
        let (layer, piece) = self.at;
        let last = self.batch * self.heads + 1;
        if layer == self.layers {
            return false;
        }
        match piece {
            0 => self.project(part, layer),
            _ if piece < last => self.attend(part, layer, (piece - 1) / self.heads, (piece - 1) % self.heads),
            _ => self.finish_layer(part, layer),
        }
        self.at = if piece == last { (layer + 1, 0) } else { (layer, piece + 1) };
        true
    }
}

impl Transformer {
    fn width(&self) -> u64 {
        self.heads * self.dim
    }

    fn all(&self, buffer: BufferId) -> Region {
        Region::range(buffer, 0, self.batch * self.width() * 2)
    }

    /// The columns of one head in all rows of a matrix as wide as the stream.
    fn columns(&self, buffer: BufferId, head: u64) -> Region {
        if self.heads == 1 {
            return self.all(buffer);
        }
        let (row_bytes, stride) = (self.dim * 2, self.width() * 2);
        if self.batch == 1 {
            return Region::range(buffer, head * row_bytes, row_bytes);
        }
        Region { buffer, offset: head * row_bytes, row_bytes, rows: self.batch, stride }
    }

    /// Part `index` (0 to 15, of the size of one square tile column) of the weights of a head, `count` parts long.
    fn weights(&self, layer: u64, head: u64, index: u64, count: u64) -> Region {
        let unit = self.width() * self.dim * 2;
        let start = (layer * self.heads + head) * tile_weights(self.width(), self.dim);
        Region::range(self.buffers.weights, start + index * unit, count * unit)
    }

    /// The norm, and queries, keys and values of every head.
    fn project(&self, part: &mut Part, layer: u64) {
        let (kernels, buffers) = (&self.kernels, &self.buffers);
        part.task(kernels.norm).reads(self.all(buffers.stream)).writes(self.all(buffers.normed));
        let bytes = self.batch * 3 * self.dim * 2;
        for head in 0..self.heads {
            part.task(kernels.qkv)
                .reads(self.all(buffers.normed))
                .reads(self.weights(layer, head, 0, 3))
                .writes(Region::range(buffers.qkv, head * bytes, bytes))
                .sides(self.sides, [self.batch, 3 * self.dim, self.width()]);
        }
    }

    /// Attention of one request and head over the cache.
    fn attend(&self, part: &mut Part, layer: u64, request: u64, head: u64) {
        let buffers = &self.buffers;
        let row = self.dim * 2;
        let queries = Region::range(buffers.qkv, (head * self.batch + request) * 3 * row, 3 * row);
        let stats = Region::range(buffers.stats, (request * self.heads + head) * 8, 8);
        let output = Region::range(buffers.context, (request * self.heads + head) * row, row);
        let cached = ((layer * self.batch + request) * self.heads + head) * self.sequence * row;
        for first in (0..self.sequence).step_by(self.block as usize) {
            let columns = self.block.min(self.sequence - first);
            let piece = |cache: BufferId| Region::range(cache, cached + first * row, columns * row);
            let step = Step {
                queries,
                keys: &[piece(buffers.keys)],
                values: &[piece(buffers.values)],
                stats,
                output,
                rows: 1,
                columns,
                dim: self.dim,
                first: first == 0,
            };
            self.attention.step(part, &step);
        }
        self.attention.normalize(part, stats, output);
    }

    /// The output projection and the mlp, each added to the stream.
    fn finish_layer(&self, part: &mut Part, layer: u64) {
        let (kernels, buffers) = (&self.kernels, &self.buffers);
        let bytes = self.batch * self.dim * 2;
        for head in 0..self.heads {
            let weights = self.weights(layer, head, 3, 1);
            self.add_to_stream(part, kernels.out, self.all(buffers.context), weights, head);
        }
        part.task(kernels.norm).reads(self.all(buffers.stream)).writes(self.all(buffers.normed));
        for tile in 0..self.heads * WIDER {
            let weights = self.weights(layer, tile / WIDER, 4 + tile % WIDER * 2, 2);
            part.scope_begin();
            part.task(kernels.gate_up)
                .reads(self.all(buffers.normed))
                .reads(weights)
                .allocates(buffers.gate, 2 * bytes)
                .sides(self.sides, [self.batch, 2 * self.dim, self.width()]);
            part.task(kernels.silu).reads(Region::range(buffers.gate, 0, 2 * bytes)).writes(Region::range(
                buffers.hidden,
                tile * bytes,
                bytes,
            ));
            part.scope_end();
        }
        let hidden = Region::range(buffers.hidden, 0, WIDER * self.heads * bytes);
        for head in 0..self.heads {
            let weights = self.weights(layer, head, 4 + 2 * WIDER, WIDER);
            self.add_to_stream(part, kernels.down, hidden, weights, head);
        }
    }

    /// A matrix product for the columns of one head, and its addition to the stream.
    fn add_to_stream(&self, part: &mut Part, kernel: Kernel, input: Region, weights: Region, head: u64) {
        let bytes = self.batch * self.dim * 2;
        let summand = Region::range(self.buffers.summand, head * bytes, bytes);
        let depth = weights.row_bytes / (self.dim * 2);
        part.task(kernel).reads(input).reads(weights).writes(summand).sides(self.sides, [self.batch, self.dim, depth]);
        part.task(self.kernels.residual).reads(summand).updates(self.columns(self.buffers.stream, head));
    }
}

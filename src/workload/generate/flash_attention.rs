//! Attention over tiles of queries and keys, never holding the whole score matrix.

use super::attention::{Attention, Step};
use super::parts::{Names, Nest, Part, parts};
use super::values::product;
use super::{Generator, Values, parameter};
use crate::id::BufferId;
use crate::workload::{Region, Source};

/// `flash_attention:batch=,heads=,queries=,keys=,tile=,dim=,causal=`.
pub const GENERATOR: Generator = Generator {
    name: "flash_attention",
    description: "attention in tiles: qk_matmul and pv_matmul on CUBE, online_softmax, rescale_add and normalize_mul on \
                  VECTOR; one scope per tile of keys",
    parameters: &[
        parameter("batch", "2", "sequences"),
        parameter("heads", "8", "heads"),
        parameter("queries", "16", "tiles of queries"),
        parameter("keys", "16", "tiles of keys"),
        parameter("tile", "128", "rows of a tile"),
        parameter("dim", "128", "elements of a head, 2 bytes each"),
        parameter("causal", "no", "yes: queries see no later keys"),
    ],
    open,
};

struct FlashAttention {
    outer: u64,
    queries: u64,
    keys: u64,
    tile: u64,
    dim: u64,
    causal: bool,
    /// Head and tile of queries that come next.
    at: (u64, u64),
    buffers: Buffers,
    attention: Attention,
}

struct Buffers {
    q: BufferId,
    k: BufferId,
    v: BufferId,
    o: BufferId,
    stats: BufferId,
}

fn open(values: &Values) -> Result<Box<dyn Source>, String> {
    let outer = product(&[values.count("batch")?, values.count("heads")?])?;
    let (queries, keys) = (values.count("queries")?, values.number_in("keys", 1..=1 << 20)?);
    let (tile, dim) = (values.number_in("tile", 1..=1 << 16)?, values.number_in("dim", 1..=1 << 16)?);
    product(&[outer, queries, keys, 8])?;
    let mut names = Names::default();
    let buffers = Buffers {
        q: names.buffer("Q", product(&[outer, queries, tile, dim, 2])?),
        k: names.buffer("K", product(&[outer, keys, tile, dim, 2])?),
        v: names.buffer("V", product(&[outer, keys, tile, dim, 2])?),
        o: names.buffer("O", product(&[outer, queries, tile, dim, 2])?),
        stats: names.buffer("stats", product(&[outer, queries, tile, 8])?),
    };
    let causal = values.choice("causal", &["no", "yes"])? == 1;
    let attention = Attention::new(&mut names);
    Ok(parts(FlashAttention { outer, queries, keys, tile, dim, causal, at: (0, 0), buffers, attention }, names))
}

impl Nest for FlashAttention {
    fn part(&mut self, part: &mut Part) -> bool {
        let (head, query) = self.at;
        if head == self.outer {
            return false;
        }
        let bytes = self.tile * self.dim * 2;
        let tile = |buffer: BufferId, index: u64| Region::range(buffer, index * bytes, bytes);
        let own = head * self.queries + query;
        let stats = Region::range(self.buffers.stats, own * self.tile * 8, self.tile * 8);
        let output = tile(self.buffers.o, own);
        let seen = if self.causal { self.keys.min(query + 1) } else { self.keys };
        for key in 0..seen {
            let other = head * self.keys + key;
            let step = Step {
                queries: tile(self.buffers.q, own),
                keys: &[tile(self.buffers.k, other)],
                values: &[tile(self.buffers.v, other)],
                stats,
                output,
                rows: self.tile,
                columns: self.tile,
                dim: self.dim,
                first: key == 0,
            };
            self.attention.step(part, &step);
        }
        self.attention.normalize(part, stats, output);
        self.at = if query + 1 == self.queries { (head + 1, 0) } else { (head, query + 1) };
        true
    }
}

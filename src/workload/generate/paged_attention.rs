//! Attention of a decode step over a cache in pages: requests of different lengths, pages scattered in the cache.

use super::attention::{Attention, Step};
use super::parts::{Names, Nest, Part, parts};
use super::random::Dice;
use super::values::product;
use super::{Generator, Values, parameter};
use crate::id::BufferId;
use crate::workload::{Region, Source};

/// `paged_attention:batch=,heads=,group=,context=,page=,pages=,dim=,seed=`.
pub const GENERATOR: Generator = Generator {
    name: "paged_attention",
    description: "attention of one decode step over a paged cache; requests have different lengths; one scope per group \
                  of pages",
    parameters: &[
        parameter("batch", "16", "requests"),
        parameter("heads", "8", "heads of keys and values"),
        parameter("group", "16", "query heads that share one of those"),
        parameter("context", "4096", "tokens of the longest request; the shortest has half of them"),
        parameter("page", "128", "tokens of a page"),
        parameter("unroll", "4", "pages handled by one task"),
        parameter("dim", "128", "elements of a head, 2 bytes each"),
        parameter("seed", "1", "another seed, other lengths"),
    ],
    open,
};

struct PagedAttention {
    batch: u64,
    heads: u64,
    group: u64,
    context: u64,
    page: u64,
    unroll: u64,
    dim: u64,
    seed: u64,
    /// Request and head that come next.
    at: (u64, u64),
    buffers: [BufferId; 5],
    attention: Attention,
    /// Pieces of keys and of values of one step, kept to save allocations.
    pieces: [Vec<Region>; 2],
}

fn open(values: &Values) -> Result<Box<dyn Source>, String> {
    let (batch, heads) = (values.count("batch")?, values.count("heads")?);
    let (group, dim) = (values.number_in("group", 1..=1 << 16)?, values.number_in("dim", 1..=1 << 16)?);
    let (context, page) = (values.number_in("context", 1..=1 << 30)?, values.number_in("page", 1..=1 << 16)?);
    let unroll = values.number_in("unroll", 1..=1 << 10)?;
    let mut names = Names::default();
    let cache = product(&[batch, context.div_ceil(page), heads, page, dim, 2])?;
    let buffers = [
        names.buffer("Q", product(&[batch, heads, group, dim, 2])?),
        names.buffer("K", cache),
        names.buffer("V", cache),
        names.buffer("O", product(&[batch, heads, group, dim, 2])?),
        names.buffer("stats", product(&[batch, heads, group, 8])?),
    ];
    let attention = Attention::new(&mut names);
    let (seed, at, pieces) = (values.number("seed")?, (0, 0), [Vec::new(), Vec::new()]);
    let nest = PagedAttention { batch, heads, group, context, page, unroll, dim, seed, at, buffers, attention, pieces };
    Ok(parts(nest, names))
}

impl PagedAttention {
    /// Tokens of a request: between half of the context and all of it.
    fn length(&self, request: u64) -> u64 {
        self.context - Dice::new(self.seed, request).below(self.context / 2 + 1)
    }

    /// One page of one head. The pages of all requests take turns in the cache, as if they had grown together.
    fn page(&self, cache: BufferId, request: u64, head: u64, page: u64) -> Region {
        let bytes = self.page * self.dim * 2;
        Region::range(cache, ((page * self.batch + request) * self.heads + head) * bytes, bytes)
    }
}

impl Nest for PagedAttention {
    fn part(&mut self, part: &mut Part) -> bool {
        let (request, head) = self.at;
        if request == self.batch {
            return false;
        }
        let [q, k, v, o, stats] = self.buffers;
        let own = request * self.heads + head;
        let bytes = self.group * self.dim * 2;
        let output = Region::range(o, own * bytes, bytes);
        let stats = Region::range(stats, own * self.group * 8, self.group * 8);
        let length = self.length(request);
        let [mut keys, mut values] = std::mem::take(&mut self.pieces);
        for first in (0..length.div_ceil(self.page)).step_by(self.unroll as usize) {
            let end = length.div_ceil(self.page).min(first + self.unroll);
            keys.clear();
            values.clear();
            keys.extend((first..end).map(|page| self.page(k, request, head, page)));
            values.extend((first..end).map(|page| self.page(v, request, head, page)));
            let step = Step {
                queries: Region::range(q, own * bytes, bytes),
                keys: &keys,
                values: &values,
                stats,
                output,
                rows: self.group,
                columns: (end - first) * self.page,
                dim: self.dim,
                first: first == 0,
            };
            self.attention.step(part, &step);
        }
        self.attention.normalize(part, stats, output);
        self.pieces = [keys, values];
        self.at = if head + 1 == self.heads { (request + 1, 0) } else { (request, head + 1) };
        true
    }
}

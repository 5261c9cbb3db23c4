//! A mixture of experts: every tile of tokens goes to a few of the experts, chosen at random.

use super::indexed::Kernel;
use super::parts::{Names, Nest, Part, parts};
use super::random::Dice;
use super::values::product;
use super::{Generator, Values, parameter};
use crate::id::{BufferId, Symbol, TaskType};
use crate::workload::{Region, Source};

/// `moe:tiles=,experts=,topk=,tile=,hidden=,wide=,seed=`.
pub const GENERATOR: Generator = Generator {
    name: "moe",
    description: "a mixture of experts: router_matmul, topk_select, then for each chosen expert dispatch_copy, \
                  expert_up_matmul, expert_silu, expert_down_matmul, combine_add; matrix products on CUBE, the rest on VECTOR",
    parameters: &[
        parameter("tiles", "256", "tiles of tokens"),
        parameter("experts", "64", "experts"),
        parameter("topk", "4", "experts that a tile goes to"),
        parameter("tile", "32", "tokens of a tile"),
        parameter("hidden", "1024", "elements of a token, 2 bytes each"),
        parameter("wide", "2048", "elements inside an expert"),
        parameter("seed", "1", "another seed, another choice of experts"),
    ],
    open,
};

struct Moe {
    tiles: u64,
    experts: u64,
    topk: u64,
    tile: u64,
    hidden: u64,
    wide: u64,
    seed: u64,
    next: u64,
    kernels: Kernels,
    buffers: Buffers,
    sides: [Symbol; 3],
    /// Experts of the tile at hand, kept to save allocations.
    chosen: Vec<u64>,
}

struct Kernels {
    router: Kernel,
    select: Kernel,
    dispatch: Kernel,
    up: Kernel,
    silu: Kernel,
    down: Kernel,
    combine: Kernel,
}

struct Buffers {
    x: BufferId,
    y: BufferId,
    router: BufferId,
    logits: BufferId,
    gates: BufferId,
    up: BufferId,
    down: BufferId,
    /// Heap: tokens of one expert, its inner elements, after silu, its result.
    tokens: BufferId,
    inner: BufferId,
    active: BufferId,
    result: BufferId,
}

fn open(values: &Values) -> Result<Box<dyn Source>, String> {
    let (tiles, experts) = (values.count("tiles")?, values.number_in("experts", 1..=1 << 16)?);
    let topk = values.number_in("topk", 1..=experts)?;
    let tile = values.number_in("tile", 1..=1 << 16)?;
    let (hidden, wide) = (values.number_in("hidden", 1..=1 << 20)?, values.number_in("wide", 1..=1 << 20)?);
    let mut names = Names::default();
    let buffers = Buffers {
        x: names.buffer("X", product(&[tiles, tile, hidden, 2])?),
        y: names.buffer("Y", product(&[tiles, tile, hidden, 2])?),
        router: names.buffer("router", product(&[hidden, experts, 2])?),
        logits: names.buffer("logits", product(&[tiles, tile, experts, 2])?),
        gates: names.buffer("gates", product(&[tiles, tile, topk, 8])?),
        up: names.buffer("up", product(&[experts, hidden, wide, 2])?),
        down: names.buffer("down", product(&[experts, wide, hidden, 2])?),
        tokens: names.heap("tokens"),
        inner: names.heap("inner"),
        active: names.heap("active"),
        result: names.heap("result"),
    };
    let kernels = Kernels {
        router: names.kernel("router_matmul", TaskType::Cube),
        select: names.kernel("topk_select", TaskType::Vector),
        dispatch: names.kernel("dispatch_copy", TaskType::Vector),
        up: names.kernel("expert_up_matmul", TaskType::Cube),
        silu: names.kernel("expert_silu", TaskType::Vector),
        down: names.kernel("expert_down_matmul", TaskType::Cube),
        combine: names.kernel("combine_add", TaskType::Vector),
    };
    let sides = names.sides();
    let (seed, chosen) = (values.number("seed")?, Vec::new());
    let nest = Moe { tiles, experts, topk, tile, hidden, wide, seed, next: 0, kernels, buffers, sides, chosen };
    Ok(parts(nest, names))
}

impl Nest for Moe {
    fn part(&mut self, part: &mut Part) -> bool {
        if self.next == self.tiles {
            return false;
        }
        let own = self.next;
        self.next += 1;
        self.choose(own);
        let (kernels, buffers) = (&self.kernels, &self.buffers);
        let piece = |buffer: BufferId, bytes: u64| Region::range(buffer, own * bytes, bytes);
        let logits = piece(buffers.logits, self.tile * self.experts * 2);
        part.task(kernels.router)
            .reads(piece(buffers.x, self.tile * self.hidden * 2))
            .reads(Region::range(buffers.router, 0, self.hidden * self.experts * 2))
            .writes(logits)
            .sides(self.sides, [self.tile, self.experts, self.hidden]);
        part.task(kernels.select).reads(logits).writes(piece(buffers.gates, self.tile * self.topk * 8));
        for (place, &expert) in self.chosen.iter().enumerate() {
            self.expert(part, own, expert, place == 0);
        }
        true
    }
}

impl Moe {
    /// Picks `topk` different experts for a tile.
    fn choose(&mut self, own: u64) {
        let mut dice = Dice::new(self.seed, own);
        self.chosen.clear();
        for left in (self.experts - self.topk..self.experts).map(|last| last + 1) {
            let pick = dice.below(left);
            let pick = if self.chosen.contains(&pick) { left - 1 } else { pick };
            self.chosen.push(pick);
        }
    }

    /// The way of one tile through one expert.
    fn expert(&self, part: &mut Part, own: u64, expert: u64, first: bool) {
        let (kernels, buffers) = (&self.kernels, &self.buffers);
        let (outside, inside) = (self.tile * self.hidden * 2, self.tile * self.wide * 2);
        let weights = self.hidden * self.wide * 2;
        let gates = Region::range(buffers.gates, own * self.tile * self.topk * 8, self.tile * self.topk * 8);
        let heap = |buffer: BufferId, bytes: u64| Region::range(buffer, 0, bytes);
        part.scope_begin();
        part.task(kernels.dispatch)
            .reads(Region::range(buffers.x, own * outside, outside))
            .reads(gates)
            .allocates(buffers.tokens, outside);
        part.task(kernels.up)
            .reads(heap(buffers.tokens, outside))
            .reads(Region::range(buffers.up, expert * weights, weights))
            .allocates(buffers.inner, inside)
            .sides(self.sides, [self.tile, self.wide, self.hidden]);
        part.task(kernels.silu).reads(heap(buffers.inner, inside)).allocates(buffers.active, inside);
        part.task(kernels.down)
            .reads(heap(buffers.active, inside))
            .reads(Region::range(buffers.down, expert * weights, weights))
            .allocates(buffers.result, outside)
            .sides(self.sides, [self.tile, self.hidden, self.wide]);
        part.task(kernels.combine)
            .reads(heap(buffers.result, outside))
            .reads(gates)
            .starts_or_updates(first, Region::range(buffers.y, own * outside, outside));
        part.scope_end();
    }
}

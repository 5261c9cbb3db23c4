//! The graphs of the comparison as functions from the number of a task to its producers, as the generators of ptosim make
//! them.

const WIDTH: u64 = 256;
const STEPS: u64 = 16;
const REACH: u64 = 256;
const FANIN: u64 = 3;

#[derive(Clone, Copy)]
pub enum Shape {
    Chain,
    Stencil,
    Bgemm,
    Random,
}

impl Shape {
    pub fn named(name: &str) -> Option<Shape> {
        match name {
            "chain" => Some(Shape::Chain),
            "stencil" => Some(Shape::Stencil),
            "bgemm" => Some(Shape::Bgemm),
            "random" => Some(Shape::Random),
            _ => None,
        }
    }

    /// Puts the producers of task `id` into the empty list `found`.
    pub fn producers(self, id: u64, found: &mut Vec<u64>) {
        match self {
            Shape::Chain => found.extend(id.checked_sub(1)),
            Shape::Stencil => stencil(id, found),
            Shape::Bgemm => bgemm(id, found),
            Shape::Random => random(id, found),
        }
    }
}

fn stencil(id: u64, found: &mut Vec<u64>) {
    let Some(before) = id.checked_sub(WIDTH) else { return };
    let point = id % WIDTH;
    found.extend(before - u64::from(point > 0)..=before + u64::from(point + 1 < WIDTH));
}

/// Even tasks multiply and wait for nothing; odd ones add the product into a tile of C after the addition before.
fn bgemm(id: u64, found: &mut Vec<u64>) {
    if id % 2 == 1 {
        found.push(id - 1);
        found.extend((!(id / 2).is_multiple_of(STEPS)).then(|| id - 2));
    }
}

fn random(id: u64, found: &mut Vec<u64>) {
    let reach = REACH.min(id);
    if reach <= FANIN {
        return found.extend(id - reach..id);
    }
    let mut state = mix(1 ^ mix(id));
    for _ in 0..FANIN {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let producer = id - 1 - ((u128::from(mix(state)) * u128::from(reach)) >> 64) as u64;
        if !found.contains(&producer) {
            found.push(producer);
        }
    }
}

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

//! What a kernel sees when it runs: its regions as operands, in the order reads, updates, writes, new buffers.

/// What a kernel may do with an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// `in`.
    Read,
    /// `inout`.
    Update,
    /// `out`.
    Write,
    /// `new`.
    New,
}

/// A region of a task, copied out of the memory; what is not [`Access::Read`] is copied back after the kernel.
#[derive(Clone, Debug)]
pub struct Operand {
    /// What the task declared.
    pub access: Access,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The operands of one block.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// Reads, updates, writes, new buffers.
    pub operands: Vec<Operand>,
    /// Which block it is.
    pub block: u32,
}

impl Operand {
    /// Its bytes as numbers of 4 bytes.
    #[must_use]
    pub fn singles(&self) -> Vec<f32> {
        self.bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    }

    /// Its bytes as numbers of 2 bytes: the upper half of a single (bfloat16).
    #[must_use]
    pub fn halves(&self) -> Vec<f32> {
        let number = |b: &[u8]| f32::from_bits(u32::from(u16::from_le_bytes([b[0], b[1]])) << 16);
        self.bytes.chunks_exact(2).map(number).collect()
    }

    /// Puts numbers of 4 bytes in.
    pub fn set_singles(&mut self, numbers: &[f32]) {
        self.bytes.clear();
        self.bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    }

    /// Puts numbers of 2 bytes in, rounded to the nearest.
    pub fn set_halves(&mut self, numbers: &[f32]) {
        self.bytes.clear();
        self.bytes.extend(numbers.iter().flat_map(|&number| to_half(number).to_le_bytes()));
    }
}

/// The nearest number of 2 bytes, as its bits.
#[must_use]
pub fn to_half(number: f32) -> u16 {
    let bits = number.to_bits();
    if number.is_nan() {
        return 0x7fc0;
    }
    let round = 0x7fff + (bits >> 16 & 1);
    (bits.wrapping_add(round) >> 16) as u16
}

impl Frame {
    /// The nth operand.
    ///
    /// # Errors
    /// When the task declared fewer.
    pub fn operand(&self, nth: usize) -> Result<&Operand, String> {
        let have = self.operands.len();
        self.operands.get(nth).ok_or_else(|| format!("needs operand {nth} and the task declares {have}"))
    }

    /// The nth operand that is only read, as numbers of 4 bytes.
    ///
    /// # Errors
    /// When the task declared fewer.
    pub fn read(&self, nth: usize) -> Result<Vec<f32>, String> {
        Ok(self.operand(nth)?.singles())
    }

    /// The first operand that is written.
    ///
    /// # Errors
    /// When the task writes nothing.
    pub fn result(&mut self) -> Result<&mut Operand, String> {
        self.results().next().ok_or_else(|| "needs a region to write and the task declares none".into())
    }

    /// The operands that are written.
    pub fn results(&mut self) -> impl Iterator<Item = &mut Operand> {
        self.operands.iter_mut().filter(|operand| operand.access != Access::Read)
    }

    /// The operands that are only read.
    pub fn reads(&self) -> impl Iterator<Item = &Operand> {
        self.operands.iter().filter(|operand| operand.access == Access::Read)
    }
}

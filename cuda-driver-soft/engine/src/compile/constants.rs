//! Vectors of constants that compiled code reads.

use super::assembler::{Mem, Width};
use super::emitter::Emitter;
use super::registers::POOL;

impl Emitter<'_> {
    /// Returns the place of a constant vector.
    pub(super) fn constant_vector(&mut self, vector: [u32; 8]) -> Mem {
        let next = self.pool.len();
        let index = *self.pooled.entry(vector).or_insert(next);
        if index == next {
            self.pool.push(vector);
        }
        Mem::at(POOL, 32 * index as i32)
    }

    /// Returns the place of a vector with these bits in each element.
    pub(super) fn same_constant(&mut self, width: Width, bits: u64) -> Mem {
        let [low, high] = match width {
            Width::Bits32 => [bits as u32; 2],
            Width::Bits64 => [bits as u32, (bits >> 32) as u32],
        };
        self.constant_vector(std::array::from_fn(|i| if i % 2 == 0 { low } else { high }))
    }

    /// Returns the place of the differences of the lanes of a part from the first lane of an affine value.
    pub(super) fn steps(&mut self, width: Width, step: i64, part: usize) -> Mem {
        let value = |lane: usize| step.wrapping_mul(lane as i64).cast_unsigned();
        self.constant_vector(std::array::from_fn(|i| match width {
            Width::Bits32 => value(8 * part + i) as u32,
            Width::Bits64 => (value(4 * part + i / 2) >> (32 * (i % 2))) as u32,
        }))
    }
}

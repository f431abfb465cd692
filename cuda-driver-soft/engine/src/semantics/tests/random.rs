//! Pseudo-random operands, with many edge cases.

/// A small generator (xorshift64*) that gives the same numbers on every machine.
pub(crate) struct Random(u64);

impl Random {
    /// Creates a generator. All generators give the same numbers.
    pub(crate) fn new() -> Self {
        Random(0x9e37_79b9_7f4a_7c15)
    }

    /// Returns uniform bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns uniform bits, or an edge case: one bit set, long runs of equal bits, or a small number or its negative.
    pub(crate) fn int(&mut self) -> u64 {
        let (kind, a, b) = (self.next() % 6, self.next(), self.next());
        match kind {
            0 | 1 => a,
            2 => 1 << (a % 64),
            3 => (u64::MAX << (a % 64)) ^ (u64::MAX << (b % 64)),
            4 => a % 9,
            _ => (a % 9).wrapping_neg(),
        }
    }

    /// Returns the bits of a floating-point number of this width, with `fraction` fraction bits. All classes of numbers
    /// occur. The exponent is often near that of `near`, and the fraction often has few bits or long runs, so that
    /// sums cancel and products are ties.
    pub(crate) fn float(&mut self, width: u32, fraction: u32, near: u64) -> u64 {
        let exponent_bits = width - 1 - fraction;
        let exponents = (1u64 << exponent_bits) - 1;
        let (kind, a, b) = (self.next() % 10, self.next(), self.next());
        let field = match kind {
            0 => 0,
            1 => exponents,
            2 => a % 3,
            3 => exponents - a % 3,
            4 => a % (exponents + 1),
            5 => (exponents / 2 + a % 5).saturating_sub(2),
            6 => exponents / 4 + a % 3,
            _ => ((near >> fraction & exponents) + a % 5)
                .saturating_sub(2)
                .min(exponents),
        };
        let mask = (1u64 << fraction) - 1;
        let bits = match b % 5 {
            0 => 0,
            1 => self.int(),
            2 => mask << ((b >> 8) % u64::from(fraction)),
            _ => self.next(),
        };
        ((self.next() & 1) << (width - 1)) | (field << fraction) | (bits & mask)
    }
}

//! A form of the referee: an instruction, its operands and the fingerprint of its results.

use crate::random::Random;

/// The format of a form's operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OperandKind {
    Int,
    F16,
    F16x2,
    BF16,
    BF16x2,
    F32,
    F64,
}

/// The width of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    Pred,
    B16,
    B32,
    B64,
}

/// The permitted difference from a GPU's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    /// The results are the same.
    Same,
    /// The last places may differ.
    Near,
    /// Anything may differ: the driver expands the instruction to code that departs from the manual.
    Apart,
}

/// An instruction with all modifiers.
pub(crate) struct Form {
    pub(crate) text: String,
    pub(crate) kind: OperandKind,
    pub(crate) width: Width,
    pub(crate) expect: Expect,
    pub(crate) eval: Box<dyn Fn(u64, u64, u64) -> u64>,
}

impl OperandKind {
    fn layout(self) -> (u32, u32) {
        match self {
            OperandKind::Int => (64, 0),
            OperandKind::F16 | OperandKind::F16x2 => (16, 10),
            OperandKind::BF16 | OperandKind::BF16x2 => (16, 7),
            OperandKind::F32 => (32, 23),
            OperandKind::F64 => (64, 52),
        }
    }

    /// Returns edge cases: the ends of ranges, zeros, infinities, NaNs, powers of two, and their neighbours.
    pub(crate) fn special(self) -> Vec<u64> {
        let (width, fraction) = self.layout();
        if self == OperandKind::Int {
            let edges = [0, 1, 2, 3, 7, 8, 15, 16, 24, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256];
            let signs = [
                0x7fff,
                0x8000,
                0xffff,
                0x7fff_ffff,
                0x8000_0000,
                0xffff_ffff,
                1 << 63,
                (1 << 63) - 1,
            ];
            let all = edges.into_iter().chain(signs);
            return all.clone().chain(all.map(u64::wrapping_neg)).collect();
        }
        let (one, exponents) = (1u64 << fraction, (1u64 << (width - 1 - fraction)) - 1);
        let bias = exponents / 2;
        let infinity = exponents << fraction;
        let mut values = vec![0, 1, 2, one - 1, one, one + 1, infinity - 1, infinity];
        // NaNs: signalling, quiet, with a low and a high payload, and all ones.
        values.extend([
            infinity + 1,
            infinity + one / 2,
            infinity + one / 2 + 0x15,
            infinity + one / 4,
            infinity + one - 1,
        ]);
        // Powers of two from 1/4 to 4, their neighbours, and 1.5 times each.
        for e in [bias - 2, bias - 1, bias, bias + 1, bias + 2] {
            values.extend([
                e << fraction,
                (e << fraction) + 1,
                (e << fraction) - 1,
                (e << fraction) + one / 2,
            ]);
        }
        // Values whose products and quotients are at the edge of the range.
        for e in [
            2,
            bias / 2,
            bias / 2 + 1,
            bias + bias / 2,
            exponents - 1,
            exponents - 2,
            exponents - 3,
        ] {
            values.extend([e << fraction, (e << fraction) + one - 1]);
        }
        let negative: Vec<u64> = values.iter().map(|v| v | 1 << (width - 1)).collect();
        values.extend(negative);
        values
    }

    /// Returns random operands. Floating-point ones often cause cancellation, overflow or underflow.
    pub(crate) fn random(self, random: &mut Random) -> [u64; 3] {
        let (width, fraction) = self.layout();
        match self {
            OperandKind::Int => [random.int(), random.int(), random.int()],
            OperandKind::F16x2 | OperandKind::BF16x2 => {
                let [a, b, c] = [0; 3].map(|_| random.float(width, fraction, 0));
                let [d, e, f] = [0; 3].map(|_| random.float(width, fraction, a));
                [a | d << 16, b | e << 16, c | f << 16]
            }
            _ => {
                let exponent = |bits: u64| bits >> fraction & ((1 << (width - 1 - fraction)) - 1);
                let mask = (1u64 << (width - 1 - fraction)) - 1;
                let bias = mask / 2;
                let exponent_of_a = (bias / 2 + random.next() % (bias + 1)).max(2);
                let a = random.float(width, fraction, exponent_of_a << fraction);
                let near = match random.next() % 4 {
                    // The product (0) or quotient (1) of a and b is near the smallest normal number.
                    0 => (bias + 1).saturating_sub(exponent(a)),
                    1 => exponent(a) + bias,
                    _ => exponent(a),
                };
                let b = random.float(width, fraction, near.min(mask) << fraction);
                let product = (exponent(a) + exponent(b)).saturating_sub(bias).min(mask);
                let c = random.float(width, fraction, product << fraction);
                [a, b, c]
            }
        }
    }
}

impl Form {
    /// Returns the distance of two results, taken as floating-point numbers, in units of the last place; 10^9 if one of
    /// them is a NaN or infinity.
    pub(crate) fn distance(&self, ours: u64, theirs: u64) -> u64 {
        let (sign, infinity) = match (self.width, self.kind) {
            (Width::B64, _) => (1u64 << 63, 0x7ff0 << 48),
            (Width::B16, OperandKind::BF16) => (1 << 15, 0x7f80),
            (Width::B16, _) => (1 << 15, 0x7c00),
            _ => (1 << 31, 0x7f80_0000),
        };
        let (x, y) = (ours & (sign - 1), theirs & (sign - 1));
        if x >= infinity || y >= infinity {
            1_000_000_000
        } else if (ours ^ theirs) & sign != 0 {
            x + y
        } else {
            x.abs_diff(y)
        }
    }

    fn digits(&self) -> usize {
        match self.kind {
            OperandKind::Int | OperandKind::F64 => 16,
            OperandKind::F32 | OperandKind::F16x2 | OperandKind::BF16x2 => 8,
            OperandKind::F16 | OperandKind::BF16 => 4,
        }
    }

    /// Formats the operands in hexadecimal.
    pub(crate) fn show(&self, operands: &[u64; 3]) -> String {
        operands
            .map(|v| format!("{v:0width$x}", width = self.digits()))
            .join(" ")
    }

    /// Formats a result in hexadecimal.
    pub(crate) fn show_result(&self, bits: u64) -> String {
        match self.width {
            Width::Pred => bits.to_string(),
            Width::B16 => format!("{bits:04x}"),
            Width::B32 => format!("{bits:08x}"),
            Width::B64 => format!("{bits:016x}"),
        }
    }
}

/// The number of operand triples for each form.
pub(crate) const COUNT: usize = 1 << 19;

/// Returns the operands of a kind: all pairs and many triples of the edge cases, for formats of 16 bits each value as
/// each operand, then random ones.
pub(crate) fn operands(kind: OperandKind) -> Vec<[u64; 3]> {
    let mut random = Random::new();
    let special = kind.special();
    let n = special.len();
    let mut all = Vec::with_capacity(COUNT);
    for i in 0..n * n {
        all.push([special[i % n], special[i / n], special[random.next() as usize % n]]);
    }
    for _ in 0..n * n {
        all.push([0; 3].map(|_| special[random.next() as usize % n]));
    }
    if matches!(kind, OperandKind::F16 | OperandKind::BF16) {
        // Every value as each of the three operands.
        for value in 0..0x1_0000 {
            for place in 0..3 {
                let mut operands = [0; 3].map(|_| special[random.next() as usize % n]);
                operands[place] = value;
                all.push(operands);
            }
        }
    }
    while all.len() < COUNT {
        all.push(kind.random(&mut random));
    }
    all
}

/// The fingerprint includes one in this many results.
pub(crate) const STRIDE: usize = 32;

/// Returns the fingerprint: the hash of every [`STRIDE`]-th result.
pub(crate) fn fingerprint(results: impl Iterator<Item = u64>) -> u64 {
    hash(results.step_by(STRIDE))
}

/// Returns the FNV-1a hash of the results' bytes.
pub(crate) fn hash(results: impl Iterator<Item = u64>) -> u64 {
    results.fold(0xcbf2_9ce4_8422_2325, |hash, result| {
        let bytes = result.to_le_bytes();
        bytes.iter().fold(hash, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    })
}

//! Modifiers that are not compiled into a handler. They are packed into 32 bits of an instruction.

#![forbid(unsafe_code)]

use crate::lanes::Mask;
use ptx::ir::{BoolOp, Compare, Cvt, FloatMods, Rounding, Type};

/// Packed modifiers. Each handler has one layout. The layouts for `setp`, floating-point arithmetic and `cvt` are
/// defined here and overlap; other handlers that have modifiers define their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mods(pub(crate) u32);

const SWAP: u32 = 1 << 31;

impl Mods {
    // --- setp ----------------------------------------------------------------------------------------------------

    const BOOL_OP: u32 = 0b11;
    const NEGATED: u32 = 1 << 2;
    const SECOND: u32 = 1 << 3;
    const FTZ: u32 = 1 << 4;
    const COMPARE_SHIFT: u32 = 5;

    /// Packs the modifiers of `setp` or `set`.
    pub(crate) fn of_compare(compare: Compare, op: Option<BoolOp>, negated: bool, second: bool, ftz: bool) -> Self {
        let op = match op {
            None => 0,
            Some(BoolOp::And) => 1,
            Some(BoolOp::Or) => 2,
            Some(BoolOp::Xor) => 3,
        };
        let compare = COMPARES.iter().position(|c| *c == compare).unwrap_or(0) as u32;
        Mods(
            op | if negated { Self::NEGATED } else { 0 }
                | if second { Self::SECOND } else { 0 }
                | if ftz { Self::FTZ } else { 0 }
                | compare << Self::COMPARE_SHIFT,
        )
    }

    /// Returns true if the result is combined with a source predicate `c`.
    #[inline(always)]
    pub(crate) fn has_bool_op(self) -> bool {
        self.0 & Self::BOOL_OP != 0
    }

    /// Returns true if there is a second destination.
    #[inline(always)]
    pub(crate) fn has_second(self) -> bool {
        self.0 & Self::SECOND != 0
    }

    /// Returns the predicates `p` and `q` for the result `t` of the comparison and the source predicate `c`.
    #[inline(always)]
    pub(crate) fn combine(self, t: Mask, c: Mask) -> (Mask, Mask) {
        let c = if self.0 & Self::NEGATED != 0 { !c } else { c };
        match self.0 & Self::BOOL_OP {
            0 => (t, !t),
            1 => (t & c, !t & c),
            2 => (t | c, !t | c),
            _ => (t ^ c, !t ^ c),
        }
    }

    /// Returns the predicate `p` of one lane for the result `t` of the comparison and the source predicate `c`.
    #[inline(always)]
    pub(crate) fn combine_one(self, t: bool, c: bool) -> bool {
        self.combine(u32::from(t), u32::from(c)).0 & 1 != 0
    }

    /// Returns the comparison.
    #[inline(always)]
    pub(crate) fn compare(self) -> Compare {
        COMPARES[(self.0 >> Self::COMPARE_SHIFT) as usize % COMPARES.len()]
    }

    // --- floating-point arithmetic -------------------------------------------------------------------------------
    // Bits 0 to 2 are the rounding mode, and `FTZ` is the same bit as for `setp`.

    const SAT: u32 = 1 << 5;
    const RELU: u32 = 1 << 6;
    const OOB: u32 = 1 << 7;
    const NAN: u32 = 1 << 8;
    const XORSIGN_ABS: u32 = 1 << 9;

    /// Packs the modifiers of a floating-point instruction.
    pub(crate) fn of_float(m: &FloatMods) -> Self {
        Mods(
            rounding_bits(m.rnd)
                | if m.ftz { Self::FTZ } else { 0 }
                | if m.sat { Self::SAT } else { 0 }
                | if m.relu { Self::RELU } else { 0 }
                | if m.oob { Self::OOB } else { 0 },
        )
    }

    /// Packs a rounding mode and `.ftz`.
    pub(crate) fn of_rounding(rnd: Rounding, ftz: bool) -> Self {
        Mods(rounding_bits(rnd) | if ftz { Self::FTZ } else { 0 })
    }

    /// Packs the modifiers of `min` or `max`.
    pub(crate) fn of_minmax(ftz: bool, nan: bool, xorsign_abs: bool) -> Self {
        Mods(
            if ftz { Self::FTZ } else { 0 }
                | if nan { Self::NAN } else { 0 }
                | if xorsign_abs { Self::XORSIGN_ABS } else { 0 },
        )
    }

    /// Returns the rounding mode.
    #[inline(always)]
    pub(crate) fn rnd(self) -> Rounding {
        rounding(self.0)
    }

    /// Returns true for `.ftz`.
    #[inline(always)]
    pub(crate) fn ftz(self) -> bool {
        self.0 & Self::FTZ != 0
    }

    /// Returns true for `.sat`.
    #[inline(always)]
    pub(crate) fn sat(self) -> bool {
        self.0 & Self::SAT != 0
    }

    /// Returns true for `.relu`.
    #[inline(always)]
    pub(crate) fn relu(self) -> bool {
        self.0 & Self::RELU != 0
    }

    /// Returns true for `.oob`.
    #[inline(always)]
    pub(crate) fn oob(self) -> bool {
        self.0 & Self::OOB != 0
    }

    /// Returns true for `.NaN`.
    #[inline(always)]
    pub(crate) fn nan(self) -> bool {
        self.0 & Self::NAN != 0
    }

    /// Returns true for `.xorsign.abs`.
    #[inline(always)]
    pub(crate) fn xorsign_abs(self) -> bool {
        self.0 & Self::XORSIGN_ABS != 0
    }

    // --- cvt -----------------------------------------------------------------------------------------------------
    // Two types of 5 bits each, two rounding modes of 3 bits each (7 for none), and four flags.

    /// Packs the modifiers and types of `cvt`.
    pub(crate) fn of_cvt(c: &Cvt) -> Self {
        let ty = |ty: Type| TYPES.iter().position(|t| *t == ty).unwrap_or(0) as u32;
        let rnd = |r: Option<Rounding>| r.map_or(7, rounding_bits);
        let flags = [c.ftz, c.sat, c.relu, c.satfinite];
        let flags = flags
            .iter()
            .enumerate()
            .fold(0, |bits, (i, f)| bits | u32::from(*f) << i);
        Mods(ty(c.to) | ty(c.from) << 5 | rnd(c.rnd) << 10 | rnd(c.int_rnd) << 13 | flags << 16)
    }

    /// Returns the conversion.
    #[inline(always)]
    pub(crate) fn cvt(self) -> Cvt {
        let ty = |shift: u32| TYPES[(self.0 >> shift & 31) as usize % TYPES.len()];
        let rnd = |shift: u32| (self.0 >> shift & 7 != 7).then(|| rounding(self.0 >> shift));
        let flag = |i: u32| self.0 >> (16 + i) & 1 != 0;
        Cvt {
            to: ty(0),
            from: ty(5),
            rnd: rnd(10),
            int_rnd: rnd(13),
            ftz: flag(0),
            sat: flag(1),
            relu: flag(2),
            satfinite: flag(3),
        }
    }

    // --- for the decoder -----------------------------------------------------------------------------------------

    /// Sets the flag that makes the decoder exchange the sources `a` and `b`.
    pub(crate) fn with_swap(self) -> Self {
        Mods(self.0 | SWAP)
    }

    /// Returns true if the sources must be exchanged, and the modifiers without that flag.
    pub(crate) fn take_swap(self) -> (bool, Self) {
        (self.0 & SWAP != 0, Mods(self.0 & !SWAP))
    }
}

fn rounding_bits(rnd: Rounding) -> u32 {
    match rnd {
        Rounding::Rn => 0,
        Rounding::Rz => 1,
        Rounding::Rm => 2,
        Rounding::Rp => 3,
        Rounding::Rna => 4,
        Rounding::Rs => 5,
    }
}

#[inline(always)]
fn rounding(bits: u32) -> Rounding {
    match bits & 7 {
        0 => Rounding::Rn,
        1 => Rounding::Rz,
        2 => Rounding::Rm,
        3 => Rounding::Rp,
        4 => Rounding::Rna,
        _ => Rounding::Rs,
    }
}

/// The comparisons by their numbers in [`Mods`].
const COMPARES: [Compare; 18] = {
    use Compare::*;
    [
        Eq, Ne, Lt, Le, Gt, Ge, Lo, Ls, Hi, Hs, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan,
    ]
};

/// The types by their numbers in [`Mods`].
const TYPES: [Type; 27] = {
    use Type::*;
    [
        Pred, B8, B16, B32, B64, B128, U8, U16, U32, U64, S8, S16, S32, S64, F16, F16x2, F32, F64, BF16, BF16x2, TF32,
        U16x2, S16x2, E4M3, E5M2, E4M3x2, E5M2x2,
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_and_comparisons_survive_packing() {
        for (i, to) in TYPES.into_iter().enumerate() {
            let rnd = (i % 3 > 0).then_some(if i % 3 == 1 { Rounding::Rz } else { Rounding::Rna });
            let flag = |n: usize| i >> n & 1 == 1;
            let c = Cvt {
                to,
                from: TYPES[TYPES.len() - 1 - i],
                rnd,
                int_rnd: (i % 5 == 0).then_some(Rounding::Rp),
                ftz: flag(0),
                sat: flag(1),
                relu: flag(2),
                satfinite: flag(3),
            };
            assert_eq!(Mods::of_cvt(&c).cvt(), c);
        }
        assert!(
            COMPARES
                .into_iter()
                .all(|c| Mods::of_compare(c, None, false, false, true).compare() == c)
        );
    }
}

//! Modifiers of the video instructions: arithmetic on parts of 32-bit words.

use super::types::Compare;

/// A video instruction. Sources: `a`, `b`, and `c` if there is one.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VideoInst {
    /// `vadd vsub vabsdiff vmin vmax vshl vshr vset`
    Scalar(VideoOp, Video),
    /// `vmad`
    Mad(VideoMad),
    /// `vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2`
    Halves(VideoEach, VideoPacked<2>),
    /// `vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4`
    Bytes(VideoEach, VideoPacked<4>),
}

/// The operation of a scalar video instruction on `a` and `b`.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VideoOp {
    Add,
    Sub,
    AbsDiff,
    Min,
    Max,
    /// The shift amount is taken modulo 32 with `wrap`, and limited to 32 otherwise.
    Shl {
        wrap: bool,
    },
    /// The shift amount is taken as for `Shl`.
    Shr {
        wrap: bool,
    },
    Set(Compare),
}

/// The part of a 32-bit register that an instruction reads, or merges its result into.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VideoPart {
    /// No selector: all 32 bits.
    Word,
    B0,
    B1,
    B2,
    B3,
    H0,
    H1,
}

impl VideoPart {
    /// All parts.
    pub const ALL: [VideoPart; 7] = {
        use VideoPart::*;
        [Word, B0, B1, B2, B3, H0, H1]
    };

    /// Returns the position and the width in bits.
    #[inline(always)]
    pub fn place(self) -> (u32, u32) {
        match self {
            VideoPart::Word => (0, 32),
            VideoPart::B0 => (0, 8),
            VideoPart::B1 => (8, 8),
            VideoPart::B2 => (16, 8),
            VideoPart::B3 => (24, 8),
            VideoPart::H0 => (0, 16),
            VideoPart::H1 => (16, 16),
        }
    }
}

/// The secondary operation: how the result is combined with the operand `c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VideoThen {
    /// No secondary operation, and no `c`
    Nothing,
    /// `.add`
    Add,
    /// `.min`
    Min,
    /// `.max`
    Max,
    /// The result replaces this part of `c`
    Merge(VideoPart),
}

/// The modifiers of a scalar video instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Video {
    /// Selector of `a`, and true if its type is signed.
    pub a: (VideoPart, bool),
    /// Selector of `b`, and true if its type is signed.
    pub b: (VideoPart, bool),
    /// True if the type of the result is signed.
    pub signed: bool,
    /// `.sat`
    pub sat: bool,
    /// The secondary operation.
    pub then: VideoThen,
}

/// The modifiers of `vmad`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoMad {
    /// Selector of `a`, and true if its type is signed.
    pub a: (VideoPart, bool),
    /// Selector of `b`, and true if its type is signed.
    pub b: (VideoPart, bool),
    /// True for exactly one of `-a` and `-b`.
    pub negate_product: bool,
    /// `-c`
    pub negate_c: bool,
    /// `.po`: adds one
    pub plus_one: bool,
    /// `.sat`
    pub sat: bool,
    /// Bits by which the result is shifted right: 7 for `.shr7`, 15 for `.shr15`, else 0
    pub shift: u32,
}

/// The operation of a packed video instruction on each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VideoEach {
    /// `vadd2`, `vadd4`
    Add,
    /// `vsub2`, `vsub4`
    Sub,
    /// `vavrg2`, `vavrg4`: half of the sum, with ties away from zero
    Avrg,
    /// `vabsdiff2`, `vabsdiff4`
    AbsDiff,
    /// `vmin2`, `vmin4`
    Min,
    /// `vmax2`, `vmax4`
    Max,
    /// `vset2`, `vset4`
    Set(Compare),
}

/// The modifiers of a packed video instruction with `N` elements: 2 half-words or 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoPacked<const N: usize> {
    /// For each element of the result, lowest first: the index of its first operand. Indices below `N` are elements of
    /// `a`, and indices from `N` on are elements of `b`. Without a selector: 0, 1 ….
    pub a: [u8; N],
    /// The same for the second operand. Without a selector: `N`, `N + 1` ….
    pub b: [u8; N],
    /// True if the type of the first operand is signed.
    pub a_signed: bool,
    /// True if the type of the second operand is signed.
    pub b_signed: bool,
    /// True if the type of the result is signed.
    pub signed: bool,
    /// `.sat`
    pub sat: bool,
    /// The elements of the result that are computed, one bit each, lowest first.
    pub mask: u8,
    /// True for `.add`: the sum of the results is added to `c`. Otherwise elements outside of `mask` come from `c`.
    pub add: bool,
}

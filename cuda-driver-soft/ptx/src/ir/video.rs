//! The video instructions: arithmetic on parts of 32-bit words.

use super::Compare;

/// A video instruction. Sources: `a`, `b`, and `c` where there is one.
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

/// What a scalar video instruction does with `a` and `b`.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VideoOp {
    Add,
    Sub,
    AbsDiff,
    Min,
    Max,
    /// The amount modulo 32 with `wrap`, else at most 32.
    Shl {
        wrap: bool,
    },
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
    /// All of them.
    pub const ALL: [VideoPart; 7] = {
        use VideoPart::*;
        [Word, B0, B1, B2, B3, H0, H1]
    };

    /// Position and width in bits.
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

/// What happens to the result and the operand `c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VideoThen {
    /// There is no `c`.
    Nothing,
    /// `.add`
    Add,
    /// `.min`
    Min,
    /// `.max`
    Max,
    /// The result replaces this part of `c`.
    Merge(VideoPart),
}

/// The modifiers of a scalar video instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Video {
    /// Selector of `a`, and whether its type is signed.
    pub a: (VideoPart, bool),
    /// Selector of `b`, and whether its type is signed.
    pub b: (VideoPart, bool),
    /// Whether the type of the result is signed.
    pub signed: bool,
    /// `.sat`
    pub sat: bool,
    /// What happens then.
    pub then: VideoThen,
}

/// The modifiers of `vmad`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoMad {
    /// Selector of `a`, and whether its type is signed.
    pub a: (VideoPart, bool),
    /// Selector of `b`, and whether its type is signed.
    pub b: (VideoPart, bool),
    /// Exactly one of `-a` and `-b`.
    pub negate_product: bool,
    /// `-c`
    pub negate_c: bool,
    /// `.po`: one more
    pub plus_one: bool,
    /// `.sat`
    pub sat: bool,
    /// 7 for `.shr7`, 15 for `.shr15`, else 0
    pub shift: u32,
}

/// The operation of a packed video instruction on each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VideoEach {
    /// `vadd2`, `vadd4`
    Add,
    /// `vsub2`, `vsub4`
    Sub,
    /// `vavrg2`, `vavrg4`: half of the sum, halves away from zero
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
    /// For each element, lowest first: which of the `2 N` elements of `{b, a}` is the first operand. By default 0, 1 ….
    pub a: [u8; N],
    /// The same for the second operand. By default N, N + 1 ….
    pub b: [u8; N],
    /// Whether the type of the first operand is signed.
    pub a_signed: bool,
    /// Whether the type of the second operand is signed.
    pub b_signed: bool,
    /// Whether the type of the result is signed.
    pub signed: bool,
    /// `.sat`
    pub sat: bool,
    /// The elements that are computed, as bits.
    pub mask: u8,
    /// `.add`: their sum is added to `c`. Otherwise the other elements come from `c`.
    pub add: bool,
}

//! The handlers of instructions: one file per family.
//!
//! | file | instructions |
//! |---|---|
//! | `int` | add sub mul mad mul24 mad24 div rem abs neg min max of integers |
//! | `logic` | and or xor not cnot shl shr |
//! | `bits` | bfe bfi bfind bmsk szext brev clz popc fns lop3 prmt shf sad dp4a dp2a copysign testp, add.cc … madc |
//! | `float` | add sub mul fma div rcp sqrt rsqrt sin cos lg2 ex2 tanh abs neg min max of f32 and f64 |
//! | `half` | add sub mul fma neg abs min max ex2 tanh of f16, f16x2, bf16, bf16x2 |
//! | `compare` | setp set selp slct |
//! | `cvt` | cvt cvt.pack |
//! | `mov` | mov, mapa, getctarank, isspacep, special registers that change while a kernel runs |
//! | `memory` | ld ldu st |
//! | `atomic` | atom red |
//! | `atomic128` | atom of 128 bits |
//! | `asynchronous` | cp.async mbarrier |
//! | `bulk` | cp.async.bulk cp.reduce.async.bulk |
//! | `tensor`, `tensor_rows` | cp.async.bulk.tensor cp.reduce.async.bulk.tensor tensormap |
//! | `matrix`, `fragment`, `product`, `quads`, `sparse`, `wgmma` | mma wmma wgmma ldmatrix stmatrix movmatrix |
//! | `collective` | shfl vote match redux elect activemask bar.warp |
//! | `texture`, `surface`, `texels` | tex tld4 txq istypep; suld sust sured suq |
//! | `video` | vadd … vset4 |
//! | `control` | bra, guards, trap, fence, and the instructions that the scheduler runs |
//!
//! The result of an instruction that only reads and writes registers is usually a pure function of `semantics`.
//! `shapes` makes a [`Form`] of such a function: loops over the lanes, which are compiled for each instruction set if
//! the instruction is frequent. `mods` packs modifiers that are not compiled into a handler.

pub(crate) mod asynchronous;
pub(crate) mod atomic;
pub(crate) mod atomic128;
pub(crate) mod bits;
pub(crate) mod bulk;
pub(crate) mod collective;
pub(crate) mod compare;
pub(crate) mod control;
pub(crate) mod cvt;
pub(crate) mod float;
pub(crate) mod fragment;
pub(crate) mod half;
pub(crate) mod int;
pub(crate) mod logic;
pub(crate) mod matrix;
pub(crate) mod memory;
pub(crate) mod mods;
pub(crate) mod mov;
mod product;
mod quads;
mod shapes;
mod sparse;
mod surface;
pub(crate) mod tensor;
mod tensor_rows;
mod texels;
pub(crate) mod texture;
pub(crate) mod video;
mod wgmma;

pub(crate) use shapes::Form;

use ptx::ir::{Inst, RegClass};

/// Returns the form of an instruction that only reads and writes registers.
///
/// `source` and `destination` are the classes of its first source and destination, which may be wider than its types.
pub(crate) fn form(inst: &Inst, source: RegClass, destination: RegClass) -> Option<Form> {
    int::form(&inst.op)
        .or_else(|| logic::form(&inst.op))
        .or_else(|| bits::form(&inst.op))
        .or_else(|| float::form(&inst.op))
        .or_else(|| half::form(&inst.op))
        .or_else(|| compare::form(inst))
        .or_else(|| cvt::form(inst, source, destination))
        .or_else(|| mov::form(&inst.op))
}

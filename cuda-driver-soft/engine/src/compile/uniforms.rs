//! The constants that compiled code reads from its context.

use crate::code::compiled::MOST_UNIFORMS;
use crate::code::constant::{Constant, Lifetime, differs_by_lane};
use crate::code::function::Code;

/// Returns the constants of 32 and 64 bits of a function that are the same in all lanes of a block, except those whose
/// bits are known. Constants that change from block to block come first. There are at most [`MOST_UNIFORMS`].
pub(super) fn uniforms_of(code: &Code) -> Vec<(Constant, u8)> {
    let of = |lifetimes: [Lifetime; 2]| {
        let constants = code.constants.iter().map(|(_, width, constant)| (*constant, *width));
        constants.filter(move |(constant, width)| {
            let known = matches!(constant, Constant::Bits(_));
            let each = matches!(constant, Constant::Special(special) if differs_by_lane(*special));
            !known && !each && [4, 8].contains(width) && lifetimes.contains(&constant.lifetime())
        })
    };
    let block = of([Lifetime::Block; 2]);
    let all = block.chain(of([Lifetime::Launch, Lifetime::Frame]));
    all.take(MOST_UNIFORMS).collect()
}

//! Lowers the sparsity selector of `mma.sp` and `wgmma.mma_async.sp`, a constant operand after the metadata.

use crate::ast::Inst;
use crate::ir::{Mma, Op, Operand, Type};

use super::walker::Walker;

impl Walker<'_> {
    /// Lowers `mma.sp`: the selector becomes part of the operation.
    pub(super) fn sparse_mma(&mut self, inst: &Inst, mut mma: Mma) {
        let selector = match self.srcs.pop() {
            Some(Operand::Imm(bits)) => bits as u32 as i32,
            _ => 0,
        };
        let eight_bits = matches!(mma.a, Type::E4M3 | Type::E5M2);
        let most = most(&mma);
        if eight_bits && selector != 0 {
            let message = format!("Argument 5 of instruction 'mma': unexpected value '{selector}', expected to be 0");
            return self.say(inst.pos, message);
        }
        if !(0..=most).contains(&selector) {
            let message = format!(
                "Argument 6 of instruction 'Sparse mma': value '{selector}' out of range, expected to be in range [0..{most}]"
            );
            return self.say(inst.pos, message);
        }
        mma.sparse = Some(selector as u8);
        self.emit(inst, Op::Mma(mma));
    }

    /// Removes the selector of `wgmma.mma_async.sp`, source `at`, and returns it; `None` after adding an error if it is
    /// out of range.
    pub(super) fn sparse_selector(&mut self, inst: &Inst, mma: &Mma, at: usize) -> Option<u8> {
        let selector = match self.srcs.get(at) {
            Some(Operand::Imm(bits)) => *bits as u32 as i32,
            _ => 0,
        };
        if at < self.srcs.len() {
            self.srcs.remove(at);
        }
        let (types, expected) = match mma.a {
            Type::E4M3 | Type::E5M2 => ("FP8 types", 0..=0),
            Type::S8 | Type::U8 => ("integer types", 0..=0),
            _ => ("floating point types", 0..=1),
        };
        if expected.contains(&selector) {
            return Some(selector as u8);
        }
        let numbers = if expected == (0..=0) { "0" } else { "0 or 1" };
        self.say(
            inst.pos,
            format!(
                "Argument 4 of instruction 'Sparse wgmma.mma_async with {types}': unexpected value '{selector}', expected \
                 to be {numbers}"
            ),
        );
        None
    }
}

/// Returns the greatest selector that ptxas accepts.
fn most(mma: &Mma) -> i32 {
    let [_, _, k] = mma.shape;
    match (mma.a, k) {
        (Type::F16 | Type::BF16, 16) | (Type::TF32, 8) => 3,
        // ptxas accepts more selectors here than there are pairs of lanes.
        (Type::F16, 32) if mma.d == Type::F32 => 3,
        (Type::F16 | Type::BF16, 32) | (Type::TF32, 16) => 1,
        (Type::S8 | Type::U8, 32) | (Type::S4 | Type::U4, 64) => 1,
        _ => 0,
    }
}

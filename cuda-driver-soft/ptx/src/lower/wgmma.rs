//! Lowers `wgmma`: checks its target architecture and its constant operands.

use crate::ast::{Inst, Pos};
use crate::ir::{Op, Operand, Wgmma};

use super::walker::Walker;

/// Index of the first constant operand of `wgmma.mma_async`, after the accumulator, A, B and `scale-d`. With `.sp`, the
/// metadata and the sparsity selector come before `scale-d`.
const FIRST_CONSTANT: usize = 4;
/// Number of registers that hold A.
const A_REGISTERS: usize = 4;

impl Walker<'_> {
    /// Checks that the target is sm_90a, the only architecture with `wgmma`.
    pub(super) fn wgmma_target(&mut self, pos: Pos) {
        let target = &self.unit.ast.target;
        if (target.sm, target.suffix) == (90, Some('a')) {
            return;
        }
        let suffix = target.suffix.map_or(String::new(), String::from);
        let message = format!(
            "Instruction '{}' not supported on .target 'sm_{}{suffix}'",
            self.name, target.sm
        );
        self.error(pos, message);
    }

    /// Lowers `wgmma.mma_async`: the accumulator also becomes a source, and the constants become part of the operation.
    pub(super) fn wgmma(&mut self, inst: &Inst, mut wgmma: Wgmma) {
        if self.dsts.iter().any(Option::is_none) {
            let message = "Sink '_' not allowed as a source operand";
            return self.say(inst.pos, message.to_owned());
        }
        let a = if wgmma.a_in_registers { A_REGISTERS } else { 1 };
        let mut first_constant = FIRST_CONSTANT;
        if wgmma.mma.sparse.is_some() {
            first_constant += 2;
            wgmma.mma.sparse = self.sparse_selector(inst, &wgmma.mma, a + 2);
            if wgmma.mma.sparse.is_none() {
                return;
            }
            // The metadata becomes the source after the accumulator, and after A if that is in registers.
            if a + 1 < self.srcs.len() {
                let metadata = self.srcs.remove(a + 1);
                self.srcs.insert(if wgmma.a_in_registers { a } else { 0 }, metadata);
            }
        }
        let a = a + usize::from(wgmma.mma.sparse.is_some());
        // The sources before the constants are A and the metadata in either order, the descriptor of B and `scale-d`.
        let constants = self.srcs.split_off(self.srcs.len().min(a + 2));
        let mut numbers = constants.iter().enumerate().map(|(i, operand)| {
            let value = match operand {
                Operand::Imm(bits) => *bits as u32 as i32,
                _ => 0,
            };
            (i + first_constant, value)
        });
        let mut wrong = None;
        for negated in &mut wgmma.negated {
            match numbers.next() {
                Some((_, 1)) | None => {}
                Some((_, -1)) => *negated = true,
                Some(other) => wrong = wrong.or(Some((other, "-1 or 1"))),
            }
        }
        // There is no `imm-trans-a` for A in registers.
        let skipped = usize::from(wgmma.a_in_registers);
        for transposed in wgmma.transposed.iter_mut().skip(skipped) {
            match numbers.next() {
                Some((_, 0)) | None => {}
                Some((_, 1)) => *transposed = true,
                Some(other) => wrong = wrong.or(Some((other, "0 or 1"))),
            }
        }
        if let Some(((i, value), expected)) = wrong {
            let message = format!(
                "Argument {i} of instruction '{}': unexpected value '{value}', expected to be {expected}",
                self.name
            );
            return self.say(inst.pos, message);
        }
        let accumulator = self.dsts.iter().flatten().map(|reg| Operand::Reg(*reg));
        self.srcs.splice(0..0, accumulator);
        self.emit(inst, Op::Wgmma(wgmma));
    }
}

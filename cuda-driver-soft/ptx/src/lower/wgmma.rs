//! `wgmma`: only of one architecture, with constants that say how.

use super::*;
use crate::ir::Wgmma;

impl Walker<'_> {
    /// It is of the architecture 90 itself, which later ones do not have.
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

    /// `wgmma.mma_async`: the accumulator becomes a source, the constants at the end a part of the operation.
    pub(super) fn wgmma(&mut self, inst: &Inst, mut wgmma: Wgmma) {
        if self.dsts.iter().any(Option::is_none) {
            let message = "Sink '_' not allowed as a source operand";
            return self.say(inst.pos, message.to_owned());
        }
        // The accumulator and A are one operand each.
        let registers = if wgmma.a_in_registers { 4 } else { 1 };
        let constants = self.srcs.split_off(self.srcs.len().min(registers + 2));
        let mut numbers = constants.iter().enumerate().map(|(i, operand)| {
            let value = match operand {
                Operand::Imm(bits) => *bits as u32 as i32,
                _ => 0,
            };
            (i + 4, value)
        });
        let mut wrong = None;
        for negated in &mut wgmma.negated {
            match numbers.next() {
                Some((_, 1)) | None => {}
                Some((_, -1)) => *negated = true,
                Some(other) => wrong = wrong.or(Some((other, "-1 or 1"))),
            }
        }
        // A in registers has no order in memory.
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

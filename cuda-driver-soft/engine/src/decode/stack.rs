//! Decodes `alloca`, `stacksave` and `stackrestore`. The scheduler runs them.

use super::builder::Builder;
use super::operands::source;
use crate::code::action::{Action, StackOp};
use ptx::ir::{Inst, Op, Operand, RegClass};

/// Minimum alignment of an allocation in bytes.
const LEAST_ALIGN: u64 = 8;

/// Decodes an instruction on the stack.
pub(super) fn lower(b: &mut Builder<'_>, inst: &Inst) -> Option<()> {
    let width = |class| match class {
        RegClass::B32 => Some(4),
        RegClass::B64 => Some(8),
        _ => None,
    };
    let mut result = || {
        let reg = inst.dsts.first().copied().flatten()?;
        let class = b.class(reg);
        Some(((b.destination(Some(reg), class), width(class)?), class))
    };
    let op = match inst.op {
        Op::Alloca => {
            let (to, class) = result()?;
            let size = source(b, inst.srcs.first()?, class, inst.line)?;
            let align = match inst.srcs.get(1) {
                Some(Operand::Imm(align)) => *align,
                _ => LEAST_ALIGN,
            };
            let align = align.max(LEAST_ALIGN);
            StackOp::Alloca { to, size, align }
        }
        Op::Stacksave => StackOp::Save(result()?.0),
        _ => {
            let Operand::Reg(reg) = *inst.srcs.first()? else {
                return None;
            };
            StackOp::Restore((b.register(reg), width(b.class(reg))?))
        }
    };
    b.push_action(Action::Stack(op), inst.line);
    Some(())
}

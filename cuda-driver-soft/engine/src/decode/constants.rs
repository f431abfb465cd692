//! Registers that only ever hold one constant, which compilers copy into them: a parameter, `%ctaid.x`, an address. Such
//! a register is another name of the constant's slot, and the copy need not run.

use super::builder::Builder;
use super::defined::{self, Use};
use super::lower;
use crate::code::Constant;
use crate::ops::mov;
use ptx::ir::{Inst, Op, Operand, Reg, RegClass, Space};

/// For each register the constant that it holds wherever it is read.
pub(super) fn named(b: &Builder<'_>, uses: &[Use]) -> Vec<Option<Constant>> {
    let writes = defined::write_counts(b.body);
    let mut named = vec![None; uses.len()];
    for inst in &b.body.insts {
        if let [Some(reg)] = inst.dsts.as_slice()
            && inst.guard.is_none()
            && writes[reg.0 as usize] == 1
            && uses[reg.0 as usize] == Use::Defined
        {
            named[reg.0 as usize] = copied(b, inst, *reg, &named);
        }
    }
    named
}

/// The constant that an instruction copies to `to`, if it does no more than that.
fn copied(b: &Builder<'_>, inst: &Inst, to: Reg, named: &[Option<Constant>]) -> Option<Constant> {
    let class = b.class(to);
    let ty = match &inst.op {
        Op::Mov { ty } => *ty,
        Op::Cvta {
            space: Space::Generic | Space::Global | Space::Const,
            ty,
            ..
        } => *ty,
        Op::Ld(m) if m.vec == 1 => {
            let offset = lower::parameter(b, inst, m)?;
            return has_slot(class).then_some(Constant::Param(
                offset,
                m.ty.size() as u8,
                m.ty.is_signed(),
            ));
        }
        _ => return None,
    };
    let fits = match class {
        RegClass::B16 => ty.size() == 2,
        RegClass::B32 => ty.size() == 4,
        RegClass::B64 => ty.size() == 8,
        RegClass::Pred | RegClass::B128 => false,
    };
    match inst.srcs.as_slice() {
        [Operand::Reg(from)] if fits && b.class(*from) == class => named[from.0 as usize],
        [Operand::Special(special)] if mov::changing(*special).is_some() => None,
        [operand] if fits => b.constant_of(operand),
        _ => None,
    }
}

fn has_slot(class: RegClass) -> bool {
    matches!(class, RegClass::B16 | RegClass::B32 | RegClass::B64)
}

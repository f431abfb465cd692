//! Registers that only ever hold one constant, such as a parameter, `%ctaid.x` or an address. Such a register is an
//! alias of the constant's slot, and the instruction that copies the constant is dropped.

use crate::code::constant::Constant;
use crate::ops::mov;
use crate::plan::defined::{self, Use};
use crate::plan::source::{SourceFunction, constant_of};
use ptx::ir::{Inst, Op, Operand, Reg, RegClass, Space};

/// Returns for each register the constant that it holds wherever it is read.
pub(super) fn aliases(source: &SourceFunction<'_>, uses: &[Use]) -> Vec<Option<Constant>> {
    let writes = defined::write_counts(source.body);
    let mut aliases = vec![None; uses.len()];
    for inst in &source.body.insts {
        if let [Some(reg)] = inst.dsts.as_slice()
            && inst.guard.is_none()
            && writes[reg.0 as usize] == 1
            && uses[reg.0 as usize] == Use::Defined
        {
            aliases[reg.0 as usize] = copied(source, inst, *reg, &aliases);
        }
    }
    aliases
}

/// Returns the constant that an instruction copies to `to`, if it does nothing else.
fn copied(source: &SourceFunction<'_>, inst: &Inst, to: Reg, aliases: &[Option<Constant>]) -> Option<Constant> {
    let class = source.class(to);
    let ty = match &inst.op {
        Op::Mov { ty } => *ty,
        Op::Cvta {
            space: Space::Generic | Space::Global | Space::Const,
            ty,
            ..
        } => *ty,
        Op::Ld(m) if m.vec == 1 => {
            let offset = source.parameter(inst, m)?;
            return has_slot(class).then_some(Constant::Param(offset, m.ty.size() as u8, m.ty.is_signed()));
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
        [Operand::Reg(from)] if fits && source.class(*from) == class => aliases[from.0 as usize],
        [Operand::Special(special)] if mov::changing(*special).is_some() => None,
        [operand] if fits => constant_of(operand),
        _ => None,
    }
}

/// Returns true for the classes of registers that can be aliases of a parameter.
fn has_slot(class: RegClass) -> bool {
    matches!(class, RegClass::B16 | RegClass::B32 | RegClass::B64)
}

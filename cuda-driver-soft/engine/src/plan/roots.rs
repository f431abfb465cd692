//! The origin of addresses: the parameter, variable, frame or loaded pointer from which an address is computed.
//!
//! A root is the most likely target of an address, so that one range check can serve many accesses. It is not a proof:
//! an access may be outside of the memory at its root.

use super::source::SourceFunction;
use super::steps::{Layout, Step};
use ptx::ir::{Address, Inst, Op, Operand, Part, Reg, RegClass, VarId};

/// The origin of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Root {
    /// The kernel's parameter at this offset.
    Param(u32),
    /// A variable of the module.
    Variable(VarId),
    /// The frame in local memory.
    Frame,
    /// A pointer that this step loads from memory.
    Loaded(usize),
}

/// The origin of a register's value, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A number, or a value that is not known yet.
    Number,
    /// A value with this root. The flag is true if the value is computed from a known address: that of a variable or
    /// frame, or a result of `cvta`.
    Address(Root, bool),
    /// Several roots.
    Many,
}

/// The roots of a function's registers.
pub(crate) struct Roots(Vec<Origin>);

impl Roots {
    /// Finds the roots of all registers.
    pub(super) fn of(source: &SourceFunction<'_>, layout: &Layout<'_>) -> Self {
        let mut roots = Roots(vec![Origin::Number; source.body.registers.len()]);
        let mut changed = true;
        while changed {
            changed = false;
            for step in layout.order.iter().flat_map(|block| layout.steps_of(*block)) {
                let Step::Plain(inst) = layout.steps[step] else {
                    continue;
                };
                let found = roots.result(source, step, inst);
                for reg in inst.dsts.iter().flatten() {
                    let at = &mut roots.0[reg.0 as usize];
                    let new = join(*at, found);
                    changed |= *at != new;
                    *at = new;
                }
            }
        }
        roots
    }

    /// Returns the root of an address operand; `None` if it has none, or several.
    pub(crate) fn of_operand(&self, operand: &Operand) -> Option<Root> {
        match self.origin(operand) {
            Origin::Address(root, _) => Some(root),
            Origin::Number | Origin::Many => None,
        }
    }

    /// Returns the root of a register; `None` if it has none, or several.
    pub(crate) fn of_register(&self, reg: Reg) -> Option<Root> {
        self.of_operand(&Operand::Reg(reg))
    }

    fn origin(&self, operand: &Operand) -> Origin {
        match operand {
            Operand::Reg(reg) => self.0[reg.0 as usize],
            Operand::Address(Address::Variable { var, .. }) => Origin::Address(Root::Variable(*var), true),
            Operand::Address(Address::Frame { .. }) => Origin::Address(Root::Frame, true),
            _ => Origin::Number,
        }
    }

    fn result(&self, source: &SourceFunction<'_>, step: usize, inst: &Inst) -> Origin {
        let origin = |at: usize| inst.srcs.get(at).map_or(Origin::Number, |s| self.origin(s));
        match &inst.op {
            // Pointers have 64 bits.
            Op::Ld(m) if m.ty.size() == 8 => match source.parameter(inst, m) {
                Some(offset) if m.vec == 1 => Origin::Address(Root::Param(offset), false),
                _ => Origin::Address(Root::Loaded(step), false),
            },
            Op::Cvta { .. } => match origin(0) {
                Origin::Address(root, _) => Origin::Address(root, true),
                origin => origin,
            },
            Op::Mov { .. } | Op::Cvt(_) => origin(0),
            Op::Add { .. } | Op::And { .. } | Op::Or { .. } => sum(origin(0), origin(1)),
            // A difference of addresses with the same root is a number.
            Op::Sub { .. } => match (origin(0), origin(1)) {
                (Origin::Address(a, _), Origin::Address(b, _)) if a == b => Origin::Number,
                (a, _) => a,
            },
            Op::Selp { .. } | Op::Min { .. } | Op::Max { .. } => join(origin(0), origin(1)),
            Op::Mad {
                part: Part::Lo | Part::Wide,
                ..
            } => origin(2),
            _ => Origin::Number,
        }
        .filter(source, inst)
    }
}

impl Origin {
    /// Returns the origin of a result, which is a number if it has neither 32 nor 64 bits.
    fn filter(self, source: &SourceFunction<'_>, inst: &Inst) -> Origin {
        let wide = |reg: &Reg| matches!(source.class(*reg), RegClass::B64 | RegClass::B32);
        if inst.dsts.iter().flatten().all(wide) {
            self
        } else {
            Origin::Number
        }
    }
}

/// Returns the origin of a sum. An address plus a number is an address; so is one plus a parameter or loaded value that
/// is not known to be an address.
fn sum(a: Origin, b: Origin) -> Origin {
    match (a, b) {
        (Origin::Number, other) | (other, Origin::Number) => other,
        (Origin::Address(_, true), Origin::Address(_, false)) => a,
        (Origin::Address(_, false), Origin::Address(_, true)) => b,
        _ => join(a, b),
    }
}

/// Returns the origin of a value that has one of two origins.
fn join(a: Origin, b: Origin) -> Origin {
    match (a, b) {
        (Origin::Number, other) | (other, Origin::Number) => other,
        (Origin::Address(x, known), Origin::Address(y, too)) if x == y => Origin::Address(x, known || too),
        _ => Origin::Many,
    }
}

//! Finds registers whose values in a group of lanes are equally spaced, but not in the order of the lanes: if the
//! values are sorted into a row, that of lane `i` is at place `i ^ swap`, where `swap` is a constant. An example is the
//! address of the partner of each thread in a sorting network.

use super::Plan;
use super::shape::{Shape, Shapes};
use super::steps::Step;
use ptx::ir::{Inst, Op, Operand, Part, Reg, RegClass, Type};

/// The order of such a row: the value of lane `i` is larger than the first value of the row by `step * (i ^ swap)`,
/// wrapping at the register's width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Swapped {
    /// The difference between a value in the row and the one before it.
    pub(crate) step: u32,
    /// The number that is combined with the number of a lane, less than the number of lanes.
    pub(crate) swap: u32,
    /// True if the row does not wrap, as a signed or unsigned number, because its first value is a multiple of a power
    /// of two that no distance in the row reaches.
    whole: bool,
}

/// Limit on the instructions from the exclusive or to the register.
const MOST_STEPS: u32 = 8;

/// Limit on [`Swapped::step`], which keeps the distances in a row far below 32 bits.
const MOST_STEP: u64 = 1 << 16;

impl Plan<'_> {
    /// Returns the order of the lanes of a register, if it is known.
    ///
    /// It is known only for [pure](super::pure) registers, whose values do not depend on the path on which lanes have
    /// reached the only write. No step that computes the register may have an assumption (see
    /// [`Assumption`](super::shape::Assumption)). Lanes for which an assumption has failed may enter the code after it,
    /// and the code then checks only registers that are uniform or affine.
    pub(crate) fn swapped(&self, shapes: &Shapes, reg: Reg) -> Option<Swapped> {
        let swapped = self.swapped_within(shapes, reg, MOST_STEPS)?;
        let mut steps = self.pure.steps_for(&self.layout, [reg]).into_iter();
        let certain = steps.all(|step| shapes.assumption(step).is_none());
        certain.then_some(swapped)
    }

    fn swapped_within(&self, shapes: &Shapes, reg: Reg, steps: u32) -> Option<Swapped> {
        let steps = steps.checked_sub(1)?;
        let Step::Plain(inst) = self.layout.steps[self.pure.step(reg)?] else {
            return None;
        };
        let class = self.source.class(reg);
        let of = |operand: &Operand| match operand {
            Operand::Reg(other) => self.swapped_within(shapes, *other, steps),
            _ => None,
        };
        let uniform = |operand: &Operand| shapes.of_operand(operand) == Shape::Uniform;
        match (&inst.op, inst.srcs.as_slice()) {
            (Op::Mov { ty }, [a]) if self.has_class(inst, class, *ty) => of(a),
            (Op::Add { ty, sat: false }, [a, b]) if self.has_class(inst, class, *ty) => {
                let row = if uniform(b) {
                    of(a)
                } else {
                    of(b).filter(|_| uniform(a))
                };
                row.map(|row| Swapped { whole: false, ..row })
            }
            (Op::Xor { ty }, [a, b]) if self.has_class(inst, class, *ty) => match (a, b) {
                (Operand::Reg(row), Operand::Imm(bits)) | (Operand::Imm(bits), Operand::Reg(row)) => {
                    exchanged(shapes, *row, *bits)
                }
                _ => None,
            },
            (Op::Shl { ty }, [a @ Operand::Reg(_), Operand::Imm(by @ 0..16)])
                if class_of(*ty) == Some(class) && self.is_of(a, class) =>
            {
                of(a)?.times(1 << by)
            }
            (
                Op::Mul {
                    ty: Type::U32 | Type::S32,
                    part: Part::Wide,
                },
                [a, Operand::Imm(factor)],
            ) if class == RegClass::B64 && self.is_of(a, RegClass::B32) => {
                of(a).filter(|row| row.whole)?.times(*factor & 0xffff_ffff)
            }
            _ => None,
        }
    }

    fn is_of(&self, operand: &Operand, class: RegClass) -> bool {
        matches!(operand, Operand::Reg(reg) if self.source.class(*reg) == class)
    }

    /// Returns true if a type, and all registers that an instruction reads, are of the class of its result.
    fn has_class(&self, inst: &Inst, class: RegClass, ty: Type) -> bool {
        let registers = inst
            .srcs
            .iter()
            .filter(|operand| matches!(operand, Operand::Reg(_) | Operand::NotReg(_)));
        class_of(ty) == Some(class) && registers.into_iter().all(|operand| self.is_of(operand, class))
    }
}

impl Swapped {
    /// Returns the order of the products with a number; `None` if the number is 0 or the step becomes too large.
    fn times(self, factor: u64) -> Option<Swapped> {
        let step = u64::from(self.step).checked_mul(factor)?;
        let step = u32::try_from(step).ok().filter(|_| (1..=MOST_STEP).contains(&step))?;
        Some(Swapped {
            step,
            whole: false,
            ..self
        })
    }
}

/// Returns the class of registers with the width of an integer type of 32 or 64 bits.
fn class_of(ty: Type) -> Option<RegClass> {
    match ty {
        Type::B32 | Type::U32 | Type::S32 => Some(RegClass::B32),
        Type::B64 | Type::U64 | Type::S64 => Some(RegClass::B64),
        _ => None,
    }
}

/// Returns the order of the exclusive or of a row and a number: its low bits exchange lanes, all others change only the
/// first value of the row.
fn exchanged(shapes: &Shapes, row: Reg, bits: u64) -> Option<Swapped> {
    let Shape::Affine(step) = shapes.of_register(row) else {
        return None;
    };
    let step = u64::try_from(step)
        .ok()
        .filter(|step| step.is_power_of_two() && *step <= MOST_STEP)?;
    let length = step * u64::from(shapes.group().lanes);
    let low = bits & (length - 1);
    // The bits of the distances are zero in the first value.
    let fits = shapes.alignment(row) >= length.trailing_zeros() && low.is_multiple_of(step);
    fits.then_some(Swapped {
        step: step as u32,
        swap: (low / step) as u32,
        whole: true,
    })
}

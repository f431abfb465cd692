//! The registers whose NaNs must have exactly the bits that PTX defines.
//!
//! In PTX, `.f32` arithmetic returns only the NaN `0x7fffffff`. The host's instructions return other NaNs. Between
//! arithmetic instructions the difference does not matter, but instructions such as stores expose the bits.

use super::class::Class;
use super::steps::{Layout, Step};
use ptx::ir::{Body, Inst, Op, Operand, Reg, RegClass, Type};

/// The effect of the payload of a source operand's NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// None: any NaN gives the same result.
    None,
    /// The payload may become a part of the result's payload.
    Passes,
    /// The bits are visible.
    Seen,
}

/// Returns, for each register, true if the payload of a NaN in it can be observed.
pub(super) fn seen(body: &Body, layout: &Layout<'_>) -> Vec<bool> {
    let mut seen = vec![false; body.registers.len()];
    for formal in &body.returns {
        if let ptx::ir::Formal::Reg(reg) = formal {
            seen[reg.0 as usize] = true;
        }
    }
    let mut changed = true;
    while changed {
        changed = false;
        for step in layout
            .order
            .iter()
            .rev()
            .flat_map(|block| layout.steps_of(*block).rev())
        {
            let Step::Plain(inst) = layout.steps[step] else {
                continue;
            };
            let result = inst.dsts.iter().flatten().any(|reg| seen[reg.0 as usize]);
            super::defined::reads(&layout.steps[step], |reg| {
                let visible = match effect_of(inst, reg, body.registers[reg.0 as usize]) {
                    Effect::None => false,
                    Effect::Passes => result,
                    Effect::Seen => true,
                };
                changed |= visible && !std::mem::replace(&mut seen[reg.0 as usize], true);
            });
        }
    }
    seen
}

/// Returns the strongest effect of a register of this class that an instruction reads, over all operands that are this
/// register.
fn effect_of(inst: &Inst, reg: Reg, class: RegClass) -> Effect {
    let places = inst.srcs.iter().enumerate().filter(|(_, s)| **s == Operand::Reg(reg));
    let effects: Vec<Effect> = places.map(|(at, _)| effect(inst, at, class)).collect();
    match () {
        // A guard, a negated predicate, or an argument of a call.
        () if effects.is_empty() || effects.contains(&Effect::Seen) => Effect::Seen,
        () if effects.contains(&Effect::Passes) => Effect::Passes,
        () => Effect::None,
    }
}

/// Returns the effect of an operand that is a register of this class.
fn effect(inst: &Inst, at: usize, class: RegClass) -> Effect {
    // An `.f64` operation keeps the payload of an operand. Operations of other types, such as `.f16x2`, may take parts
    // of an `.f32` or `.f64` NaN for numbers.
    let arithmetic = |ty: Type| match (class, ty) {
        (RegClass::B32, Type::F32) => Effect::None,
        (RegClass::B64, Type::F64) => Effect::Passes,
        _ => Effect::Seen,
    };
    if Class::of(&inst.op) != Class::Computed {
        return Effect::Seen;
    }
    match &inst.op {
        Op::Mov { .. } => Effect::Passes,
        // The condition is a predicate, which is never a NaN.
        Op::Selp { .. } => Effect::Passes,
        Op::Slct { cty, .. } => match (at, cty) {
            (2, Type::F32) => Effect::None,
            (2, _) => Effect::Seen,
            _ => Effect::Passes,
        },
        // The result is the sign bit of `a`, which is then part of a number, and the other bits of `b`.
        Op::Copysign { .. } if at == 0 => Effect::Seen,
        Op::Copysign { .. } => Effect::Passes,
        // If one operand is a NaN, its sign still changes the sign of the result, which is the other operand.
        Op::FMin { xorsign_abs: true, .. } | Op::FMax { xorsign_abs: true, .. } => Effect::Seen,
        Op::FAdd(mods) | Op::FSub(mods) | Op::FMul(mods) => arithmetic(mods.ty),
        // `.oob` gives one particular NaN a meaning of its own.
        Op::Fma(mods) if mods.oob => Effect::Seen,
        Op::Fma(mods) => arithmetic(mods.ty),
        Op::FNeg { ty, .. }
        | Op::FAbs { ty, .. }
        | Op::FMin { ty, .. }
        | Op::FMax { ty, .. }
        | Op::FDiv { ty, .. }
        | Op::Sqrt { ty, .. }
        | Op::Rcp { ty, .. }
        | Op::Rsqrt { ty, .. }
        | Op::Ex2 { ty, .. }
        | Op::Tanh { ty } => arithmetic(*ty),
        Op::Sin { .. } | Op::Cos { .. } | Op::Lg2 { .. } | Op::Testp { .. } => Effect::None,
        Op::Setp { ty, .. } | Op::Set { ty, .. } if arithmetic(*ty) != Effect::Seen => Effect::None,
        // All NaNs convert to the same integer, and all `.f32` NaNs to the same `.f16` or `.bf16` NaN, alone or in a
        // pair. Conversions from `.f64` keep the upper bits of the payload.
        Op::Cvt(cvt) if arithmetic(cvt.from) != Effect::Seen => match (cvt.from, cvt.to) {
            (_, to) if !to.is_float() => Effect::None,
            (Type::F32, Type::F16 | Type::BF16 | Type::F16x2 | Type::BF16x2) => Effect::None,
            _ => Effect::Passes,
        },
        _ => Effect::Seen,
    }
}

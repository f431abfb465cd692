//! Checks the types of registers and constants against the types that operands require.

use crate::ast::OperandKind;
use crate::forms::{OperandSpec, Role};
use crate::ir::{RegClass, Type};

/// Returns the width of a register of a type.
pub(super) fn class(ty: Type) -> RegClass {
    match ty {
        Type::Pred => RegClass::Pred,
        _ => match ty.size() {
            1 | 2 => RegClass::B16,
            4 => RegClass::B32,
            8 => RegClass::B64,
            _ => RegClass::B128,
        },
    }
}

/// Returns a source operand of a type.
pub(super) fn source(ty: Type) -> OperandSpec {
    OperandSpec {
        role: Role::Source,
        ty,
        wider: false,
        sink: false,
        vec: 1,
        braces: false,
        always_braces: false,
    }
}

/// Returns a destination operand of a type.
pub(super) fn dest(ty: Type, sink: bool) -> OperandSpec {
    OperandSpec {
        role: Role::Dest,
        ty,
        wider: false,
        sink,
        vec: 1,
        braces: false,
        always_braces: false,
    }
}

/// Returns true if a register of type `reg` can be an operand of type `ty`. If `wider` is true, the register may be
/// wider than the type.
pub(super) fn fits(ty: Type, reg: Type, wider: bool) -> bool {
    use Type::{
        B8, B16, B32, B64, B128, BF16, BF16x2, E4M3x2, E5M2x2, F16, F16x2, F32, F64, Pred, S8, S16, S16x2, S32, S64,
        TF32, U8, U16, U16x2, U32, U64,
    };
    if ty == Pred || reg == Pred {
        return ty == reg;
    }
    let bits = |t: Type| matches!(t, B8 | B16 | B32 | B64 | B128);
    let integer = |t: Type| matches!(t, U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64);
    // Types whose values are in registers of bit types. Only `.f16x2` is also a type of registers.
    let packed = |t: Type| matches!(t, F16x2 | BF16x2 | U16x2 | S16x2 | E4M3x2 | E5M2x2 | TF32);
    let kind = bits(ty)
        || bits(reg)
        || (integer(ty) && (integer(reg) || reg == F16x2))
        || (packed(ty) && reg == F16x2 && ty != BF16x2)
        || (ty == reg && matches!(ty, F16 | F32 | F64));
    // Wider registers are not allowed for `.bf16` and `.bf16x2`.
    let wider = wider && !matches!(ty, BF16 | BF16x2);
    let width = if wider {
        reg.size() >= ty.size()
    } else {
        reg.size() == ty.size()
    };
    kind && width
}

/// Returns the bits of a constant operand of type `ty`; `None` if the kind of constant is not allowed for it.
pub(super) fn constant(kind: OperandKind, ty: Type) -> Option<u64> {
    use Type::{B32, B64, BF16, BF16x2, E4M3, E4M3x2, E5M2, E5M2x2, F16, F16x2, F32, F64, Pred, S16x2, TF32, U16x2};
    match kind {
        OperandKind::Int(bits) => match ty {
            Pred => Some(u64::from(bits != 0)),
            F16 | F16x2 | BF16 | BF16x2 | F32 | F64 | U16x2 | S16x2 | TF32 | E4M3 | E5M2 | E4M3x2 | E5M2x2 => None,
            _ if ty.size() >= 8 => Some(bits),
            _ => Some(bits & ((1 << (8 * ty.size())) - 1)),
        },
        OperandKind::F32(bits) => match ty {
            // As in ptxas, `0f…` is not converted to f64: its bits are the lower half of the value.
            F32 | B32 | F64 => Some(u64::from(bits)),
            _ => None,
        },
        OperandKind::F64(bits) => match ty {
            F64 | B64 => Some(bits),
            F32 => Some(u64::from((f64::from_bits(bits) as f32).to_bits())),
            _ => None,
        },
        _ => None,
    }
}

/// Returns true for integer and bit types, which can hold an address.
pub(super) fn holds_address(ty: Type) -> bool {
    !ty.is_float() && ty != Type::Pred
}

/// Returns the type of each of `count` parts of a value of a bit type; `None` if `mov` cannot split or join it so.
pub(super) fn part_type(ty: Type, count: u32) -> Option<Type> {
    let bits = matches!(ty, Type::B16 | Type::B32 | Type::B64 | Type::B128);
    if !bits || !matches!(count, 2 | 4) {
        return None;
    }
    match ty.size() / count {
        1 => Some(Type::B8),
        2 => Some(Type::B16),
        4 => Some(Type::B32),
        8 => Some(Type::B64),
        _ => None,
    }
}

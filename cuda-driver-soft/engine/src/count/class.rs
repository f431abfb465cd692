//! Classes of instructions, for the counters.

#![forbid(unsafe_code)]

use super::counters::Counters;
use ptx::ir::{Op, Type};

/// The class of an instruction, as Nsight Compute groups machine instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Fp16,
    Fp32,
    Fp64,
    Integer,
    Bit,
    Conversion,
    Control,
    Memory,
    Communication,
    Matrix,
    Misc,
}

impl Class {
    /// Returns the class of an operation.
    pub(super) fn of(op: &Op) -> Self {
        match op {
            Op::FAdd(m) | Op::FSub(m) | Op::FMul(m) | Op::Fma(m) => of_type(m.ty),
            Op::FNeg { ty, .. }
            | Op::FAbs { ty, .. }
            | Op::FMin { ty, .. }
            | Op::FMax { ty, .. }
            | Op::FDiv { ty, .. }
            | Op::Sqrt { ty, .. }
            | Op::Rcp { ty, .. }
            | Op::Rsqrt { ty, .. }
            | Op::Ex2 { ty, .. }
            | Op::Tanh { ty }
            | Op::Copysign { ty }
            | Op::Testp { ty, .. }
            | Op::Setp { ty, .. }
            | Op::Set { ty, .. } => of_type(*ty),
            Op::Sin { .. } | Op::Cos { .. } | Op::Lg2 { .. } => Class::Fp32,
            Op::Cvt(_) | Op::CvtPack { .. } => Class::Conversion,
            Op::Add { .. }
            | Op::Sub { .. }
            | Op::Mul { .. }
            | Op::Mad { .. }
            | Op::Mul24 { .. }
            | Op::Mad24 { .. }
            | Op::Div { .. }
            | Op::Rem { .. }
            | Op::Abs { .. }
            | Op::Neg { .. }
            | Op::Min { .. }
            | Op::Max { .. }
            | Op::AddC { .. }
            | Op::MadC { .. }
            | Op::Sad { .. }
            | Op::Dp4a { .. }
            | Op::Dp2a { .. }
            | Op::Video(_) => Class::Integer,
            Op::And { .. }
            | Op::Or { .. }
            | Op::Xor { .. }
            | Op::Not { .. }
            | Op::Cnot { .. }
            | Op::Shl { .. }
            | Op::Shr { .. }
            | Op::Bfe { .. }
            | Op::Bfi { .. }
            | Op::Bfind { .. }
            | Op::Bmsk { .. }
            | Op::Szext { .. }
            | Op::Brev { .. }
            | Op::Clz { .. }
            | Op::Popc { .. }
            | Op::Fns
            | Op::Lop3 { .. }
            | Op::Prmt { .. }
            | Op::Shf { .. } => Class::Bit,
            Op::Bra { .. } | Op::Brx { .. } | Op::Call { .. } | Op::Ret { .. } | Op::Exit | Op::Trap => Class::Control,
            Op::Ld(_)
            | Op::St(_)
            | Op::Atom { .. }
            | Op::Red { .. }
            | Op::Fence { .. }
            | Op::CpAsync { .. }
            | Op::Bulk { .. }
            | Op::TensorCopy(_)
            | Op::TensorMapReplace(_)
            | Op::Mbarrier { .. }
            | Op::Ldmatrix { .. }
            | Op::Stmatrix { .. }
            | Op::WmmaLd { .. }
            | Op::WmmaSt { .. }
            | Op::Tex(_)
            | Op::Surface(_)
            | Op::Query { .. } => Class::Memory,
            Op::Shfl { .. }
            | Op::Vote { .. }
            | Op::Match { .. }
            | Op::Redux { .. }
            | Op::Activemask
            | Op::Elect
            | Op::Movmatrix => Class::Communication,
            Op::Mma(_) | Op::Wgmma(_) => Class::Matrix,
            _ => Class::Misc,
        }
    }

    /// Adds a number of instructions to the counter of this class.
    pub(super) fn add(self, counters: &mut Counters, instructions: u64) {
        let counter = match self {
            Class::Fp16 => &mut counters.fp16,
            Class::Fp32 => &mut counters.fp32,
            Class::Fp64 => &mut counters.fp64,
            Class::Integer => &mut counters.integer,
            Class::Bit => &mut counters.bit,
            Class::Conversion => &mut counters.conversion,
            Class::Control => &mut counters.control,
            Class::Memory => &mut counters.memory,
            Class::Communication => &mut counters.communication,
            Class::Matrix => &mut counters.matrix,
            Class::Misc => &mut counters.misc,
        };
        *counter += instructions;
    }
}

/// Returns the class of arithmetic on a type.
fn of_type(ty: Type) -> Class {
    match ty {
        Type::F16 | Type::F16x2 | Type::BF16 | Type::BF16x2 => Class::Fp16,
        Type::F32 => Class::Fp32,
        Type::F64 => Class::Fp64,
        _ => Class::Integer,
    }
}

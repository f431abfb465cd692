//! Decodes instructions on matrices, such as `mma` and `ldmatrix`. The scheduler runs them.

use super::asynchronous::{access, pointer};
use super::builder::{Builder, Scratch};
use super::operands::source;
use crate::code::action::Action;
use crate::code::matrix::MatrixInst;
use crate::code::registers::Slot;
use crate::code::site::{AccessBytes, AccessKind, MatrixExtent, SiteAccess};
use crate::ops::fragment::{element_bits, extent, registers};
use crate::ops::logic;
use ptx::ir::{Inst, MatrixPart, Op, Operand, RegClass, Type};

/// Returns the class of the registers that hold elements of a type.
fn class(ty: Type) -> RegClass {
    if ty == Type::F64 { RegClass::B64 } else { RegClass::B32 }
}

/// Decodes an instruction on matrices.
pub(super) fn lower(b: &mut Builder<'_>, inst: &Inst) -> Option<()> {
    let line = inst.line;
    let at_address = !matches!(inst.op, Op::Mma(_) | Op::Wgmma(_) | Op::Movmatrix);
    let (address, rest) = match inst.srcs.split_first() {
        Some((first, rest)) if at_address => (Some(pointer(b, first, line)?), rest),
        _ => (None, inst.srcs.as_slice()),
    };
    // The classes of the values and of the results.
    let (values, result) = match inst.op {
        Op::Mma(ref mma) => {
            let mut classes = Vec::new();
            let a = (mma.stored_shape(), MatrixPart::A, mma.a);
            for (shape, part, ty) in [a, (mma.shape, MatrixPart::B, mma.b), (mma.shape, MatrixPart::C, mma.c)] {
                let count = registers(shape, part, ty, mma.wmma);
                classes.resize(classes.len() + count, class(ty));
            }
            if mma.sparse.is_some() {
                classes.push(RegClass::B32);
            }
            (classes, class(mma.d))
        }
        Op::Wgmma(wgmma) => {
            let registers = if wgmma.a_in_registers { 4 } else { 0 };
            let metadata = usize::from(wgmma.mma.sparse.is_some());
            (
                vec![RegClass::B32; inst.dsts.len() + registers + metadata],
                RegClass::B32,
            )
        }
        Op::WmmaLd { ty, .. } => (Vec::new(), class(ty)),
        Op::WmmaSt { shape, ty, .. } => {
            let count = registers(shape, MatrixPart::C, ty, true);
            (vec![class(ty); count], RegClass::B32)
        }
        Op::Stmatrix { count, .. } => (vec![RegClass::B32; count.into()], RegClass::B32),
        Op::Movmatrix => (vec![RegClass::B32], RegClass::B32),
        _ => (Vec::new(), RegClass::B32),
    };
    let (mut srcs, mut stride, mut more) = (Vec::new(), None, Vec::new());
    for (i, operand) in rest.iter().enumerate() {
        match values.get(i) {
            // The last operand of `wgmma` is a predicate, after the descriptors.
            None if matches!(inst.op, Op::Wgmma(_)) => {
                let class = if i + 1 == rest.len() {
                    RegClass::Pred
                } else {
                    RegClass::B64
                };
                let mut slot = source(b, operand, class, line)?;
                if matches!(operand, Operand::NotReg(_)) {
                    let negated = b.scratch(RegClass::Pred, Scratch::Negated(0));
                    b.push_form(&logic::negation(), [negated, Slot(0)], &[slot], line);
                    slot = negated;
                }
                let width = if class == RegClass::Pred { 0 } else { 8 };
                more.push((slot, width));
            }
            Some(class) => srcs.push(source(b, operand, *class, line)?),
            None => stride = Some(source(b, operand, RegClass::B32, line)?),
        }
    }
    if srcs.len() != values.len() {
        return None;
    }
    let mut dsts = Vec::new();
    for d in &inst.dsts {
        if d.is_some_and(|d| b.class(d) != result) {
            return None;
        }
        dsts.push(b.destination(*d, result));
    }
    let matrix = MatrixInst {
        op: inst.op.clone(),
        address,
        stride,
        dsts,
        srcs,
        more,
    };
    b.push_action(Action::Matrix(Box::new(matrix)), line);
    let (space, bytes, kind, lanes) = match inst.op {
        // Each of the first `8 * count` lanes has the address of a row of 16 bytes.
        Op::Ldmatrix { count, space, .. } => (space, AccessBytes::Constant(16), AccessKind::Read, 8 * count),
        Op::Stmatrix { count, space, .. } => (space, AccessBytes::Constant(16), AccessKind::Write, 8 * count),
        Op::WmmaLd {
            shape,
            part,
            ty,
            column,
            space,
        } => {
            let matrix = memory_of((shape, part, ty), column, stride);
            (space, AccessBytes::Matrix(matrix), AccessKind::Read, 32)
        }
        Op::WmmaSt {
            shape,
            ty,
            column,
            space,
        } => {
            let matrix = memory_of((shape, MatrixPart::C, ty), column, stride);
            (space, AccessBytes::Matrix(matrix), AccessKind::Write, 32)
        }
        _ => return Some(()),
    };
    if let Some(pointer) = address {
        b.note_access(SiteAccess {
            lanes,
            ..access(space, pointer, bytes, kind)
        });
    }
    Some(())
}

/// Returns the memory of a matrix that `wmma.load` or `wmma.store` accesses.
fn memory_of(
    (shape, part, ty): ([u16; 3], MatrixPart, Type),
    column_major: bool,
    stride: Option<Slot>,
) -> MatrixExtent {
    let (rows, columns) = extent(shape, part);
    let (outer, inner) = if column_major { (columns, rows) } else { (rows, columns) };
    let element_bits = element_bits(ty);
    MatrixExtent {
        rows: outer as u8,
        bytes: (inner as u32 * element_bits).div_ceil(8),
        stride,
        element_bits,
    }
}

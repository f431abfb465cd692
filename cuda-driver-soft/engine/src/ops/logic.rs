//! Handlers of logic and shifts, such as `and.b32`.

use super::shapes::{Form, binary, binary_hot, binary_once, masks, unary, unary_once};
use crate::semantics::logic;
use ptx::ir::{Op, Type::*};

#[rustfmt::skip] // a table
pub(super) fn form(op: &Op) -> Option<Form> {
    Some(match *op {
        Op::And { ty: Pred } => masks(2, |a, b, _| a & b),
        Op::Or { ty: Pred } => masks(2, |a, b, _| a | b),
        Op::Xor { ty: Pred } => masks(2, |a, b, _| a ^ b),
        Op::Not { ty: Pred } => negation(),
        Op::And { ty: B16 } => binary(logic::and::<u16>),
        Op::And { ty: B32 } => binary_hot(logic::and::<u32>),
        Op::And { ty: B64 } => binary(logic::and::<u64>),
        Op::Or { ty: B16 } => binary(logic::or::<u16>),
        Op::Or { ty: B32 } => binary_hot(logic::or::<u32>),
        Op::Or { ty: B64 } => binary(logic::or::<u64>),
        Op::Xor { ty: B16 } => binary(logic::xor::<u16>),
        Op::Xor { ty: B32 } => binary_hot(logic::xor::<u32>),
        Op::Xor { ty: B64 } => binary(logic::xor::<u64>),
        Op::Not { ty: B16 } => unary_once(logic::not::<u16>),
        Op::Not { ty: B32 } => unary(logic::not::<u32>),
        Op::Not { ty: B64 } => unary(logic::not::<u64>),
        Op::Cnot { ty: B16 } => unary_once(logic::cnot::<u16>),
        Op::Cnot { ty: B32 } => unary_once(logic::cnot::<u32>),
        Op::Cnot { ty: B64 } => unary_once(logic::cnot::<u64>),
        Op::Shl { ty: B16 } => binary(logic::shl::<u16>),
        Op::Shl { ty: B32 } => binary_hot(logic::shl::<u32>),
        Op::Shl { ty: B64 } => binary(logic::shl::<u64>),
        Op::Shr { ty: B16 | U16 } => binary(logic::shr::<u16>),
        Op::Shr { ty: S16 } => binary_once(logic::shr::<i16>),
        Op::Shr { ty: B32 | U32 } => binary_hot(logic::shr::<u32>),
        Op::Shr { ty: S32 } => binary(logic::shr::<i32>),
        Op::Shr { ty: B64 | U64 } => binary(logic::shr::<u64>),
        Op::Shr { ty: S64 } => binary(logic::shr::<i64>),
        _ => return None,
    })
}

/// Returns the form of `not.pred`, which an operand `!p` also uses.
pub(crate) fn negation() -> Form {
    masks(1, |a, _, _| !a)
}

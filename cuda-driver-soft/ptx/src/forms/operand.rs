//! The operands of a form: their roles and types.

use crate::ir::Type;

use super::mods::{Mods, type_of_name, wide};

/// The role of an operand. See the notation of the [table](super).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// `d`, `p`
    Dest,
    /// `p|q`, `d|p`: one or two destinations
    DestPair,
    /// `p|q`, `d|p` with `&`: two destinations
    RequiredPair,
    /// `a`
    Source,
    /// `!a`, `!c`: a source, which may be negated if it is a predicate
    Negatable,
    /// `#i`
    Constant,
    /// `[a]`
    Address,
    /// `[t]`: the address of a tensor map, with coordinates
    Tensor,
}

/// An operand of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OperandSpec {
    pub(crate) role: Role,
    pub(crate) ty: Type,
    /// True if registers may be wider than the type.
    pub(crate) wider: bool,
    /// True if the operand may be `_`.
    pub(crate) sink: bool,
    /// Number of elements; 1 for an operand that is not a vector.
    pub(crate) vec: u8,
    /// True if the operand may be written in braces, even if it has one element: `{a}`.
    pub(crate) braces: bool,
    /// True if an operand of one element must be written in braces. Those with more elements may be a vector register.
    pub(crate) always_braces: bool,
}

impl OperandSpec {
    /// Returns the first operand of a pair. It may also be `_` if it is a predicate.
    pub(crate) fn pair_first(&self) -> OperandSpec {
        OperandSpec {
            sink: self.sink || self.ty == Type::Pred,
            ..*self
        }
    }
}

/// Returns the operand for its text in the table, given the modifiers of the opcode.
pub(super) fn operand(text: &str, mods: &Mods) -> OperandSpec {
    let (text, count) = text.split_once('^').unwrap_or((text, ""));
    let bare = text.trim_end_matches(['~', '?', '*', '&']);
    let flags = &text[bare.len()..];
    let (name, ty) = bare.split_once(':').unwrap_or((bare, ""));
    let role = match name {
        "d" | "p" => Role::Dest,
        "p|q" | "d|p" if flags.contains('&') => Role::RequiredPair,
        "p|q" | "d|p" => Role::DestPair,
        _ if name.starts_with('!') => Role::Negatable,
        _ if name.starts_with('#') => Role::Constant,
        "[t]" => Role::Tensor,
        _ if name.starts_with('[') => Role::Address,
        _ => Role::Source,
    };
    let last = mods.types().last().copied().unwrap_or(Type::B32);
    let ty = match ty {
        _ if matches!(name, "p" | "p|q" | "!c") => Type::Pred,
        _ if name == "policy" => Type::U64,
        "" => last,
        "w" => wide(last),
        "1" => mods.ty(0),
        "2" => mods.ty(1),
        name => type_of_name(name).unwrap_or(last),
    };
    let vec = match count.parse() {
        Ok(count) => count,
        Err(_) if count.starts_with("n/") => accumulator_registers(mods, count),
        Err(_) if flags.contains('*') => mods.vec(),
        Err(_) => 1,
    };
    OperandSpec {
        role,
        ty,
        wider: flags.contains('~'),
        sink: flags.contains('?'),
        vec,
        braces: flags.contains('*') || !count.is_empty(),
        always_braces: !count.is_empty(),
    }
}

/// Returns the number of registers of an accumulator that `n/2` or `n/4` denotes.
fn accumulator_registers(mods: &Mods, count: &str) -> u8 {
    let [_, n, _] = mods.shape();
    (n / if count == "n/4" { 4 } else { 2 }) as u8
}

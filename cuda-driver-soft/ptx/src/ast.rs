//! The module as it is written: flat vectors, nothing resolved.

use super::names::{Name, Names};
use crate::ir::{Directives, Linkage, Opaque, Target, Type};
use std::ops::Range;

/// A range of [`Ast::operands`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) len: u32,
}

impl Span {
    pub(super) fn range(self) -> Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

/// Where something stands in the text: byte offset (for the column) and line, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pos {
    pub(super) offset: u32,
    pub(super) line: u32,
}

/// A parsed module.
#[derive(Debug)]
pub(super) struct Ast {
    pub(super) version: (u32, u32),
    pub(super) target: Target,
    pub(super) address_size: u32,
    /// `texmode_independent` of `.target`.
    pub(super) independent_textures: bool,
    /// There is a `.section`.
    pub(super) sections: bool,
    pub(super) names: Names,
    /// The opcode lexemes, by their number in [`Inst::opcode`].
    pub(super) opcodes: Names,
    pub(super) items: Vec<Item>,
    pub(super) statements: Vec<Statement>,
    pub(super) operands: Vec<Operand>,
    pub(super) vars: Vec<Var>,
    pub(super) inits: Vec<Init>,
    pub(super) prototypes: Vec<Prototype>,
}

/// Something at module scope.
#[derive(Debug)]
pub(super) enum Item {
    /// Index into [`Ast::vars`].
    Var(u32),
    Function(Box<Function>),
    Alias {
        name: Name,
        aliasee: Name,
        pos: Pos,
    },
}

/// `.entry` or `.func`, defined or declared.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) entry: bool,
    pub(super) linkage: Linkage,
    pub(super) name: Name,
    pub(super) pos: Pos,
    /// Range of [`Ast::vars`].
    pub(super) returns: Range<u32>,
    /// Range of [`Ast::vars`].
    pub(super) params: Range<u32>,
    pub(super) directives: Directives,
    /// Range of [`Ast::statements`]; `None` for a declaration.
    pub(super) body: Option<Range<u32>>,
}

/// State space of a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeclSpace {
    Reg,
    Global,
    Const,
    Shared,
    Local,
    Param,
    Tex,
}

/// Type of a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeclType {
    Scalar(Type),
    /// `.texref`, `.surfref`, `.samplerref`
    Opaque(Opaque),
}

impl DeclType {
    /// Size in bytes of one element. An opaque handle is 64 bits.
    pub(super) fn size(self) -> u32 {
        match self {
            DeclType::Scalar(ty) => ty.size(),
            DeclType::Opaque(_) => 8,
        }
    }
}

/// A declared variable, register (or range of registers), or parameter.
#[derive(Clone, Debug)]
pub(super) struct Var {
    pub(super) space: DeclSpace,
    pub(super) linkage: Linkage,
    pub(super) align: Option<u64>,
    pub(super) vec: u32,
    pub(super) ty: DeclType,
    pub(super) name: Name,
    /// `%r<12>`: twelve of them.
    pub(super) count: Option<u32>,
    /// Array dimensions; `None` for an empty pair of brackets.
    pub(super) dims: Vec<Option<u64>>,
    /// Range of [`Ast::inits`].
    pub(super) init: Option<Range<u32>>,
    pub(super) managed: bool,
    pub(super) pos: Pos,
}

impl Var {
    /// Bytes of one element, vector included.
    pub(super) fn element(&self) -> u64 {
        u64::from(self.ty.size()) * u64::from(self.vec)
    }

    /// Bytes of the whole variable; `None` when it is more than 2^63.
    pub(super) fn size(&self) -> Option<u64> {
        let mut size = self.element();
        for dim in &self.dims {
            size = size.checked_mul(dim.unwrap_or(0))?;
        }
        (size <= i64::MAX as u64).then_some(size)
    }
}

/// A lexeme of an initial value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Init {
    pub(super) kind: InitKind,
    pub(super) pos: Pos,
}

/// See [`Init`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum InitKind {
    Open,
    Close,
    Int(u64),
    F32(u32),
    F64(u64),
    /// The address of a symbol. `mask` is `0xFF…`'s shift in bits: one byte of the address.
    Address {
        name: Name,
        offset: i64,
        generic: bool,
        mask: Option<u8>,
    },
}

/// A statement of a function's body.
#[derive(Clone, Debug)]
pub(super) enum Statement {
    Open,
    Close,
    Label(Name, Pos),
    Inst(Inst),
    /// Index into [`Ast::vars`].
    Var(u32),
    /// Index into [`Ast::prototypes`].
    Prototype {
        name: Name,
        prototype: u32,
        pos: Pos,
    },
    /// `.branchtargets` or `.calltargets`: range of [`Ast::operands`], each a name.
    Targets {
        name: Name,
        calls: bool,
        list: Span,
        pos: Pos,
    },
    Loc {
        file: u32,
        line: u32,
        column: u32,
    },
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inst {
    /// Index into [`Ast::opcodes`].
    pub(super) opcode: u32,
    pub(super) operands: Span,
    /// The predicate, and whether it is negated.
    pub(super) guard: Option<(Name, bool)>,
    pub(super) pos: Pos,
}

/// `.callprototype`
#[derive(Clone, Debug)]
pub(super) struct Prototype {
    /// Ranges of [`Ast::vars`].
    pub(super) returns: Range<u32>,
    pub(super) params: Range<u32>,
}

/// An operand, or a part of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    pub(super) kind: OperandKind,
    pub(super) pos: Pos,
}

/// What follows a name: `.x` of a vector or special register, `.b0`, `.h1` of the video instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selector {
    None,
    /// `.x` or `.r` is 0, … `.w` or `.a` 3
    Element(u8),
    /// `.b0` to `.b3`, `.h0`, `.h1`, `.b7654` … `.h32`: of the video instructions
    Part(Digits),
}

/// The selector of a video instruction: `b` or `h`, then up to four digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digits {
    pub(super) halves: bool,
    pub(super) count: u8,
    /// As written; zeros behind.
    pub(super) digits: [u8; 4],
}

/// See [`Operand`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum OperandKind {
    /// `%r1`, `%tid.x`, a label, a variable.
    Name(Name, Selector),
    /// `!p`
    Not(Name),
    /// `-a`
    Neg(Name, Selector),
    /// `_`
    Sink,
    /// `variable+offset`, or `variable[index]` (`index` scaled by the element).
    Offset {
        name: Name,
        offset: i64,
        index: bool,
    },
    /// `variable[register+offset]`, in elements.
    Subscript {
        name: Name,
        index: Name,
        offset: i64,
    },
    Int(u64),
    F32(u32),
    /// `hex`: written as `0d…`.
    F64(u64),
    /// `{a, b, …}`
    Vector(Span),
    /// `[base+offset]`; without a base an immediate address.
    Address {
        base: Option<Name>,
        offset: i64,
    },
    /// `[a, {b, c}]`: of textures and tensors.
    Multi(Span),
    /// `p|q`: two operands.
    Pair(Span),
    /// `(a, b)` of a call.
    List(Span),
}

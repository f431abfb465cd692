//! The abstract syntax tree: the module as written, with no name resolved. Lists are ranges of flat vectors, except for
//! the dimensions of arrays.

use std::ops::Range;
use std::sync::Arc;

use crate::ir::{Directives, Linkage, Opaque, SourceMap, Target, Type};
use crate::names::{Name, Names};
use crate::requirement::Since;

/// A range of [`Ast::operands`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

/// A place in the text: byte offset (for the column) and line, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pos {
    pub(crate) offset: u32,
    pub(crate) line: u32,
}

/// A parsed module.
#[derive(Debug)]
pub(crate) struct Ast {
    pub(crate) version: (u32, u32),
    pub(crate) target: Target,
    pub(crate) address_size: u32,
    /// True if `.target` has the option `texmode_independent`.
    pub(crate) independent_textures: bool,
    /// True if the module has a `.section`.
    pub(crate) sections: bool,
    pub(crate) names: Names,
    /// The opcodes with their modifiers; [`Inst::opcode`] is an index.
    pub(crate) opcodes: Names,
    pub(crate) items: Vec<Item>,
    pub(crate) statements: Vec<Statement>,
    pub(crate) operands: Vec<Operand>,
    pub(crate) vars: Vec<Var>,
    pub(crate) inits: Vec<Init>,
    pub(crate) prototypes: Vec<Prototype>,
    /// The `.file` and `.loc` directives.
    pub(crate) source: Arc<SourceMap>,
}

impl Ast {
    /// Frees the memory that the lists do not use. A module keeps the lists, because it lowers its functions later.
    pub(crate) fn shrink(&mut self) {
        self.items.shrink_to_fit();
        self.statements.shrink_to_fit();
        self.operands.shrink_to_fit();
        self.vars.shrink_to_fit();
        self.inits.shrink_to_fit();
        self.prototypes.shrink_to_fit();
    }

    /// Returns the module's PTX version, times ten, for a comparison with the version that introduced a feature. A
    /// minor number of two digits counts as 9, because no feature came with a later one.
    pub(crate) fn feature_version(&self) -> u32 {
        let (major, minor) = self.version;
        major * 10 + minor.min(9)
    }

    /// Returns the messages about a feature that requires PTX version `ptx`, times ten, and architecture `sm`.
    pub(crate) fn unmet(&self, feature: &str, ptx: u32, sm: u32) -> Vec<String> {
        let unmet = |since: Since| {
            since.unmet(
                format_args!("Feature '{feature}'"),
                self.feature_version(),
                self.target.sm,
            )
        };
        [Since::Ptx(ptx), Since::Sm(sm)].into_iter().filter_map(unmet).collect()
    }

    /// Returns the byte offset of an item in the text.
    pub(crate) fn offset(&self, item: &Item) -> u32 {
        match item {
            Item::Var(var) => self.vars.get(*var as usize).map_or(u32::MAX, |var| var.pos.offset),
            Item::Function(function) => function.pos.offset,
            Item::Alias { pos, .. } => pos.offset,
        }
    }

    /// Returns the declarations of a range.
    pub(crate) fn vars(&self, range: &Range<u32>) -> &[Var] {
        slice(&self.vars, range)
    }

    /// Returns the statements of a range.
    pub(crate) fn statements(&self, range: &Range<u32>) -> &[Statement] {
        slice(&self.statements, range)
    }

    /// Returns the initial values of a range.
    pub(crate) fn inits(&self, range: &Range<u32>) -> &[Init] {
        slice(&self.inits, range)
    }

    /// Returns the operands of a span.
    pub(crate) fn operands(&self, span: Span) -> &[Operand] {
        let start = span.start as usize;
        let end = start + span.len as usize;
        self.operands.get(start..end).unwrap_or(&[])
    }
}

/// Returns the elements of a range; none if the range does not exist.
fn slice<'a, T>(all: &'a [T], range: &Range<u32>) -> &'a [T] {
    all.get(range.start as usize..range.end as usize).unwrap_or(&[])
}

/// A declaration at module scope.
#[derive(Debug)]
pub(crate) enum Item {
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
pub(crate) struct Function {
    pub(crate) entry: bool,
    pub(crate) linkage: Linkage,
    pub(crate) name: Name,
    pub(crate) pos: Pos,
    /// Range of [`Ast::vars`].
    pub(crate) returns: Range<u32>,
    /// Range of [`Ast::vars`].
    pub(crate) params: Range<u32>,
    pub(crate) directives: Directives,
    /// Range of [`Ast::statements`]; `None` for a declaration.
    pub(crate) body: Option<Range<u32>>,
}

/// The state space of a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeclSpace {
    Reg,
    Global,
    Const,
    Shared,
    Local,
    Param,
    Tex,
}

/// The type of a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeclType {
    Scalar(Type),
    /// `.texref`, `.surfref`, `.samplerref`
    Opaque(Opaque),
}

impl DeclType {
    /// Returns the size in bytes. An opaque variable holds a handle of 8 bytes.
    pub(crate) fn size(self) -> u32 {
        match self {
            DeclType::Scalar(ty) => ty.size(),
            DeclType::Opaque(_) => 8,
        }
    }
}

/// A declared variable, register (or range of registers), or parameter.
#[derive(Clone, Debug)]
pub(crate) struct Var {
    pub(crate) space: DeclSpace,
    pub(crate) linkage: Linkage,
    pub(crate) align: Option<u64>,
    /// Number of vector elements; 1 for a scalar.
    pub(crate) vec: u32,
    pub(crate) ty: DeclType,
    pub(crate) name: Name,
    /// Number of registers or variables in a range: 12 for `%r<12>`; `None` for a single one.
    pub(crate) count: Option<u32>,
    /// Array dimensions, outermost first; an element is `None` for `[]`.
    pub(crate) dims: Vec<Option<u64>>,
    /// Size in bytes, with 0 for `[]`; `None` if it is 2^63 or more. It is stored, because a call asks for the size of
    /// each argument, which can have many dimensions.
    pub(crate) size: Option<u64>,
    /// Range of [`Ast::inits`].
    pub(crate) init: Option<Range<u32>>,
    pub(crate) managed: bool,
    pub(crate) pos: Pos,
}

impl Var {
    /// Returns the size of one element in bytes. A vector is one element.
    pub(crate) fn element(&self) -> u64 {
        u64::from(self.ty.size()) * u64::from(self.vec)
    }

    /// Returns [`Var::size`], calculated from the type and the dimensions.
    pub(crate) fn calculated_size(&self) -> Option<u64> {
        let mut size = self.element();
        for dim in &self.dims {
            size = size.checked_mul(dim.unwrap_or(0))?;
        }
        (size <= i64::MAX as u64).then_some(size)
    }
}

/// A constant, an address or a brace in an initial value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Init {
    pub(crate) kind: InitKind,
    pub(crate) pos: Pos,
}

/// The kind of an [`Init`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum InitKind {
    /// `{`
    Open,
    /// `}`
    Close,
    Int(u64),
    F32(u32),
    F64(u64),
    /// The address of a symbol.
    Address {
        name: Name,
        offset: i64,
        generic: bool,
        /// For one byte of the address, its position in bits: 8 for `0xFF00(symbol)`.
        mask: Option<u8>,
    },
}

/// A statement of a function's body.
#[derive(Clone, Debug)]
pub(crate) enum Statement {
    /// `{`, which opens a scope.
    Open,
    /// `}` of an inner scope. The brace that closes the function is not a statement.
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
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inst {
    /// Index into [`Ast::opcodes`].
    pub(crate) opcode: u32,
    pub(crate) operands: Span,
    /// The predicate, and true if it is negated.
    pub(crate) guard: Option<(Name, bool)>,
    pub(crate) pos: Pos,
}

/// `.callprototype`
#[derive(Clone, Debug)]
pub(crate) struct Prototype {
    /// Ranges of [`Ast::vars`].
    pub(crate) returns: Range<u32>,
    pub(crate) params: Range<u32>,
}

/// An operand, or an element of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    pub(crate) kind: OperandKind,
    pub(crate) pos: Pos,
}

/// A selector after a name: `.x` of a vector or special register, `.b0`, `.h1` of a video instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selector {
    None,
    /// 0 for `.x` or `.r`, to 3 for `.w` or `.a`.
    Element(u8),
    /// The selector of a video instruction, such as `.b0`, `.h1`, `.b7654` and `.h32`.
    Part(Digits),
}

/// The selector of a video instruction: `b` or `h`, then up to four digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digits {
    pub(crate) halves: bool,
    pub(crate) count: u8,
    /// The digits as written, followed by zeros.
    pub(crate) digits: [u8; 4],
}

/// The kind of an [`Operand`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum OperandKind {
    /// `%r1`, `%tid.x`, a label, a variable
    Name(Name, Selector),
    /// `!p`
    Not(Name),
    /// `-a`
    Neg(Name, Selector),
    /// `_`
    Sink,
    /// `variable+offset` or `variable[offset]`
    Offset {
        name: Name,
        offset: i64,
        /// True for brackets, where the offset is in elements.
        index: bool,
    },
    /// `variable[register+offset]`, in elements; also with a special register
    Subscript {
        name: Name,
        index: Name,
        offset: i64,
    },
    Int(u64),
    F32(u32),
    F64(u64),
    /// `{a, b, …}`
    Vector(Span),
    /// `[base+offset]`; an immediate address if there is no base
    Address {
        base: Option<Name>,
        offset: i64,
    },
    /// `[a, {b, c}]`: the address operand of texture, surface and tensor instructions
    Multi(Span),
    /// `p|q`: two operands
    Pair(Span),
    /// `(a, b)` of a call
    List(Span),
}

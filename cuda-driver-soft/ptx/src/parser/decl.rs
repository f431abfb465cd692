//! Parses declarations of variables, registers and parameters, and initial values.

use std::ops::Range;

use crate::ast::{DeclSpace, DeclType, Init, InitKind, Pos, Var};
use crate::diagnostics::Severity;
use crate::ir::{Linkage, Opaque, Type};
use crate::lexer::TokenKind;
use crate::names::Name;

use super::cursor::{Parser, Result};
use super::expr::ConstValue;

/// Maximum nesting of initial values.
const MAX_DEPTH: u32 = 32;

/// Returns the type with this name, if declarations can have it.
fn decl_type(text: &[u8]) -> Option<DeclType> {
    use Type::{B8, B16, B32, B64, B128, F16, F16x2, F32, F64, Pred, S8, S16, S32, S64, U8, U16, U32, U64};
    Some(DeclType::Scalar(match text {
        b".pred" => Pred,
        b".b8" => B8,
        b".b16" => B16,
        b".b32" => B32,
        b".b64" => B64,
        b".b128" => B128,
        b".u8" => U8,
        b".u16" => U16,
        b".u32" => U32,
        b".u64" => U64,
        b".s8" => S8,
        b".s16" => S16,
        b".s32" => S32,
        b".s64" => S64,
        b".f16" => F16,
        b".f16x2" => F16x2,
        b".f32" => F32,
        b".f64" => F64,
        b".texref" => return Some(DeclType::Opaque(Opaque::Texture)),
        b".surfref" => return Some(DeclType::Opaque(Opaque::Surface)),
        b".samplerref" => return Some(DeclType::Opaque(Opaque::Sampler)),
        _ => return None,
    }))
}

impl Parser<'_> {
    /// Returns the state space that the current token names, if declarations can have it.
    pub(super) fn decl_space(&self) -> Option<DeclSpace> {
        if self.token().kind != TokenKind::Dot {
            return None;
        }
        Some(match self.word() {
            b".reg" => DeclSpace::Reg,
            b".global" => DeclSpace::Global,
            b".const" => DeclSpace::Const,
            b".shared" => DeclSpace::Shared,
            b".local" => DeclSpace::Local,
            b".param" => DeclSpace::Param,
            b".tex" => DeclSpace::Tex,
            _ => return None,
        })
    }

    /// Parses a declaration up to its name: `.param .align 8 .u64 .ptr .global`.
    fn decl_head(&mut self, linkage: Linkage) -> Result<Var> {
        // The alignment may also precede the space.
        let mut align = None;
        while self.accept_dot(b".align") {
            align = Some(self.literal()?);
        }
        let Some(space) = self.decl_space() else {
            return self.unexpected();
        };
        let mut var = Var {
            space,
            linkage,
            align,
            vec: 1,
            ty: DeclType::Scalar(Type::B8),
            name: Name::SINK,
            count: None,
            dims: Vec::new(),
            size: None,
            init: None,
            managed: false,
            pos: self.pos(),
        };
        self.lexer.bump();
        // `.const[2]`: a constant bank of PTX before 2.2.
        if space == DeclSpace::Const && self.accept(b'[') {
            let bank = self.literal()?;
            self.expect(b']')?;
            if bank != 0 {
                self.require(var.pos, "banked constants", 15, 0);
            }
            self.deprecated(var.pos, (2, 2), "explicit constant banks");
        }
        if space == DeclSpace::Tex {
            self.deprecated(var.pos, (1, 5), ".tex");
        }
        let (mut typed, mut pointer) = (false, false);
        while self.token().kind == TokenKind::Dot {
            let text = self.lexer.text(self.token());
            // Only the type may follow `.v2` and `.v4`.
            let first = !typed && var.vec == 1;
            match text {
                b".align" if first => {
                    self.lexer.bump();
                    var.align = Some(self.literal()?);
                    continue;
                }
                b".attribute" if first => {
                    self.require(self.pos(), ".attribute", 40, 0);
                    self.lexer.bump();
                    var.managed |= self.attribute()?;
                    continue;
                }
                b".v2" if first => var.vec = 2,
                b".v4" if first => var.vec = 4,
                b".ptr" if typed && !pointer && space == DeclSpace::Param => {
                    pointer = true;
                    self.require(self.pos(), "kernel parameter pointer attribute", 22, 0);
                    self.lexer.bump();
                    self.ptr_attribute()?;
                    continue;
                }
                _ => match decl_type(text) {
                    Some(ty) if !typed => {
                        match ty {
                            DeclType::Scalar(Type::B128) => {
                                self.require(self.pos(), "Type .b128", 83, 70);
                            }
                            DeclType::Scalar(Type::F16x2) => {
                                self.require(self.pos(), ".f16x2 packed data-type", 42, 53);
                            }
                            DeclType::Opaque(_) => {
                                self.require(self.pos(), "opaque type", 15, 0);
                            }
                            DeclType::Scalar(_) => {}
                        }
                        var.ty = ty;
                        typed = true;
                    }
                    _ => return self.unexpected(),
                },
            }
            self.lexer.bump();
        }
        if !typed {
            return self.unexpected();
        }
        Ok(var)
    }

    /// Parses attributes such as `(.managed)` or `(.unified(1, 2))`. Returns true if `.managed` is among them.
    pub(super) fn attribute(&mut self) -> Result<bool> {
        let mut managed = false;
        self.expect(b'(')?;
        loop {
            let pos = self.pos();
            if self.accept_dot(b".managed") {
                self.require(pos, ".managed", 0, 30);
                managed = true;
            } else if self.accept_dot(b".unified") {
                self.expect(b'(')?;
                self.integer()?;
                self.expect(b',')?;
                self.integer()?;
                self.expect(b')')?;
            } else {
                return self.unexpected();
            }
            if !self.accept(b',') {
                break;
            }
        }
        self.expect(b')')?;
        Ok(managed)
    }

    /// Parses the optional space and alignment after `.ptr`.
    fn ptr_attribute(&mut self) -> Result<()> {
        if matches!(self.word(), b".global" | b".const" | b".shared" | b".local") {
            self.lexer.bump();
        }
        if self.accept_dot(b".align") {
            let pos = self.pos();
            if !self.literal()?.is_power_of_two() {
                self.report(Severity::Error, pos, "Alignment must be a power of two".to_owned());
            }
        }
        Ok(())
    }

    /// Reports an error for a feature that PTX has only before version `until`, if the module's version is not older.
    pub(super) fn deprecated(&mut self, pos: Pos, until: (u32, u32), feature: &str) {
        if self.ast.version >= until {
            let message = format!(
                "Deprecated feature: '{feature}' not supported as of PTX version {}.{}",
                until.0, until.1
            );
            self.report(Severity::Error, pos, message);
        }
    }

    /// Parses the name, count and dimensions of one declared variable.
    fn declarator(&mut self, var: &mut Var) -> Result<()> {
        var.pos = self.pos();
        var.name = self.name()?;
        if self.accept(b'<') {
            // An expression is not allowed here, because `>` would be an operator in it.
            let TokenKind::Int { bits, .. } = self.token().kind else {
                return self.unexpected();
            };
            let Ok(count) = u32::try_from(bits) else {
                return self.unexpected();
            };
            self.lexer.bump();
            self.expect(b'>')?;
            var.count = Some(count);
        }
        // The variables of a range cannot be arrays.
        while var.count.is_none() && self.accept(b'[') {
            if self.accept(b']') {
                var.dims.push(None);
            } else {
                let size = self.literal()?;
                var.dims.push(Some(size));
                self.expect(b']')?;
            }
        }
        var.size = var.calculated_size();
        Ok(())
    }

    /// Parses a declaration including its `;`. Returns the range of `Ast::vars` that it declares.
    pub(super) fn declaration(&mut self, linkage: Linkage) -> Result<Range<u32>> {
        let start = self.ast.vars.len() as u32;
        let head = self.decl_head(linkage)?;
        // A declaration of no variable is allowed.
        if self.accept(b';') {
            return Ok(start..start);
        }
        loop {
            let mut var = head.clone();
            if self.word() == b"_" {
                return self.unexpected();
            }
            self.declarator(&mut var)?;
            if head.space != DeclSpace::Reg && self.accept(b'=') {
                let first = self.ast.inits.len() as u32;
                self.initial_value(0)?;
                var.init = Some(first..self.ast.inits.len() as u32);
            }
            self.ast.vars.push(var);
            if !self.accept(b',') {
                break;
            }
        }
        self.expect(b';')?;
        Ok(start..self.ast.vars.len() as u32)
    }

    /// Parses a list of parameters such as `( .param .b32 a, .reg .u32 b )`, which may be missing. Names may be `_`, as
    /// in prototypes.
    pub(super) fn parameters(&mut self) -> Result<Range<u32>> {
        let start = self.ast.vars.len() as u32;
        if !self.accept(b'(') {
            return Ok(start..start);
        }
        if !self.accept(b')') {
            loop {
                let mut var = self.decl_head(Linkage::Internal)?;
                self.declarator(&mut var)?;
                if var.dims.len() > 1 || var.count.is_some() {
                    return self.unexpected();
                }
                self.ast.vars.push(var);
                if !self.accept(b',') {
                    break;
                }
            }
            self.expect(b')')?;
        }
        Ok(start..self.ast.vars.len() as u32)
    }

    fn push_init(&mut self, kind: InitKind, pos: Pos) {
        self.ast.inits.push(Init { kind, pos });
    }

    /// Parses an initial value at a depth of nested lists.
    fn initial_value(&mut self, depth: u32) -> Result<()> {
        let pos = self.pos();
        if !self.accept(b'{') {
            return self.initial_scalar();
        }
        if depth >= MAX_DEPTH {
            let message = format!("Initial value is nested too deeply: {MAX_DEPTH} levels are allowed");
            return self.fatal(pos, message);
        }
        self.push_init(InitKind::Open, pos);
        // An empty list is a list of zeros.
        if !self.at(b'}') {
            loop {
                self.initial_value(depth + 1)?;
                if !self.accept(b',') {
                    break;
                }
            }
        }
        let pos = self.pos();
        self.expect(b'}')?;
        self.push_init(InitKind::Close, pos);
        Ok(())
    }

    /// Parses a constant expression, `symbol+offset`, `generic(symbol)+offset` or `0xFF00(symbol)`.
    fn initial_scalar(&mut self) -> Result<()> {
        let pos = self.pos();
        if self.at_name() {
            return self.initial_address(pos, None);
        }
        let value = self.expression()?;
        if let (ConstValue::Int { bits, .. }, true) = (value, self.at(b'(')) {
            let shift = bits.trailing_zeros();
            if bits == 0 || shift % 8 != 0 || bits != 0xff << shift {
                let message = format!("Invalid mask value '{bits:#x}' used in initializer");
                return self.fatal(pos, message);
            }
            self.lexer.bump();
            self.initial_address(pos, Some(shift as u8))?;
            return self.expect(b')');
        }
        let kind = match value {
            ConstValue::Int { bits, .. } => InitKind::Int(bits),
            ConstValue::F32(bits) => InitKind::F32(bits),
            ConstValue::F64(v) => InitKind::F64(v.to_bits()),
        };
        self.push_init(kind, pos);
        Ok(())
    }

    /// Parses the address of a symbol. For one byte of it, `mask` is the position in bits: 8 for `0xFF00(symbol)`.
    fn initial_address(&mut self, pos: Pos, mask: Option<u8>) -> Result<()> {
        self.require(pos, "addresses as initial values", 21, 0);
        if mask.is_some() {
            self.require(pos, "mask operator in initializer", 71, 0);
        }
        let mut name = self.name()?;
        let mut generic = false;
        if self.at(b'(') && self.ast.names.text(name) == "generic" {
            self.lexer.bump();
            self.require(pos, "generic() operator", 31, 0);
            generic = true;
            name = self.name()?;
            self.expect(b')')?;
        }
        let mut offset = 0i64;
        while self.accept(b'+') {
            offset = offset.wrapping_add(self.offset_term()?);
        }
        self.push_init(
            InitKind::Address {
                name,
                offset,
                generic,
                mask,
            },
            pos,
        );
        Ok(())
    }
}

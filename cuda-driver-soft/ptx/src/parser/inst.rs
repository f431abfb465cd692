//! Function bodies: statements, instructions, operands.

use super::{DEEPEST, Parser, Result, expr::Value};
use crate::ast::*;
use crate::ir::Linkage;
use crate::lexer::Kind;
use crate::names::Name;

impl Parser<'_> {
    /// Statements up to and including the brace that closes the function.
    pub(super) fn body(&mut self) -> Result<()> {
        let mut depth = 0;
        loop {
            match self.token().kind {
                Kind::Word => self.instruction_or_label()?,
                Kind::Punct(b'@') => {
                    self.lexer.bump();
                    let negated = self.accept(b'!');
                    let name = self.name()?;
                    if self.token().kind != Kind::Word {
                        return self.unexpected();
                    }
                    self.instruction(Some((name, negated)))?;
                }
                Kind::Dot => self.directive()?,
                Kind::Punct(b'{') => {
                    depth += 1;
                    if depth > DEEPEST {
                        return self.fatal(self.pos(), "Blocks are nested too deeply".to_owned());
                    }
                    self.lexer.bump();
                    self.ast.statements.push(Statement::Open);
                }
                Kind::Punct(b'}') => {
                    self.lexer.bump();
                    if depth == 0 {
                        return Ok(());
                    }
                    depth -= 1;
                    self.ast.statements.push(Statement::Close);
                }
                _ => return self.unexpected(),
            }
        }
    }

    fn directive(&mut self) -> Result<()> {
        match self.word() {
            b".loc" => return self.loc(),
            b".pragma" => return self.pragma(),
            _ => {}
        }
        if self.decl_space().is_none() {
            return self.unexpected();
        }
        let vars = self.declaration(Linkage::Internal)?;
        self.ast.statements.extend(vars.map(Statement::Var));
        Ok(())
    }

    /// `.loc file line column …`: ends with the line, not with `;`.
    fn loc(&mut self) -> Result<()> {
        let line = self.token().line;
        self.lexer.bump();
        let mut numbers = [0u32; 3];
        for number in &mut numbers {
            let Kind::Int { bits, .. } = self.token().kind else {
                return self.unexpected();
            };
            *number = bits.min(u64::from(u32::MAX)) as u32;
            self.lexer.bump();
        }
        let [file, source_line, column] = numbers;
        self.ast.statements.push(Statement::Loc {
            file,
            line: source_line,
            column,
        });
        // `, function_name label, inlined_at file line column`
        while self.token().line == line && self.accept(b',') {
            while self.token().line == line
                && !self.at(b',')
                && matches!(
                    self.token().kind,
                    Kind::Word | Kind::Int { .. } | Kind::Punct(b'+')
                )
            {
                self.lexer.bump();
            }
        }
        Ok(())
    }

    fn instruction_or_label(&mut self) -> Result<()> {
        let token = self.token();
        self.lexer.extend_opcode();
        if self.token().end != token.end {
            return self.instruction(None);
        }
        // A word without modifiers: an opcode, or a label.
        let pos = self.pos();
        self.lexer.bump();
        if !self.at(b':') {
            return self.after_opcode(self.lexer.text(token), None, pos);
        }
        self.lexer.bump();
        let name = self.ast.names.name(self.lexer.text(token));
        if self.at_dot(b".callprototype") {
            self.require(pos, ".callprototype directive", 21, 0);
            self.lexer.bump();
            return self.prototype(name, pos);
        }
        let calls = self.at_dot(b".calltargets");
        if calls || self.at_dot(b".branchtargets") {
            if calls {
                self.require(pos, ".calltargets directive", 21, 0);
            } else {
                self.require(pos, ".branchtargets directive", 60, 30);
            }
            self.lexer.bump();
            let base = self.stack.len();
            loop {
                let pos = self.pos();
                let target = self.name()?;
                self.stack.push(Operand {
                    kind: OperandKind::Name(target, Selector::None),
                    pos,
                });
                if !self.accept(b',') {
                    break;
                }
            }
            self.expect(b';')?;
            let list = self.close_list(base);
            self.ast.statements.push(Statement::Targets {
                name,
                calls,
                list,
                pos,
            });
            return Ok(());
        }
        self.ast.statements.push(Statement::Label(name, pos));
        Ok(())
    }

    /// `.callprototype (returns) _ (params) .noreturn ;`
    fn prototype(&mut self, name: Name, pos: Pos) -> Result<()> {
        let returns = self.parameters()?;
        if self.name()? != Name::SINK {
            return self.unexpected();
        }
        let params = self.parameters()?;
        while self.token().kind == Kind::Dot {
            match self.word() {
                b".noreturn" => self.lexer.bump(),
                b".abi_preserve" | b".abi_preserve_control" => {
                    self.lexer.bump();
                    self.integer()?;
                }
                _ => return self.unexpected(),
            }
        }
        self.expect(b';')?;
        let prototype = self.ast.prototypes.len() as u32;
        self.ast.prototypes.push(Prototype { returns, params });
        self.ast.statements.push(Statement::Prototype {
            name,
            prototype,
            pos,
        });
        Ok(())
    }

    fn instruction(&mut self, guard: Option<(Name, bool)>) -> Result<()> {
        self.lexer.extend_opcode();
        let token = self.token();
        let pos = self.pos();
        self.lexer.bump();
        self.after_opcode(self.lexer.text(token), guard, pos)
    }

    fn after_opcode(&mut self, opcode: &[u8], guard: Option<(Name, bool)>, pos: Pos) -> Result<()> {
        let id = if self.token().kind == Kind::Dot {
            // `add .s32`: modifiers that stand apart.
            let mut whole = opcode.to_owned();
            while self.token().kind == Kind::Dot {
                self.lexer.extend_opcode();
                whole.extend_from_slice(self.word());
                self.lexer.bump();
            }
            self.ast.opcodes.intern(&whole)
        } else {
            self.ast.opcodes.intern(opcode)
        };
        let base = self.stack.len();
        let call = opcode.starts_with(b"call") && matches!(opcode.get(4), None | Some(b'.'));
        if !self.at(b';') {
            loop {
                if self.stack.len() > base && self.word() == b"_" {
                    return self.unexpected();
                }
                let operand = if call && self.at(b'(') {
                    self.call_list()?
                } else {
                    self.operand()?
                };
                self.stack.push(operand);
                if !self.accept(b',') {
                    break;
                }
            }
        }
        self.expect(b';')?;
        let operands = self.close_list(base);
        self.ast.statements.push(Statement::Inst(Inst {
            opcode: id,
            operands,
            guard,
            pos,
        }));
        Ok(())
    }

    /// `(a, b)`, perhaps empty.
    fn call_list(&mut self) -> Result<Operand> {
        let pos = self.pos();
        self.expect(b'(')?;
        let base = self.stack.len();
        if !self.at(b')') {
            loop {
                let operand = self.operand()?;
                self.stack.push(operand);
                if !self.accept(b',') {
                    break;
                }
            }
        }
        self.expect(b')')?;
        let list = self.close_list(base);
        Ok(Operand {
            kind: OperandKind::List(list),
            pos,
        })
    }

    fn operand(&mut self) -> Result<Operand> {
        let pos = self.pos();
        let kind = match self.token().kind {
            Kind::Word if self.word() != b"WARP_SZ" => self.named(pos)?,
            Kind::Punct(b'{') => {
                let base = self.stack.len();
                self.lexer.bump();
                loop {
                    let element = self.element()?;
                    self.stack.push(element);
                    if !self.accept(b',') {
                        break;
                    }
                }
                self.expect(b'}')?;
                let kind = OperandKind::Vector(self.close_list(base));
                self.perhaps_pair(kind, pos)?
            }
            Kind::Punct(b'[') => self.address()?,
            Kind::Punct(b'!') => {
                self.lexer.bump();
                if self.token().kind == Kind::Word && self.word() != b"WARP_SZ" {
                    OperandKind::Not(self.name()?)
                } else {
                    match self.expression()? {
                        Value::Int { bits, .. } => OperandKind::Int(u64::from(bits == 0)),
                        _ => return self.unexpected(),
                    }
                }
            }
            Kind::Punct(b'-') => {
                self.lexer.bump();
                if self.token().kind == Kind::Word && self.word() != b"WARP_SZ" {
                    let name = self.name()?;
                    OperandKind::Neg(name, self.selector()?)
                } else {
                    constant(self.expression_after_minus()?)
                }
            }
            _ => constant(self.expression()?),
        };
        Ok(Operand { kind, pos })
    }

    /// An element of a vector operand: a register, a constant, or `_`.
    fn element(&mut self) -> Result<Operand> {
        if self.at(b'{') || self.at(b'[') {
            return self.unexpected();
        }
        self.operand()
    }

    fn selector(&mut self) -> Result<Selector> {
        if self.token().kind != Kind::Dot {
            return Ok(Selector::None);
        }
        let selector = match self.word() {
            b".x" | b".r" => Selector::Element(0),
            b".y" | b".g" => Selector::Element(1),
            b".z" | b".b" => Selector::Element(2),
            b".w" | b".a" => Selector::Element(3),
            word if (3..=6).contains(&word.len())
                && matches!(word[1], b'b' | b'h')
                && word[2..].iter().all(|b| matches!(b, b'0'..=b'7')) =>
            {
                let mut digits = [0; 4];
                for (digit, text) in digits.iter_mut().zip(&word[2..]) {
                    *digit = text - b'0';
                }
                Selector::Part(Digits {
                    halves: word[1] == b'h',
                    count: word.len() as u8 - 2,
                    digits,
                })
            }
            _ => return self.unexpected(),
        };
        self.lexer.bump();
        Ok(selector)
    }

    /// An operand that starts with a name.
    fn named(&mut self, pos: Pos) -> Result<OperandKind> {
        let name = self.name()?;
        let kind = if name == Name::SINK {
            OperandKind::Sink
        } else {
            match self.token().kind {
                Kind::Dot => OperandKind::Name(name, self.selector()?),
                Kind::Punct(b'+') => {
                    let offset = self.offsets()?;
                    OperandKind::Offset {
                        name,
                        offset,
                        index: false,
                    }
                }
                Kind::Punct(b'[') => {
                    self.lexer.bump();
                    let kind = if self.token().kind == Kind::Word && self.word() != b"WARP_SZ" {
                        let index = self.name()?;
                        let offset = self.offsets()?;
                        OperandKind::Subscript {
                            name,
                            index,
                            offset,
                        }
                    } else {
                        OperandKind::Offset {
                            name,
                            offset: self.integer()? as i64,
                            index: true,
                        }
                    };
                    self.expect(b']')?;
                    kind
                }
                _ => OperandKind::Name(name, Selector::None),
            }
        };
        self.perhaps_pair(kind, pos)
    }

    /// `a|p`, if that is what follows.
    fn perhaps_pair(&mut self, kind: OperandKind, pos: Pos) -> Result<OperandKind> {
        if !self.accept(b'|') {
            return Ok(kind);
        }
        let base = self.stack.len();
        self.stack.push(Operand { kind, pos });
        let second_pos = self.pos();
        if kind == OperandKind::Sink && self.word() == b"_" {
            return self.unexpected();
        }
        let second = self.name()?;
        let second = if second == Name::SINK {
            OperandKind::Sink
        } else {
            OperandKind::Name(second, Selector::None)
        };
        self.stack.push(Operand {
            kind: second,
            pos: second_pos,
        });
        Ok(OperandKind::Pair(self.close_list(base)))
    }

    /// `+4`, `+-8`, `+4+4`
    fn offsets(&mut self) -> Result<i64> {
        let mut offset = 0i64;
        while self.accept(b'+') {
            offset = offset.wrapping_add(self.offset_term()?);
        }
        Ok(offset)
    }

    /// `[a]`, `[a+4]`, `[16]`, `[texture, {x, y}]`
    fn address(&mut self) -> Result<OperandKind> {
        self.expect(b'[')?;
        let pos = self.pos();
        let first = if self.token().kind == Kind::Word && self.word() != b"WARP_SZ" {
            let name = self.name()?;
            let offset = self.offsets()?;
            OperandKind::Address {
                base: Some(name),
                offset,
            }
        } else {
            OperandKind::Address {
                base: None,
                offset: self.integer()? as i64,
            }
        };
        if self.accept(b']') {
            return Ok(first);
        }
        let base = self.stack.len();
        self.stack.push(Operand { kind: first, pos });
        while self.accept(b',') {
            let operand = self.operand()?;
            self.stack.push(operand);
        }
        self.expect(b']')?;
        Ok(OperandKind::Multi(self.close_list(base)))
    }
}

fn constant(value: Value) -> OperandKind {
    match value {
        Value::Int { bits, .. } => OperandKind::Int(bits),
        Value::F32(bits) => OperandKind::F32(bits),
        Value::F64(v) => OperandKind::F64(v.to_bits()),
    }
}

//! Parses the operands of instructions.

use crate::ast::{Digits, Operand, OperandKind, Pos, Selector};
use crate::lexer::TokenKind;
use crate::names::Name;

use super::cursor::{Parser, Result};
use super::expr::ConstValue;

impl Parser<'_> {
    /// Parses `(a, b)`, which may be empty.
    pub(super) fn call_list(&mut self) -> Result<Operand> {
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

    /// Parses an operand.
    pub(super) fn operand(&mut self) -> Result<Operand> {
        let pos = self.pos();
        let kind = match self.token().kind {
            TokenKind::Word if self.word() != b"WARP_SZ" => self.named(pos)?,
            TokenKind::Punct(b'{') => {
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
                self.optional_pair(kind, pos)?
            }
            TokenKind::Punct(b'[') => self.address()?,
            TokenKind::Punct(b'!') => {
                self.lexer.bump();
                if self.at_name() {
                    OperandKind::Not(self.name()?)
                } else {
                    match self.expression()? {
                        ConstValue::Int { bits, .. } => OperandKind::Int(u64::from(bits == 0)),
                        _ => return self.unexpected(),
                    }
                }
            }
            TokenKind::Punct(b'-') => {
                self.lexer.bump();
                if self.at_name() {
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

    /// Parses an element of a vector operand, such as a register, a constant or `_`.
    fn element(&mut self) -> Result<Operand> {
        if self.at(b'{') || self.at(b'[') {
            return self.unexpected();
        }
        self.operand()
    }

    /// Parses a selector such as `.x` or `.b0`, if there is one.
    fn selector(&mut self) -> Result<Selector> {
        if self.token().kind != TokenKind::Dot {
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

    /// Parses an operand that starts with a name.
    fn named(&mut self, pos: Pos) -> Result<OperandKind> {
        let name = self.name()?;
        let kind = if name == Name::SINK {
            OperandKind::Sink
        } else {
            match self.token().kind {
                TokenKind::Dot => OperandKind::Name(name, self.selector()?),
                TokenKind::Punct(b'+') => {
                    let offset = self.offsets()?;
                    OperandKind::Offset {
                        name,
                        offset,
                        index: false,
                    }
                }
                TokenKind::Punct(b'[') => {
                    self.lexer.bump();
                    let kind = if self.at_name() {
                        let index = self.name()?;
                        let offset = self.offsets()?;
                        OperandKind::Subscript { name, index, offset }
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
        self.optional_pair(kind, pos)
    }

    /// Parses `|p` after the first operand of a pair, if there is one.
    fn optional_pair(&mut self, kind: OperandKind, pos: Pos) -> Result<OperandKind> {
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

    /// Parses offsets such as `+4`, `+-8` and `+4+4`, and returns their sum.
    fn offsets(&mut self) -> Result<i64> {
        let mut offset = 0i64;
        while self.accept(b'+') {
            offset = offset.wrapping_add(self.offset_term()?);
        }
        Ok(offset)
    }

    /// Parses an address such as `[a]`, `[a+4]`, `[16]` and `[texture, {x, y}]`.
    fn address(&mut self) -> Result<OperandKind> {
        self.expect(b'[')?;
        let pos = self.pos();
        let first = if self.at_name() {
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
            // An address in an address is no operand. Without the check, the parser would recurse for each bracket.
            if self.at(b'[') {
                return self.unexpected();
            }
            let operand = self.operand()?;
            self.stack.push(operand);
        }
        self.expect(b']')?;
        Ok(OperandKind::Multi(self.close_list(base)))
    }
}

/// Returns the operand for a constant.
fn constant(value: ConstValue) -> OperandKind {
    match value {
        ConstValue::Int { bits, .. } => OperandKind::Int(bits),
        ConstValue::F32(bits) => OperandKind::F32(bits),
        ConstValue::F64(v) => OperandKind::F64(v.to_bits()),
    }
}

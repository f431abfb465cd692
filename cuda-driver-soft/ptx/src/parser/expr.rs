//! Parses and evaluates constant expressions, with the operators and the precedence of C.
//!
//! Integers are `.s64`, or `.u64` with the suffix `U` or if they are too large for `.s64`. The result of `+ - * /` is
//! `.u64` if one of the operands is; the other operators have rules of their own, as in ptxas 13.5
//! (`lowering::constant_expressions_match_ptxas` has the cases). The only binary operators of floating-point constants
//! are `+ - * /` and comparisons; constants such as `0f3F800000` have none.

use crate::ast::Pos;
use crate::lexer::TokenKind;

use super::cursor::{Parser, Result};

/// The value of a constant expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ConstValue {
    Int {
        bits: u64,
        unsigned: bool,
    },
    /// `0f…`
    F32(u32),
    F64(f64),
}

/// Maximum nesting of parentheses and operators.
const MAX_DEPTH: u32 = 100;

fn integer(bits: u64, unsigned: bool) -> ConstValue {
    ConstValue::Int { bits, unsigned }
}

fn truth(value: bool) -> ConstValue {
    integer(u64::from(value), false)
}

/// Precedence of `+` and `-`.
const SUM: u8 = 9;

impl Parser<'_> {
    /// Parses a constant expression that is an integer.
    pub(super) fn integer(&mut self) -> Result<u64> {
        let pos = self.pos();
        match self.expression()? {
            ConstValue::Int { bits, .. } => Ok(bits),
            ConstValue::F32(_) | ConstValue::F64(_) => {
                self.fatal(pos, "Integer constant expression expected".to_owned())
            }
        }
    }

    /// Parses a constant expression, including `?:`.
    pub(super) fn expression(&mut self) -> Result<ConstValue> {
        self.nested(self.pos(), Self::ternary)
    }

    /// Parses a nested part of an expression. Nesting is limited, because the parser is recursive.
    fn nested(&mut self, pos: Pos, parse: impl FnOnce(&mut Self) -> Result<ConstValue>) -> Result<ConstValue> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = format!("Constant expression is nested too deeply: {MAX_DEPTH} levels are allowed");
            return self.fatal(pos, message);
        }
        let value = parse(self);
        self.depth -= 1;
        value
    }

    fn ternary(&mut self) -> Result<ConstValue> {
        let first = self.unary()?;
        self.ternary_from(first)
    }

    /// Parses the rest of an expression after its first term.
    fn ternary_from(&mut self, first: ConstValue) -> Result<ConstValue> {
        let condition = self.binary_from(first, 0)?;
        if !self.accept(b'?') {
            return Ok(condition);
        }
        let yes = self.expression()?;
        self.expect(b':')?;
        let no = self.expression()?;
        Ok(if is_true(condition) { yes } else { no })
    }

    /// Parses the rest of an expression after its leading minus.
    pub(super) fn expression_after_minus(&mut self) -> Result<ConstValue> {
        self.no_bit_literal()?;
        let first = match self.nested_unary()? {
            ConstValue::F64(v) => ConstValue::F64(-v),
            ConstValue::Int { bits, unsigned } => integer(bits.wrapping_neg(), unsigned),
            ConstValue::F32(_) => return self.unexpected(),
        };
        self.ternary_from(first)
    }

    /// Refuses `0f…` and `0d…` after a sign or another unary operator.
    fn no_bit_literal(&mut self) -> Result<()> {
        match self.token().kind {
            TokenKind::F32(_) | TokenKind::F64 { hex: true, .. } => self.unexpected(),
            _ => Ok(()),
        }
    }

    /// Parses a term after `+` in an address or an initial value, with the operators that bind more strongly than `+`.
    pub(super) fn offset_term(&mut self) -> Result<i64> {
        let pos = self.pos();
        match self.binary(SUM)? {
            ConstValue::Int { bits, .. } => Ok(bits as i64),
            _ => self.fatal(pos, "Integer constant expression expected".to_owned()),
        }
    }

    /// Returns the operator that the current token is, and its precedence.
    fn operator(&self) -> Option<((u8, u8), u8)> {
        let operator = match self.token().kind {
            TokenKind::Punct(b) => (b, 0),
            TokenKind::Punct2(a, b) => (a, b),
            _ => return None,
        };
        let precedence = match operator {
            (b'|', b'|') => 1,
            (b'&', b'&') => 2,
            (b'|', 0) => 3,
            (b'^', 0) => 4,
            (b'&', 0) => 5,
            (b'=' | b'!', b'=') => 6,
            (b'<' | b'>', 0 | b'=') => 7,
            (b'<', b'<') | (b'>', b'>') => 8,
            (b'+' | b'-', 0) => SUM,
            (b'*' | b'/' | b'%', 0) => 10,
            _ => return None,
        };
        Some((operator, precedence))
    }

    /// Parses a term and the operators after it that bind more strongly than `least`.
    fn binary(&mut self, least: u8) -> Result<ConstValue> {
        let left = self.unary()?;
        self.binary_from(left, least)
    }

    fn binary_from(&mut self, mut left: ConstValue, least: u8) -> Result<ConstValue> {
        while let Some((operator, precedence)) = self.operator() {
            if precedence <= least {
                break;
            }
            let pos = self.pos();
            self.lexer.bump();
            let right = self.nested(pos, |parser| parser.binary(precedence))?;
            left = match apply(operator, left, right) {
                Ok(value) => value,
                Err(message) => return self.fatal(pos, message.to_owned()),
            };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<ConstValue> {
        let token = self.token();
        let pos = self.pos();
        match token.kind {
            TokenKind::Int { bits, unsigned } => {
                self.lexer.bump();
                Ok(integer(bits, unsigned))
            }
            TokenKind::F32(bits) => {
                self.lexer.bump();
                Ok(ConstValue::F32(bits))
            }
            TokenKind::F64 { bits, .. } => {
                self.lexer.bump();
                Ok(ConstValue::F64(f64::from_bits(bits)))
            }
            TokenKind::Word if self.word() == b"WARP_SZ" => {
                self.lexer.bump();
                Ok(integer(32, false))
            }
            TokenKind::Punct(b'(') => {
                self.lexer.bump();
                let cast = match self.word() {
                    b".s64" => Some(false),
                    b".u64" => Some(true),
                    _ => None,
                };
                if let Some(unsigned) = cast {
                    self.lexer.bump();
                    self.expect(b')')?;
                    return match self.nested_unary()? {
                        ConstValue::Int { bits, .. } => Ok(integer(bits, unsigned)),
                        _ => self.fatal(pos, "Integer constant expression expected".to_owned()),
                    };
                }
                let value = self.expression()?;
                self.expect(b')')?;
                Ok(value)
            }
            TokenKind::Punct(operator @ (b'-' | b'+' | b'!' | b'~')) => {
                self.lexer.bump();
                self.no_bit_literal()?;
                let value = self.nested_unary()?;
                match (operator, value) {
                    (b'+', value) => Ok(value),
                    (b'-', ConstValue::F64(v)) => Ok(ConstValue::F64(-v)),
                    (b'-', ConstValue::Int { bits, unsigned }) => Ok(integer(bits.wrapping_neg(), unsigned)),
                    (b'~', ConstValue::Int { bits, .. }) => Ok(integer(!bits, true)),
                    (b'!', value @ ConstValue::Int { .. }) => Ok(truth(!is_true(value))),
                    _ => self.fatal(pos, "Integer constant expression expected".to_owned()),
                }
            }
            _ => self.unexpected(),
        }
    }

    fn nested_unary(&mut self) -> Result<ConstValue> {
        self.nested(self.pos(), Self::unary)
    }
}

fn is_true(value: ConstValue) -> bool {
    match value {
        ConstValue::Int { bits, .. } => bits != 0,
        ConstValue::F32(bits) => f32::from_bits(bits) != 0.0,
        ConstValue::F64(v) => v != 0.0,
    }
}

fn apply(operator: (u8, u8), left: ConstValue, right: ConstValue) -> std::result::Result<ConstValue, &'static str> {
    match (left, right) {
        (ConstValue::Int { bits: a, unsigned: ua }, ConstValue::Int { bits: b, unsigned: ub }) => {
            integers(operator, (a, ua), (b, ub))
        }
        (ConstValue::F64(a), ConstValue::F64(b)) => floats(operator, a, b),
        _ => Err("Constant expression type mismatch"),
    }
}

fn integers(operator: (u8, u8), a: (u64, bool), b: (u64, bool)) -> std::result::Result<ConstValue, &'static str> {
    let unsigned = a.1 || b.1;
    let (a, ua) = a;
    let (b, _) = b;
    let (sa, sb) = (a as i64, b as i64);
    let less = if unsigned { a < b } else { sa < sb };
    let value = match operator {
        (b'|', b'|') => return Ok(truth(a != 0 || b != 0)),
        (b'&', b'&') => return Ok(truth(a != 0 && b != 0)),
        (b'=', b'=') => return Ok(truth(a == b)),
        (b'!', b'=') => return Ok(truth(a != b)),
        (b'<', 0) => return Ok(truth(less)),
        (b'<', b'=') => return Ok(truth(less || a == b)),
        (b'>', 0) => return Ok(truth(!less && a != b)),
        (b'>', b'=') => return Ok(truth(!less)),
        // A shift has the type of its left operand, and uses the low six bits of the distance.
        (b'<', b'<') => return Ok(integer(a << (b & 63), ua)),
        (b'>', b'>') if ua => return Ok(integer(a >> (b & 63), ua)),
        (b'>', b'>') => return Ok(integer((sa >> (b & 63)) as u64, ua)),
        // Bitwise operators and `%` take their operands as unsigned, and their results are unsigned.
        (b'|', 0) => return Ok(integer(a | b, true)),
        (b'^', 0) => return Ok(integer(a ^ b, true)),
        (b'&', 0) => return Ok(integer(a & b, true)),
        (b'+', 0) => a.wrapping_add(b),
        (b'-', 0) => a.wrapping_sub(b),
        (b'*', 0) => a.wrapping_mul(b),
        (b'/' | b'%', 0) if b == 0 => return Err("Constant expression has division by zero"),
        (b'/', 0) if unsigned => a / b,
        (b'/', 0) => sa.wrapping_div(sb) as u64,
        (b'%', 0) => return Ok(integer(a % b, true)),
        _ => return Err("Unknown operator in a constant expression"),
    };
    Ok(integer(value, unsigned))
}

fn floats(operator: (u8, u8), a: f64, b: f64) -> std::result::Result<ConstValue, &'static str> {
    Ok(match operator {
        (b'+', 0) => ConstValue::F64(a + b),
        (b'-', 0) => ConstValue::F64(a - b),
        (b'*', 0) => ConstValue::F64(a * b),
        (b'/', 0) => ConstValue::F64(a / b),
        (b'=', b'=') => truth(a == b),
        (b'!', b'=') => truth(a != b),
        (b'<', 0) => truth(a < b),
        (b'<', b'=') => truth(a <= b),
        (b'>', 0) => truth(a > b),
        (b'>', b'=') => truth(a >= b),
        _ => return Err("Integer constant expression expected"),
    })
}

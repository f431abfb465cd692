//! Constant expressions, with C's operators and precedence.
//!
//! Integers are `.s64`, or `.u64` when one of the operands is, or where the operator makes them so (as seen in what
//! ptxas computes); floating-point constants know only `+ - * /` and comparisons.

use super::{Parser, Result};
use crate::lexer::Kind;

/// The value of a constant expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Int {
        bits: u64,
        unsigned: bool,
    },
    /// `0f…`
    F32(u32),
    F64(f64),
}

/// Parentheses and operators deeper than this are refused.
const DEEPEST: u32 = 100;

fn int(bits: u64, unsigned: bool) -> Value {
    Value::Int { bits, unsigned }
}

fn truth(value: bool) -> Value {
    int(u64::from(value), false)
}

impl Parser<'_> {
    /// A constant expression, with `?:`.
    pub(super) fn expression(&mut self) -> Result<Value> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.fatal(
                self.pos(),
                "Constant expression is nested too deeply".to_owned(),
            );
        }
        let value = self.ternary();
        self.depth -= 1;
        value
    }

    fn ternary(&mut self) -> Result<Value> {
        let first = self.unary()?;
        self.ternary_from(first)
    }

    /// The rest of an expression whose first term was read.
    fn ternary_from(&mut self, first: Value) -> Result<Value> {
        let condition = self.binary_from(first, 0)?;
        if !self.accept(b'?') {
            return Ok(condition);
        }
        let yes = self.expression()?;
        self.expect(b':')?;
        let no = self.expression()?;
        Ok(if is_true(condition) { yes } else { no })
    }

    /// The rest of an expression whose leading minus was read.
    pub(super) fn expression_after_minus(&mut self) -> Result<Value> {
        self.no_bit_literal()?;
        let first = match self.nested_unary()? {
            Value::F64(v) => Value::F64(-v),
            Value::Int { bits, unsigned } => int(bits.wrapping_neg(), unsigned),
            Value::F32(_) => return self.unexpected(),
        };
        self.ternary_from(first)
    }

    /// `0f…` and `0d…` take no sign and are no part of an expression.
    fn no_bit_literal(&mut self) -> Result<()> {
        match self.token().kind {
            Kind::F32(_) | Kind::F64 { hex: true, .. } => self.unexpected(),
            _ => Ok(()),
        }
    }

    /// A term of a sum: what may follow `+` in an address.
    pub(super) fn offset_term(&mut self) -> Result<i64> {
        let pos = self.pos();
        match self.binary(9)? {
            Value::Int { bits, .. } => Ok(bits as i64),
            _ => self.fatal(pos, "Integer constant expression expected".to_owned()),
        }
    }

    /// Operator and precedence of the current token.
    fn operator(&self) -> Option<((u8, u8), u8)> {
        let operator = match self.token().kind {
            Kind::Punct(b) => (b, 0),
            Kind::Punct2(a, b) => (a, b),
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
            (b'+' | b'-', 0) => 9,
            (b'*' | b'/' | b'%', 0) => 10,
            _ => return None,
        };
        Some((operator, precedence))
    }

    fn binary(&mut self, least: u8) -> Result<Value> {
        let left = self.unary()?;
        self.binary_from(left, least)
    }

    fn binary_from(&mut self, mut left: Value, least: u8) -> Result<Value> {
        while let Some((operator, precedence)) = self.operator() {
            if precedence <= least {
                break;
            }
            let pos = self.pos();
            self.lexer.bump();
            self.depth += 1;
            if self.depth > DEEPEST {
                return self.fatal(pos, "Constant expression is nested too deeply".to_owned());
            }
            let right = self.binary(precedence)?;
            self.depth -= 1;
            left = match apply(operator, left, right) {
                Ok(value) => value,
                Err(message) => return self.fatal(pos, message.to_owned()),
            };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Value> {
        let token = self.token();
        let pos = self.pos();
        match token.kind {
            Kind::Int { bits, unsigned } => {
                self.lexer.bump();
                Ok(int(bits, unsigned))
            }
            Kind::F32(bits) => {
                self.lexer.bump();
                Ok(Value::F32(bits))
            }
            Kind::F64 { bits, .. } => {
                self.lexer.bump();
                Ok(Value::F64(f64::from_bits(bits)))
            }
            Kind::Word if self.word() == b"WARP_SZ" => {
                self.lexer.bump();
                Ok(int(32, false))
            }
            Kind::Punct(b'(') => {
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
                        Value::Int { bits, .. } => Ok(int(bits, unsigned)),
                        _ => self.fatal(pos, "Integer constant expression expected".to_owned()),
                    };
                }
                let value = self.expression()?;
                self.expect(b')')?;
                Ok(value)
            }
            Kind::Punct(operator @ (b'-' | b'+' | b'!' | b'~')) => {
                self.lexer.bump();
                self.no_bit_literal()?;
                let value = self.nested_unary()?;
                match (operator, value) {
                    (b'+', value) => Ok(value),
                    (b'-', Value::F64(v)) => Ok(Value::F64(-v)),
                    (b'-', Value::Int { bits, unsigned }) => Ok(int(bits.wrapping_neg(), unsigned)),
                    (b'~', Value::Int { bits, .. }) => Ok(int(!bits, true)),
                    (b'!', value @ Value::Int { .. }) => Ok(truth(!is_true(value))),
                    _ => self.fatal(pos, "Integer constant expression expected".to_owned()),
                }
            }
            _ => self.unexpected(),
        }
    }

    fn nested_unary(&mut self) -> Result<Value> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.fatal(
                self.pos(),
                "Constant expression is nested too deeply".to_owned(),
            );
        }
        let value = self.unary();
        self.depth -= 1;
        value
    }
}

fn is_true(value: Value) -> bool {
    match value {
        Value::Int { bits, .. } => bits != 0,
        Value::F32(bits) => f32::from_bits(bits) != 0.0,
        Value::F64(v) => v != 0.0,
    }
}

fn apply(
    operator: (u8, u8),
    left: Value,
    right: Value,
) -> std::result::Result<Value, &'static str> {
    match (left, right) {
        (
            Value::Int {
                bits: a,
                unsigned: ua,
            },
            Value::Int {
                bits: b,
                unsigned: ub,
            },
        ) => integers(operator, (a, ua), (b, ub)),
        (Value::F64(a), Value::F64(b)) => floats(operator, a, b),
        _ => Err("Constant expression type mismatch"),
    }
}

fn integers(
    operator: (u8, u8),
    a: (u64, bool),
    b: (u64, bool),
) -> std::result::Result<Value, &'static str> {
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
        // The type of a shift is that of its left operand; of the distance six bits count.
        (b'<', b'<') => return Ok(int(a << (b & 63), ua)),
        (b'>', b'>') if ua => return Ok(int(a >> (b & 63), ua)),
        (b'>', b'>') => return Ok(int((sa >> (b & 63)) as u64, ua)),
        // Bits have no sign, and neither has a remainder.
        (b'|', 0) => return Ok(int(a | b, true)),
        (b'^', 0) => return Ok(int(a ^ b, true)),
        (b'&', 0) => return Ok(int(a & b, true)),
        (b'+', 0) => a.wrapping_add(b),
        (b'-', 0) => a.wrapping_sub(b),
        (b'*', 0) => a.wrapping_mul(b),
        (b'/' | b'%', 0) if b == 0 => return Err("Constant expression has division by zero"),
        (b'/', 0) if unsigned => a / b,
        (b'/', 0) => sa.wrapping_div(sb) as u64,
        (b'%', 0) => return Ok(int(a % b, true)),
        _ => return Err("Unknown operator in a constant expression"),
    };
    Ok(int(value, unsigned))
}

fn floats(operator: (u8, u8), a: f64, b: f64) -> std::result::Result<Value, &'static str> {
    Ok(match operator {
        (b'+', 0) => Value::F64(a + b),
        (b'-', 0) => Value::F64(a - b),
        (b'*', 0) => Value::F64(a * b),
        (b'/', 0) => Value::F64(a / b),
        (b'=', b'=') => truth(a == b),
        (b'!', b'=') => truth(a != b),
        (b'<', 0) => truth(a < b),
        (b'<', b'=') => truth(a <= b),
        (b'>', 0) => truth(a > b),
        (b'>', b'=') => truth(a >= b),
        _ => return Err("Integer constant expression expected"),
    })
}

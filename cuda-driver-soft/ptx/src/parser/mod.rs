//! Lexemes to [`Ast`].
//!
//! A syntax error stops the parser, as it stops ptxas. What is only wrong in meaning (unknown names, types that do not
//! fit) is left to `verify`.

mod decl;
mod expr;
mod head;
mod inst;
mod module;

use super::ast::*;
use super::diagnostics::{Diagnostics, Severity};
use super::lexer::{Kind, Lexer, Token};
use super::names::{Name, Names};
use crate::ir::Target;

/// The parser met something after which it cannot go on; the message is in the diagnostics.
#[derive(Debug)]
pub(super) struct Stop;

pub(super) type Result<T> = std::result::Result<T, Stop>;

/// Braces of statements deeper than this are refused.
const DEEPEST: usize = 256;

pub(super) struct Parser<'a> {
    text: &'a [u8],
    lexer: Lexer<'a>,
    ast: Ast,
    /// Operands of the lists that are being parsed.
    stack: Vec<Operand>,
    /// Nesting of the constant expression that is being parsed.
    depth: u32,
    diagnostics: &'a mut Diagnostics,
}

/// Parses a module whose text is at most 4 GiB of ASCII.
pub(super) fn parse(
    text: &[u8],
    limits: &super::Limits,
    diagnostics: &mut Diagnostics,
) -> Result<Ast> {
    let ast = Ast {
        version: (0, 0),
        target: Target {
            sm: 0,
            suffix: None,
            debug: false,
            map_f64_to_f32: false,
        },
        address_size: 0,
        independent_textures: false,
        sections: false,
        names: Names::default(),
        opcodes: Names::default(),
        items: Vec::new(),
        statements: Vec::with_capacity(text.len() / 32),
        operands: Vec::with_capacity(text.len() / 16),
        vars: Vec::new(),
        inits: Vec::new(),
        prototypes: Vec::new(),
    };
    let mut parser = Parser {
        text,
        lexer: Lexer::new(text),
        ast,
        stack: Vec::new(),
        depth: 0,
        diagnostics,
    };
    parser.module(limits)?;
    Ok(parser.ast)
}

impl Parser<'_> {
    fn token(&self) -> Token {
        self.lexer.token
    }

    fn pos(&self) -> Pos {
        Pos {
            offset: self.lexer.token.start,
            line: self.lexer.token.line,
        }
    }

    fn word(&self) -> &[u8] {
        self.lexer.text(self.lexer.token)
    }

    fn report(&mut self, severity: Severity, pos: Pos, message: String) {
        let column = self.diagnostics.column(self.text, pos.offset);
        self.diagnostics.push(severity, pos.line, column, message);
    }

    fn fatal<T>(&mut self, pos: Pos, message: String) -> Result<T> {
        self.report(Severity::Fatal, pos, message);
        Err(Stop)
    }

    /// The current token does not fit here.
    fn unexpected<T>(&mut self) -> Result<T> {
        let near = match self.token().kind {
            Kind::End => String::new(),
            _ => String::from_utf8_lossy(self.word())
                .chars()
                .take(100)
                .collect(),
        };
        self.fatal(
            self.pos(),
            format!("Parsing error near '{near}': syntax error"),
        )
    }

    fn at(&self, punct: u8) -> bool {
        self.token().kind == Kind::Punct(punct)
    }

    /// Takes this punctuation if it is next.
    fn accept(&mut self, punct: u8) -> bool {
        let here = self.at(punct);
        if here {
            self.lexer.bump();
        }
        here
    }

    fn expect(&mut self, punct: u8) -> Result<()> {
        if self.accept(punct) {
            Ok(())
        } else {
            self.unexpected()
        }
    }

    fn at_dot(&self, directive: &[u8]) -> bool {
        self.token().kind == Kind::Dot && self.word() == directive
    }

    fn accept_dot(&mut self, directive: &[u8]) -> bool {
        let here = self.at_dot(directive);
        if here {
            self.lexer.bump();
        }
        here
    }

    /// A name.
    fn name(&mut self) -> Result<Name> {
        if self.token().kind != Kind::Word {
            return self.unexpected();
        }
        let name = self.ast.names.name(self.lexer.text(self.lexer.token));
        self.lexer.bump();
        Ok(name)
    }

    /// A string literal, without its quotes.
    fn string(&mut self) -> Result<()> {
        if self.token().kind != Kind::Str {
            return self.unexpected();
        }
        self.lexer.bump();
        Ok(())
    }

    /// A constant expression that is an integer.
    fn integer(&mut self) -> Result<u64> {
        let pos = self.pos();
        match self.expression()? {
            expr::Value::Int { bits, .. } => Ok(bits),
            expr::Value::F32(_) | expr::Value::F64(_) => {
                self.fatal(pos, "Integer constant expression expected".to_owned())
            }
        }
    }

    /// An integer literal: where no expression may stand.
    fn literal(&mut self) -> Result<u64> {
        match self.token().kind {
            Kind::Int { bits, .. } => {
                self.lexer.bump();
                Ok(bits)
            }
            Kind::Word if self.word() == b"WARP_SZ" => {
                self.lexer.bump();
                Ok(32)
            }
            _ => self.unexpected(),
        }
    }

    fn integer_u32(&mut self) -> Result<u32> {
        let pos = self.pos();
        let value = self.literal()?;
        match u32::try_from(value) {
            Ok(value) => Ok(value),
            Err(_) => self.fatal(pos, format!("Value out of range: {value}")),
        }
    }

    /// Moves what was pushed since `base` to the operands of the module.
    fn close_list(&mut self, base: usize) -> Span {
        let start = self.ast.operands.len() as u32;
        let len = (self.stack.len() - base) as u32;
        self.ast.operands.extend(self.stack.drain(base..));
        Span { start, len }
    }
}

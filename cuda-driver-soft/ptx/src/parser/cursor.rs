//! The parser's state, and the steps that all of its parts use: tokens, names, literals and errors.

use crate::ast::{Ast, Operand, Pos, Span};
use crate::diagnostics::{DiagnosticCode, Diagnostics, Severity};
use crate::ir::Target;
use crate::lexer::{Lexer, Token, TokenKind};
use crate::names::{Name, Names};
use std::sync::Arc;

/// An error after which the parser cannot continue. The diagnostics contain the reason.
#[derive(Debug)]
pub(crate) struct ParseError;

pub(super) type Result<T> = std::result::Result<T, ParseError>;

/// The state of parsing a module.
pub(super) struct Parser<'a> {
    text: &'a [u8],
    pub(super) lexer: Lexer<'a>,
    /// The result so far.
    pub(super) ast: Ast,
    /// Operands of the lists that are being parsed.
    pub(super) stack: Vec<Operand>,
    /// Nesting of the constant expression that is being parsed.
    pub(super) depth: u32,
    diagnostics: &'a mut Diagnostics,
}

/// Returns an empty vector with room for this many elements, or with none if there is too little memory.
fn reserved<T>(len: usize) -> Vec<T> {
    let mut vec = Vec::new();
    // Without the memory, the vector grows when it has to.
    let _ = vec.try_reserve_exact(len);
    vec
}

impl<'a> Parser<'a> {
    /// Returns a parser at the first token of `text`, which must be shorter than 4 GiB.
    pub(super) fn new(text: &'a [u8], diagnostics: &'a mut Diagnostics) -> Self {
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
            // Typical PTX needs no more, and a vector that grows is copied. `Ast::shrink` frees the rest.
            statements: reserved(text.len() / 16),
            operands: reserved(text.len() / 8),
            vars: reserved(text.len() / 32),
            inits: Vec::new(),
            prototypes: Vec::new(),
            source: Arc::default(),
        };
        Parser {
            text,
            lexer: Lexer::new(text),
            ast,
            stack: Vec::new(),
            depth: 0,
            diagnostics,
        }
    }

    /// Returns the current token.
    pub(super) fn token(&self) -> Token {
        self.lexer.token
    }

    /// Returns the place of the current token.
    pub(super) fn pos(&self) -> Pos {
        Pos {
            offset: self.lexer.token.start,
            line: self.lexer.token.line,
        }
    }

    /// Returns the text of the current token.
    pub(super) fn word(&self) -> &[u8] {
        self.lexer.text(self.lexer.token)
    }

    pub(super) fn report(&mut self, severity: Severity, pos: Pos, message: String) {
        self.diagnostics
            .push_at(self.text, pos, severity, DiagnosticCode::Invalid, message);
    }

    /// Reports a fatal error with a code of its own.
    pub(super) fn fatal_with<T>(&mut self, code: DiagnosticCode, pos: Pos, message: String) -> Result<T> {
        self.diagnostics.push_at(self.text, pos, Severity::Fatal, code, message);
        Err(ParseError)
    }

    /// Reports a fatal error about the module as a whole.
    pub(super) fn fatal_of_module<T>(&mut self, code: DiagnosticCode, message: String) -> Result<T> {
        self.diagnostics.push_of_module(Severity::Fatal, code, message);
        Err(ParseError)
    }

    pub(super) fn fatal<T>(&mut self, pos: Pos, message: String) -> Result<T> {
        self.fatal_with(DiagnosticCode::Invalid, pos, message)
    }

    /// Reports that the current token is not allowed here.
    pub(super) fn unexpected<T>(&mut self) -> Result<T> {
        let near = match self.token().kind {
            TokenKind::End => String::new(),
            _ => String::from_utf8_lossy(self.word()).chars().take(100).collect(),
        };
        self.fatal(self.pos(), format!("Parsing error near '{near}': syntax error"))
    }

    /// Returns true if the current token is this punctuation.
    pub(super) fn at(&self, punct: u8) -> bool {
        self.token().kind == TokenKind::Punct(punct)
    }

    /// Returns true if the text from the current token on begins with these bytes.
    pub(super) fn is_ahead(&self, bytes: &[u8]) -> bool {
        self.text[self.token().start as usize..].starts_with(bytes)
    }

    /// Skips this punctuation if it is the current token, and returns true if it was.
    pub(super) fn accept(&mut self, punct: u8) -> bool {
        let here = self.at(punct);
        if here {
            self.lexer.bump();
        }
        here
    }

    /// Skips this punctuation, which must be the current token.
    pub(super) fn expect(&mut self, punct: u8) -> Result<()> {
        if self.accept(punct) { Ok(()) } else { self.unexpected() }
    }

    /// Returns true if the current token is this directive.
    pub(super) fn at_dot(&self, directive: &[u8]) -> bool {
        self.token().kind == TokenKind::Dot && self.word() == directive
    }

    /// Skips this directive if it is the current token, and returns true if it was.
    pub(super) fn accept_dot(&mut self, directive: &[u8]) -> bool {
        let here = self.at_dot(directive);
        if here {
            self.lexer.bump();
        }
        here
    }

    /// Returns true if the current token is a name. `WARP_SZ` is a constant.
    pub(super) fn at_name(&self) -> bool {
        self.token().kind == TokenKind::Word && self.word() != b"WARP_SZ"
    }

    /// Parses a name.
    pub(super) fn name(&mut self) -> Result<Name> {
        if self.token().kind != TokenKind::Word {
            return self.unexpected();
        }
        let name = self.ast.names.name(self.lexer.text(self.lexer.token));
        self.lexer.bump();
        Ok(name)
    }

    /// Skips a string literal.
    pub(super) fn string(&mut self) -> Result<()> {
        if self.token().kind != TokenKind::Str {
            return self.unexpected();
        }
        self.lexer.bump();
        Ok(())
    }

    /// Parses an integer literal or `WARP_SZ`, where no expression is allowed.
    pub(super) fn literal(&mut self) -> Result<u64> {
        match self.token().kind {
            TokenKind::Int { bits, .. } => {
                self.lexer.bump();
                Ok(bits)
            }
            TokenKind::Word if self.word() == b"WARP_SZ" => {
                self.lexer.bump();
                Ok(32)
            }
            _ => self.unexpected(),
        }
    }

    /// Parses an integer literal that fits in 32 bits.
    pub(super) fn integer_u32(&mut self) -> Result<u32> {
        let pos = self.pos();
        let value = self.literal()?;
        match u32::try_from(value) {
            Ok(value) => Ok(value),
            Err(_) => self.fatal(pos, format!("Value out of range: {value} has more than 32 bits")),
        }
    }

    /// Moves the operands that were pushed since `base` to the operands of the module.
    pub(super) fn close_list(&mut self, base: usize) -> Span {
        let start = self.ast.operands.len() as u32;
        let len = (self.stack.len() - base) as u32;
        self.ast.operands.extend_from_slice(&self.stack[base..]);
        self.stack.truncate(base);
        Span { start, len }
    }
}

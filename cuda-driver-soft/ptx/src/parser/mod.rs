//! The parser: turns tokens into an [`Ast`].
//!
//! A syntax error stops the parser, as it stops ptxas. Errors of meaning, such as unknown names and wrong types, are
//! found later, when the module is built and its bodies are verified.

mod cursor;
mod decl;
mod expr;
mod head;
mod module;
mod operand;
mod statement;

use crate::ast::Ast;
use crate::diagnostics::Diagnostics;
use crate::limits::Limits;

use cursor::{ParseError, Parser};

/// Parses a module whose text is ASCII and shorter than 4 GiB.
pub(crate) fn parse(text: &[u8], limits: &Limits, diagnostics: &mut Diagnostics) -> Result<Ast, ParseError> {
    let mut parser = Parser::new(text, diagnostics);
    parser.module(limits)?;
    Ok(parser.ast)
}

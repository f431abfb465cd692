//! The parser: turns tokens into an [`Ast`].
//!
//! A syntax error stops the parser, as it stops ptxas. Unknown names and wrong types are found later, when the module
//! is built and its bodies are verified.

mod cursor;
mod debug;
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
    parser.ast.shrink();
    Ok(parser.ast)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_no_unused_memory() {
        // A comment has no statements, operands or variables.
        let text = format!(
            ".version 9.0\n.target sm_90\n.entry k() {{ ret; }}\n//{}",
            "x".repeat(1 << 16)
        );
        let ast = parse(text.as_bytes(), &Limits::default(), &mut Diagnostics::default()).expect("well formed");
        let unused = [
            ast.statements.capacity() - ast.statements.len(),
            ast.operands.capacity() - ast.operands.len(),
            ast.vars.capacity() - ast.vars.len(),
        ];
        assert!(unused.iter().all(|unused| *unused < 16), "{unused:?}");
    }
}

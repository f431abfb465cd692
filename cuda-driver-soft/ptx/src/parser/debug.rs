//! Skips debug sections: `.section`, and the `@@DWARF` lines of PTX before 2.0.

use crate::diagnostics::Severity;
use crate::lexer::TokenKind;

use super::cursor::{Parser, Result};

impl Parser<'_> {
    /// Skips the debug data of `.section name { … }`.
    pub(super) fn section(&mut self) -> Result<()> {
        self.require(self.pos(), ".section directive", 20, 0);
        self.ast.sections = true;
        self.lexer.bump();
        if !matches!(self.token().kind, TokenKind::Dot | TokenKind::Word) {
            return self.unexpected();
        }
        self.lexer.bump();
        self.expect(b'{')?;
        while !self.at(b'}') {
            if matches!(
                self.token().kind,
                TokenKind::End | TokenKind::Bad | TokenKind::Punct(b'{')
            ) {
                return self.unexpected();
            }
            self.lexer.bump();
        }
        self.lexer.bump();
        Ok(())
    }

    /// Skips `@@DWARF .section .name, "flags", @progbits`, or the values of a line in a section, such as
    /// `@@DWARF .4byte 1, 2` and `@@DWARF .4byte .debug_info`.
    pub(super) fn dwarf(&mut self) -> Result<()> {
        if !self.is_ahead(b"@@DWARF") {
            return self.unexpected();
        }
        for _token in ["@", "@", "DWARF"] {
            self.lexer.bump();
        }
        let of_bytes = self.word() == b".byte";
        match self.word() {
            b".section" => return self.dwarf_section(),
            b".byte" | b".quad" if self.ast.sections => {}
            // The lexer takes the point and the digit for a number.
            b".4" if self.ast.sections => {
                self.lexer.bump();
                if self.word() != b"byte" {
                    return self.unexpected();
                }
            }
            _ => return self.unexpected(),
        }
        self.lexer.bump();
        match self.token().kind {
            // A label or the name of a section must be the only value of its line.
            TokenKind::Dot | TokenKind::Word => {
                if of_bytes {
                    let message = "Illegal type for dwarf data".to_owned();
                    self.report(Severity::Error, self.pos(), message);
                }
                self.lexer.bump();
            }
            _ => self.dwarf_numbers()?,
        }
        Ok(())
    }

    fn dwarf_numbers(&mut self) -> Result<()> {
        loop {
            if !matches!(self.token().kind, TokenKind::Int { .. }) {
                return self.unexpected();
            }
            self.lexer.bump();
            if !self.accept(b',') {
                return Ok(());
            }
        }
    }

    fn dwarf_section(&mut self) -> Result<()> {
        let pos = self.pos();
        self.lexer.bump();
        if self.token().kind != TokenKind::Dot {
            return self.unexpected();
        }
        self.lexer.bump();
        self.expect(b',')?;
        self.string()?;
        self.expect(b',')?;
        if !self.is_ahead(b"@progbits") {
            return self.unexpected();
        }
        for _token in ["@", "progbits"] {
            self.lexer.bump();
        }
        self.ast.sections = true;
        self.deprecated(pos, (2, 0), "@@DWARF directive");
        Ok(())
    }
}

//! Parses function bodies: statements and instructions.

use crate::ast::{Inst, Operand, OperandKind, Pos, Prototype, Selector, Statement};
use crate::diagnostics::Severity;
use crate::ir::{Linkage, Location, SourcePlace};
use crate::lexer::TokenKind;
use crate::names::Name;
use std::sync::Arc;

use super::cursor::{Parser, Result};

/// Maximum nesting of blocks.
const MAX_DEPTH: usize = 256;

impl Parser<'_> {
    /// Parses statements including the brace that closes the function.
    pub(super) fn body(&mut self) -> Result<()> {
        let mut depth = 0;
        loop {
            match self.token().kind {
                TokenKind::Word => self.instruction_or_label()?,
                TokenKind::Punct(b'@') => {
                    self.lexer.bump();
                    let negated = self.accept(b'!');
                    let name = self.name()?;
                    if self.token().kind != TokenKind::Word {
                        return self.unexpected();
                    }
                    self.instruction(Some((name, negated)))?;
                }
                TokenKind::Dot => self.directive()?,
                TokenKind::Punct(b'{') => {
                    depth += 1;
                    if depth > MAX_DEPTH {
                        let message = format!("Blocks are nested too deeply: {MAX_DEPTH} levels are allowed");
                        return self.fatal(self.pos(), message);
                    }
                    self.lexer.bump();
                    self.ast.statements.push(Statement::Open);
                }
                TokenKind::Punct(b'}') => {
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

    /// Parses a directive or declaration among the statements.
    fn directive(&mut self) -> Result<()> {
        match self.word() {
            b".loc" => return self.loc(),
            b".pragma" => return self.pragma(),
            _ => {}
        }
        if self.decl_space().is_none() && !self.at_dot(b".align") {
            return self.unexpected();
        }
        let vars = self.declaration(Linkage::Internal)?;
        self.ast.statements.extend(vars.map(Statement::Var));
        Ok(())
    }

    /// Parses `.loc file line column …`, which ends with the line, not with `;`.
    fn loc(&mut self) -> Result<()> {
        let ptx_line = self.token().line;
        self.lexer.bump();
        let mut numbers = [0; 3];
        for number in &mut numbers {
            let TokenKind::Int { bits, .. } = self.token().kind else {
                return self.unexpected();
            };
            *number = bits;
            self.lexer.bump();
        }
        // `, function_name label, inlined_at file line column`
        let mut inlined_at = None;
        while self.token().line == ptx_line && self.accept(b',') {
            let is_place = self.word() == b"inlined_at";
            let mut numbers = Vec::new();
            while self.token().line == ptx_line
                && !self.at(b',')
                && matches!(
                    self.token().kind,
                    TokenKind::Word | TokenKind::Int { .. } | TokenKind::Punct(b'+')
                )
            {
                if let TokenKind::Int { bits, .. } = self.token().kind {
                    numbers.push(bits);
                }
                self.lexer.bump();
            }
            if let (true, [file, line, column]) = (is_place, numbers.as_slice()) {
                inlined_at = Some(place([*file, *line, *column]));
            }
        }
        Arc::make_mut(&mut self.ast.source).locations.push(Location {
            ptx_line,
            place: place(numbers),
            inlined_at,
        });
        Ok(())
    }

    /// Parses a statement that starts with a word.
    fn instruction_or_label(&mut self) -> Result<()> {
        let token = self.token();
        self.lexer.extend_opcode();
        if self.token().end != token.end {
            return self.instruction(None);
        }
        // A word without modifiers is an opcode or a label.
        let pos = self.pos();
        self.lexer.bump();
        if !self.at(b':') {
            return self.after_opcode(self.lexer.text(token), None, pos);
        }
        if self.lexer.text(token) == b"_" {
            return self.unexpected();
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
            self.ast.statements.push(Statement::Targets { name, calls, list, pos });
            return Ok(());
        }
        self.ast.statements.push(Statement::Label(name, pos));
        Ok(())
    }

    /// Parses `.callprototype (returns) _ (params) .noreturn ;` after its first word.
    fn prototype(&mut self, name: Name, pos: Pos) -> Result<()> {
        let returns = self.parameters()?;
        if self.name()? != Name::SINK {
            return self.unexpected();
        }
        let params = self.parameters()?;
        let mut noreturn = false;
        while self.token().kind == TokenKind::Dot {
            match self.word() {
                b".noreturn" => {
                    self.require_directive();
                    self.lexer.bump();
                    noreturn = true;
                }
                b".abi_preserve" | b".abi_preserve_control" => {
                    self.require_directive();
                    self.lexer.bump();
                    self.integer()?;
                }
                _ => return self.unexpected(),
            }
        }
        self.expect(b';')?;
        if noreturn && !returns.is_empty() {
            // The spelling is that of ptxas.
            let message = "Invalid directive '.noreturn' for function 'protoype with return parameters'";
            self.report(Severity::Error, pos, message.to_owned());
        }
        let prototype = self.ast.prototypes.len() as u32;
        self.ast.prototypes.push(Prototype { returns, params });
        self.ast.statements.push(Statement::Prototype { name, prototype, pos });
        Ok(())
    }

    /// Parses an instruction after its guard.
    fn instruction(&mut self, guard: Option<(Name, bool)>) -> Result<()> {
        self.lexer.extend_opcode();
        let token = self.token();
        let pos = self.pos();
        self.lexer.bump();
        self.after_opcode(self.lexer.text(token), guard, pos)
    }

    /// Parses the rest of an instruction after its opcode.
    fn after_opcode(&mut self, opcode: &[u8], guard: Option<(Name, bool)>, pos: Pos) -> Result<()> {
        let id = if self.token().kind == TokenKind::Dot {
            // `add .s32`: modifiers after white space.
            let mut whole = opcode.to_owned();
            while self.token().kind == TokenKind::Dot {
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
}

/// Returns the place with these numbers of `.loc`: file, line, column. Numbers of more than 32 bits become 0.
fn place(numbers: [u64; 3]) -> SourcePlace {
    let [file, line, column] = numbers.map(|n| u32::try_from(n).unwrap_or(0));
    SourcePlace { file, line, column }
}

//! Parses module scope: functions and directives.

use crate::ast::{Function, Item};
use crate::diagnostics::Severity;
use crate::ir::{Directives, Linkage};
use crate::lexer::TokenKind;
use crate::limits::Limits;
use std::sync::Arc;

use super::cursor::{Parser, Result};

/// Function directives with requirements: the directive, its name in messages, the PTX version times ten, and the
/// lowest architecture (0 for any).
const DIRECTIVES: &[(&str, &str, u32, u32)] = &[
    (".maxntid", ".maxntid", 13, 0),
    (".maxnreg", ".maxnreg", 13, 0),
    (".reqntid", ".reqntid directive", 21, 0),
    (".minnctapersm", ".minnctapersm directive", 20, 0),
    (".noreturn", ".noreturn", 64, 30),
    (".maxclusterrank", ".maxclusterrank", 78, 90),
    (".explicitcluster", ".explicitcluster", 78, 90),
    (".reqnctapercluster", ".reqnctapercluster", 78, 90),
    (".blocksareclusters", ".blocksareclusters", 90, 90),
    (".abi_preserve", ".abi_preserve", 90, 80),
    (".abi_preserve_control", ".abi_preserve_control", 90, 80),
];

impl Parser<'_> {
    /// Parses a module.
    pub(super) fn module(&mut self, limits: &Limits) -> Result<()> {
        self.version(limits)?;
        let target = self.target(limits)?;
        if self.at_dot(b".address_size") {
            self.address_size()?;
        }
        while self.token().kind != TokenKind::End {
            self.item()?;
        }
        if !self.ast.items.is_empty() {
            self.target_fits_version(&target);
        }
        Ok(())
    }

    /// Parses `.address_size 64`.
    fn address_size(&mut self) -> Result<()> {
        let pos = self.pos();
        self.require(pos, ".address_size directive", 23, 0);
        self.lexer.bump();
        match self.integer()? {
            64 => self.ast.address_size = 64,
            32 => {
                let message = "32-bit addressing is not supported by this driver: use .address_size 64";
                self.report(Severity::Error, pos, message.to_owned());
            }
            _ => {
                let message = "Illegal value for .address_size directive (must be 32 or 64)";
                self.report(Severity::Error, pos, message.to_owned());
            }
        }
        Ok(())
    }

    /// Parses one function, variable declaration or directive of module scope.
    fn item(&mut self) -> Result<()> {
        if self.at(b'@') {
            return self.dwarf();
        }
        if self.token().kind != TokenKind::Dot {
            return self.unexpected();
        }
        match self.word() {
            b".file" => return self.file(),
            b".section" => return self.section(),
            b".pragma" => return self.pragma(),
            b".alias" => return self.alias(),
            _ => {}
        }
        let linkage = match self.word() {
            b".extern" => Linkage::Extern,
            b".visible" => Linkage::Visible,
            b".weak" => Linkage::Weak,
            b".common" => Linkage::Common,
            _ => Linkage::Internal,
        };
        match linkage {
            Linkage::Weak => self.require(self.pos(), ".weak directive", 31, 0),
            Linkage::Common => self.require(self.pos(), ".common directive", 50, 0),
            _ => {}
        }
        if linkage != Linkage::Internal {
            self.lexer.bump();
        }
        match self.word() {
            b".entry" if linkage != Linkage::Common => self.function(linkage, true),
            b".func" if linkage != Linkage::Common => self.function(linkage, false),
            _ => {
                let vars = self.declaration(linkage)?;
                self.ast.items.extend(vars.map(Item::Var));
                Ok(())
            }
        }
    }

    /// Parses `.file 1 "name", 2, 3`.
    fn file(&mut self) -> Result<()> {
        let pos = self.pos();
        self.lexer.bump();
        let number = self.integer()?;
        let name = self.token();
        self.string()?;
        if let Ok(number) = u32::try_from(number) {
            let name = String::from_utf8_lossy(self.lexer.text(name));
            let name = name.trim_matches('"').to_owned();
            Arc::make_mut(&mut self.ast.source).files.push((number, name));
        }
        if self.at(b',') {
            self.require(pos, "timestamp and filesize in .file directive", 32, 0);
        }
        while self.accept(b',') {
            self.integer()?;
        }
        Ok(())
    }

    /// Skips `.pragma "…", "…";`.
    pub(super) fn pragma(&mut self) -> Result<()> {
        self.require(self.pos(), ".pragma directive", 20, 0);
        self.lexer.bump();
        loop {
            self.string()?;
            if !self.accept(b',') {
                break;
            }
        }
        self.expect(b';')
    }

    /// Parses `.alias name, aliasee;`.
    fn alias(&mut self) -> Result<()> {
        let pos = self.pos();
        self.require(pos, ".alias", 63, 30);
        self.lexer.bump();
        let name = self.name()?;
        self.expect(b',')?;
        let aliasee = self.name()?;
        self.expect(b';')?;
        self.ast.items.push(Item::Alias { name, aliasee, pos });
        Ok(())
    }

    /// Parses the rest of a function after its linkage.
    fn function(&mut self, linkage: Linkage, entry: bool) -> Result<()> {
        self.lexer.bump();
        if self.accept_dot(b".attribute") {
            self.attribute()?;
        }
        let returns = if entry { 0..0 } else { self.parameters()? };
        let pos = self.pos();
        if self.word() == b"_" {
            return self.unexpected();
        }
        let name = self.name()?;
        let params = self.parameters()?;
        if entry && !params.is_empty() {
            self.require(pos, "kernel parameter list", 14, 0);
        }
        let directives = self.function_directives(entry)?;
        if directives.noreturn && !returns.is_empty() {
            let name = self.ast.names.text(name);
            self.report(
                Severity::Error,
                pos,
                format!("Invalid directive '.noreturn' for function '{name}'"),
            );
        }
        let mut body = None;
        if !self.accept(b';') {
            let start = self.ast.statements.len() as u32;
            self.expect(b'{')?;
            self.body()?;
            body = Some(start..self.ast.statements.len() as u32);
        }
        let function = Function {
            entry,
            linkage,
            name,
            pos,
            returns,
            params,
            directives,
            body,
        };
        self.ast.items.push(Item::Function(Box::new(function)));
        Ok(())
    }

    /// Checks the PTX version and the target that the directive of a function at the current token requires.
    pub(super) fn require_directive(&mut self) {
        let requirement = DIRECTIVES.iter().find(|(name, ..)| name.as_bytes() == self.word());
        if let Some(&(_, feature, ptx, sm)) = requirement {
            self.require(self.pos(), feature, ptx, sm);
        }
    }

    /// Parses the directives between a function's parameters and its body.
    fn function_directives(&mut self, entry: bool) -> Result<Directives> {
        let mut directives = Directives::default();
        while self.token().kind == TokenKind::Dot {
            let pos = self.pos();
            self.require_directive();
            match self.word() {
                b".pragma" => {
                    self.pragma()?;
                    continue;
                }
                b".noreturn" if !entry && !directives.noreturn => directives.noreturn = true,
                b".explicitcluster" if entry => directives.explicitcluster = true,
                b".blocksareclusters" if entry => directives.blocksareclusters = true,
                b".abi_preserve" | b".abi_preserve_control" if !entry => {
                    self.lexer.bump();
                    self.literal()?;
                    continue;
                }
                word if entry => {
                    let word = word.to_owned();
                    self.lexer.bump();
                    match word.as_slice() {
                        b".maxntid" => directives.maxntid = Some(self.dimensions("maxntid")?),
                        b".reqntid" => directives.reqntid = Some(self.dimensions("reqntid")?),
                        b".reqnctapercluster" => {
                            directives.reqnctapercluster = Some(self.dimensions("reqnctapercluster")?)
                        }
                        b".minnctapersm" => directives.minnctapersm = Some(self.positive("minnctapersm")?),
                        b".maxnreg" => directives.maxnreg = Some(self.positive("maxnreg")?),
                        b".maxclusterrank" => directives.maxclusterrank = Some(self.integer_u32()?),
                        b".maxnctapersm" => {
                            self.integer_u32()?;
                            self.deprecated(pos, (2, 1), ".maxnctapersm directive");
                        }
                        _ => {
                            let near = String::from_utf8_lossy(&word).into_owned();
                            return self.fatal(pos, format!("Parsing error near '{near}': syntax error"));
                        }
                    }
                    continue;
                }
                _ => return self.unexpected(),
            }
            self.lexer.bump();
        }
        if directives.maxntid.is_some() && directives.reqntid.is_some() {
            let message = "Conflicting directives: .maxntid and .reqntid cannot both be specified";
            self.report(Severity::Error, self.pos(), message.to_owned());
        }
        if directives.reqnctapercluster.is_some() && directives.maxclusterrank.is_some() {
            let message = "Conflicting directives: .reqnctapercluster and .maxclusterrank cannot both be specified";
            self.report(Severity::Error, self.pos(), message.to_owned());
        }
        if directives.blocksareclusters && (directives.reqntid.is_none() || directives.reqnctapercluster.is_none()) {
            let message = ".reqntid and .reqnctapercluster directive(s) required for directive '.blocksareclusters'";
            self.report(Severity::Error, self.pos(), message.to_owned());
        }
        Ok(directives)
    }

    /// Parses `x{, y{, z}}`.
    fn dimensions(&mut self, name: &str) -> Result<[u32; 3]> {
        let mut all = [1; 3];
        for (i, dimension) in all.iter_mut().enumerate() {
            if i > 0 && !self.accept(b',') {
                break;
            }
            *dimension = self.positive(name)?;
        }
        Ok(all)
    }

    /// Parses a number of a directive, and reports 0.
    fn positive(&mut self, name: &str) -> Result<u32> {
        let pos = self.pos();
        let number = self.integer_u32()?;
        if number == 0 {
            let message = format!("Positive non-zero value expected for {name}");
            self.report(Severity::Error, pos, message);
        }
        Ok(number)
    }
}

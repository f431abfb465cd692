//! Module scope: head, functions, debug sections.

use super::{Parser, Result, Stop};
use crate::ir::{Directives, Linkage, Target};
use crate::ptx::Limits;
use crate::ptx::ast::*;
use crate::ptx::diagnostics::Severity;
use crate::ptx::lexer::Kind;

/// The PTX versions there are, as ten times major plus minor.
const VERSIONS: &[std::ops::RangeInclusive<u32>] = &[
    10..=15,
    20..=23,
    30..=32,
    40..=43,
    50..=51,
    60..=65,
    70..=78,
    80..=88,
    90..=u32::MAX,
];

/// The architectures there are, of those before 100.
const TARGETS: &[u32] = &[
    10, 11, 12, 13, 20, 21, 30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 82, 86, 87, 88,
    89, 90,
];

/// The architectures from 100 on, which have a family (`f`) and a specific (`a`) form too.
const FAMILY_TARGETS: &[u32] = &[100, 101, 103, 107, 110, 120, 121];

/// `9.0` as 90.
fn version_number(text: &[u8]) -> Option<u32> {
    let (major, minor) = std::str::from_utf8(text).ok()?.split_once('.')?;
    major
        .parse::<u32>()
        .ok()?
        .checked_mul(10)?
        .checked_add(minor.parse().ok()?)
}

impl Parser<'_> {
    pub(super) fn module(&mut self, limits: &Limits) -> Result<()> {
        self.version(limits)?;
        self.target(limits)?;
        while self.token().kind != Kind::End {
            self.item()?;
        }
        Ok(())
    }

    fn version(&mut self, limits: &Limits) -> Result<()> {
        let pos = self.pos();
        let missing = "Missing .version directive at start of file 'ptx input'";
        if !self.accept_dot(b".version") {
            return self.fatal(pos, missing.to_owned());
        }
        let Some(number) = version_number(self.word()) else {
            return self.fatal(pos, missing.to_owned());
        };
        let (major, minor) = limits.max_version;
        if !VERSIONS.iter().any(|range| range.contains(&number)) || number > major * 10 + minor {
            let text = String::from_utf8_lossy(self.word()).into_owned();
            let message =
                format!("Unsupported .version {text}; current version is '{major}.{minor}'");
            return self.fatal(pos, message);
        }
        self.ast.version = (number / 10, number % 10);
        self.lexer.bump();
        Ok(())
    }

    fn target(&mut self, limits: &Limits) -> Result<()> {
        let pos = self.pos();
        if !self.accept_dot(b".target") {
            return self.fatal(
                pos,
                "Missing .target directive at start of file 'ptx input'".to_owned(),
            );
        }
        let mut target = Target {
            sm: 0,
            suffix: None,
            debug: false,
            map_f64_to_f32: false,
        };
        loop {
            let pos = self.pos();
            if self.token().kind != Kind::Word {
                return self.unexpected();
            }
            let text = String::from_utf8_lossy(self.word()).into_owned();
            self.lexer.bump();
            match text.as_str() {
                "texmode_unified" => {}
                "texmode_independent" => self.ast.independent_textures = true,
                "debug" => target.debug = true,
                "map_f64_to_f32" => target.map_f64_to_f32 = true,
                _ => match architecture(&text) {
                    // Of several architectures the first is the one that counts.
                    Some((sm, suffix)) if target.sm == 0 => {
                        (target.sm, target.suffix) = (sm, suffix)
                    }
                    Some(_) => {}
                    None => return self.fatal(pos, format!("Unsupported .target '{text}'")),
                },
            }
            if !self.accept(b',') {
                break;
            }
        }
        if target.sm == 0 {
            return self.fatal(
                pos,
                "Target architecture not defined at start of file 'ptx input'".to_owned(),
            );
        }
        if target.map_f64_to_f32 && target.sm >= 13 {
            let message = format!(
                "Directive map_f64_to_f32 is not supported with SM {}.{} or higher",
                target.sm / 10,
                target.sm % 10
            );
            self.report(Severity::Error, pos, message);
        }
        let runs = match target.suffix {
            None => target.sm <= limits.sm,
            Some('f') => target.sm <= limits.sm && target.sm / 10 == limits.sm / 10,
            Some(_) => target.sm == limits.sm,
        };
        if !runs {
            let message = match target.suffix {
                None => "SM version specified by .target is higher than default SM version assumed"
                    .to_owned(),
                Some(suffix) => format!(
                    "PTX with .target 'sm_{}{suffix}' cannot be compiled for architecture 'sm_{}'",
                    target.sm, limits.sm
                ),
            };
            self.diagnostics.push(Severity::Fatal, 0, 0, message);
            return Err(Stop);
        }
        self.ast.target = target;
        Ok(())
    }

    fn address_size(&mut self) -> Result<()> {
        let pos = self.pos();
        self.lexer.bump();
        match self.integer()? {
            64 => self.ast.address_size = 64,
            32 => {
                let message =
                    "32-Bit addressing is not supported by this driver: .address_size 64 is needed";
                self.report(Severity::Error, pos, message.to_owned());
            }
            _ => {
                let message = "Illegal value for .address_size directive (must be 32 or 64)";
                self.report(Severity::Error, pos, message.to_owned());
            }
        }
        Ok(())
    }

    fn item(&mut self) -> Result<()> {
        if self.at(b'@') {
            // `@@DWARF …`: the debug sections of old.
            self.lexer.skip_line();
            return Ok(());
        }
        if self.token().kind != Kind::Dot {
            return self.unexpected();
        }
        match self.word() {
            b".address_size" => return self.address_size(),
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

    /// `.file 1 "name", 2, 3`: nothing of it is kept.
    fn file(&mut self) -> Result<()> {
        self.lexer.bump();
        self.integer()?;
        self.string()?;
        while self.accept(b',') {
            self.integer()?;
        }
        Ok(())
    }

    pub(super) fn pragma(&mut self) -> Result<()> {
        self.lexer.bump();
        loop {
            self.string()?;
            if !self.accept(b',') {
                break;
            }
        }
        self.expect(b';')
    }

    /// `.section name { … }`: debug data, skipped.
    fn section(&mut self) -> Result<()> {
        self.ast.sections = true;
        self.lexer.bump();
        if !matches!(self.token().kind, Kind::Dot | Kind::Word) {
            return self.unexpected();
        }
        self.lexer.bump();
        self.expect(b'{')?;
        while !self.at(b'}') {
            if matches!(self.token().kind, Kind::End | Kind::Bad | Kind::Punct(b'{')) {
                return self.unexpected();
            }
            self.lexer.bump();
        }
        self.lexer.bump();
        Ok(())
    }

    fn alias(&mut self) -> Result<()> {
        let pos = self.pos();
        self.lexer.bump();
        let name = self.name()?;
        self.expect(b',')?;
        let aliasee = self.name()?;
        self.expect(b';')?;
        self.ast.items.push(Item::Alias { name, aliasee, pos });
        Ok(())
    }

    fn function(&mut self, linkage: Linkage, entry: bool) -> Result<()> {
        self.lexer.bump();
        if self.accept_dot(b".attribute") {
            self.attribute()?;
        }
        let returns = if entry { 0..0 } else { self.parameters()? };
        let pos = self.pos();
        let name = self.name()?;
        let params = self.parameters()?;
        let directives = self.function_directives(entry)?;
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

    fn function_directives(&mut self, entry: bool) -> Result<Directives> {
        let mut directives = Directives::default();
        while self.token().kind == Kind::Dot {
            let pos = self.pos();
            match self.word() {
                b".pragma" => {
                    self.pragma()?;
                    continue;
                }
                b".noreturn" => directives.noreturn = true,
                b".explicitcluster" if entry => directives.explicitcluster = true,
                b".blocksareclusters" if entry => {}
                b".abi_preserve" | b".abi_preserve_control" => {
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
                            directives.reqnctapercluster =
                                Some(self.dimensions("reqnctapercluster")?)
                        }
                        b".minnctapersm" => directives.minnctapersm = Some(self.integer_u32()?),
                        b".maxnreg" => directives.maxnreg = Some(self.integer_u32()?),
                        b".maxclusterrank" => directives.maxclusterrank = Some(self.integer_u32()?),
                        b".maxnctapersm" => {
                            self.integer_u32()?;
                            self.deprecated(pos, (2, 1), ".maxnctapersm directive");
                        }
                        _ => {
                            let near = String::from_utf8_lossy(&word).into_owned();
                            return self
                                .fatal(pos, format!("Parsing error near '{near}': syntax error"));
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
        Ok(directives)
    }

    /// `x{, y{, z}}`
    fn dimensions(&mut self, name: &str) -> Result<[u32; 3]> {
        let mut all = [1; 3];
        for (i, dimension) in all.iter_mut().enumerate() {
            if i > 0 && !self.accept(b',') {
                break;
            }
            let pos = self.pos();
            *dimension = self.integer_u32()?;
            if *dimension == 0 {
                let message = format!("Positive non-zero value expected for {name}");
                self.report(Severity::Error, pos, message);
            }
        }
        Ok(all)
    }
}

/// `sm_90a` and `compute_90a` as 90 and `a`.
fn architecture(text: &str) -> Option<(u32, Option<char>)> {
    let text = text
        .strip_prefix("sm_")
        .or_else(|| text.strip_prefix("compute_"))?;
    let digits = text.trim_end_matches(['a', 'f']);
    let suffix = match &text[digits.len()..] {
        "" => None,
        "a" => Some('a'),
        "f" => Some('f'),
        _ => return None,
    };
    let sm = digits.parse().ok()?;
    let known = match suffix {
        None => TARGETS.contains(&sm) || FAMILY_TARGETS.contains(&sm),
        Some('a') => sm == 90 || FAMILY_TARGETS.contains(&sm),
        Some(_) => FAMILY_TARGETS.contains(&sm),
    };
    known.then_some((sm, suffix))
}

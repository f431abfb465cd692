//! Parses the head of a module, `.version` and `.target`, and checks the features that they allow.

use crate::ast::Pos;
use crate::diagnostics::{DiagnosticCode, Severity};
use crate::ir::Target;
use crate::lexer::TokenKind;
use crate::limits::Limits;

use super::cursor::{Parser, Result};

/// The architecture as written in `.target`.
pub(super) struct TargetName {
    text: String,
    pos: Pos,
}

/// The PTX versions that exist, as ten times major plus minor. From 9.0 on, only [`Limits::max_version`] limits them.
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

const NO_TARGET: &str = "Target architecture not defined at start of file 'ptx input'";

/// The architectures that ptxas knows, each with the lowest PTX version, times ten, that ptxas accepts for the
/// architecture. Some of these versions are lower than those in the manual.
#[rustfmt::skip] // a table
const TARGETS: &[(u32, u32)] = &[
    (10, 10), (11, 10), (12, 12), (13, 12), (20, 20), (21, 20), (30, 30), (32, 40), (35, 30), (37, 41), (50, 40),
    (52, 41), (53, 42), (60, 50), (61, 50), (62, 50), (70, 51), (72, 61), (75, 63), (80, 70), (82, 62), (86, 71),
    (87, 74), (88, 73), (89, 78), (90, 78), (100, 86), (101, 86), (103, 88), (107, 94), (110, 90), (120, 87), (121, 88),
];

/// Returns 9 and 0 for `9.0`, and 90.
fn version_numbers(text: &[u8]) -> Option<((u32, u32), u32)> {
    let (major, minor) = std::str::from_utf8(text).ok()?.split_once('.')?;
    let (major, minor) = (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?);
    let number = major.checked_mul(10)?.checked_add(minor)?;
    Some(((major, minor), number))
}

impl Parser<'_> {
    /// Parses `.version`.
    pub(super) fn version(&mut self, limits: &Limits) -> Result<()> {
        let pos = self.pos();
        let missing = "Missing .version directive at start of file 'ptx input'";
        if !self.accept_dot(b".version") {
            return self.fatal(pos, missing.to_owned());
        }
        let Some((version, number)) = version_numbers(self.word()) else {
            return self.fatal(pos, missing.to_owned());
        };
        // As in ptxas, the minor number carries over here, and only here: 6.30 exists because 9.0 does, but has the
        // features of 6.5.
        let (major, minor) = limits.max_version;
        if !VERSIONS.iter().any(|range| range.contains(&number)) || number > major * 10 + minor {
            let text = String::from_utf8_lossy(self.word()).into_owned();
            let message = format!("Unsupported .version {text}; current version is '{major}.{minor}'");
            return self.fatal_with(DiagnosticCode::UnsupportedVersion, pos, message);
        }
        self.ast.version = version;
        self.lexer.bump();
        Ok(())
    }

    /// Parses `.target`.
    pub(super) fn target(&mut self, limits: &Limits) -> Result<TargetName> {
        let pos = self.pos();
        if !self.accept_dot(b".target") {
            return self.fatal(pos, "Missing .target directive at start of file 'ptx input'".to_owned());
        }
        let mut target = Target {
            sm: 0,
            suffix: None,
            debug: false,
            map_f64_to_f32: false,
        };
        let mut first = String::new();
        loop {
            let pos = self.pos();
            if self.token().kind != TokenKind::Word {
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
                    // Only the first of several architectures is used.
                    Some((sm, suffix)) if target.sm == 0 => {
                        (target.sm, target.suffix) = (sm, suffix);
                        first = text;
                    }
                    Some(_) => {}
                    None if target.sm == 0 && !text.starts_with("sm_") => {
                        return self.fatal(pos, NO_TARGET.to_owned());
                    }
                    None => return self.fatal(pos, format!("Unsupported .target '{text}'")),
                },
            }
            if !self.accept(b',') {
                break;
            }
        }
        if target.sm == 0 {
            return self.fatal(pos, NO_TARGET.to_owned());
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
            let (code, message) = match target.suffix {
                None => (
                    DiagnosticCode::TargetTooNew,
                    "SM version specified by .target is higher than default SM version assumed".to_owned(),
                ),
                Some(suffix) => (
                    DiagnosticCode::Invalid,
                    format!(
                        "PTX with .target 'sm_{}{suffix}' cannot be compiled for architecture 'sm_{}'",
                        target.sm, limits.sm
                    ),
                ),
            };
            return self.fatal_of_module(code, message);
        }
        self.ast.target = target;
        Ok(TargetName { text: first, pos })
    }

    /// Checks that the `.version` is not older than the architecture. Empty modules are not checked.
    pub(super) fn target_fits_version(&mut self, name: &TargetName) {
        let target = &self.ast.target;
        let since = match (target.sm, target.suffix) {
            (90, Some(_)) => 80,
            (100 | 101 | 120, Some('f')) => 88,
            (sm, _) => TARGETS
                .iter()
                .find(|(target, _)| *target == sm)
                .map_or(0, |(_, ptx)| *ptx),
        };
        if self.ast.feature_version() < since {
            let (major, minor) = self.ast.version;
            let message = format!("PTX .version {major}.{minor} does not support .target {}", name.text);
            self.report(Severity::Error, name.pos, message);
        }
    }

    /// Checks that the module may use a feature, which requires PTX version `ptx`, times ten, and architecture `sm`.
    pub(super) fn require(&mut self, pos: Pos, feature: &str, ptx: u32, sm: u32) {
        for message in self.ast.unmet(feature, ptx, sm) {
            self.report(Severity::Error, pos, message);
        }
    }
}

/// Returns 90 and `a` for `sm_90a` and `compute_90a`; `None` if there is no such architecture. Other letters after the
/// number are ignored, as by ptxas and the driver.
fn architecture(text: &str) -> Option<(u32, Option<char>)> {
    let text = text.strip_prefix("sm_").or_else(|| text.strip_prefix("compute_"))?;
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let sm = text[..digits].parse().ok()?;
    let suffix = match &text[digits..] {
        "a" => Some('a'),
        "f" => Some('f'),
        _ => None,
    };
    let known = TARGETS.iter().any(|(target, _)| *target == sm);
    let special = match suffix {
        None => true,
        Some('a') => sm >= 90,
        Some(_) => sm >= 100,
    };
    (known && special).then_some((sm, suffix))
}

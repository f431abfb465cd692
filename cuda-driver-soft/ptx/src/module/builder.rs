//! The state of building a module: its variables and functions so far, and the meaning of their names.

use std::cell::OnceCell;

use crate::ast::{Ast, DeclType, Item, Pos};
use crate::diagnostics::{DiagnosticCode, Diagnostics, MAX_MESSAGE_BYTES, Severity};
use crate::hash::NumberMap;
use crate::ir::{VarId, Variable};
use crate::names::Name;
use crate::unit::{Global, Signature};

use super::mentions::Mentions;

/// Bytes of initial values that any module may have. A short text can set an element far from the start of its array,
/// and the bytes before the element are stored, too.
const MOST_INITIAL_BYTES: usize = 256 << 20;

/// Further bytes of initial values for each byte of the text. The shortest number of a list takes two bytes of text
/// with its comma, and up to 16 bytes of memory.
const INITIAL_BYTES_PER_BYTE: usize = 8;

/// Bytes that the variables of ranges, and the static variables (`.global`, `.const` and `.shared`) of functions, may
/// take in any module. A short text can declare many of them, and the name of a static variable begins with the
/// function's name, which can be long.
const MOST_VARIABLE_BYTES: usize = 16 << 20;

/// Further bytes of such variables for each byte of the text.
const VARIABLE_BYTES_PER_BYTE: usize = 64;

/// The state of building a module.
pub(super) struct ModuleBuilder<'a> {
    pub(super) ast: &'a Ast,
    text: &'a [u8],
    mentions: OnceCell<Mentions>,
    /// Bytes that further initial values may have.
    pub(super) initial_room: usize,
    /// Bytes that further variables of ranges and static variables of functions may take.
    variable_room: usize,
    diagnostics: &'a mut Diagnostics,
    pub(super) globals: NumberMap<Name, Global>,
    pub(super) variables: Vec<Variable>,
    /// The declared type of each variable.
    pub(super) types: Vec<DeclType>,
    pub(super) functions: Vec<Signature>,
    /// See [`Unit::statics`](crate::unit::Unit::statics).
    pub(super) statics: NumberMap<u32, VarId>,
}

impl<'a> ModuleBuilder<'a> {
    pub(super) fn new(ast: &'a Ast, text: &'a [u8], diagnostics: &'a mut Diagnostics) -> Self {
        ModuleBuilder {
            ast,
            text,
            mentions: OnceCell::new(),
            initial_room: MOST_INITIAL_BYTES.saturating_add(text.len().saturating_mul(INITIAL_BYTES_PER_BYTE)),
            variable_room: MOST_VARIABLE_BYTES.saturating_add(text.len().saturating_mul(VARIABLE_BYTES_PER_BYTE)),
            diagnostics,
            globals: NumberMap::default(),
            variables: Vec::new(),
            types: Vec::new(),
            functions: Vec::new(),
            statics: NumberMap::default(),
        }
    }

    pub(super) fn report(&mut self, severity: Severity, pos: Pos, message: String) {
        self.diagnostics
            .push_at(self.text, pos, severity, DiagnosticCode::Invalid, message);
    }

    pub(super) fn error(&mut self, pos: Pos, message: String) {
        self.report(Severity::Error, pos, message);
    }

    /// Takes the bytes of some variables of a range or function from the room for them. Returns false after adding an
    /// error if there is too little.
    pub(super) fn take_room(&mut self, variables: usize, name_bytes: usize, pos: Pos) -> bool {
        let bytes = variables.saturating_mul(name_bytes.saturating_add(size_of::<Variable>()));
        let left = self.variable_room.checked_sub(bytes);
        self.variable_room = left.unwrap_or(0);
        if left.is_none() {
            let message = "Too many variables of ranges or functions in a module of this length";
            self.error(pos, message.to_owned());
        }
        left.is_some()
    }

    /// Returns the spelling of a name.
    pub(super) fn text(&self, name: Name) -> String {
        self.ast.names.text(name)
    }

    /// Returns the spelling of a name for a message, cut at the length at which the message itself is cut: many
    /// messages may contain the same long name.
    pub(super) fn shown(&self, name: Name) -> String {
        self.ast.names.text_up_to(name, MAX_MESSAGE_BYTES)
    }

    /// Returns the numbers that follow the names of ranges in the text, which are collected on first use.
    pub(super) fn mentions(&self) -> &Mentions {
        self.mentions.get_or_init(|| {
            let ranges = self.ast.items.iter().filter_map(|item| match item {
                Item::Var(var) => self.ast.vars.get(*var as usize).filter(|var| var.count.is_some()),
                _ => None,
            });
            Mentions::of(self.text, ranges.map(|var| self.text(var.name)))
        })
    }

    /// Declares an item.
    pub(super) fn item(&mut self, index: u32, item: &Item) {
        match item {
            Item::Var(var) => {
                if let Some(var) = self.ast.vars.get(*var as usize) {
                    self.global_variable(index, var);
                }
            }
            Item::Function(function) => self.function(index, function),
            Item::Alias { name, aliasee, pos } => self.alias(*name, *aliasee, *pos),
        }
    }
}

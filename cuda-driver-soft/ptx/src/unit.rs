//! A parsed module with the names of module scope resolved: the input of lowering.

use std::ops::Range;
use std::sync::OnceLock;

use crate::ast::{Ast, DeclType, Function, Item, Var};
use crate::forms::{self, Form, FormErrors};
use crate::hash::NumberMap;
use crate::ir::{FuncId, Linkage, Opaque, Param, Space, Type, VarId};
use crate::names::Name;
use crate::scopes::Symbol;
use crate::specials::SpecialReg;

/// A parsed module with the names of module scope resolved.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) ast: Ast,
    /// The special registers that the module can mention; see [`specials`](crate::specials::specials).
    pub(crate) specials: NumberMap<Name, SpecialReg>,
    /// See [`Names::unpadded`](crate::names::Names::unpadded).
    pub(crate) unpadded: NumberMap<u32, Name>,
    pub(crate) globals: NumberMap<Name, Global>,
    pub(crate) functions: Vec<Signature>,
    /// The state space of each variable.
    pub(crate) spaces: Vec<Space>,
    /// For each variable: the kind of opaque object that it is; `None` for other variables.
    pub(crate) opaques: Vec<Option<Opaque>>,
    /// The module's variable for each `.shared`, `.global`, `.const` or `.tex` declaration inside a function, by the
    /// index of the declaration in [`Ast::vars`]. For a range, the first variable, which the others follow.
    pub(crate) statics: NumberMap<u32, VarId>,
    /// The form of each opcode of [`Ast::opcodes`]; looked up on first use.
    pub(crate) forms: Vec<OnceLock<Result<Form, FormErrors>>>,
}

/// A name of module scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Global {
    pub(crate) symbol: Symbol,
    /// Index of the item that declares the name first. A name is known only after its declaration.
    pub(crate) item: u32,
}

/// A function as seen by its callers.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    pub(crate) name: Name,
    pub(crate) entry: bool,
    /// Range of [`Ast::vars`].
    pub(crate) returns: Range<u32>,
    /// Range of [`Ast::vars`].
    pub(crate) params: Range<u32>,
    /// Index of the item that defines the function, or of the first item that declares it.
    pub(crate) item: u32,
    pub(crate) defined: bool,
    pub(crate) linkage: Linkage,
}

impl Unit {
    /// Returns the form of an opcode. Its candidates are in the order in which this module tries them.
    pub(crate) fn form(&self, opcode: u32) -> Result<&Form, &FormErrors> {
        static NONE: OnceLock<Result<Form, FormErrors>> = OnceLock::new();
        let slot = self.forms.get(opcode as usize).unwrap_or(&NONE);
        let found = slot.get_or_init(|| {
            let text = String::from_utf8_lossy(self.ast.opcodes.string(opcode));
            let version = self.ast.feature_version();
            let mut form = forms::find(&forms::current(&text, version))?;
            form.candidates
                .sort_by_key(|candidate| candidate.rank(version, self.ast.target.sm));
            Ok(form)
        });
        found.as_ref()
    }

    /// Returns the function that an item declares.
    pub(crate) fn function(&self, item: u32) -> Option<&Function> {
        match self.ast.items.get(item as usize) {
            Some(Item::Function(function)) => Some(function),
            _ => None,
        }
    }

    /// Returns the length of a function's text, up to the next item. `end` is the length of the module's text.
    pub(crate) fn text_bytes(&self, id: FuncId, end: usize) -> usize {
        let Some(signature) = self.functions.get(id.0 as usize) else {
            return 0;
        };
        let start = |item: u32| {
            let item = self.ast.items.get(item as usize);
            item.map_or(end, |item| self.ast.offset(item) as usize)
        };
        start(signature.item + 1).saturating_sub(start(signature.item))
    }

    /// Returns the declarations of a range.
    pub(crate) fn vars(&self, range: &Range<u32>) -> &[Var] {
        self.ast.vars(range)
    }
}

/// Returns true if a declaration may state this alignment. NVIDIA's compiler refuses 2^63, which it reads as a negative
/// number.
pub(crate) fn is_alignment(align: u64) -> bool {
    align.is_power_of_two() && align <= i64::MAX as u64
}

/// Returns the alignment of a declared variable in bytes.
pub(crate) fn alignment(var: &Var) -> u64 {
    var.align.unwrap_or(0).max(var.element()).max(1)
}

/// Returns the end of a block of memory that holds variables of these sizes and alignments one after the other.
pub(crate) fn layout_end(sizes: impl Iterator<Item = (u64, u64)>) -> u64 {
    sizes.fold(0u64, |end, (size, align)| aligned(end, align).saturating_add(size))
}

/// Returns the first offset from `end` on that has this alignment, limited to [`MAX_ALIGN`]; `u64::MAX` if there is
/// none.
fn aligned(end: u64, align: u64) -> u64 {
    end.checked_next_multiple_of(align.min(MAX_ALIGN)).unwrap_or(u64::MAX)
}

/// Alignments in bytes are limited to this before they are used in sums.
pub(crate) const MAX_ALIGN: u64 = 1 << 30;

/// Returns the offsets of parameters: for each one, the next offset that its alignment allows.
pub(crate) fn offsets(vars: &[Var]) -> impl Iterator<Item = u64> {
    let mut end = 0u64;
    vars.iter().map(move |var| {
        let offset = aligned(end, alignment(var));
        end = offset.saturating_add(var.size.unwrap_or(0));
        offset
    })
}

/// Returns the parameters of a range in order.
pub(crate) fn parameters(unit: &Unit, range: &Range<u32>) -> Vec<Param> {
    let vars = unit.vars(range);
    let param = |(var, offset): (&Var, u64)| Param {
        name: unit.ast.names.text(var.name),
        offset,
        size: var.size.unwrap_or(0),
        align: alignment(var),
        ty: match var.ty {
            DeclType::Scalar(ty) => ty,
            DeclType::Opaque(_) => Type::B64,
        },
    };
    vars.iter().zip(offsets(vars)).map(param).collect()
}

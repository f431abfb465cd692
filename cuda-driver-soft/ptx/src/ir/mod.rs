//! The typed intermediate representation: what the `ptx` room produces and the `exec` room runs.
//!
//! A [`Module`] is a loaded PTX module: variables and functions, every name resolved. A function's [`Body`] is a flat
//! list of [`Inst`]s over virtual registers; labels are instruction indices, `.local` and function-scope `.param`
//! variables are offsets into the function's frame, and every modifier is a field of the instruction's [`Op`].
//! Nothing here knows how an instruction is executed, or what the source text looked like.

mod body;
mod display;
mod op;
mod texture;
mod types;
mod video;

pub use body::{
    Address, Body, CallSlot, Callee, Formal, Inst, InstId, LocTable, Operand, Reg, RegClass,
    Special,
};
pub use op::*;
pub use texture::*;
pub use types::*;
pub use video::*;

use std::sync::OnceLock;

/// Index of a [`Variable`] in its [`Module`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub u32);

/// Index of a [`Function`] in its [`Module`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncId(pub u32);

/// A PTX module with every name resolved.
#[derive(Debug)]
pub struct Module {
    /// `.version`, as major and minor.
    pub version: (u32, u32),
    /// `.target`.
    pub target: Target,
    /// Variables of module scope, and the `.shared` variables of function scope (which live as long as the block).
    pub variables: Vec<Variable>,
    /// Kernels, device functions, and declarations of functions defined elsewhere.
    pub functions: Vec<Function>,
}

impl Module {
    /// The entry function (kernel) of this name.
    pub fn entry(&self, name: &str) -> Option<FuncId> {
        self.functions
            .iter()
            .position(|f| f.kind == FunctionKind::Entry && f.name == name)
            .map(|i| FuncId(i as u32))
    }
}

/// `.target sm_90a`: the architecture that the module is written for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// 90 for `sm_90`.
    pub sm: u32,
    /// `a` or `f` of `sm_90a`, `sm_100f`.
    pub suffix: Option<char>,
    /// The `debug` option was given.
    pub debug: bool,
    /// The `map_f64_to_f32` option was given.
    pub map_f64_to_f32: bool,
}

/// A variable of module scope, or a `.shared` variable of function scope.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The name; a `.shared` variable of function scope is `function$name`.
    pub name: String,
    /// `.global`, `.const`, `.shared` or `.local`.
    pub space: Space,
    /// `.extern`, `.visible`, `.weak`, `.common`, or none of these.
    pub linkage: Linkage,
    /// Size in bytes; 0 for an array without a size (`.extern .shared .b8 buffer[]`, the dynamic shared memory).
    pub size: u64,
    /// Alignment in bytes, a power of two.
    pub align: u64,
    /// Initial bytes; shorter than `size` where the rest is zero. Empty: all zero.
    pub init: Vec<u8>,
    /// Places in `init` that hold an address.
    pub relocs: Vec<Reloc>,
    /// `.attribute(.managed)`.
    pub managed: bool,
    /// `.texref` and its like: what the driver binds, and where its handle is.
    pub opaque: Option<Opaque>,
}

/// An address inside a variable's initial value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reloc {
    /// Offset into the variable's bytes.
    pub offset: u64,
    /// Width of the address in bytes: 4 or 8 (1 with `mask`: see `shift`).
    pub width: u8,
    /// What the address is of.
    pub target: RelocTarget,
    /// Added to the address.
    pub addend: i64,
    /// `generic(x)`: the generic address rather than the one in the variable's own space.
    pub generic: bool,
    /// `0xFF00(x)` style masks: the address is shifted right by this many bits first.
    pub shift: u8,
}

/// What a [`Reloc`] points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelocTarget {
    /// A variable of the module.
    Variable(VarId),
    /// A function of the module.
    Function(FuncId),
}

/// Linkage of a variable or function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linkage {
    /// No directive: visible in the module only.
    Internal,
    /// `.visible`
    Visible,
    /// `.extern`
    Extern,
    /// `.weak`
    Weak,
    /// `.common`
    Common,
}

/// Kernel or device function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    /// `.entry`
    Entry,
    /// `.func`
    Device,
}

/// A kernel, a device function, or the declaration of one.
#[derive(Debug)]
pub struct Function {
    /// The name as written.
    pub name: String,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// Linkage directive.
    pub linkage: Linkage,
    /// Formal parameters, in order. For an entry, offsets are into the parameter buffer of the launch.
    pub params: Vec<Param>,
    /// Return parameters of a device function.
    pub returns: Vec<Param>,
    /// `.maxntid`, `.reqntid` and the like.
    pub directives: Directives,
    /// Line of the directive in the source, from 1.
    pub line: u32,
    /// The code; `None` for a declaration.
    pub code: Option<Code>,
}

impl Function {
    /// The body, lowered when first asked for; `None` for a declaration.
    pub fn body(&self) -> Option<&Body> {
        self.code.as_ref().map(Code::get)
    }
}

/// A body that is lowered when it is first needed. Everything that can be wrong with it was reported when the module
/// was loaded, so lowering cannot fail.
pub struct Code {
    body: OnceLock<Body>,
    lower: Box<dyn Fn() -> Body + Send + Sync>,
}

impl Code {
    /// Code that `lower` makes on demand.
    pub fn lazy(lower: impl Fn() -> Body + Send + Sync + 'static) -> Self {
        Code {
            body: OnceLock::new(),
            lower: Box::new(lower),
        }
    }

    /// Code that is there already.
    pub fn ready(body: Body) -> Self {
        Code {
            body: OnceLock::from(body),
            lower: Box::new(Body::default),
        }
    }

    /// The body.
    pub fn get(&self) -> &Body {
        self.body.get_or_init(|| (self.lower)())
    }
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Code").field(&self.body.get()).finish()
    }
}

/// A formal parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// The name as written.
    pub name: String,
    /// Offset in bytes: of an entry's parameter into the parameter buffer.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// Scalar type, or the element type of an array.
    pub ty: Type,
}

/// Performance and launch directives of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// `.maxntid`
    pub maxntid: Option<[u32; 3]>,
    /// `.reqntid`
    pub reqntid: Option<[u32; 3]>,
    /// `.minnctapersm`
    pub minnctapersm: Option<u32>,
    /// `.maxnreg`
    pub maxnreg: Option<u32>,
    /// `.noreturn`
    pub noreturn: bool,
    /// `.reqnctapercluster`
    pub reqnctapercluster: Option<[u32; 3]>,
    /// `.explicitcluster`
    pub explicitcluster: bool,
    /// `.maxclusterrank`
    pub maxclusterrank: Option<u32>,
}

//! Modules: variables, functions and directives.

use std::sync::{Arc, OnceLock};

use super::body::Body;
use super::ids::{FuncId, VarId};
use super::location::{Location, SourceMap};
use super::texture::Opaque;
use super::types::{Space, Type};

/// A PTX module with every name resolved.
#[derive(Debug)]
pub struct Module {
    /// `.version`, as major and minor.
    pub version: (u32, u32),
    /// `.target`.
    pub target: Target,
    /// Variables of module scope, and the `.shared`, `.global` and `.const` variables of function scope.
    pub variables: Vec<Variable>,
    /// Kernels, device functions, and declarations of functions defined elsewhere.
    pub functions: Vec<Function>,
}

/// The architecture that a module is written for: `.target sm_90a`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// 90 for `sm_90`.
    pub sm: u32,
    /// `a` or `f` of `sm_90a`, `sm_100f`.
    pub suffix: Option<char>,
    /// True if the `debug` option is given.
    pub debug: bool,
    /// True if the `map_f64_to_f32` option is given.
    pub map_f64_to_f32: bool,
}

/// A variable of module scope, or a `.shared`, `.global` or `.const` variable of function scope.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The name; a variable of function scope is named `function$name`.
    pub name: String,
    /// `.global`, `.const` or `.shared`.
    pub space: Space,
    /// `.extern`, `.visible`, `.weak`, `.common`, or none of these.
    pub linkage: Linkage,
    /// Size in bytes. 0 for an array without a size: `.extern .shared .b8 buffer[]` is the dynamic shared memory.
    pub size: u64,
    /// Alignment in bytes, a power of two.
    pub align: u64,
    /// The first bytes of the initial value. All bytes after them, up to `size`, are zero.
    pub init: Vec<u8>,
    /// Addresses in the initial value, which are known only when the module is in memory.
    pub relocs: Vec<Reloc>,
    /// True if declared with `.attribute(.managed)`.
    pub managed: bool,
    /// The kind of object for `.texref`, `.samplerref` and `.surfref`: the driver binds one, and the variable holds its
    /// handle.
    pub opaque: Option<Opaque>,
}

impl Variable {
    /// Returns true for the dynamic shared memory of a launch: an `.extern .shared` array without a size.
    pub fn is_dynamic(&self) -> bool {
        self.linkage == Linkage::Extern && self.space == Space::Shared && self.size == 0
    }
}

/// An address inside a variable's initial value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reloc {
    /// Offset into the variable's bytes.
    pub offset: u64,
    /// Width of the address in bytes: 4 or 8; 1 with a mask, see `shift`.
    pub width: u8,
    /// The variable or function whose address is stored.
    pub target: RelocTarget,
    /// Bytes added to the address.
    pub addend: i64,
    /// True for `generic(x)`: the generic address rather than the one in the variable's own space.
    pub generic: bool,
    /// Number of bits by which the address is first shifted right: 8 for the mask of `0xFF00(x)`.
    pub shift: u8,
}

/// The variable or function that a [`Reloc`] points at.
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

/// The kind of a function.
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
    /// Formal parameters, in order.
    pub params: Vec<Param>,
    /// Return parameters of a device function.
    pub returns: Vec<Param>,
    /// Performance and launch directives, such as `.maxntid`.
    pub directives: Directives,
    /// Line of `.entry` or `.func` in the source, from 1.
    pub line: u32,
    /// The code; `None` for a declaration.
    pub code: Option<Code>,
    /// Source files and lines of the module that the function comes from.
    pub source: Arc<SourceMap>,
}

impl Function {
    /// Returns the body, which is lowered on first use; `None` for a declaration.
    pub fn body(&self) -> Option<&Body> {
        self.code.as_ref().map(Code::get)
    }

    /// Returns the place in the source of the instruction in this line of the PTX text: the last `.loc` of the function
    /// up to this line. Returns `None` for code without `.loc`, and for source line 0, which compilers give to code
    /// that belongs to no line.
    pub fn location(&self, ptx_line: u32) -> Option<&Location> {
        let locations = &self.source.locations;
        let after = locations.partition_point(|l| l.ptx_line <= ptx_line);
        let found = locations[..after].last()?;
        (found.ptx_line >= self.line && found.place.line > 0).then_some(found)
    }
}

/// A body that is lowered on first use. Lowering cannot fail: loading the module reported all errors in the body.
pub struct Code {
    body: OnceLock<Body>,
    lower: Box<dyn Fn() -> Body + Send + Sync>,
}

impl Code {
    /// Returns code whose body `lower` makes on first use.
    pub fn lazy(lower: impl Fn() -> Body + Send + Sync + 'static) -> Self {
        Code {
            body: OnceLock::new(),
            lower: Box::new(lower),
        }
    }

    /// Returns the body.
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
    /// Offset in bytes; for a kernel's parameter, into the parameter buffer of the launch.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// Scalar type, or the element type of an array.
    pub ty: Type,
}

/// Performance and launch directives of a kernel, and `.noreturn` of a device function.
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
    /// `.blocksareclusters`
    pub blocksareclusters: bool,
    /// `.explicitcluster`
    pub explicitcluster: bool,
    /// `.maxclusterrank`
    pub maxclusterrank: Option<u32>,
}

//! A loaded module: its variables in device memory, its kernels by name.

pub(crate) mod kernel;
mod stack_depth;

use crate::code::Code;
use crate::code::isa::Isa;
use crate::decode::{CannotRun, decode};
use crate::memory::{Kind, OutOfMemory, Quota, space};
use crate::window;
use kernel::Kernel;
use ptx::ir::{FuncId, FunctionKind, Module, Reloc, RelocTarget, Space, VarId, Variable};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A module whose variables are allocated and initialised. They are freed with the last of it and its kernels.
#[derive(Debug)]
pub struct Program {
    image: Arc<Image>,
    kernels: HashMap<String, Arc<Kernel>>,
}

/// A function's code for one instruction set, decoded when it is first needed.
type Decoded = OnceLock<Result<Arc<Code>, CannotRun>>;

/// What kernels need of their program.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) module: Arc<Module>,
    /// The context that it was loaded in.
    pub(crate) owner: u64,
    /// By variable; `None` for what is not in device memory.
    globals: Vec<Option<Global>>,
    /// By instruction set, whether the lanes of a warp are in several rows, and function.
    codes: [[Vec<Decoded>; 2]; 2],
}

#[derive(Clone, Copy, Debug)]
struct Global {
    address: u64,
    bytes: u64,
    id: u64,
}

/// Why a module could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// No memory for a variable.
    OutOfMemory {
        /// The variable.
        variable: String,
        /// What was asked for.
        error: OutOfMemory,
    },
    /// An initial value that asks for what the module does not have.
    BadInitializer {
        /// The variable.
        variable: String,
        /// What is wrong.
        reason: String,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::OutOfMemory { variable, error } => {
                write!(f, "variable `{variable}`: {error}")
            }
            LoadError::BadInitializer { variable, reason } => {
                write!(f, "initial value of `{variable}`: {reason}")
            }
        }
    }
}

impl std::error::Error for LoadError {}

impl Program {
    /// Allocates the module's `.global` and `.const` variables for the context `owner` and initialises them.
    ///
    /// # Errors
    /// No memory, or an initial value that cannot be.
    pub fn load(module: Arc<Module>, owner: u64) -> Result<Arc<Program>, LoadError> {
        Self::load_within(module, owner, None)
    }

    /// [`load`](Self::load), unless more device memory than `quota` would then be in use.
    ///
    /// # Errors
    /// As [`load`](Self::load), and that.
    pub fn load_within(
        module: Arc<Module>,
        owner: u64,
        quota: Option<Quota<'_>>,
    ) -> Result<Arc<Program>, LoadError> {
        let mut image = Image {
            module: Arc::clone(&module),
            owner,
            globals: Vec::new(),
            codes: [(); 2].map(|()| {
                [(); 2].map(|()| module.functions.iter().map(|_| OnceLock::new()).collect())
            }),
        };
        for variable in &module.variables {
            // On failure `image` is dropped and frees what was allocated so far.
            image.globals.push(allocate(variable, owner, quota)?);
        }
        for (index, variable) in module.variables.iter().enumerate() {
            image.initialise(VarId(index as u32), variable)?;
        }
        let image = Arc::new(image);
        let entries = (0..)
            .map(FuncId)
            .zip(&module.functions)
            .filter(|(_, f)| f.kind == FunctionKind::Entry);
        let kernels = entries
            .map(|(id, f)| {
                (
                    f.name.clone(),
                    Arc::new(Kernel::new(Arc::clone(&image), id)),
                )
            })
            .collect();
        Ok(Arc::new(Program { image, kernels }))
    }

    /// The module.
    pub fn module(&self) -> &Arc<Module> {
        &self.image.module
    }

    /// Address and size in bytes of a `.global` or `.const` variable.
    pub fn global(&self, name: &str) -> Option<(u64, u64)> {
        let index = self
            .image
            .module
            .variables
            .iter()
            .position(|v| v.name == name)?;
        self.image.globals[index].map(|g| (g.address, g.bytes))
    }

    /// The kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<Arc<Kernel>> {
        self.kernels.get(name).cloned()
    }

    /// All kernels, in the order of the module.
    pub fn kernels(&self) -> impl Iterator<Item = &Arc<Kernel>> {
        let entries = self
            .image
            .module
            .functions
            .iter()
            .filter(|f| f.kind == FunctionKind::Entry);
        entries.filter_map(|f| self.kernels.get(&f.name))
    }
}

impl Image {
    /// Address of a variable in device memory.
    pub(crate) fn address(&self, var: VarId) -> Option<u64> {
        self.globals
            .get(var.0 as usize)
            .copied()
            .flatten()
            .map(|g| g.address)
    }

    /// The decoded code of a function; decoded when first asked for. `grid`: the lanes of a warp are in several rows of
    /// their block. `None` for a declaration.
    pub(crate) fn code(
        &self,
        id: FuncId,
        isa: Isa,
        grid: bool,
    ) -> Option<&Result<Arc<Code>, CannotRun>> {
        let function = self.module.functions.get(id.0 as usize)?;
        let body = function.body()?;
        // Only kernels have code that it makes a difference to.
        let grid = grid && function.kind == FunctionKind::Entry;
        let slot = self.codes[isa as usize][usize::from(grid)].get(id.0 as usize)?;
        Some(slot.get_or_init(|| decode(self, id, body, isa, grid).map(Arc::new)))
    }

    fn initialise(&self, id: VarId, variable: &Variable) -> Result<(), LoadError> {
        let Some(global) = self.globals[id.0 as usize] else {
            return Ok(());
        };
        if variable.init.is_empty() && variable.relocs.is_empty() {
            return Ok(());
        }
        let bad = |reason: String| LoadError::BadInitializer {
            variable: variable.name.clone(),
            reason,
        };
        let mut bytes = variable.init.clone();
        for reloc in &variable.relocs {
            let value = self.relocated(reloc).map_err(bad)?;
            let end = reloc.offset.saturating_add(u64::from(reloc.width));
            if reloc.width > 8 || end > variable.size {
                return Err(bad(format!(
                    "an address at offset {} does not fit",
                    reloc.offset
                )));
            }
            if bytes.len() < end as usize {
                bytes.resize(end as usize, 0);
            }
            let width = usize::from(reloc.width);
            bytes[reloc.offset as usize..end as usize]
                .copy_from_slice(&value.to_le_bytes()[..width]);
        }
        space()
            .write(global.address, &bytes)
            .map_err(|e| bad(e.to_string()))
    }

    fn relocated(&self, reloc: &Reloc) -> Result<u64, String> {
        let address = match reloc.target {
            RelocTarget::Function(id) => window::function_address(id.0),
            RelocTarget::Variable(id) => match self.address(id) {
                // In `.global` and `.const` space the generic address is the address.
                Some(address) => address,
                None => {
                    let name = self
                        .module
                        .variables
                        .get(id.0 as usize)
                        .map_or("?", |v| v.name.as_str());
                    return Err(format!("`{name}` has no address before a kernel runs"));
                }
            },
        };
        Ok(address.wrapping_add_signed(reloc.addend) >> reloc.shift.min(63))
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        for global in self.globals.iter().flatten() {
            // Gone already if the context went first; then the address may be someone else's by now.
            let _ = space().free_if(global.address, |a| a.id == global.id);
        }
    }
}

fn allocate(
    variable: &Variable,
    owner: u64,
    quota: Option<Quota<'_>>,
) -> Result<Option<Global>, LoadError> {
    let kind = match variable.space {
        Space::Global if variable.managed => Kind::Managed,
        Space::Global => Kind::Global,
        Space::Const => Kind::Constant,
        _ => return Ok(None),
    };
    let out_of_memory = |error| LoadError::OutOfMemory {
        variable: variable.name.clone(),
        error,
    };
    let address = match quota {
        Some(quota) => space().alloc_within(kind, owner, variable.size, quota),
        None => space().alloc(kind, owner, variable.size),
    };
    let address = address.map_err(out_of_memory)?;
    let id = space().find(address).map_or(0, |a| a.id);
    Ok(Some(Global {
        address,
        bytes: variable.size,
        id,
    }))
}

//! A module with its variables in device memory, and the decoded code of its functions.

use super::reach::taken;
use super::register_pressure::{self, Need};
use crate::code::function::Code;
use crate::code::isa::Isa;
use crate::decode::unsupported::UnsupportedInst;
use crate::decode::{Purpose, decode};
use crate::memory::{AllocationKind, OutOfMemory, Quota, address_space};
use crate::window;
use ptx::ir::{FuncId, Module, Reloc, RelocTarget, Space, VarId, Variable};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The code of a function for one instruction set, decoded on first use.
type LazyCode = OnceLock<Result<Arc<Code>, UnsupportedInst>>;

/// A module with its variables in device memory, and the decoded code of its functions.
#[derive(Debug)]
pub(crate) struct LoadedModule {
    pub(crate) module: Arc<Module>,
    /// The context that the module is loaded in.
    pub(crate) owner: u64,
    /// By variable; `None` for variables outside device memory.
    globals: Vec<Option<Global>>,
    /// The module whose managed variables this one uses instead of its own.
    managed: Option<Arc<LoadedModule>>,
    /// By instruction set and function.
    codes: [Vec<LazyCode>; 2],
    /// Code for observed launches, by instruction set and function; made when it is first needed.
    observed: [OnceLock<Vec<LazyCode>>; 2],
    /// The functions whose addresses the module takes, computed when first needed.
    taken: OnceLock<Vec<FuncId>>,
    /// By function: the registers that it needs; computed when first needed.
    needs: Vec<OnceLock<Need>>,
    /// The indices of the module's variables, sorted by name; made when first needed.
    by_name: OnceLock<Vec<usize>>,
}

/// A variable in device memory.
#[derive(Clone, Copy, Debug)]
struct Global {
    address: u64,
    bytes: u64,
    /// Identifies the allocation.
    id: u64,
}

/// The [`Global::id`] of a variable that another module frees. No allocation has it.
const NOT_OWNED: u64 = u64::MAX;

/// An error when a module is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// There is no memory for a variable.
    OutOfMemory {
        /// Name of the variable.
        variable: String,
        /// The failed allocation.
        error: OutOfMemory,
    },
    /// The initial value of a variable is invalid.
    BadInitializer {
        /// Name of the variable.
        variable: String,
        /// The reason why the value is invalid.
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

impl LoadedModule {
    /// Allocates and initialises the module's variables, except the managed ones that `managed` has already.
    pub(super) fn new(
        module: Arc<Module>,
        owner: u64,
        quota: Option<Quota<'_>>,
        managed: Option<Arc<LoadedModule>>,
    ) -> Result<Self, LoadError> {
        let mut loaded = LoadedModule {
            module: Arc::clone(&module),
            owner,
            globals: Vec::new(),
            managed,
            codes: [(); 2].map(|()| module.functions.iter().map(|_| OnceLock::new()).collect()),
            observed: [const { OnceLock::new() }; 2],
            taken: OnceLock::new(),
            needs: module.functions.iter().map(|_| OnceLock::new()).collect(),
            by_name: OnceLock::new(),
        };
        for variable in &module.variables {
            // On failure `loaded` is dropped and frees the variables allocated so far.
            let global = match loaded.managed_elsewhere(variable) {
                Some(shared) => Some(shared),
                None => allocate(variable, owner, quota)?,
            };
            loaded.globals.push(global);
        }
        for (index, variable) in module.variables.iter().enumerate() {
            if loaded.managed_elsewhere(variable).is_none() {
                loaded.initialise(VarId(index as u32), variable)?;
            }
        }
        Ok(loaded)
    }

    /// Returns the variable of the other module that this module uses; `None` for a variable of its own.
    fn managed_elsewhere(&self, variable: &Variable) -> Option<Global> {
        let other = self.managed.as_ref().filter(|_| variable.managed)?;
        let (address, bytes) = other.global(&variable.name)?;
        Some(Global {
            address,
            bytes,
            id: NOT_OWNED,
        })
    }

    /// Returns the functions whose addresses the module takes.
    pub(super) fn functions_with_taken_addresses(&self) -> &[FuncId] {
        self.taken.get_or_init(|| taken(&self.module))
    }

    /// Estimates how many registers the first of `functions` needs. The other functions are all that it may reach.
    pub(super) fn registers(&self, functions: &[FuncId]) -> u32 {
        register_pressure::estimate(functions, |id| {
            let body = self.module.functions.get(id.0 as usize)?.body()?;
            Some(self.needs.get(id.0 as usize)?.get_or_init(|| Need::of(body)))
        })
    }

    /// Returns the address of a variable in device memory.
    pub(crate) fn address(&self, var: VarId) -> Option<u64> {
        self.globals.get(var.0 as usize).copied().flatten().map(|g| g.address)
    }

    /// Returns the address and the size in bytes of the variable in device memory with this name.
    pub(super) fn global(&self, name: &str) -> Option<(u64, u64)> {
        let variables = &self.module.variables;
        let by_name = self.by_name.get_or_init(|| {
            let mut all: Vec<usize> = (0..variables.len()).collect();
            all.sort_by(|a, b| variables[*a].name.cmp(&variables[*b].name));
            all
        });
        let first = by_name.partition_point(|index| variables[*index].name.as_str() < name);
        let index = *by_name.get(first).filter(|index| variables[**index].name == name)?;
        self.globals[index].map(|g| (g.address, g.bytes))
    }

    /// Returns the decoded code of a function; `None` for a declaration.
    pub(crate) fn code(&self, id: FuncId, isa: Isa) -> Option<&Result<Arc<Code>, UnsupportedInst>> {
        let body = self.module.functions.get(id.0 as usize)?.body()?;
        let slot = self.codes[isa as usize].get(id.0 as usize)?;
        Some(slot.get_or_init(|| decode(&self.module, id, body, isa, Purpose::Run).map(Arc::new)))
    }

    /// Returns the code of a function for an observed launch; `None` for a declaration.
    pub(crate) fn observed_code(&self, id: FuncId, isa: Isa) -> Option<&Result<Arc<Code>, UnsupportedInst>> {
        let functions = &self.module.functions;
        let body = functions.get(id.0 as usize)?.body()?;
        let codes = self.observed[isa as usize].get_or_init(|| functions.iter().map(|_| OnceLock::new()).collect());
        let slot = codes.get(id.0 as usize)?;
        Some(slot.get_or_init(|| decode(&self.module, id, body, isa, Purpose::Observe).map(Arc::new)))
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
                return Err(bad(format!("an address at offset {} does not fit", reloc.offset)));
            }
            if bytes.len() < end as usize {
                bytes.resize(end as usize, 0);
            }
            let width = usize::from(reloc.width);
            bytes[reloc.offset as usize..end as usize].copy_from_slice(&value.to_le_bytes()[..width]);
        }
        address_space()
            .write(global.address, &bytes)
            .map_err(|e| bad(e.to_string()))
    }

    fn relocated(&self, reloc: &Reloc) -> Result<u64, String> {
        let address = match reloc.target {
            RelocTarget::Function(id) => window::function_address(id.0),
            RelocTarget::Variable(id) => match self.address(id) {
                // The generic address of `.global` and `.const` variables is their address.
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

impl Drop for LoadedModule {
    fn drop(&mut self) {
        for global in self.globals.iter().flatten() {
            // Frees nothing if another module owns the variable, or if the context was destroyed before. The address
            // may then belong to another allocation.
            let _ = address_space().free_if(global.address, |a| a.id == global.id);
        }
    }
}

fn allocate(variable: &Variable, owner: u64, quota: Option<Quota<'_>>) -> Result<Option<Global>, LoadError> {
    let kind = match variable.space {
        Space::Global if variable.managed => AllocationKind::Managed,
        Space::Global => AllocationKind::Global,
        Space::Const => AllocationKind::Constant,
        _ => return Ok(None),
    };
    let out_of_memory = |error| LoadError::OutOfMemory {
        variable: variable.name.clone(),
        error,
    };
    let address = match quota {
        Some(quota) => address_space().alloc_within(kind, owner, variable.size, quota),
        None => address_space().alloc(kind, owner, variable.size),
    };
    let address = address.map_err(out_of_memory)?;
    let id = address_space().find(address).map_or(0, |a| a.id);
    Ok(Some(Global {
        address,
        bytes: variable.size,
        id,
    }))
}

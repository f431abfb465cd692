//! A loaded module: its variables in device memory, and its kernels by name.

#![forbid(unsafe_code)]

pub(crate) mod history;
pub(crate) mod kernel;
pub(crate) mod loaded;
mod reach;
mod register_pressure;
pub(crate) mod resources;
pub(crate) mod shared_layout;
mod stack_depth;

use crate::memory::Quota;
use kernel::Kernel;
use loaded::{LoadError, LoadedModule};
use ptx::ir::{FuncId, FunctionKind, Module};
use std::collections::HashMap;
use std::sync::Arc;

/// A module whose variables are allocated and initialised. They are freed when the program and all its kernels are
/// dropped.
#[derive(Debug)]
pub struct Program {
    loaded: Arc<LoadedModule>,
    kernels: HashMap<String, Arc<Kernel>>,
}

impl Program {
    /// Allocates the module's `.global` and `.const` variables for the context `owner` and initialises them.
    ///
    /// # Errors
    /// Returns [`LoadError::OutOfMemory`], or [`LoadError::BadInitializer`] for an invalid initial value.
    pub fn load(module: Arc<Module>, owner: u64) -> Result<Arc<Program>, LoadError> {
        Self::load_within(module, owner, None, None)
    }

    /// As [`load`](Self::load), with a limit on the device memory in use, and with the `.managed` variables of another
    /// program of the same module.
    ///
    /// # Errors
    /// As [`load`](Self::load); [`LoadError::OutOfMemory`] also if `quota` would be exceeded.
    pub fn load_within(
        module: Arc<Module>,
        owner: u64,
        quota: Option<Quota<'_>>,
        managed: Option<&Program>,
    ) -> Result<Arc<Program>, LoadError> {
        let managed = managed.map(|program| Arc::clone(&program.loaded));
        let module_of = Arc::clone(&module);
        let loaded = Arc::new(LoadedModule::new(module_of, owner, quota, managed)?);
        let entries = (0..)
            .map(FuncId)
            .zip(&module.functions)
            .filter(|(_, f)| f.kind == FunctionKind::Entry);
        let kernels = entries
            .map(|(id, f)| (f.name.clone(), Arc::new(Kernel::new(Arc::clone(&loaded), id))))
            .collect();
        Ok(Arc::new(Program { loaded, kernels }))
    }

    /// Returns the module.
    pub fn module(&self) -> &Arc<Module> {
        &self.loaded.module
    }

    /// Returns the address and the size in bytes of a `.global` or `.const` variable.
    pub fn global(&self, name: &str) -> Option<(u64, u64)> {
        self.loaded.global(name)
    }

    /// Returns the kernel with this name.
    pub fn kernel(&self, name: &str) -> Option<Arc<Kernel>> {
        self.kernels.get(name).cloned()
    }

    /// Returns all kernels, in the order of the module.
    pub fn kernels(&self) -> impl Iterator<Item = &Arc<Kernel>> {
        let entries = self
            .loaded
            .module
            .functions
            .iter()
            .filter(|f| f.kind == FunctionKind::Entry);
        entries.filter_map(|f| self.kernels.get(&f.name))
    }
}

//! Modules: images loaded into a context.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::context::{self, Context};
use super::error::{Error, Result};
use super::function::{self, Function};
use super::jit::{self, Log};
use super::memory;
use super::process::{driver, driver_without_fault, observe_fault};
use super::reference;
use engine::Program;
use image::Image;
use ptx::ir;

/// A module.
pub(crate) struct Module {
    pub(crate) handle: usize,
    context: Weak<Context>,
    pub(crate) context_id: u64,
    /// It is what a library is in the context: only with the library it is unloaded.
    pub(crate) of_library: bool,
    pub(crate) program: Arc<Program>,
    /// Handles of the functions that were asked for.
    functions: Mutex<BTreeMap<String, usize>>,
    /// Handles of the texture and surface references that were asked for.
    references: Mutex<BTreeMap<String, usize>>,
}

/// The living module of this handle.
pub(crate) fn get(handle: usize) -> Result<Arc<Module>> {
    driver_without_fault()?.modules.get(handle).map_err(|why| {
        host::log!("module {handle:#x} is {why:?}");
        Error::INVALID_HANDLE
    })
}

/// `cuModuleLoadData` and its like.
pub(crate) fn load(image: &Image, options: &jit::Options, log: &mut Log) -> Result<usize> {
    let context = context::current()?;
    let module = jit::compile(image, options, context.device, log)?;
    jit::check_target(options, context.device)?;
    Ok(instantiate(&context, module, false)?.handle)
}

/// Loads a compiled module into a context. The work of the context is waited for: its variables are written.
pub(crate) fn instantiate(
    context: &Arc<Context>,
    module: Arc<ir::Module>,
    of_library: bool,
) -> Result<Arc<Module>> {
    if module
        .variables
        .iter()
        .any(|v| v.space == ir::Space::Global)
    {
        context.drain();
        observe_fault()?;
    }
    let owners = memory::owners_on(context.device)?;
    let quota = memory::quota(context.device, &owners);
    let program = Program::load_within(module, context.id(), Some(quota)).map_err(|error| {
        host::log!("{error}");
        match error {
            engine::LoadError::OutOfMemory { .. } => Error::OUT_OF_MEMORY,
            engine::LoadError::BadInitializer { .. } => Error::INVALID_PTX,
        }
    })?;
    let module = driver()?.modules.insert_with(|handle| Module {
        handle,
        context: Arc::downgrade(context),
        context_id: context.id(),
        of_library,
        program,
        functions: Mutex::default(),
        references: Mutex::default(),
    });
    reference::begin(&module);
    Ok(module)
}

/// `cuModuleUnload`: waits for the work of its context.
pub(crate) fn unload(handle: usize) -> Result<()> {
    super::capture::check_unsafe()?;
    let module = get(handle)?;
    if let Some(context) = module.context.upgrade() {
        context.drain();
        observe_fault()?;
    }
    remove(&module)
}

fn remove(module: &Module) -> Result<()> {
    let driver = driver()?;
    for function in module.functions().values() {
        let _ = driver.functions.remove(*function);
    }
    let references = module
        .references
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    for reference in references.values() {
        let _ = driver.references.remove(*reference);
    }
    reference::end(module);
    driver
        .modules
        .remove(module.handle)
        .map_err(|_| Error::INVALID_HANDLE)?;
    Ok(())
}

/// Unloads the modules of a context that ends.
pub(crate) fn unload_all_of(context: &Context) {
    let Ok(driver) = driver() else { return };
    for module in driver.modules.all() {
        if module.context_id == context.id() {
            let _ = remove(&module);
        }
    }
}

impl Module {
    fn functions(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.functions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// `cuModuleGetFunction`: the same handle each time.
    pub(crate) fn function(&self, name: &str) -> Result<usize> {
        if name.is_empty() {
            return Err(Error::INVALID_VALUE);
        }
        let mut functions = self.functions();
        if let Some(handle) = functions.get(name) {
            return Ok(*handle);
        }
        let kernel = self.program.kernel(name).ok_or_else(|| {
            host::log!("the module has no kernel `{name}`");
            Error::NOT_FOUND
        })?;
        let function = driver()?
            .functions
            .insert_with(|handle| Function::new(handle, self, kernel));
        functions.insert(name.into(), function.handle);
        Ok(function.handle)
    }

    /// `cuModuleGetTexRef`, `cuModuleGetSurfRef`: the same handle each time.
    pub(crate) fn reference(&self, name: &str, surface: bool) -> Result<usize> {
        let mut references = self
            .references
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = references.get(name)
            && reference::bound(*handle, surface).is_ok()
        {
            return Ok(*handle);
        }
        let handle = reference::of_variable(self, name, surface)?;
        references.insert(name.into(), handle);
        Ok(handle)
    }

    /// `cuModuleGetGlobal`: address and size in bytes.
    pub(crate) fn global(&self, name: &str) -> Result<(u64, u64)> {
        if name.is_empty() {
            return Err(Error::INVALID_VALUE);
        }
        let variables = &self.program.module().variables;
        let opaque = variables
            .iter()
            .any(|v| v.name == name && v.opaque.is_some());
        if opaque || self.program.kernel(name).is_some() {
            return Err(Error::INVALID_VALUE);
        }
        self.program.global(name).ok_or_else(|| {
            host::log!("the module has no variable `{name}`");
            Error::NOT_FOUND
        })
    }

    /// Number of kernels.
    pub(crate) fn function_count(&self) -> usize {
        self.program.kernels().count()
    }

    /// Handles of the first kernels, at most `most`.
    pub(crate) fn enumerate(&self, most: usize) -> Result<Vec<usize>> {
        self.program
            .kernels()
            .take(most)
            .map(|k| self.function(k.name()))
            .collect()
    }
}

/// The module that a function belongs to.
pub(crate) fn of_function(handle: usize) -> Result<usize> {
    Ok(function::get(handle)?.module)
}

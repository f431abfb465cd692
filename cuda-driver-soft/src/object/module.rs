//! Modules: images loaded into a context.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::object::context::{self, Context};
use crate::object::device::Device;
use crate::object::{function, leak, memory, reference};
use crate::queue::scheduler::observe_fault;
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Table};
use engine::Program;
use ptx::ir;

static TABLE: Table<Module> = Table::new(HandleKind::Module);

/// Returns the table of loaded modules.
pub(crate) fn table() -> &'static Table<Module> {
    &TABLE
}

/// A module.
pub(crate) struct Module {
    pub(crate) handle: usize,
    pub(crate) context: Weak<Context>,
    pub(crate) context_id: u64,
    device: &'static Device,
    /// True if the module belongs to a library: the program cannot unload it apart from the library.
    pub(crate) of_library: bool,
    pub(crate) program: Arc<Program>,
    /// Handles of the functions that were requested.
    functions: Mutex<BTreeMap<String, usize>>,
    /// Handles of the texture and surface references that were requested; the last of each name is the one that calls
    /// with a current context return.
    references: Mutex<BTreeMap<String, Vec<usize>>>,
}

/// Returns the module with this handle.
pub(crate) fn get(handle: usize) -> Result<Arc<Module>> {
    TABLE.get(handle).map_err(|missing| {
        host::log!("module {handle:#x} {missing}");
        Error::CUDA_ERROR_INVALID_HANDLE
    })
}

/// Logs an error of loading a program, and returns its result code.
pub(crate) fn load_error(error: engine::LoadError) -> Error {
    host::log!("{error}");
    match error {
        engine::LoadError::OutOfMemory { .. } => Error::CUDA_ERROR_OUT_OF_MEMORY,
        engine::LoadError::BadInitializer { .. } => Error::CUDA_ERROR_INVALID_PTX,
    }
}

/// Loads a compiled module into a context, with the managed variables of another program if one is given. Waits for the
/// context's work first if the module has variables in global memory.
pub(crate) fn instantiate(
    context: &Arc<Context>,
    module: Arc<ir::Module>,
    of_library: bool,
    managed: Option<&Program>,
) -> Result<Arc<Module>> {
    if module.variables.iter().any(|v| v.space == ir::Space::Global) {
        context.drain();
        observe_fault()?;
    }
    let owners = memory::owners_on(context.device);
    let quota = memory::quota(context.device, &owners);
    let program = Program::load_within(module, context.id(), Some(quota), managed).map_err(load_error)?;
    let module = TABLE.insert_with(|handle| Module {
        handle,
        context: Arc::downgrade(context),
        context_id: context.id(),
        device: context.device,
        of_library,
        program,
        functions: Mutex::default(),
        references: Mutex::default(),
    });
    reference::begin(&module.program);
    // Checked after the insertion: the end of a context first marks it, and then removes its modules.
    context.check_alive().inspect_err(|_| _ = remove(&module))?;
    if !of_library {
        leak::note("module", &TABLE, module.handle, Some(context));
    }
    Ok(module)
}

/// Removes a module that is unloaded, with its functions and references.
pub(crate) fn remove(module: &Module) -> Result<()> {
    // Removed first: another thread that has looked up the module must not add functions and references afterwards.
    TABLE
        .remove(module.handle)
        .map_err(|_| Error::CUDA_ERROR_INVALID_HANDLE)?;
    for function in module.functions().values() {
        function::remove(*function);
    }
    for reference in module.references().values().flatten() {
        reference::remove(*reference);
    }
    reference::end(&module.program);
    Ok(())
}

impl Module {
    fn functions(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn references(&self) -> MutexGuard<'_, BTreeMap<String, Vec<usize>>> {
        self.references.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `cuModuleGetFunction`: returns the same handle for a name each time. Returns `CUDA_ERROR_INVALID_HANDLE` if
    /// another thread has unloaded the module.
    pub(crate) fn function(&self, name: &str) -> Result<usize> {
        if name.is_empty() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let mut functions = self.functions();
        if let Some(handle) = functions.get(name) {
            return Ok(*handle);
        }
        let kernel = self.program.kernel(name).ok_or_else(|| {
            host::log!("the module has no kernel `{name}`");
            Error::CUDA_ERROR_NOT_FOUND
        })?;
        get(self.handle)?;
        let function = function::create(self.handle, self.context_id, self.device, kernel);
        functions.insert(name.into(), function);
        Ok(function)
    }

    /// `cuModuleGetTexRef`, `cuModuleGetSurfRef`: return the same handle for a name each time if a context is current,
    /// else a new one.
    pub(crate) fn reference(&self, name: &str, surface: bool) -> Result<usize> {
        let mut references = self.references();
        if let Some(handle) = references.get(name).and_then(|handles| handles.last())
            && context::current().is_ok()
            && reference::get(*handle, surface).is_ok()
        {
            return Ok(*handle);
        }
        get(self.handle)?;
        let handle = reference::of_variable(&self.program, &self.context, name, surface)?;
        references.entry(name.into()).or_default().push(handle);
        Ok(handle)
    }

    /// `cuModuleGetGlobal`: returns the address and the size in bytes.
    pub(crate) fn global(&self, name: &str) -> Result<(u64, u64)> {
        if name.is_empty() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let variables = &self.program.module().variables;
        let opaque = variables.iter().any(|v| v.name == name && v.opaque.is_some());
        if opaque || self.program.kernel(name).is_some() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        self.program.global(name).ok_or_else(|| {
            host::log!("the module has no variable `{name}`");
            Error::CUDA_ERROR_NOT_FOUND
        })
    }

    /// Returns the number of kernels.
    pub(crate) fn function_count(&self) -> usize {
        self.program.kernels().count()
    }

    /// Returns the handles of the first kernels, at most `most`.
    pub(crate) fn enumerate(&self, most: usize) -> Result<Vec<usize>> {
        self.program
            .kernels()
            .take(most)
            .map(|k| self.function(k.name()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::object::jit::{self, Log, Options};
    use image::Image;

    #[test]
    fn an_unloaded_module_gets_no_new_functions() {
        let context = context::for_test();
        let text = b".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry k() { ret; }\n";
        let image = Image::Text(text.to_vec());
        let compiled = jit::compile(&image, &Options::default(), context.device, &mut Log::default()).unwrap();
        let module = instantiate(&context, compiled, false, None).unwrap();
        let functions = module.functions();
        let found = get(module.handle).unwrap();
        let late = std::thread::spawn(move || found.function("k"));
        // Gives the thread time to wait for the lock of the functions.
        std::thread::sleep(Duration::from_millis(100));
        TABLE.remove(module.handle).unwrap();
        drop(functions);
        assert_eq!(late.join().unwrap(), Err(Error::CUDA_ERROR_INVALID_HANDLE));
        assert!(module.functions().is_empty());
    }
}

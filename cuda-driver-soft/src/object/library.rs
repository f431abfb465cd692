//! Libraries and kernels: images that belong to no context and are loaded into each context on first use.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::object::context::{self, Context};
use crate::object::device::{self, Device};
use crate::object::function::{self, Function};
use crate::object::jit::{self, Log};
use crate::object::kernel_attribute::{self as attribute, KernelSettings};
use crate::object::module::{self, Module};
use crate::object::{leak, memory};
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Table};
use engine::Program;
use engine::memory::AllocationKind;
use image::Image;
use ptx::ir;

static LIBRARIES: Table<Library> = Table::new(HandleKind::Library);
static KERNELS: Table<Kernel> = Table::new(HandleKind::Kernel);

/// A library.
pub(crate) struct Library {
    handle: usize,
    image: Image,
    options: jit::Options,
    state: Mutex<LibraryState>,
}

#[derive(Default)]
struct LibraryState {
    /// The compiled module or the error, by architecture.
    compiled: BTreeMap<u32, Result<Arc<ir::Module>>>,
    /// Handles of the loaded modules by context ID.
    modules: BTreeMap<u64, usize>,
    /// Handles of the kernels that were requested.
    kernels: BTreeMap<String, usize>,
    /// True once the library is being unloaded: it gets no further modules and kernels.
    is_unloaded: bool,
    /// The program loaded without a context, for queries that need none.
    without_context: Option<Arc<Program>>,
}

/// A kernel of a library.
pub(crate) struct Kernel {
    pub(crate) handle: usize,
    pub(crate) library: usize,
    pub(crate) name: CString,
    /// Values set by `cuKernelSetAttribute`.
    settings: Arc<KernelSettings>,
}

/// Returns the library with this handle.
pub(crate) fn get(handle: usize) -> Result<Arc<Library>> {
    LIBRARIES.get(handle).map_err(|missing| {
        host::log!("library {handle:#x} {missing}");
        Error::CUDA_ERROR_INVALID_HANDLE
    })
}

/// Returns the kernel with this handle.
pub(crate) fn kernel(handle: usize) -> Result<Arc<Kernel>> {
    KERNELS.get(handle).map_err(|missing| {
        host::log!("kernel {handle:#x} {missing}");
        Error::CUDA_ERROR_INVALID_HANDLE
    })
}

/// `cuLibraryLoadData`: succeeds with any image. The compiler's messages are in the log; its error is returned by later
/// calls that need the code.
pub(crate) fn load(image: Image, options: jit::Options, log: &mut Log) -> Result<usize> {
    let library = LIBRARIES.insert_with(|handle| Library {
        handle,
        image,
        options,
        state: Mutex::default(),
    });
    let _ = library.compiled(first_device()?, log);
    leak::note("library", &LIBRARIES, library.handle, None);
    Ok(library.handle)
}

/// Removes the kernels of a library that is unloaded, and returns its loaded modules.
pub(crate) fn remove_parts(library: &Library) -> Vec<Arc<Module>> {
    let unloaded = LibraryState {
        is_unloaded: true,
        ..LibraryState::default()
    };
    let state = std::mem::replace(&mut *library.state(), unloaded);
    for kernel in state.kernels.values() {
        let _ = KERNELS.remove(*kernel);
    }
    let modules = state.modules.into_values();
    modules.filter_map(|handle| module::table().get(handle).ok()).collect()
}

/// Removes a library whose kernels and modules are already removed.
pub(crate) fn remove(handle: usize) -> Result<()> {
    let removed = LIBRARIES.remove(handle);
    removed.map(drop).map_err(|_| Error::CUDA_ERROR_INVALID_HANDLE)
}

/// Returns the function with this handle, or the function of a `CUkernel` in a context.
pub(crate) fn function_or_kernel(handle: usize, context: &Arc<Context>) -> Result<Arc<Function>> {
    if HandleKind::Kernel.may_have(handle)
        && let Ok(kernel) = KERNELS.get(handle)
    {
        return function::get(kernel.function_in(context)?);
    }
    function::get(handle)
}

/// Returns the function for a launch on a stream of `context`. Refuses a function of another context.
pub(crate) fn function_for_launch(handle: usize, context: &Arc<Context>) -> Result<Arc<Function>> {
    let function = function_or_kernel(handle, context)?;
    if function.context_id != context.id() {
        host::log!(
            "`{}` and the stream belong to different contexts",
            function.kernel.name()
        );
        return Err(Error::CUDA_ERROR_INVALID_HANDLE);
    }
    Ok(function)
}

/// Returns the function that a graph node launches, and its context: the function with this handle or, if the handle is
/// 0, the function of the `CUkernel` in the given context (the current one if `given` is 0).
pub(crate) fn function_for_node(handle: usize, kernel: usize, given: usize) -> Result<(usize, Arc<Context>)> {
    if handle != 0 || kernel == 0 {
        let context = function::get(handle)?.context_id as usize;
        return Ok((handle, context::by_handle(context)?));
    }
    let kernel = KERNELS.get(kernel);
    let kernel = kernel.map_err(|_| Error::CUDA_ERROR_INVALID_HANDLE)?;
    let context = if given == 0 {
        context::current()?
    } else {
        context::by_handle(given)?
    };
    Ok((kernel.function_in(&context)?, context))
}

impl LibraryState {
    /// Returns the module for a context: `made`, unless another thread has loaded one meanwhile. Returns
    /// `CUDA_ERROR_INVALID_HANDLE` if another thread has unloaded the library.
    fn use_module(&mut self, context: u64, made: &Arc<Module>) -> Result<Arc<Module>> {
        if self.is_unloaded {
            return Err(Error::CUDA_ERROR_INVALID_HANDLE);
        }
        let other = self.modules.get(&context).and_then(|other| module::get(*other).ok());
        if let Some(other) = other {
            return Ok(other);
        }
        self.modules.insert(context, made.handle);
        Ok(Arc::clone(made))
    }
}

impl Library {
    fn state(&self) -> MutexGuard<'_, LibraryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn compiled(&self, device: &Device, log: &mut Log) -> Result<Arc<ir::Module>> {
        let mut state = self.state();
        let compile = || jit::compile(&self.image, &self.options, device, log);
        state.compiled.entry(device.profile.sm).or_insert_with(compile).clone()
    }

    /// Returns the program compiled for the first device and loaded without a context.
    fn without_context(&self) -> Result<Arc<Program>> {
        const NO_CONTEXT: u64 = 0;
        let device = first_device()?;
        let module = self.compiled(device, &mut Log::default())?;
        let owner = match module.variables.iter().any(|v| v.managed) {
            true => memory::owner_of(device),
            false => NO_CONTEXT,
        };
        let mut state = self.state();
        if state.without_context.is_none() {
            let loaded = Program::load(module, owner);
            state.without_context = Some(loaded.map_err(module::load_error)?);
        }
        state.without_context.clone().ok_or(Error::CUDA_ERROR_UNKNOWN)
    }

    /// `cuLibraryGetModule` in a context.
    pub(crate) fn module_in(&self, context: &Arc<Context>) -> Result<Arc<Module>> {
        if let Some(handle) = self.state().modules.get(&context.id()).copied()
            && let Ok(module) = module::get(handle)
        {
            return Ok(module);
        }
        let compiled = self.compiled(context.device, &mut Log::default())?;
        jit::check_target(&self.options, context.device)?;
        // Managed variables have one address in all contexts.
        let managed = match compiled.variables.iter().any(|v| v.managed) {
            true => Some(self.without_context()?),
            false => None,
        };
        // The library is not locked meanwhile, because this may wait for the context's work.
        let module = module::instantiate(context, compiled, true, managed.as_deref())?;
        let used = self.state().use_module(context.id(), &module);
        if !used.as_ref().is_ok_and(|used| Arc::ptr_eq(used, &module)) {
            module::remove(&module)?;
        }
        used
    }

    /// `cuLibraryGetKernel`: returns the same handle for a name each time. Returns `CUDA_ERROR_INVALID_HANDLE` if
    /// another thread has unloaded the library.
    pub(crate) fn kernel(&self, name: &str) -> Result<usize> {
        self.without_context()?
            .kernel(name)
            .ok_or(Error::CUDA_ERROR_NOT_FOUND)?;
        let mut state = self.state();
        if state.is_unloaded {
            return Err(Error::CUDA_ERROR_INVALID_HANDLE);
        }
        if let Some(handle) = state.kernels.get(name) {
            return Ok(*handle);
        }
        let c_name = CString::new(name).map_err(|_| Error::CUDA_ERROR_NOT_FOUND)?;
        let kernel = KERNELS.insert_with(|handle| Kernel {
            handle,
            library: self.handle,
            name: c_name,
            settings: Arc::default(),
        });
        state.kernels.insert(name.into(), kernel.handle);
        Ok(kernel.handle)
    }

    /// Returns the handles of the first kernels, at most `most`. Driver 580 reports no kernels for an invalid image.
    pub(crate) fn enumerate(&self, most: usize) -> Result<Vec<usize>> {
        let Ok(program) = self.without_context() else {
            return Ok(Vec::new());
        };
        program.kernels().take(most).map(|k| self.kernel(k.name())).collect()
    }

    /// `cuLibraryGetManaged`: returns address and size in bytes. It needs no context.
    pub(crate) fn managed(&self, name: &str) -> Result<(u64, u64)> {
        let program = self.without_context()?;
        let found = program
            .global(name)
            .filter(|&(address, _)| memory::find(address).is_some_and(|a| a.kind == AllocationKind::Managed));
        found.ok_or_else(|| {
            host::log!("the library has no managed variable `{name}`");
            Error::CUDA_ERROR_NOT_FOUND
        })
    }

    /// Returns the number of kernels; 0 for an invalid image.
    pub(crate) fn kernel_count(&self) -> usize {
        self.without_context().map_or(0, |program| program.kernels().count())
    }
}

fn first_device() -> Result<&'static Device> {
    device::all().first().ok_or(Error::CUDA_ERROR_NO_DEVICE)
}

impl Kernel {
    /// Returns the handle of the kernel's function in a context.
    pub(crate) fn function_in(&self, context: &Arc<Context>) -> Result<usize> {
        let handle = get(self.library)?
            .module_in(context)?
            .function(&self.name.to_string_lossy())?;
        function::get(handle)?.link_library_kernel(self.handle, &self.settings);
        Ok(handle)
    }

    /// Returns the kernel of the program loaded without a context.
    pub(crate) fn without_context(&self) -> Result<Arc<engine::Kernel>> {
        get(self.library)?
            .without_context()?
            .kernel(&self.name.to_string_lossy())
            .ok_or(Error::CUDA_ERROR_NOT_FOUND)
    }

    /// `cuKernelGetAttribute` for a device. Values set on the kernel's functions do not change it.
    pub(crate) fn attribute(&self, attribute: u32, device: &Device) -> Result<i32> {
        let kernel = self.without_context()?;
        match self.settings.get(attribute, device) {
            Some(value) => Ok(value),
            None => attribute::of_kernel(&kernel, device, attribute),
        }
    }

    /// `cuKernelSetAttribute`: also applies to the kernel's functions in contexts of the device, unless they have
    /// values of their own.
    pub(crate) fn set_attribute(&self, attribute: u32, value: i32, device: &Device) -> Result<()> {
        let value = attribute::check(&*self.without_context()?, device, attribute, value)?;
        self.settings.set(attribute, device, value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_has_one_module_in_a_context_until_it_is_unloaded() {
        device::set_all(device::from_environment().unwrap());
        let text = b".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry k() { ret; }\n";
        let image = Image::Text(text.to_vec());
        let handle = load(image, jit::Options::default(), &mut Log::default()).unwrap();
        let library = get(handle).unwrap();
        let context = context::make(0, first_device().unwrap(), false);
        let module = library.module_in(&context).unwrap().handle;
        let first = library.kernel("k").unwrap();
        assert_eq!(library.kernel("k"), Ok(first));
        // Another thread that found no module loads one, too.
        let compiled = library.compiled(context.device, &mut Log::default()).unwrap();
        let second = module::instantiate(&context, compiled, true, None).unwrap();
        let used = library.state().use_module(context.id(), &second);
        assert_eq!(used.map(|used| used.handle), Ok(module));
        module::remove(&second).unwrap();
        let parts = remove_parts(&library);
        assert_eq!(parts.iter().map(|part| part.handle).collect::<Vec<_>>(), [module]);
        module::remove(&parts[0]).unwrap();
        // A thread that found the library before the unloading loads a module and looks for a kernel after it.
        let late = library.module_in(&context).map(|module| module.handle);
        assert_eq!(late, Err(Error::CUDA_ERROR_INVALID_HANDLE));
        assert_eq!(library.kernel("k"), Err(Error::CUDA_ERROR_INVALID_HANDLE));
        assert!(kernel(first).is_err());
        let of_context = |module: &Arc<Module>| module.context_id == context.id();
        assert!(!module::table().all().iter().any(of_context));
        remove(handle).unwrap();
    }
}

//! Libraries and kernels: images that belong to no context, loaded into each when they are first used there.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::object::context::{self, Context};
use crate::object::device::{self, Device};
use crate::object::function::{self, Function};
use crate::object::jit::{self, Log};
use crate::object::kernel_attribute::{self as attribute, KernelSettings};
use crate::object::module::{self, Module};
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Table};
use engine::Program;
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
    /// The image compiled for an architecture, or why that failed.
    compiled: BTreeMap<u32, Result<Arc<ir::Module>>>,
    /// Modules by the context that they are loaded into.
    modules: BTreeMap<u64, usize>,
    /// Handles of the kernels that were asked for.
    kernels: BTreeMap<String, usize>,
    /// Loaded for no context: it answers what can be asked without one.
    plain: Option<Arc<Program>>,
}

/// A kernel of a library.
pub(crate) struct Kernel {
    pub(crate) handle: usize,
    pub(crate) library: usize,
    pub(crate) name: CString,
    /// What `cuKernelSetAttribute` set.
    settings: Arc<KernelSettings>,
}

/// The living library of this handle.
pub(crate) fn get(handle: usize) -> Result<Arc<Library>> {
    LIBRARIES.get(handle).map_err(|why| {
        host::log!("library {handle:#x} is {why:?}");
        Error::CUDA_ERROR_INVALID_HANDLE
    })
}

/// The living kernel of this handle.
pub(crate) fn kernel(handle: usize) -> Result<Arc<Kernel>> {
    KERNELS.get(handle).map_err(|why| {
        host::log!("kernel {handle:#x} is {why:?}");
        Error::CUDA_ERROR_INVALID_HANDLE
    })
}

/// `cuLibraryLoadData`: succeeds whatever the image is. What the compiler says is in the log; what is wrong is answered
/// when a kernel is asked for.
pub(crate) fn load(image: Image, options: jit::Options, log: &mut Log) -> Result<usize> {
    let library = LIBRARIES.insert_with(|handle| Library {
        handle,
        image,
        options,
        state: Mutex::default(),
    });
    let _ = library.compiled(first_device()?, log);
    Ok(library.handle)
}

/// Takes out a library that is unloaded, and its kernels; the handles of its modules that are loaded.
pub(crate) fn remove_parts(library: &Library) -> Vec<usize> {
    let state = std::mem::take(&mut *library.state());
    for kernel in state.kernels.values() {
        let _ = KERNELS.remove(*kernel);
    }
    let modules = state.modules.into_values();
    modules
        .filter(|m| module::table().get(*m).is_ok())
        .collect()
}

/// Takes out a library without parts.
pub(crate) fn remove(handle: usize) -> Result<()> {
    let removed = LIBRARIES.remove(handle);
    removed
        .map(drop)
        .map_err(|_| Error::CUDA_ERROR_INVALID_HANDLE)
}

/// The living function of this handle, or the function of a `CUkernel` in a context.
pub(crate) fn function_or_kernel(handle: usize, context: &Arc<Context>) -> Result<Arc<Function>> {
    match KERNELS.get(handle) {
        Ok(kernel) => function::get(kernel.function_in(context)?),
        Err(_) => function::get(handle),
    }
}

/// The function for a launch on a stream of `context`: one of another context is refused.
pub(crate) fn function_for_launch(handle: usize, context: &Arc<Context>) -> Result<Arc<Function>> {
    let function = function_or_kernel(handle, context)?;
    if function.context_id != context.id() {
        host::log!(
            "`{}` belongs to another context than the stream",
            function.kernel.name()
        );
        return Err(Error::CUDA_ERROR_INVALID_HANDLE);
    }
    Ok(function)
}

/// The function that a node of a graph launches: the given one, or where there is none that of the `CUkernel` in the given
/// or else the current context; with its context.
pub(crate) fn function_for_node(
    handle: usize,
    kernel: usize,
    given: usize,
) -> Result<(usize, Arc<Context>)> {
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

impl Library {
    fn state(&self) -> MutexGuard<'_, LibraryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn compiled(&self, device: &Device, log: &mut Log) -> Result<Arc<ir::Module>> {
        let mut state = self.state();
        let compile = || jit::compile(&self.image, &self.options, device, log);
        state
            .compiled
            .entry(device.profile.sm)
            .or_insert_with(compile)
            .clone()
    }

    /// What is known without a context: the library compiled for the first device.
    fn plain(&self) -> Result<Arc<Program>> {
        let module = self.compiled(first_device()?, &mut Log::default())?;
        let mut state = self.state();
        if state.plain.is_none() {
            const NOBODY: u64 = 0;
            state.plain =
                Some(Program::load(module, NOBODY).map_err(|_| Error::CUDA_ERROR_OUT_OF_MEMORY)?);
        }
        state.plain.clone().ok_or(Error::CUDA_ERROR_UNKNOWN)
    }

    /// `cuLibraryGetModule`, in a context.
    pub(crate) fn module_in(&self, context: &Arc<Context>) -> Result<Arc<Module>> {
        if let Some(handle) = self.state().modules.get(&context.id()).copied()
            && let Ok(module) = module::get(handle)
        {
            return Ok(module);
        }
        let compiled = self.compiled(context.device, &mut Log::default())?;
        jit::check_target(&self.options, context.device)?;
        let module = module::instantiate(context, compiled, true)?;
        self.state().modules.insert(context.id(), module.handle);
        Ok(module)
    }

    /// `cuLibraryGetKernel`: the same handle each time.
    pub(crate) fn kernel(&self, name: &str) -> Result<usize> {
        self.plain()?
            .kernel(name)
            .ok_or(Error::CUDA_ERROR_NOT_FOUND)?;
        let mut state = self.state();
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

    /// Handles of the first kernels, at most `most`. As recorded, an image that is none has no kernels.
    pub(crate) fn enumerate(&self, most: usize) -> Result<Vec<usize>> {
        let Ok(program) = self.plain() else {
            return Ok(Vec::new());
        };
        program
            .kernels()
            .take(most)
            .map(|k| self.kernel(k.name()))
            .collect()
    }

    /// Number of kernels.
    pub(crate) fn kernel_count(&self) -> usize {
        self.plain().map_or(0, |program| program.kernels().count())
    }
}

fn first_device() -> Result<&'static Device> {
    device::all().first().ok_or(Error::CUDA_ERROR_NO_DEVICE)
}

impl Kernel {
    /// The function that it is in a context.
    pub(crate) fn function_in(&self, context: &Arc<Context>) -> Result<usize> {
        let handle = get(self.library)?
            .module_in(context)?
            .function(&self.name.to_string_lossy())?;
        function::get(handle)?.is_of_kernel(&self.settings);
        Ok(handle)
    }

    /// What can be said of it without a context.
    pub(crate) fn plain(&self) -> Result<Arc<engine::Kernel>> {
        get(self.library)?
            .plain()?
            .kernel(&self.name.to_string_lossy())
            .ok_or(Error::CUDA_ERROR_NOT_FOUND)
    }

    /// `cuKernelGetAttribute` for a device: what can be set is as `cuKernelSetAttribute` left it, whatever was set in a
    /// function that the kernel became.
    pub(crate) fn attribute(&self, attribute: u32, device: &Device) -> Result<i32> {
        let kernel = self.plain()?;
        match self.settings.get(attribute, device) {
            Some(value) => Ok(value),
            None => attribute::of_kernel(&kernel, device, attribute),
        }
    }

    /// `cuKernelSetAttribute`: for the functions that it is in contexts of the device, too, as far as they have nothing set
    /// of their own.
    pub(crate) fn set_attribute(&self, attribute: u32, value: i32, device: &Device) -> Result<()> {
        let value = attribute::check(&*self.plain()?, device, attribute, value)?;
        self.settings.set(attribute, device, value);
        Ok(())
    }
}

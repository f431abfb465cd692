//! Libraries and kernels: images that belong to no context, loaded into each when they are first used there.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::context::{self, Context};
use super::device::Device;
use super::error::{Error, Result};
use super::jit::{self, Log};
use super::module::{self, Module};
use super::process::{driver, driver_without_fault};
use crate::exec::{self, Program};
use crate::image::Image;
use crate::ir;

/// A library.
pub(crate) struct Library {
    handle: usize,
    image: Image,
    options: jit::Options,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
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
}

/// The living library of this handle.
pub(crate) fn get(handle: usize) -> Result<Arc<Library>> {
    driver_without_fault()?
        .libraries
        .get(handle)
        .map_err(|why| {
            crate::log!("library {handle:#x} is {why:?}");
            Error::INVALID_HANDLE
        })
}

/// The living kernel of this handle.
pub(crate) fn kernel(handle: usize) -> Result<Arc<Kernel>> {
    driver_without_fault()?.kernels.get(handle).map_err(|why| {
        crate::log!("kernel {handle:#x} is {why:?}");
        Error::INVALID_HANDLE
    })
}

/// `cuLibraryLoadData`: succeeds whatever the image is; it is looked at when a kernel is asked for.
pub(crate) fn load(image: Image, options: jit::Options) -> Result<usize> {
    let library = driver_without_fault()?
        .libraries
        .insert_with(|handle| Library {
            handle,
            image,
            options,
            state: Mutex::default(),
        });
    Ok(library.handle)
}

/// `cuLibraryUnload`
pub(crate) fn unload(handle: usize) -> Result<()> {
    let library = get(handle)?;
    let driver = driver()?;
    let state = std::mem::take(&mut *library.state());
    for kernel in state.kernels.values() {
        let _ = driver.kernels.remove(*kernel);
    }
    for module in state
        .modules
        .values()
        .filter(|m| driver.modules.get(**m).is_ok())
    {
        module::unload(*module)?;
    }
    driver
        .libraries
        .remove(handle)
        .map_err(|_| Error::INVALID_HANDLE)?;
    Ok(())
}

impl Library {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn compiled(&self, device: &Device) -> Result<Arc<ir::Module>> {
        let mut state = self.state();
        let compile = || jit::compile(&self.image, &self.options, device, &mut Log::default());
        state
            .compiled
            .entry(device.profile.sm)
            .or_insert_with(compile)
            .clone()
    }

    /// What is known without a context: the library compiled for the first device.
    fn plain(&self) -> Result<Arc<Program>> {
        let module = self.compiled(first_device()?)?;
        let mut state = self.state();
        if state.plain.is_none() {
            const NOBODY: u64 = 0;
            state.plain = Some(Program::load(module, NOBODY).map_err(|_| Error::OUT_OF_MEMORY)?);
        }
        state.plain.clone().ok_or(Error::UNKNOWN)
    }

    /// `cuLibraryGetModule`, in a context.
    pub(crate) fn module_in(&self, context: &Arc<Context>) -> Result<Arc<Module>> {
        if let Some(handle) = self.state().modules.get(&context.id()).copied()
            && let Ok(module) = module::get(handle)
        {
            return Ok(module);
        }
        let module = module::instantiate(context, self.compiled(context.device)?)?;
        self.state().modules.insert(context.id(), module.handle);
        Ok(module)
    }

    /// `cuLibraryGetKernel`: the same handle each time.
    pub(crate) fn kernel(&self, name: &str) -> Result<usize> {
        if name.is_empty() {
            return Err(Error::INVALID_VALUE);
        }
        self.plain()?.kernel(name).ok_or(Error::NOT_FOUND)?;
        let mut state = self.state();
        if let Some(handle) = state.kernels.get(name) {
            return Ok(*handle);
        }
        let c_name = CString::new(name).map_err(|_| Error::NOT_FOUND)?;
        let kernel = driver()?.kernels.insert_with(|handle| Kernel {
            handle,
            library: self.handle,
            name: c_name,
        });
        state.kernels.insert(name.into(), kernel.handle);
        Ok(kernel.handle)
    }

    /// Number of kernels.
    pub(crate) fn kernel_count(&self) -> Result<usize> {
        Ok(self.plain()?.kernels().count())
    }

    /// Handles of the first kernels, at most `most`.
    pub(crate) fn enumerate(&self, most: usize) -> Result<Vec<usize>> {
        let program = self.plain()?;
        program
            .kernels()
            .take(most)
            .map(|k| self.kernel(k.name()))
            .collect()
    }
}

fn first_device() -> Result<&'static Device> {
    driver()?.devices.first().ok_or(Error::NO_DEVICE)
}

impl Kernel {
    /// The function that it is in a context.
    pub(crate) fn function_in(&self, context: &Arc<Context>) -> Result<usize> {
        get(self.library)?
            .module_in(context)?
            .function(&self.name.to_string_lossy())
    }

    /// `cuKernelGetFunction`
    pub(crate) fn function_in_current_context(&self) -> Result<usize> {
        self.function_in(&context::current()?)
    }

    /// What can be said of it without a context.
    pub(crate) fn plain(&self) -> Result<Arc<exec::Kernel>> {
        get(self.library)?
            .plain()?
            .kernel(&self.name.to_string_lossy())
            .ok_or(Error::NOT_FOUND)
    }

    /// `cuKernelGetAttribute` for a device: what can be set is as `cuFuncSetAttribute` or `cuKernelSetAttribute` left it in
    /// the device's current or primary context, else the default.
    pub(crate) fn attribute(&self, attribute: u32, device: &Device) -> Result<i32> {
        use super::function::attribute::*;
        let kernel = self.plain()?;
        Ok(match attribute {
            MAX_THREADS_PER_BLOCK => kernel.max_threads_per_block() as i32,
            SHARED_SIZE_BYTES => super::function::int(kernel.shared_bytes()),
            CONST_SIZE_BYTES => kernel.const_bytes() as i32,
            LOCAL_SIZE_BYTES => super::function::int(kernel.local_bytes()),
            NUM_REGS => kernel.num_regs() as i32,
            PTX_VERSION => kernel.ptx_version() as i32,
            BINARY_VERSION => device.profile.sm as i32,
            _ => {
                let context = self.context_on(device)?;
                super::function::get(self.function_in(&context)?)?.attribute(attribute)?
            }
        })
    }

    /// `cuKernelSetAttribute`
    pub(crate) fn set_attribute(&self, attribute: u32, value: i32, device: &Device) -> Result<()> {
        let context = self.context_on(device)?;
        super::function::get(self.function_in(&context)?)?.set_attribute(attribute, value)
    }

    fn context_on(&self, device: &Device) -> Result<Arc<Context>> {
        let context = context::current()?;
        if context.device.ordinal == device.ordinal {
            Ok(context)
        } else {
            Err(Error::INVALID_DEVICE)
        }
    }
}

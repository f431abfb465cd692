//! Libraries and kernels: images that belong to no context, loaded into each when they are first used there.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::context::{self, Context};
use super::device::Device;
use super::error::{Error, Result};
use super::jit::{self, Log};
use super::module::{self, Module};
use super::process::{check_sticky, driver};
use super::{attribute, function};
use engine::Program;
use image::Image;
use ptx::ir;

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
    /// What `cuKernelSetAttribute` set, by device and attribute.
    settings: Mutex<BTreeMap<(i32, u32), i32>>,
}

/// The living library of this handle.
pub(crate) fn get(handle: usize) -> Result<Arc<Library>> {
    driver()?.libraries.get(handle).map_err(|why| {
        host::log!("library {handle:#x} is {why:?}");
        Error::INVALID_HANDLE
    })
}

/// The living kernel of this handle.
pub(crate) fn kernel(handle: usize) -> Result<Arc<Kernel>> {
    driver()?.kernels.get(handle).map_err(|why| {
        host::log!("kernel {handle:#x} is {why:?}");
        Error::INVALID_HANDLE
    })
}

/// `cuLibraryLoadData`: succeeds whatever the image is. What the compiler says is in the log; what is wrong is answered
/// when a kernel is asked for.
pub(crate) fn load(image: Image, options: jit::Options, log: &mut Log) -> Result<usize> {
    let library = driver()?.libraries.insert_with(|handle| Library {
        handle,
        image,
        options,
        state: Mutex::default(),
    });
    let _ = library.compiled(first_device()?, log);
    Ok(library.handle)
}

/// `cuLibraryUnload`
pub(crate) fn unload(handle: usize) -> Result<()> {
    super::capture::check_unsafe()?;
    check_sticky()?;
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
        let compiled = self.compiled(context.device, &mut Log::default())?;
        jit::check_target(&self.options, context.device)?;
        let module = module::instantiate(context, compiled, true)?;
        self.state().modules.insert(context.id(), module.handle);
        Ok(module)
    }

    /// `cuLibraryGetKernel`: the same handle each time.
    pub(crate) fn kernel(&self, name: &str) -> Result<usize> {
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
            settings: Mutex::default(),
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
    driver()?.devices.first().ok_or(Error::NO_DEVICE)
}

impl Kernel {
    fn settings(&self) -> MutexGuard<'_, BTreeMap<(i32, u32), i32>> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `cuKernelSetAttribute` set for a device.
    pub(crate) fn setting(&self, attribute: u32, device: &Device) -> Option<i32> {
        self.settings().get(&(device.ordinal, attribute)).copied()
    }

    /// The function that it is in a context.
    pub(crate) fn function_in(self: &Arc<Self>, context: &Arc<Context>) -> Result<usize> {
        let handle = get(self.library)?
            .module_in(context)?
            .function(&self.name.to_string_lossy())?;
        function::get(handle)?.is_of_kernel(self);
        Ok(handle)
    }

    /// `cuKernelGetFunction`
    pub(crate) fn function_in_current_context(self: &Arc<Self>) -> Result<usize> {
        self.function_in(&context::current()?)
    }

    /// What can be said of it without a context.
    pub(crate) fn plain(&self) -> Result<Arc<engine::Kernel>> {
        get(self.library)?
            .plain()?
            .kernel(&self.name.to_string_lossy())
            .ok_or(Error::NOT_FOUND)
    }

    /// `cuKernelGetAttribute` for a device: what can be set is as `cuKernelSetAttribute` left it, whatever was set in a
    /// function that the kernel became.
    pub(crate) fn attribute(&self, attribute: u32, device: &Device) -> Result<i32> {
        let kernel = self.plain()?;
        match self.setting(attribute, device) {
            Some(value) => Ok(value),
            None => attribute::of_kernel(&kernel, device, attribute),
        }
    }

    /// `cuKernelSetAttribute`: for the functions that it is in contexts of the device, too, as far as they have nothing set
    /// of their own.
    pub(crate) fn set_attribute(&self, attribute: u32, value: i32, device: &Device) -> Result<()> {
        let value = attribute::check(&*self.plain()?, device, attribute, value)?;
        self.settings().insert((device.ordinal, attribute), value);
        Ok(())
    }
}

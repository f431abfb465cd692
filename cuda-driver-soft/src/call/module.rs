//! Loads and unloads modules and libraries.

use crate::call::lookup;
use crate::object::context::{self, Context};
use crate::object::jit::{self, Log};
use crate::object::{library, module};
use crate::queue::capture;
use crate::queue::scheduler::observe_fault;
use crate::state::error::{Error, Result};
use crate::state::gate;
use image::Image;

/// `cuModuleLoadData` and the other ways to load a module.
pub(crate) fn load(image: &Image, options: &jit::Options, log: &mut Log) -> Result<usize> {
    let context = context::current()?;
    let module = jit::compile(image, options, context.device, log)?;
    jit::check_target(options, context.device)?;
    Ok(module::instantiate(&context, module, false, None)?.handle)
}

/// `cuModuleUnload`: waits for the work of the module's context.
pub(crate) fn unload(handle: usize) -> Result<()> {
    // A library owns its modules.
    if lookup::module(handle)?.of_library {
        return Err(Error::CUDA_ERROR_NOT_PERMITTED);
    }
    unload_after_work(handle)
}

fn unload_after_work(handle: usize) -> Result<()> {
    capture::check_unsafe()?;
    let module = module::get(handle)?;
    if let Some(context) = module.context.upgrade() {
        context.drain();
        observe_fault()?;
    }
    module::remove(&module)
}

/// Unloads the modules of a context that ends.
pub(crate) fn unload_all_of(context: &Context) {
    for module in module::table().all() {
        if module.context_id == context.id() {
            let _ = module::remove(&module);
        }
    }
}

/// `cuLibraryUnload`: waits for the work of each context in which the library has a module.
pub(crate) fn unload_library(handle: usize) -> Result<()> {
    capture::check_unsafe()?;
    gate::healthy()?;
    let library = library::get(handle)?;
    for module in library::remove_parts(&library) {
        unload_after_work(module)?;
    }
    library::remove(handle)
}

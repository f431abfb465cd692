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
    // From here on, all modules are removed, even if a fault occurs or another thread begins a capture.
    let mut done = Ok(());
    for module in library::remove_parts(&library) {
        if let Some(context) = module.context.upgrade() {
            context.drain();
            done = observe_fault();
        }
        // Fails if another thread has ended the module's context, and the module with it.
        let _ = module::remove(&module);
    }
    library::remove(handle).and(done)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::Duration;

    use super::*;
    use crate::queue::streams::QueueId;
    use crate::queue::work::Work;

    #[test]
    fn a_library_is_unloaded_even_if_a_context_ends_during_the_wait() {
        static RELEASED: AtomicBool = AtomicBool::new(false);
        let context = context::for_test();
        let text = b".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry k() { ret; }\n";
        let image = Image::Text(text.to_vec());
        let handle = library::load(image, jit::Options::default(), &mut Log::default()).unwrap();
        let module = library::get(handle).unwrap().module_in(&context).unwrap();
        let released = Work::Until(Box::new(|| Ok(RELEASED.load(Relaxed))));
        context.queues().submit(QueueId::Legacy, &[], released, 0);
        let end = std::thread::spawn(move || {
            // Gives the call time to find the module. The call then waits for the work.
            std::thread::sleep(Duration::from_millis(100));
            module::remove(&module).unwrap();
            RELEASED.store(true, Relaxed);
        });
        assert_eq!(unload_library(handle), Ok(()));
        end.join().unwrap();
        assert!(library::get(handle).is_err());
    }
}

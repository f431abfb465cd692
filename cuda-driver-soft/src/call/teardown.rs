//! Teardown of a context and of everything that it owns.

use std::sync::MutexGuard;

use crate::call::{capture, module};
use crate::object::context::{self, Context};
use crate::object::primary::{self, PrimaryContext};
use crate::object::{array, foreign_use, freed, graph_memory, stream_attribute, texture};
use crate::state::error::{Error, Result};
use crate::state::handle::Missing;
use engine::memory::address_space;

/// Waits for all work of a context, and for copies and fills of other contexts that use its memory.
fn drain(context: &Context) {
    context.drain();
    foreign_use::drain_all_of(context.id());
}

/// Returns true if [`drain`] would wait.
fn is_in_use(context: &Context) -> bool {
    !context.is_idle() || foreign_use::uses_any_of(context.id())
}

/// Releases everything that a context owns.
fn end(context: &Context) {
    drain(context);
    // Calls in other threads check this mark after they have created an object or, with the lock of the captures, before
    // they begin a capture. What they had created before the mark is released below.
    context.set_ended();
    capture::forget_context(context.id());
    module::unload_all_of(context);
    texture::forget_all_of(context);
    array::forget_all_of(context);
    stream_attribute::forget_context(context.id());
    for freed in address_space().free_owned(context.id()) {
        freed::forget(&freed);
        graph_memory::forget(&freed);
    }
}

/// `cuCtxDestroy`: also works while the context is current in other threads, and for any count of `cuCtxAttach`.
pub(crate) fn destroy(handle: usize) -> Result<()> {
    if handle == 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let context = context::table().get(handle).map_err(|why| {
        // For a destroyed context, driver 580 returns `CUDA_ERROR_CONTEXT_IS_DESTROYED` only if a context is current.
        if why == Missing::Unknown || context::current_handle() == 0 {
            Error::CUDA_ERROR_INVALID_CONTEXT
        } else {
            Error::CUDA_ERROR_CONTEXT_IS_DESTROYED
        }
    })?;
    if context.primary || context.is_green() {
        return Err(Error::CUDA_ERROR_INVALID_CONTEXT);
    }
    context::table()
        .remove(handle)
        .map_err(|_| Error::CUDA_ERROR_INVALID_CONTEXT)?;
    end(&context);
    context::pop_if_current(handle);
    Ok(())
}

/// `cuCtxDetach`: only for the current context; the last call destroys it.
pub(crate) fn detach(handle: usize) -> Result<()> {
    let context = context::current()?;
    if context.handle != handle {
        return Err(Error::CUDA_ERROR_INVALID_CONTEXT);
    }
    if context.detach() { destroy(handle) } else { Ok(()) }
}

/// Returns the primary context, locked. If `ends` returns true for it, first waits until no work of it or with its
/// memory is pending. The lock is not held during the wait, because that work may be a host function that waits for a
/// thread that needs the lock.
fn idle_before_end(
    ordinal: i32,
    ends: impl Fn(&PrimaryContext) -> bool,
) -> Result<MutexGuard<'static, PrimaryContext>> {
    loop {
        let (_, primary) = primary::of_device(ordinal)?;
        let busy = match &primary.context {
            Some(c) if ends(&primary) && c.is_alive() && is_in_use(c) => c.clone(),
            _ => return Ok(primary),
        };
        drop(primary);
        drain(&busy);
    }
}

/// Ends the primary context if it is active, and clears its flags.
fn end_primary(primary: &mut PrimaryContext) {
    if primary.is_active()
        && let Some(context) = &primary.context
    {
        end(context);
        primary.flags = 0;
    }
}

/// `cuDevicePrimaryCtxRelease`: `CUDA_ERROR_INVALID_CONTEXT` if it is not retained.
pub(crate) fn primary_release(ordinal: i32) -> Result<()> {
    let mut primary = idle_before_end(ordinal, |p| p.retained == 1)?;
    primary.retained = primary
        .retained
        .checked_sub(1)
        .ok_or(Error::CUDA_ERROR_INVALID_CONTEXT)?;
    if primary.retained == 0 {
        end_primary(&mut primary);
    }
    Ok(())
}

/// `cuDevicePrimaryCtxReset`: ends the context even if it is still retained.
pub(crate) fn primary_reset(ordinal: i32) -> Result<()> {
    let mut primary = idle_before_end(ordinal, |_| true)?;
    end_primary(&mut primary);
    Ok(())
}

#[cfg(test)]
mod tests {
    use cuda_driver_sys::CUlaunchAttributeID;

    use super::*;
    use crate::object::jit::{self, Log};
    use crate::object::stream::StreamRef;
    use crate::object::stream_attribute::StreamAttributeValue::Number;
    use crate::object::{library, memory};
    use crate::queue::streams::QueueId;
    use engine::memory::AllocationKind;
    use image::Image;

    /// Another thread may end the context after a call has checked it.
    #[test]
    fn nothing_is_created_in_an_ended_context() {
        let context = context::for_test();
        destroy(context.handle).unwrap();
        let error = Error::CUDA_ERROR_CONTEXT_IS_DESTROYED;
        for kind in [AllocationKind::Device, AllocationKind::Pinned, AllocationKind::Managed] {
            assert_eq!(memory::allocate(&context, kind, 64), Err(error));
        }
        let text = b".version 7.0\n.target sm_52\n.address_size 64\n.global .u32 x; .visible .entry k() { ret; }\n";
        let handle = library::load(Image::Text(text.to_vec()), jit::Options::default(), &mut Log::default()).unwrap();
        let module = library::get(handle).unwrap().module_in(&context);
        assert_eq!(module.map(|module| module.handle), Err(error));
        assert!(address_space().free_owned(context.id()).is_empty());
        let descriptor = array::ArrayDescriptor {
            width: 64,
            height: 64,
            depth: 0,
            format: cuda_driver_sys::CUarray_format::CU_AD_FORMAT_FLOAT.0,
            channels: 1,
            flags: cuda_driver_sys::CUDA_ARRAY3D_SPARSE,
        };
        assert_eq!(array::create(&context, descriptor), Err(error));
        assert_eq!(array::create_mipmap(&context, descriptor, 2), Err(error));
        // An array of another context, so that only the object's own context has ended.
        let array = array::create(&context::for_test(), descriptor)
            .map(texture::Resource::Array)
            .unwrap();
        let settings = texture::TextureSettings::default();
        assert_eq!(texture::create(&context, array, settings, None), Err(error));
        assert_eq!(texture::create_surface(&context, array), Err(error));
    }

    #[test]
    fn attributes_of_default_streams_end_with_their_context() {
        let context = context::for_test();
        let policy = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
        let streams =
            [QueueId::Legacy, QueueId::of_this_thread()].map(|queue| StreamRef::of_default(context.clone(), queue));
        for stream in &streams {
            stream_attribute::set(stream, policy, Number(2)).unwrap();
            assert_eq!(stream_attribute::get(stream, policy), Ok(Number(2)));
        }
        destroy(context.handle).unwrap();
        for stream in &streams {
            assert_eq!(stream_attribute::get(stream, policy), Ok(Number(-1)));
        }
    }
}

//! Green contexts: each belongs to a primary context and restricts kernels to some multiprocessors of the device.
//!
//! Memory, modules, events and arrays that are created in a green context belong to the primary context. Streams keep
//! the handle of their green context. The number of its multiprocessors limits cooperative launches, and `%smid`
//! returns their numbers. They have no effect on speed, because kernels use all threads of the host.

use std::sync::Arc;

use crate::object::context::{self, Context};
use crate::object::leak;
use crate::object::resource::Multiprocessors;
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Missing, Table};

/// A green context.
#[derive(Debug)]
pub(crate) struct GreenContext {
    pub(crate) handle: usize,
    pub(crate) resource: Multiprocessors,
    /// The numbers of the multiprocessors.
    pub(crate) numbers: Arc<[u32]>,
    /// The context that `cuCtxFromGreenCtx` returns.
    pub(crate) context: Arc<Context>,
}

static TABLE: Table<GreenContext> = Table::new(HandleKind::GreenContext);

/// Returns the live green context with this handle. Returns `CUDA_ERROR_INVALID_CONTEXT` for NULL and unknown handles,
/// and `CUDA_ERROR_CONTEXT_IS_DESTROYED` for destroyed ones.
pub(crate) fn get(handle: usize) -> Result<Arc<GreenContext>> {
    TABLE.get(handle).map_err(|missing| match missing {
        Missing::Unknown => Error::CUDA_ERROR_INVALID_CONTEXT,
        Missing::Destroyed => Error::CUDA_ERROR_CONTEXT_IS_DESTROYED,
    })
}

/// Returns the live green context whose context has this handle.
pub(crate) fn of_context(handle: usize) -> Option<Arc<GreenContext>> {
    TABLE.all().into_iter().find(|green| green.context.handle == handle)
}

/// Returns the green context that a context belongs to; `None` for a context that is not green.
pub(crate) fn of(context: &Context) -> Option<Arc<GreenContext>> {
    // Most contexts need no search.
    if context.is_green() {
        of_context(context.handle)
    } else {
        None
    }
}

/// Creates a green context in an active primary context.
pub(crate) fn create(primary: &Arc<Context>, resource: Multiprocessors, numbers: Arc<[u32]>) -> usize {
    let context = context::make_green(primary);
    let green = TABLE.insert_with(|handle| GreenContext {
        handle,
        resource,
        numbers,
        context,
    });
    leak::note("green context", &TABLE, green.handle, Some(primary));
    green.handle
}

/// Removes a green context and its context, and marks the context as destroyed.
pub(crate) fn remove(handle: usize) -> Result<Arc<GreenContext>> {
    get(handle)?;
    let green = TABLE
        .remove(handle)
        .map_err(|_| Error::CUDA_ERROR_CONTEXT_IS_DESTROYED)?;
    green.context.set_ended();
    let _ = context::table().remove(green.context.handle);
    Ok(green)
}

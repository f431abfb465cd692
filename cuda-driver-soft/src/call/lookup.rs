//! Looks up the objects that calls name by their handles, and the current context. After a fault was reported, each
//! lookup returns that fault, except that [`current_context`] returns `CUDA_ERROR_INVALID_CONTEXT` if no context is
//! current.

use std::sync::{Arc, MutexGuard};

use crate::graph::exec::{self, Exec};
use crate::graph::store::{GraphStore, store};
use crate::object::context::{self, Context};
use crate::object::function::{self, Function};
use crate::object::linker::{self, Linker};
use crate::object::module::{self, Module};
use crate::object::virtual_memory::{self, GenericAllocation};
use crate::state::error::Result;
use crate::state::gate;

/// Returns the calling thread's current context.
pub(crate) fn current_context() -> Result<Arc<Context>> {
    healthy_if_current()?;
    context::current()
}

/// Returns the reported fault if a context is current. If none is current, calls that need one return
/// `CUDA_ERROR_INVALID_CONTEXT` on driver 580, even after a fault.
pub(crate) fn healthy_if_current() -> Result<()> {
    if context::current_handle() == 0 {
        Ok(())
    } else {
        gate::healthy()
    }
}

pub(crate) fn function(handle: usize) -> Result<Arc<Function>> {
    gate::healthy()?;
    function::get(handle)
}

pub(crate) fn module(handle: usize) -> Result<Arc<Module>> {
    gate::healthy()?;
    module::get(handle)
}

pub(crate) fn linker(handle: usize) -> Result<Arc<Linker>> {
    gate::healthy()?;
    linker::get(handle)
}

pub(crate) fn generic_memory(handle: usize) -> Result<Arc<GenericAllocation>> {
    gate::healthy()?;
    virtual_memory::get(handle)
}

/// Returns the store of all graphs, locked.
pub(crate) fn graphs() -> Result<MutexGuard<'static, GraphStore>> {
    gate::healthy()?;
    Ok(store())
}

pub(crate) fn graph_exec(handle: usize) -> Result<Arc<Exec>> {
    gate::healthy()?;
    exec::get(handle)
}

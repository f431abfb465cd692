//! Waits for a context, a stream or an event. After the wait, pools release their unused memory, and a fault is
//! reported.

use crate::call::event::{self, refuse_captured};
use crate::call::stream::refuse_while_capturing;
use crate::object::context::Context;
use crate::object::pool;
use crate::object::stream::StreamRef;
use crate::queue::capture;
use crate::queue::scheduler::{observe_fault, scheduler};
use crate::state::error::{Error, Result};
use crate::state::gate;

/// `cuCtxSynchronize`
pub(crate) fn context(context: &Context) -> Result<()> {
    capture::check_context(context.id())?;
    context.drain();
    pool::settle();
    observe_fault()
}

/// `cuStreamSynchronize`
pub(crate) fn stream(stream: &StreamRef) -> Result<()> {
    refuse_while_capturing(stream)?;
    stream.drain();
    pool::settle();
    observe_fault()
}

/// `cuEventSynchronize`
pub(crate) fn event(handle: usize) -> Result<()> {
    let event = event::get(handle)?;
    // A host function that waits for a pending event might wait for itself.
    let checked = gate::in_host_function().then(|| event.check());
    if let Some((false, _)) = checked {
        return Err(Error::CUDA_ERROR_NOT_PERMITTED);
    }
    refuse_captured(&event, true)?;
    capture::check_unsafe()?;
    // A host function waits for the task that was checked: another thread may have recorded the event again.
    let task = checked.map_or_else(|| event.task(), |(_, task)| task);
    if let Some(task) = task {
        scheduler().wait(task);
    }
    pool::settle();
    observe_fault()
}

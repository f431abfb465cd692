//! Waiting for work: of a context, a stream or an event. When it is done, pools give back what is free, and a fault is reported.

use crate::call::event::refuse_captured;
use crate::call::stream::refuse_while_capturing;
use crate::object::context::Context;
use crate::object::event::Event;
use crate::object::pool;
use crate::object::stream::StreamRef;
use crate::queue::capture;
use crate::queue::scheduler::{observe_fault, scheduler};
use crate::state::error::Result;

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
pub(crate) fn event(event: &Event) -> Result<()> {
    refuse_captured(event, true)?;
    capture::check_unsafe()?;
    if let Some(task) = event.task() {
        scheduler().wait(task);
    }
    pool::settle();
    observe_fault()
}

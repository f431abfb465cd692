//! Executable graphs: launches, and changes of single nodes.

use super::kept::Kept;
use super::node::Node;
use crate::borrowed::handle;
use crate::context::Entered;
use crate::error::dropping;
use crate::{Borrowed, Context, Result, Stream, checked, sys};

/// An executable graph: a graph that the driver checked and prepared for launches in streams.
///
/// Its nodes can be changed one by one, with calls that take the node of the graph that it was made from, or all at
/// once with [`update`](Self::update). Changes apply to later launches; a launch that is pending keeps its parameters.
///
/// ```
/// # use cuda_driver::{Context, Device, Graph, Stream};
/// # use std::sync::Arc;
/// # use std::sync::atomic::{AtomicU32, Ordering};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// let stream = Stream::new(&context)?;
/// let count = Arc::new(AtomicU32::new(0));
/// let graph = Graph::new(&context)?;
/// graph.add_host_fn(&[], { let count = count.clone(); move || { count.fetch_add(1, Ordering::Relaxed); } })?;
///
/// let exec = graph.instantiate()?;
/// for _ in 0..3 {
///     // SAFETY: the graph accesses no memory of a device.
///     unsafe { exec.launch(&stream) }?;
/// }
/// stream.synchronize()?;
/// assert_eq!(count.load(Ordering::Relaxed), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct GraphExec {
    raw: sys::CUgraphExec,
    /// The context that is made current for calls; `None` if it is not known.
    context: Option<Context>,
    kept: Kept,
    is_destroyed: bool,
}

// SAFETY: the handle may be used on any thread, by one thread at a time. The kept values are `Send` and `Sync`.
unsafe impl Send for GraphExec {}

impl GraphExec {
    #[inline]
    pub(super) const fn of(raw: sys::CUgraphExec, context: Option<Context>, kept: Kept) -> Self {
        Self {
            raw,
            context,
            kept,
            is_destroyed: false,
        }
    }

    #[inline]
    pub(super) const fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Makes the context current until the guard is dropped. Does nothing if the context is not known.
    #[inline]
    #[track_caller]
    pub(super) fn enter(&self) -> Result<Option<Entered<'_>>> {
        self.context.as_ref().map(Context::enter).transpose()
    }

    /// Queues the graph in a stream ([`cuGraphLaunch`](checked::graph_launch)). A launch also waits for the previous
    /// launch of the same executable graph, in any stream. The current context is not changed: on the null stream, the
    /// caller must make one current; other streams do not need that.
    ///
    /// # Safety
    /// The nodes run as if each were queued by its own call: all memory that kernels, copies, fills and memory
    /// operations access must stay allocated until the launch is done, and must not be accessed by work that does not
    /// wait for it. That includes host memory. The modules of captured kernels must stay loaded; this object keeps
    /// the modules of other kernels loaded.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the graph allocates memory that an earlier launch allocated and nothing
    /// freed, or frees memory that is not allocated, `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` if the stream is being
    /// captured, and `CUDA_ERROR_INVALID_CONTEXT` on the null stream if no context is current.
    #[inline]
    #[doc(alias = "cuGraphLaunch")]
    #[track_caller]
    pub unsafe fn launch(&self, stream: &Stream) -> Result<()> {
        // SAFETY: both handles are live; the rest is upheld by the caller.
        unsafe { checked::graph_launch(self.raw, stream.as_raw()) }
    }

    /// Queues the transfer of the graph to the device, so that the first launch takes no longer than later launches
    /// ([`cuGraphUpload`](checked::graph_upload)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` if the stream is being captured.
    #[inline]
    #[doc(alias = "cuGraphUpload")]
    #[track_caller]
    pub fn upload(&self, stream: &Stream) -> Result<()> {
        // SAFETY: both handles are live.
        unsafe { checked::graph_upload(self.raw, stream.as_raw()) }
    }

    /// Returns true if launches run the node ([`cuGraphNodeGetEnabled`](checked::graph_node_get_enabled)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node that is neither a kernel, a copy nor a fill.
    #[inline]
    #[doc(alias = "cuGraphNodeGetEnabled")]
    #[track_caller]
    pub fn is_enabled(&self, node: Node<'_>) -> Result<bool> {
        // SAFETY: both handles are live.
        unsafe { checked::graph_node_get_enabled(self.raw, node.as_raw()) }
    }

    /// Enables a node, or disables it, so that later launches skip it
    /// ([`cuGraphNodeSetEnabled`](checked::graph_node_set_enabled)). The nodes after it still wait for those before it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node that is neither a kernel, a copy nor a fill.
    #[inline]
    #[doc(alias = "cuGraphNodeSetEnabled")]
    #[track_caller]
    pub fn set_enabled(&self, node: Node<'_>, is_enabled: bool) -> Result<()> {
        // SAFETY: both handles are live.
        unsafe { checked::graph_node_set_enabled(self.raw, node.as_raw(), is_enabled) }
    }

    /// Changes the parameters of a node of any kind
    /// ([`cuGraphExecNodeSetParams`](checked::graph_exec_node_set_params)).
    ///
    /// # Safety
    /// Same as [`Graph::add_node`](crate::Graph::add_node).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for parameters of another kind or a change that is not possible, and a
    /// [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 12.2.
    #[inline]
    #[doc(alias = "cuGraphExecNodeSetParams")]
    #[track_caller]
    pub unsafe fn set_params(&self, node: Node<'_>, params: &mut sys::CUgraphNodeParams) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: both handles are live; the rest is upheld by the caller.
        unsafe { checked::graph_exec_node_set_params(self.raw, node.as_raw(), params) }
    }

    /// Returns the flags that the graph was instantiated with ([`cuGraphExecGetFlags`](checked::graph_exec_get_flags)).
    /// `CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY` is never among them.
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 12.0.
    #[inline]
    #[doc(alias = "cuGraphExecGetFlags")]
    #[track_caller]
    pub fn flags(&self) -> Result<sys::CUgraphInstantiate_flags> {
        // SAFETY: the handle is live.
        let flags = unsafe { checked::graph_exec_get_flags(self.raw) }?;
        // All flags are in the lower 32 bits.
        Ok(sys::CUgraphInstantiate_flags(u32::try_from(flags).unwrap_or(u32::MAX)))
    }

    /// Returns a number that no other graph of the process has ([`cuGraphExecGetId`](checked::graph_exec_get_id)).
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.1.
    #[inline]
    #[doc(alias = "cuGraphExecGetId")]
    #[track_caller]
    pub fn id(&self) -> Result<u32> {
        // SAFETY: the handle is live.
        unsafe { checked::graph_exec_get_id(self.raw) }
    }

    /// Destroys the executable graph without waiting; pending launches still run
    /// ([`cuGraphExecDestroy`](checked::graph_exec_destroy)). Dropping does the same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work, or `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` if a capture
    /// forbids the call.
    #[inline]
    #[doc(alias = "cuGraphExecDestroy")]
    #[track_caller]
    pub fn destroy(mut self) -> Result<()> {
        self.is_destroyed = true;
        // SAFETY: the handle is live, and `drop` does not use it.
        unsafe { checked::graph_exec_destroy(self.raw) }
    }

    /// Takes ownership of an executable graph, which was instantiated in `context`.
    ///
    /// # Safety
    /// The handle must be live, and no other code may use or destroy it. Contexts, functions, arrays, events and host
    /// functions in its nodes must stay valid until it is destroyed.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUgraphExec, context: &Context) -> Self {
        Self::of(raw, Some(context.clone()), Kept::new())
    }

    /// Borrows an executable graph. A context must be current for the calls that change its nodes. Values that it keeps
    /// for changed nodes, such as modules, are never dropped.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value, and no other thread may use it. Contexts, functions,
    /// arrays, events and host functions in its nodes must stay valid until its owner destroys it; this includes the
    /// contexts that are current when nodes are changed.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw<'a>(raw: sys::CUgraphExec) -> Borrowed<'a, Self> {
        Borrowed::new(Self::of(raw, None, Kept::leaking()))
    }

    /// Returns the handle of the context in which a node runs that `called` changes; null means the current context.
    /// Returns `CUDA_ERROR_INVALID_CONTEXT` if nothing would keep the context.
    #[inline]
    #[track_caller]
    pub(super) fn node_context(&self, called: sys::Function) -> Result<sys::CUcontext> {
        self.kept.node_context(self.context(), called)
    }
}

handle! {
    [GraphExec] CUgraphExec,
    leaked: "The values that the graph keeps, and the reference to the context, are leaked.",
    context: "in which the graph was instantiated; `None` if it is not known."
}

impl Drop for GraphExec {
    #[inline]
    fn drop(&mut self) {
        if !self.is_destroyed {
            if let Some(dropping) = dropping() {
                // SAFETY: the handle is live, and this is its last use.
                dropping.done(unsafe { checked::graph_exec_destroy(self.raw) });
            }
        }
    }
}

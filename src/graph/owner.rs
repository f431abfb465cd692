//! Owned and borrowed graphs.

use std::sync::Arc;

use super::kept::Kept;
use crate::borrowed::handle;
use crate::context::Entered;
use crate::error::dropping;
use crate::{Borrowed, Context, Result, checked, sys};

/// A graph: a description of work, as nodes and the edges that order them. The [module's page](crate::graph) has an
/// overview.
///
/// ```
/// # use cuda_driver::{Context, Device};
/// use cuda_driver::Graph;
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
///
/// let graph = Graph::new(&context)?;
/// let first = graph.add_host_fn(&[], || println!("first"))?;
/// let second = graph.add_host_fn(&[first], || println!("second"))?;
/// assert_eq!(graph.nodes()?, [first, second]);
/// assert_eq!(second.dependencies()?[0].from, first);
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// A graph can be moved to another thread but not shared between threads, because the driver does not synchronise
/// access:
///
/// ```compile_fail,E0277
/// fn shared(graph: &cuda_driver::Graph) {
///     std::thread::scope(|scope| {
///         scope.spawn(|| graph.nodes());
///     });
/// }
/// ```
#[derive(Debug)]
pub struct Graph {
    raw: sys::CUgraph,
    /// The graph whose nodes contain this one, directly or in their graphs; this graph itself, if no node contains it.
    outermost: sys::CUgraph,
    /// The context that is made current for calls; `None` if it is not known.
    context: Option<Context>,
    kept: Kept,
    /// False for a graph that another object destroys.
    is_owned: bool,
}

// SAFETY: a graph handle may be used on any thread, by one thread at a time. The kept values are `Send` and `Sync`.
unsafe impl Send for Graph {}

impl Graph {
    #[inline]
    pub(super) const fn of(raw: sys::CUgraph, context: Option<Context>, kept: Kept) -> Self {
        Self {
            raw,
            outermost: raw,
            context,
            kept,
            is_owned: true,
        }
    }

    /// Returns the graph of a node of this graph, which the node destroys. Both graphs keep values in the same list.
    #[inline]
    pub(super) fn inner(&self, raw: sys::CUgraph) -> Self {
        Self {
            raw,
            outermost: self.outermost,
            context: self.context.clone(),
            kept: self.kept.clone(),
            is_owned: false,
        }
    }

    /// Gives the handle to the driver, which from now on destroys the graph.
    #[inline]
    pub(super) fn disown(mut self) {
        self.is_owned = false;
    }

    /// Returns the outermost graph that contains this one.
    #[inline]
    pub(super) const fn outermost(&self) -> sys::CUgraph {
        self.outermost
    }

    #[inline]
    pub(super) const fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Keeps the values that this graph keeps, and the context in which its nodes run, in the list of another owner.
    #[inline]
    pub(super) fn kept_by(&self, other: &Kept) {
        other.all_of(&self.kept);
        other.context(self.context());
    }

    /// Makes the context current until the guard is dropped. Does nothing if the context is not known.
    #[inline]
    #[track_caller]
    pub(super) fn enter(&self) -> Result<Option<Entered<'_>>> {
        self.context.as_ref().map(Context::enter).transpose()
    }

    /// Returns the handle of the context in which a node runs that `called` adds or changes; null means the current
    /// context. Returns `CUDA_ERROR_INVALID_CONTEXT` if nothing would keep the context.
    #[inline]
    #[track_caller]
    pub(super) fn node_context(&self, called: sys::Function) -> Result<sys::CUcontext> {
        self.kept.node_context(self.context(), called)
    }

    /// Creates a graph without nodes ([`cuGraphCreate`](checked::graph_create)). Its fills and copies run in `context`;
    /// a kernel runs in the context of its module.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_INITIALIZED` before [`init`](crate::init).
    #[inline]
    #[doc(alias = "cuGraphCreate")]
    #[track_caller]
    pub fn new(context: &Context) -> Result<Self> {
        // SAFETY: 0 is the only valid value for the flags.
        let raw = unsafe { checked::graph_create(0) }?;
        Ok(Self::of(raw, Some(context.clone()), Kept::new()))
    }

    /// Copies the graph ([`cuGraphClone`](checked::graph_clone)). [`find_in_clone`](Self::find_in_clone) finds the copy
    /// of a node.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` for a graph that allocates or frees memory, has conditional nodes, or is the
    /// body of a conditional node.
    #[inline]
    #[doc(alias = "cuGraphClone")]
    #[track_caller]
    pub fn try_clone(&self) -> Result<Self> {
        // SAFETY: the handle is live.
        let raw = unsafe { checked::graph_clone(self.raw) }?;
        Ok(Self::of(raw, self.context.clone(), self.kept.copy()))
    }

    /// Keeps a value alive as long as this graph, or a clone or executable graph that is made from it afterwards,
    /// exists.
    ///
    /// A graph keeps the modules, events and host functions of the nodes that are added to it with this crate. A
    /// captured graph does not keep the modules of its kernels, and no graph keeps the buffers and arrays that its
    /// nodes use:
    ///
    /// ```
    /// # use cuda_driver::{Context, Device, LaunchConfig, Module, Stream, sys::CUstreamCaptureMode};
    /// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
    /// # cuda_driver::init()?;
    /// # let context = Context::create(Device::first()?)?;
    /// # let ptx = ".version 7.0 .target sm_52 .address_size 64 .visible .entry kernel() { ret; }";
    /// # let module = Module::from_ptx(&context, ptx)?;
    /// # let stream = Stream::new(&context)?;
    /// let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    /// let kernel = module.function("kernel")?;
    /// // SAFETY: the kernel has no parameters.
    /// let graph = stream.capture(mode, |stream| unsafe { kernel.launch(stream, LaunchConfig::default(), ()) })?;
    /// graph.keep(module);
    /// # Ok::<(), cuda_driver::Error>(())
    /// ```
    #[inline]
    pub fn keep(&self, value: impl Send + Sync + 'static) {
        self.kept.shared(Arc::new(value));
    }

    /// Returns a number that no other graph of the process has ([`cuGraphGetId`](checked::graph_get_id)).
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.1.
    #[inline]
    #[doc(alias = "cuGraphGetId")]
    #[track_caller]
    pub fn id(&self) -> Result<u32> {
        // SAFETY: the handle is live.
        unsafe { checked::graph_get_id(self.raw) }
    }

    /// Destroys the graph ([`cuGraphDestroy`](checked::graph_destroy)). Dropping does the same. Executable graphs that
    /// were made from it stay valid.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuGraphDestroy")]
    #[track_caller]
    pub fn destroy(mut self) -> Result<()> {
        self.is_owned = false;
        // SAFETY: the handle is live and owned: callers get other graphs by reference only. `drop` does not use it.
        unsafe { checked::graph_destroy(self.raw) }
    }

    /// Takes ownership of a graph. `context` has the same meaning as in [`new`](Self::new), for nodes that are added
    /// from now on.
    ///
    /// # Safety
    /// The handle must be live, and no other code may use or destroy it. Contexts, functions, arrays, events and host
    /// functions in its nodes must stay valid as long as the graph and everything made from it; [`keep`](Self::keep)
    /// can hold them.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUgraph, context: &Context) -> Self {
        Self::of(raw, Some(context.clone()), Kept::new())
    }

    /// Borrows a graph. A context must be current for the calls that add nodes or instantiate it. Values that
    /// the graph keeps for added nodes, such as modules, are never dropped. The context of clones and executable graphs
    /// that are made from it is not known, as for a graph that was [captured](crate::Stream::capture) in a default
    /// stream.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value, and no other thread may use it. Contexts, functions,
    /// arrays, events and host functions in its nodes must stay valid as long as the graph and everything made from it;
    /// this includes the contexts that are current when nodes are added. If this is the graph of a node,
    /// [`add_child`](Self::add_child) must not be called with it and a graph that contains it, in either role.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw<'a>(raw: sys::CUgraph) -> Borrowed<'a, Self> {
        Borrowed::new(Self::of(raw, None, Kept::leaking()))
    }
}

handle! {
    [Graph] CUgraph,
    leaked: "The values that the graph keeps, and the reference to the context, are leaked.",
    context: "of the graph; `None` if it is not known."
}

impl Drop for Graph {
    #[inline]
    fn drop(&mut self) {
        if self.is_owned {
            if let Some(dropping) = dropping() {
                // SAFETY: the handle is live, and this is its last use. Nodes borrow the graph, so none is left.
                dropping.done(unsafe { checked::graph_destroy(self.raw) });
            }
        }
    }
}

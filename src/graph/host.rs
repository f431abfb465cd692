//! Graph nodes that call host functions.

use core::any::Any;
use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::ptr;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::exec::GraphExec;
use super::node::{Node, handles};
use super::owner::Graph;
use super::user_object::UserObject;
use crate::sys::{self, CUDA_HOST_NODE_PARAMS};
use crate::{Context, Result, checked, host_fn};

type Function = Arc<dyn Fn() + Send + Sync>;

/// A function with the address of the context whose synchronisation resumes its panic.
#[derive(Clone)]
struct Entry {
    function: Function,
    context: usize,
}

/// The functions of nodes, by their numbers. The driver gets the number instead of a pointer: if a pending launch calls
/// a function that was removed, nothing happens.
///
/// Statics are never dropped. With `ManuallyDrop`, this crate does not contain the unused code to drop the functions.
static FUNCTIONS: Mutex<ManuallyDrop<Functions>> = Mutex::new(ManuallyDrop::new(Functions {
    entries: BTreeMap::new(),
    last: 0,
}));

struct Functions {
    entries: BTreeMap<usize, Entry>,
    last: usize,
}

#[inline]
fn functions() -> MutexGuard<'static, ManuallyDrop<Functions>> {
    FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The registration of a function in the table. Dropping it removes the function.
struct Registered {
    number: usize,
}

impl Registered {
    #[inline]
    fn new(function: Function, context: sys::CUcontext) -> Self {
        let context = context.addr();
        let mut functions = functions();
        functions.last += 1;
        let number = functions.last;
        functions.entries.insert(number, Entry { function, context });
        Self { number }
    }

    #[inline]
    fn params(&self) -> CUDA_HOST_NODE_PARAMS {
        CUDA_HOST_NODE_PARAMS {
            fn_: Some(run),
            userData: ptr::without_provenance_mut(self.number),
        }
    }
}

impl Drop for Registered {
    #[inline]
    fn drop(&mut self) {
        let removed = functions().entries.remove(&self.number);
        // Dropped after the lock is released, because dropping the function may run any code.
        drop(removed);
    }
}

/// Calls the function with this number. The driver calls `run` in each launch.
#[inline]
unsafe extern "system" fn run(number: *mut c_void) {
    let found = functions().entries.get(&number.addr()).cloned();
    let Some(Entry { function, context }) = found else {
        return;
    };
    // Unwind safe, because later launches call the function again by a shared reference anyway. `move`, because this
    // may be the last reference, and dropping it may panic, too.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(move || function())) {
        host_fn::panicked_in_graph(context, payload);
    }
}

/// Registers a function. Panics resume in calls that wait for `context`; `None` means the current one.
#[inline]
#[track_caller]
fn register(function: impl Fn() + Send + Sync + 'static, context: Option<&Context>) -> Result<Arc<Registered>> {
    let context = match context {
        Some(context) => context.as_raw(),
        None => Context::current_raw()?,
    };
    Ok(Arc::new(Registered::new(Arc::new(function), context)))
}

impl Graph {
    /// Makes the graph keep a function, also after the graph is dropped, until its pending launches are done.
    #[inline]
    #[track_caller]
    fn keep_function(&self, function: &Arc<Registered>) -> Result<()> {
        self.retain(&UserObject::new(Arc::clone(function))?)?;
        // Kept by this crate, too: a node of an executable graph may be changed to use this function, and the
        // executable graph may have no reference to the user object.
        self.kept().shared(Arc::clone(function) as Arc<dyn Any + Send + Sync>);
        Ok(())
    }

    /// Adds a node that calls a host function ([`cuGraphAddHostNode`](checked::graph_add_host_node)). Each launch calls
    /// the function once, unless earlier work faults; launches of several executable graphs may call it at the same
    /// time.
    ///
    /// In a host function, nearly every driver call returns `CUDA_ERROR_NOT_PERMITTED`, even queries and calls that
    /// release a resource: an object of this crate that is dropped there is leaked. The function itself may be dropped
    /// on a thread of the driver.
    ///
    /// A panic in the function does not unwind through the driver. It resumes in the next of these calls for the
    /// graph's context: [`Stream::synchronize`](crate::Stream::synchronize) of any stream,
    /// [`Event::synchronize`](crate::Event::synchronize) of any event that was recorded in a stream,
    /// [`Pending::wait`](crate::Pending::wait) of any copy, and [`Context::synchronize`](crate::Context::synchronize).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a dependency of another graph.
    #[inline]
    #[doc(alias = "cuGraphAddHostNode")]
    #[track_caller]
    pub fn add_host_fn(&self, after: &[Node<'_>], function: impl Fn() + Send + Sync + 'static) -> Result<Node<'_>> {
        let function = register(function, self.context())?;
        self.keep_function(&function)?;
        // SAFETY: the handles are live. `run` does not unwind, and accepts any number.
        let raw = unsafe { checked::graph_add_host_node(self.as_raw(), &handles(after), &function.params()) }?;
        Ok(Node::of(raw, self))
    }
}

impl Node<'_> {
    /// Returns the parameters of a host function node
    /// ([`cuGraphHostNodeGetParams`](checked::graph_host_node_get_params)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind.
    #[inline]
    #[doc(alias = "cuGraphHostNodeGetParams")]
    #[track_caller]
    pub fn host_params(&self) -> Result<CUDA_HOST_NODE_PARAMS> {
        // SAFETY: the node is in the graph, which is live.
        unsafe { checked::graph_host_node_get_params(self.as_raw()) }
    }

    /// Replaces the host function of a node ([`cuGraphHostNodeSetParams`](checked::graph_host_node_set_params)).
    /// Executable graphs do not change. The graph also keeps the earlier function.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind.
    #[inline]
    #[doc(alias = "cuGraphHostNodeSetParams")]
    #[track_caller]
    pub fn set_host_fn(&self, function: impl Fn() + Send + Sync + 'static) -> Result<()> {
        let function = register(function, self.graph().context())?;
        self.graph().keep_function(&function)?;
        // SAFETY: as in `Graph::add_host_fn`.
        unsafe { checked::graph_host_node_set_params(self.as_raw(), &function.params()) }
    }
}

impl GraphExec {
    /// Replaces the host function of a node
    /// ([`cuGraphExecHostNodeSetParams`](checked::graph_exec_host_node_set_params)). The executable graph also keeps
    /// the earlier function. A launch that is still pending when the executable graph is dropped does not call the new
    /// function: unlike a graph, an executable graph cannot keep values until its launches are done.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind or graph.
    #[inline]
    #[doc(alias = "cuGraphExecHostNodeSetParams")]
    #[track_caller]
    pub fn set_host_fn(&self, node: Node<'_>, function: impl Fn() + Send + Sync + 'static) -> Result<()> {
        let function = register(function, self.context())?;
        self.kept().shared(Arc::clone(&function) as Arc<dyn Any + Send + Sync>);
        // SAFETY: as in `Graph::add_host_fn`.
        unsafe { checked::graph_exec_host_node_set_params(self.as_raw(), node.as_raw(), &function.params()) }
    }
}

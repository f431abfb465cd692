//! Graph nodes that run kernels, and their attributes.

use core::ffi::c_void;
use core::ptr;

use super::exec::GraphExec;
use super::node::{Node, handles};
use super::owner::Graph;
use crate::context::Entered;
use crate::launch::{KernelArgs, LaunchConfig};
use crate::sys::{self, CUDA_KERNEL_NODE_PARAMS};
use crate::{Context, Function, Module, Result, checked};

/// Returns the parameters of a node. `pointers` is the result of [`KernelArgs::pointers`].
#[inline]
fn params(
    function: &Function,
    config: LaunchConfig,
    pointers: (*mut *mut c_void, *mut *mut c_void),
) -> CUDA_KERNEL_NODE_PARAMS {
    let LaunchConfig {
        grid,
        block,
        dynamic_shared_bytes,
    } = config;
    CUDA_KERNEL_NODE_PARAMS {
        func: function.as_raw(),
        gridDimX: grid.x,
        gridDimY: grid.y,
        gridDimZ: grid.z,
        blockDimX: block.x,
        blockDimY: block.y,
        blockDimZ: block.z,
        sharedMemBytes: dynamic_shared_bytes,
        kernelParams: pointers.0,
        extra: pointers.1,
        kern: ptr::null_mut(),
        ctx: ptr::null_mut(),
    }
}

/// Makes the context of a function current, or `other` if the function's context is not known. If neither is known,
/// returns an error unless a context is current, because the driver would crash.
#[inline]
#[track_caller]
fn enter<'a>(function: &'a Function, other: Option<&'a Context>, called: sys::Function) -> Result<Option<Entered<'a>>> {
    match function.module().and_then(Module::context).or(other) {
        Some(context) => context.enter().map(Some),
        None => Context::required_raw(called).map(|_| None),
    }
}

impl Graph {
    /// Adds a node that runs a kernel ([`cuGraphAddKernelNode`](checked::graph_add_kernel_node)). The configuration and
    /// the arguments are as in [`Function::launch`]; the values are copied before the call returns. The graph keeps the
    /// module loaded.
    ///
    /// # Safety
    /// The arguments must have the number, order and types that the kernel was compiled with. A borrowed function must
    /// stay valid as long as the graph and everything made from it. [`GraphExec::launch`] has the conditions for memory
    /// that the kernel accesses.
    ///
    /// With debug assertions, and if the driver is not older than CUDA 12.4, the number and sizes of the arguments are
    /// [compared](Function::check_args) with the kernel's parameters before the call, as by [`Function::launch`].
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an invalid grid or block, arguments that do not fit, if the comparison
    /// detects it, or a dependency of another graph; and `CUDA_ERROR_INVALID_CONTEXT` for a borrowed function in a
    /// borrowed graph if no context is current.
    #[inline]
    #[doc(alias = "cuGraphAddKernelNode")]
    #[track_caller]
    pub unsafe fn add_kernel(
        &self,
        after: &[Node<'_>],
        function: &Function,
        config: LaunchConfig,
        arguments: impl KernelArgs,
    ) -> Result<Node<'_>> {
        let called = sys::Function::cuGraphAddKernelNode_v2;
        if cfg!(debug_assertions) {
            function.check_launch(called, &arguments)?;
        }
        let mut storage = arguments.storage();
        let params = params(function, config, arguments.pointers(&mut storage));
        let _current = enter(function, self.context(), called)?;
        keep(self.kept(), function);
        // SAFETY: the handles are live, a context is current, and the pointers are to values that outlive the call; the
        // rest is upheld by the caller.
        let raw = unsafe { checked::graph_add_kernel_node(self.as_raw(), &handles(after), &params) }?;
        Ok(Node::of(raw, self))
    }
}

/// Keeps the module of a function loaded.
#[inline]
fn keep(kept: &super::kept::Kept, function: &Function) {
    if let Some(module) = function.module() {
        kept.module(module);
    }
}

impl Node<'_> {
    /// Returns the parameters of a kernel node ([`cuGraphKernelNodeGetParams`](checked::graph_kernel_node_get_params)).
    /// The driver owns the memory that they point to, until the node is changed or destroyed.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind.
    #[inline]
    #[doc(alias = "cuGraphKernelNodeGetParams")]
    #[track_caller]
    pub fn kernel_params(&self) -> Result<CUDA_KERNEL_NODE_PARAMS> {
        // SAFETY: the node is in the graph, which is live. Its modules are loaded: the graph keeps them, or the caller
        // who captured it does.
        unsafe { checked::graph_kernel_node_get_params(self.as_raw()) }
    }

    /// Replaces the kernel of a node ([`cuGraphKernelNodeSetParams`](checked::graph_kernel_node_set_params)).
    /// Executable graphs do not change.
    ///
    /// # Safety
    /// Same as [`Graph::add_kernel`].
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind, and the errors of [`Graph::add_kernel`] for the
    /// kernel and its arguments.
    #[inline]
    #[doc(alias = "cuGraphKernelNodeSetParams")]
    #[track_caller]
    pub unsafe fn set_kernel(
        &self,
        function: &Function,
        config: LaunchConfig,
        arguments: impl KernelArgs,
    ) -> Result<()> {
        let called = sys::Function::cuGraphKernelNodeSetParams_v2;
        if cfg!(debug_assertions) {
            function.check_launch(called, &arguments)?;
        }
        let mut storage = arguments.storage();
        let params = params(function, config, arguments.pointers(&mut storage));
        let _current = enter(function, self.graph().context(), called)?;
        keep(self.graph().kept(), function);
        // SAFETY: as in `Graph::add_kernel`.
        unsafe { checked::graph_kernel_node_set_params(self.as_raw(), &params) }
    }

    /// Returns an attribute of a kernel node
    /// ([`cuGraphKernelNodeGetAttribute`](checked::graph_kernel_node_get_attribute)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind, or an attribute that kernel nodes do not have.
    #[inline]
    #[doc(alias = "cuGraphKernelNodeGetAttribute")]
    #[track_caller]
    pub fn kernel_attribute(&self, attribute: sys::CUkernelNodeAttrID) -> Result<sys::CUkernelNodeAttrValue> {
        // SAFETY: the node is in the graph, which is live.
        unsafe { checked::graph_kernel_node_get_attribute(self.as_raw(), attribute) }
    }

    /// Sets an attribute of a kernel node
    /// ([`cuGraphKernelNodeSetAttribute`](checked::graph_kernel_node_set_attribute)).
    ///
    /// # Safety
    /// An address or a handle in the value must be valid, also whenever the graph runs.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind, an attribute that cannot be set, or a value that
    /// is not valid for it.
    #[inline]
    #[doc(alias = "cuGraphKernelNodeSetAttribute")]
    #[track_caller]
    pub unsafe fn set_kernel_attribute(
        &self,
        attribute: sys::CUkernelNodeAttrID,
        value: &sys::CUkernelNodeAttrValue,
    ) -> Result<()> {
        // SAFETY: the node is in the graph, which is live; the rest is upheld by the caller.
        unsafe { checked::graph_kernel_node_set_attribute(self.as_raw(), attribute, value) }
    }

    /// Copies all attributes of another kernel node to this one
    /// ([`cuGraphKernelNodeCopyAttributes`](checked::graph_kernel_node_copy_attributes)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if one of the nodes is of another kind.
    #[inline]
    #[doc(alias = "cuGraphKernelNodeCopyAttributes")]
    #[track_caller]
    pub fn copy_kernel_attributes(&self, from: Node<'_>) -> Result<()> {
        // SAFETY: both nodes are in graphs, which are live.
        unsafe { checked::graph_kernel_node_copy_attributes(self.as_raw(), from.as_raw()) }
    }
}

impl GraphExec {
    /// Replaces the kernel of a node ([`cuGraphExecKernelNodeSetParams`](checked::graph_exec_kernel_node_set_params)).
    ///
    /// # Safety
    /// Same as [`Graph::add_kernel`]. No kernel may update the node at the same time.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a kernel of another context, and for a node of another kind or graph, and
    /// the errors of [`Graph::add_kernel`] for the kernel and its arguments.
    #[inline]
    #[doc(alias = "cuGraphExecKernelNodeSetParams")]
    #[track_caller]
    pub unsafe fn set_kernel(
        &self,
        node: Node<'_>,
        function: &Function,
        config: LaunchConfig,
        arguments: impl KernelArgs,
    ) -> Result<()> {
        let called = sys::Function::cuGraphExecKernelNodeSetParams_v2;
        if cfg!(debug_assertions) {
            function.check_launch(called, &arguments)?;
        }
        let mut storage = arguments.storage();
        let params = params(function, config, arguments.pointers(&mut storage));
        let _current = enter(function, self.context(), called)?;
        keep(self.kept(), function);
        // SAFETY: as in `Graph::add_kernel`.
        unsafe { checked::graph_exec_kernel_node_set_params(self.as_raw(), node.as_raw(), &params) }
    }
}

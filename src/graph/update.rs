//! Updates of whole executable graphs.

use core::ptr;

use super::error::GraphError;
use super::exec::GraphExec;
use super::owner::Graph;
use crate::sys::{CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo};
use crate::{Result, checked};

impl GraphExec {
    /// Replaces the parameters of all nodes with those of a graph that has the same nodes and edges
    /// ([`cuGraphExecUpdate`](checked::graph_exec_update)). This takes less time than instantiating the graph. Nodes
    /// that were [disabled](Self::set_enabled) stay disabled. [User objects](super::UserObject) of the graph replace
    /// the earlier user objects.
    ///
    /// If the graphs differ too much, the executable graph is unchanged:
    ///
    /// ```
    /// # use cuda_driver::{Context, Device, Graph};
    /// use cuda_driver::sys::CUgraphExecUpdateResult;
    /// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
    /// # cuda_driver::init()?;
    /// # let context = Context::create(Device::first()?)?;
    /// let graph = Graph::new(&context)?;
    /// let mut exec = graph.instantiate()?;
    /// graph.add_empty(&[])?;
    /// if let Err(error) = exec.update(&graph) {
    ///     let other = CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    ///     assert_eq!(error.update_result(), Some(other));
    ///     exec = graph.instantiate()?;
    /// }
    /// # drop(exec);
    /// # Ok::<(), cuda_driver::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE`, with the [result](GraphError::update_result) and the node of the
    /// new graph, if the graphs have other nodes or edges, or a parameter cannot be changed.
    #[inline]
    #[doc(alias = "cuGraphExecUpdate")]
    #[track_caller]
    pub fn update(&self, graph: &Graph) -> Result<(), GraphError> {
        let mut info = CUgraphExecUpdateResultInfo::default();
        let unknown = CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR;
        let _current = self
            .enter()
            .map_err(|error| GraphError::of_update(error, unknown, ptr::null_mut(), graph))?;
        // Before the call, so that no node ever uses a value that is not kept, even if the call fails midway.
        graph.kept_by(self.kept());
        // SAFETY: both handles are live; functions, events and host functions of the nodes are kept alive by the graph,
        // or by the caller who captured it.
        unsafe { checked::graph_exec_update(self.as_raw(), graph.as_raw(), &mut info) }.map_err(|error| {
            // `errorNode` is a node of the new graph.
            GraphError::of_update(error, info.result, info.errorNode, graph)
        })
    }
}

//! Graph nodes that record events or wait for them.

use std::sync::Arc;

use super::exec::GraphExec;
use super::node::{Node, handles};
use super::owner::Graph;
use crate::{Event, Result, checked, sys};

impl Graph {
    /// Adds a node that records an event, as [`Event::record`] does in a stream
    /// ([`cuGraphAddEventRecordNode`](checked::graph_add_event_record_node)). The graph keeps the event alive.
    ///
    /// ```
    /// # use cuda_driver::{Context, Device, Event, Graph, Stream};
    /// use std::sync::Arc;
    /// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
    /// # cuda_driver::init()?;
    /// # let context = Context::create(Device::first()?)?;
    /// # let stream = Stream::new(&context)?;
    ///
    /// let done = Arc::new(Event::new(&context)?);
    /// let graph = Graph::new(&context)?;
    /// graph.add_record(&[], &done)?;
    /// // SAFETY: the graph accesses no memory.
    /// unsafe { graph.instantiate()?.launch(&stream) }?;
    /// done.synchronize()?;
    /// # Ok::<(), cuda_driver::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a dependency of another graph.
    #[inline]
    #[doc(alias = "cuGraphAddEventRecordNode")]
    #[track_caller]
    pub fn add_record(&self, after: &[Node<'_>], event: &Arc<Event>) -> Result<Node<'_>> {
        let _current = self.enter()?;
        self.kept().shared(Arc::clone(event) as _);
        // SAFETY: all handles are live, and the graph keeps the event.
        let raw = unsafe { checked::graph_add_event_record_node(self.as_raw(), &handles(after), event.as_raw()) }?;
        Ok(Node::of(raw, self))
    }

    /// Adds a node that waits for an event, as [`Stream::wait_event`](crate::Stream::wait_event) does in a stream
    /// ([`cuGraphAddEventWaitNode`](checked::graph_add_event_wait_node)). The graph keeps the event alive. Each launch
    /// waits for the latest record of the event before the launch.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a dependency of another graph.
    #[inline]
    #[doc(alias = "cuGraphAddEventWaitNode")]
    #[track_caller]
    pub fn add_wait(&self, after: &[Node<'_>], event: &Arc<Event>) -> Result<Node<'_>> {
        let _current = self.enter()?;
        self.kept().shared(Arc::clone(event) as _);
        // SAFETY: as in `add_record`.
        let raw = unsafe { checked::graph_add_event_wait_node(self.as_raw(), &handles(after), event.as_raw()) }?;
        Ok(Node::of(raw, self))
    }
}

impl Node<'_> {
    /// Returns the handle of the event that a node records
    /// ([`cuGraphEventRecordNodeGetEvent`](checked::graph_event_record_node_get_event)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind.
    #[inline]
    #[doc(alias = "cuGraphEventRecordNodeGetEvent")]
    #[track_caller]
    pub fn recorded_event(&self) -> Result<sys::CUevent> {
        // SAFETY: the node is in the graph, which is live.
        unsafe { checked::graph_event_record_node_get_event(self.as_raw()) }
    }

    /// Returns the handle of the event that a node waits for
    /// ([`cuGraphEventWaitNodeGetEvent`](checked::graph_event_wait_node_get_event)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind.
    #[inline]
    #[doc(alias = "cuGraphEventWaitNodeGetEvent")]
    #[track_caller]
    pub fn awaited_event(&self) -> Result<sys::CUevent> {
        // SAFETY: the node is in the graph, which is live.
        unsafe { checked::graph_event_wait_node_get_event(self.as_raw()) }
    }

    /// Replaces the event that a node records
    /// ([`cuGraphEventRecordNodeSetEvent`](checked::graph_event_record_node_set_event)). Executable graphs do not
    /// change.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind.
    #[inline]
    #[doc(alias = "cuGraphEventRecordNodeSetEvent")]
    #[track_caller]
    pub fn set_recorded_event(&self, event: &Arc<Event>) -> Result<()> {
        self.graph().kept().shared(Arc::clone(event) as _);
        // SAFETY: both handles are live, and the graph keeps the event.
        unsafe { checked::graph_event_record_node_set_event(self.as_raw(), event.as_raw()) }
    }

    /// Replaces the event that a node waits for
    /// ([`cuGraphEventWaitNodeSetEvent`](checked::graph_event_wait_node_set_event)). Executable graphs do not change.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind.
    #[inline]
    #[doc(alias = "cuGraphEventWaitNodeSetEvent")]
    #[track_caller]
    pub fn set_awaited_event(&self, event: &Arc<Event>) -> Result<()> {
        self.graph().kept().shared(Arc::clone(event) as _);
        // SAFETY: as above.
        unsafe { checked::graph_event_wait_node_set_event(self.as_raw(), event.as_raw()) }
    }
}

impl GraphExec {
    /// Replaces the event that a node records
    /// ([`cuGraphExecEventRecordNodeSetEvent`](checked::graph_exec_event_record_node_set_event)). The executable graph
    /// keeps the event alive.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind or graph.
    #[inline]
    #[doc(alias = "cuGraphExecEventRecordNodeSetEvent")]
    #[track_caller]
    pub fn set_recorded_event(&self, node: Node<'_>, event: &Arc<Event>) -> Result<()> {
        self.kept().shared(Arc::clone(event) as _);
        // SAFETY: all handles are live, and the executable graph keeps the event.
        unsafe { checked::graph_exec_event_record_node_set_event(self.as_raw(), node.as_raw(), event.as_raw()) }
    }

    /// Replaces the event that a node waits for
    /// ([`cuGraphExecEventWaitNodeSetEvent`](checked::graph_exec_event_wait_node_set_event)). The executable graph
    /// keeps the event alive.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind or graph.
    #[inline]
    #[doc(alias = "cuGraphExecEventWaitNodeSetEvent")]
    #[track_caller]
    pub fn set_awaited_event(&self, node: Node<'_>, event: &Arc<Event>) -> Result<()> {
        self.kept().shared(Arc::clone(event) as _);
        // SAFETY: as above.
        unsafe { checked::graph_exec_event_wait_node_set_event(self.as_raw(), node.as_raw(), event.as_raw()) }
    }
}

//! Conditional nodes: the value that a node tests, and the body that it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use cuda_driver_sys::CUgraphConditionalNodeType as Kind;

use crate::state::error::{Error, Result};
use engine::conditional::ConditionalValue;

/// A conditional handle: its value, and the value that launches set.
pub(crate) struct ConditionalHandle {
    pub(crate) value: Arc<ConditionalValue>,
    /// The value that each launch sets at its start; `None` if launches do not set the value.
    pub(crate) launch_value: Option<u32>,
    /// The context that the handle was created for. Its conditional node must be created for the same context.
    pub(crate) context: usize,
    claimed: AtomicBool,
}

impl ConditionalHandle {
    pub(crate) fn new(launch_value: Option<u32>, context: usize) -> Arc<Self> {
        Arc::new(ConditionalHandle {
            value: ConditionalValue::new(0),
            launch_value,
            context,
            claimed: AtomicBool::new(false),
        })
    }

    /// Claims the handle for an executable graph; returns false if another executable graph has it.
    pub(crate) fn claim(&self) -> bool {
        !self.claimed.swap(true, Relaxed)
    }

    pub(crate) fn unclaim(&self) {
        self.claimed.store(false, Relaxed);
    }

    /// Begins a launch: from now on, kernels can set the value. If the handle has a launch value, sets the value to it.
    pub(crate) fn begin(&self) {
        self.value.begin_launch();
        if let Some(value) = self.launch_value {
            self.value.set(value);
        }
    }
}

/// A conditional node.
pub(crate) struct ConditionalNode {
    pub(crate) handle: Arc<ConditionalHandle>,
    pub(crate) kind: Kind,
    /// The graphs of the bodies, by handle; the node owns them. The program has a pointer to this array.
    pub(crate) bodies: Box<[usize]>,
}

impl ConditionalNode {
    /// Returns the index of the body that runs next, or `None` if none runs. For a `while` node, this is called again
    /// after each run of the body.
    pub(crate) fn chosen(&self) -> Option<usize> {
        let value = self.handle.value.get() as usize;
        let index = match self.kind {
            Kind::CU_GRAPH_COND_TYPE_SWITCH => value,
            _ => usize::from(value == 0),
        };
        (index < self.bodies.len()).then_some(index)
    }
}

/// The maximum number of bodies of a `switch` node, so that a wrong number does not create billions of graphs.
const MOST_BODIES: u32 = 1 << 16;

/// Checks the number of bodies of a node.
pub(crate) fn check_bodies(kind: Kind, count: u32) -> Result<()> {
    let known = match kind {
        Kind::CU_GRAPH_COND_TYPE_IF => (1..=2).contains(&count),
        Kind::CU_GRAPH_COND_TYPE_WHILE => count == 1,
        Kind::CU_GRAPH_COND_TYPE_SWITCH => (1..=MOST_BODIES).contains(&count),
        _ => false,
    };
    known.then_some(()).ok_or_else(|| {
        host::log!("a conditional node of type {kind:?} cannot have {count} bodies");
        Error::CUDA_ERROR_INVALID_VALUE
    })
}

//! Output of graphs in the DOT language of Graphviz.

use std::path::Path;

use super::owner::Graph;
use crate::path::c_path;
use crate::refusal::Refusal;
use crate::{Error, Result, checked, sys};

impl Graph {
    /// Writes the graph in the DOT language of Graphviz to a file
    /// ([`cuGraphDebugDotPrint`](checked::graph_debug_dot_print)). Flags choose the details.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OPERATING_SYSTEM` if the file cannot be written, and `CUDA_ERROR_INVALID_VALUE` for a path
    /// that contains a NUL byte or, on Windows, is not Unicode.
    #[inline]
    #[doc(alias = "cuGraphDebugDotPrint")]
    #[track_caller]
    pub fn write_dot(&self, path: impl AsRef<Path>, flags: sys::CUgraphDebugDot_flags) -> Result<()> {
        let Some(path) = c_path(path.as_ref()) else {
            return Err(Error::refused(
                sys::CUresult::CUDA_ERROR_INVALID_VALUE,
                sys::Function::cuGraphDebugDotPrint,
                Refusal::Path,
            ));
        };
        // SAFETY: the handle is live.
        unsafe { checked::graph_debug_dot_print(self.as_raw(), &path, flags.0) }
    }
}

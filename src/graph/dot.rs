//! Output of graphs in the DOT language of Graphviz.

use std::ffi::CString;
use std::path::Path;

use super::owner::Graph;
use crate::refusal::Refusal;
use crate::{Error, Result, checked, sys};

impl Graph {
    /// Writes the graph in the DOT language of Graphviz to a file
    /// ([`cuGraphDebugDotPrint`](checked::graph_debug_dot_print)). Flags choose the details.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OPERATING_SYSTEM` if the file cannot be written, and `CUDA_ERROR_INVALID_VALUE` for a path that
    /// is not Unicode or contains a NUL byte.
    #[inline]
    #[doc(alias = "cuGraphDebugDotPrint")]
    #[track_caller]
    pub fn write_dot(&self, path: impl AsRef<Path>, flags: sys::CUgraphDebugDot_flags) -> Result<()> {
        let path = path.as_ref().to_str().and_then(|path| CString::new(path).ok());
        let Some(path) = path else {
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

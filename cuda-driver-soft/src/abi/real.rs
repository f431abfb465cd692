//! Which exports do something.

/// Symbols of the exports that are implemented; all others answer `CUDA_ERROR_NOT_SUPPORTED`. A test compares the list with
/// what is written.
pub const REAL: &[&str] = &[];

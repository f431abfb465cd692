//! Spellings of older PTX versions.

use std::borrow::Cow;

/// Returns the opcode that the table has for an opcode of a module of this PTX version, times ten.
pub(crate) fn current(opcode: &str, ptx: u32) -> Cow<'_, str> {
    let mut current = Cow::Borrowed(opcode);
    // `wmma` has `.aligned` since PTX 6.3, which requires it.
    if ptx < 63 && opcode.starts_with("wmma.") && !opcode.contains(".aligned") {
        current = current.replacen(".sync", ".sync.aligned", 1).into();
    }
    // Before PTX 6.5, `wmma.mma` of floating-point numbers may have `.satfinite`. For sm_80 and later, ptxas generates
    // the same code without it.
    if ptx < 65 && saturates_floats(opcode) {
        current = current.replacen(".satfinite", "", 1).into();
    }
    current
}

/// Returns true for `wmma.mma` of floating-point numbers with `.satfinite`.
pub(crate) fn saturates_floats(opcode: &str) -> bool {
    opcode.starts_with("wmma.mma.") && !opcode.contains(".s32") && opcode.contains(".satfinite")
}

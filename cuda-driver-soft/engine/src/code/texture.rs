//! Instructions on textures and surfaces (`tex`, `tld4`, `suld`, `sust`, `txq` and similar).

#![forbid(unsafe_code)]

use super::registers::Slot;
use ptx::ir::Op;

/// An instruction on a texture or surface: the operation and its operands.
#[derive(Clone, Debug)]
pub(crate) struct TextureInst {
    /// The operation.
    pub(crate) op: Op,
    /// The handle, a row of 64 bits.
    pub(crate) handle: Slot,
    /// Results, with the bytes per lane of each; 0 for a predicate.
    pub(crate) dsts: Vec<(Slot, u8)>,
    /// The sources after the handle, with the bytes per lane of each.
    pub(crate) srcs: Vec<(Slot, u8)>,
}

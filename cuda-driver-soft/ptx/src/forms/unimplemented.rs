//! Instructions that are known by name but not implemented.
//!
//! A module that contains them loads. If a kernel, or a function that it can call, contains one, its launch fails with
//! `CUDA_ERROR_NOT_SUPPORTED`, and the log names the instruction.

use super::form::{Candidate, Form, FormErrors};
use super::row::Lowering;

/// An opcode that is known, but not implemented except for the forms in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnimplementedOpcode {
    /// The opcode without modifiers.
    pub root: &'static str,
    /// PTX version that introduced the opcode, as major and minor.
    pub ptx: (u32, u32),
    /// Lowest architecture that has the opcode; 0 for all.
    pub sm: u32,
}

/// Returns the opcodes that are known, but not implemented except for the forms in the table.
pub fn unimplemented_opcodes() -> Vec<UnimplementedOpcode> {
    let opcode = |&(root, ptx, sm): &(&'static str, u32, u32)| UnimplementedOpcode {
        root,
        ptx: (ptx / 10, ptx % 10),
        sm,
    };
    ROOTS.iter().map(opcode).collect()
}

/// The opcodes: root, PTX version times ten, lowest architecture.
const ROOTS: &[(&str, u32, u32)] = &[
    ("clusterlaunchcontrol", 86, 100),
    ("cp", 70, 80),
    ("ldmatrix", 65, 75),
    ("mma", 64, 70),
    ("multimem", 81, 90),
    ("stmatrix", 78, 90),
    ("suq", 21, 20),
    ("tensormap", 83, 90),
    ("tex", 10, 0),
    ("txq", 20, 20),
    ("tcgen05", 86, 100),
];

/// For opcodes that also have forms in the table: each form that is not in the table has one of these modifiers.
#[rustfmt::skip] // one opcode per line
const DISTINGUISHING: &[(&str, &[&str])] = &[
    ("cp", &[".tile::gather4", ".tile::scatter4", ".im2col::w", ".im2col::w::128", ".cta_group::1", ".cta_group::2", ".cp_mask", ".ignore_oob"]),
    ("ldmatrix", &[".m16n16", ".m8n16"]),
    ("stmatrix", &[".m16n8"]),
    ("tex", &[".2dms", ".a2dms"]),
    ("txq", &[".channel_data_type", ".channel_order", ".normalized_coords", ".array_size", ".num_mipmap_levels", ".num_samples", ".memory_layout", ".filter_mode", ".addr_mode_0", ".addr_mode_1", ".addr_mode_2", ".force_unnormalized_coords"]),
    ("suq", &[".channel_data_type", ".channel_order", ".array_size", ".memory_layout"]),
    ("mma", &[".kind::f8f6f4", ".kind::mxf4", ".kind::mxf4nvf4", ".kind::mxf8f6f4"]),
    ("tensormap", &[".swizzle_atomicity"]),
    ("multimem", &[".cp", ".e4m3", ".e4m3x2", ".e4m3x4", ".e5m2", ".e5m2x2", ".e5m2x4"]),
];

/// Modifiers that are newer than the opcodes that have them: root, modifier, PTX version times ten.
const NEWER: &[(&str, &str, u32)] = &[("multimem", ".cp", 91)];

/// Returns the form of an opcode that is not implemented, or the message for an opcode that is not known or has none of
/// the modifiers of its unimplemented forms.
pub(super) fn find(root: &str, modifiers: &[&str]) -> Result<Form, FormErrors> {
    let Some(&(root, ptx, sm)) = ROOTS.iter().find(|(name, _, _)| *name == root) else {
        return Err(FormErrors(vec![format!(
            "Not a name of any known instruction: '{root}'"
        )]));
    };
    if let Some((_, some)) = DISTINGUISHING.iter().find(|(name, _)| *name == root)
        && !some.iter().any(|modifier| modifiers.contains(modifier))
    {
        return Err(FormErrors(vec![format!(
            "Unexpected instruction types specified for '{root}'"
        )]));
    }
    let newer = NEWER
        .iter()
        .filter(|(of, modifier, _)| *of == root && modifiers.contains(modifier));
    let ptx = newer.map(|(_, _, ptx)| *ptx).fold(ptx, u32::max);
    let candidates = vec![Candidate {
        operands: Vec::new(),
        lowering: Lowering::Unsupported,
        row: None,
        ptx,
        sm,
    }];
    Ok(Form {
        root,
        name: root.to_owned(),
        candidates,
        any_operands: true,
    })
}

//! Instructions that this driver knows by name but does not run yet.
//!
//! A module that contains them loads; a kernel that does is refused at its launch, by the name of the instruction.

use super::{Candidate, Form, FormErrors, Made};

/// Root, PTX version times ten, lowest architecture.
pub(super) const ROOTS: &[(&str, u32, u32)] = &[
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
    ("wgmma", 80, 90),
    ("tcgen05", 86, 100),
];

/// Of instructions that are in the table: the modifiers of which one is in every other form.
#[rustfmt::skip] // an instruction is a line
const ONLY: &[(&str, &[&str])] = &[
    ("cp", &[".tensor", ".cp_mask", ".ignore_oob"]),
    ("ldmatrix", &[".m16n16", ".m8n16"]),
    ("stmatrix", &[".m16n8"]),
    ("tex", &[".2dms", ".a2dms"]),
    ("txq", &[".channel_data_type", ".channel_order", ".normalized_coords", ".array_size", ".num_mipmap_levels", ".num_samples", ".memory_layout", ".filter_mode", ".addr_mode_0", ".addr_mode_1", ".addr_mode_2", ".force_unnormalized_coords"]),
    ("suq", &[".channel_data_type", ".channel_order", ".array_size", ".memory_layout"]),
    ("mma", &[".m8n8k4", ".sp", ".sp::ordered_metadata", ".kind::f8f6f4", ".kind::mxf4", ".kind::mxf4nvf4", ".kind::mxf8f6f4"]),
    ("wgmma", &[".sp"]),
];

/// An opcode whose root is one of the list.
pub(super) fn find(root: &str, modifiers: &[&str]) -> Result<Form, FormErrors> {
    let Some(&(root, ptx, sm)) = ROOTS.iter().find(|(name, _, _)| *name == root) else {
        return Err(FormErrors(vec![format!(
            "Not a name of any known instruction: '{root}'"
        )]));
    };
    // The other forms of these are rows of the table.
    if let Some((_, some)) = ONLY.iter().find(|(name, _)| *name == root)
        && !some.iter().any(|modifier| modifiers.contains(modifier))
    {
        return Err(FormErrors(vec![format!(
            "Unexpected instruction types specified for '{root}'"
        )]));
    }
    let candidates = vec![Candidate {
        specs: Vec::new(),
        made: Made::Unsupported,
    }];
    Ok(Form {
        root,
        name: root.to_owned(),
        candidates,
        ptx,
        sm,
        any_operands: true,
    })
}

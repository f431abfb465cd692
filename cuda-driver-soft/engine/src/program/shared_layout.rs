//! The layout of a kernel's `.shared` variables.

use ptx::ir::{Module, Space, VarId};
use std::collections::HashMap;

/// The offsets of a kernel's `.shared` variables in the block's shared memory.
#[derive(Debug, Default)]
pub(crate) struct SharedLayout {
    offsets: HashMap<VarId, u32>,
    /// Size in bytes of the variables whose size is known.
    pub(crate) fixed: u32,
    /// Offset of the dynamic shared memory, whose size the launch sets.
    pub(crate) dynamic: u32,
}

impl SharedLayout {
    /// Lays out the shared variables among `variables`.
    pub(super) fn new(module: &Module, variables: &[VarId]) -> Self {
        let variable = |id: VarId| &module.variables[id.0 as usize];
        let shared = || {
            let all = variables.iter().copied();
            all.filter(|id| variable(*id).space == Space::Shared)
        };
        let mut layout = SharedLayout::default();
        let mut dynamic_align = 16;
        for id in shared() {
            let variable = variable(id);
            if variable.size == 0 {
                dynamic_align = dynamic_align.max(variable.align);
            } else {
                let at = u64::from(layout.fixed).next_multiple_of(variable.align.max(1));
                layout.offsets.insert(id, at as u32);
                layout.fixed = u32::try_from(at + variable.size).unwrap_or(u32::MAX);
            }
        }
        layout.dynamic = u64::from(layout.fixed)
            .next_multiple_of(dynamic_align)
            .min(u64::from(u32::MAX)) as u32;
        for id in shared().filter(|id| variable(*id).size == 0) {
            layout.offsets.insert(id, layout.dynamic);
        }
        layout
    }

    /// Returns the offset of a variable that the kernel uses.
    pub(crate) fn offset(&self, var: VarId) -> Option<u32> {
        self.offsets.get(&var).copied()
    }
}

//! The list of the registers of the kernel that are in machine registers.

use super::assembler::{Gpr, Ymm};
use ptx::ir::Reg;

/// Limit on the vector registers of a register of the kernel: those of 32 lanes of 64 bits.
pub(super) const MOST_PARTS: usize = 8;

/// The machine registers that hold a register of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cached {
    /// A mask, or the first lane of a scalar.
    pub(super) gpr: Option<Gpr>,
    /// The parts of a vector; one part of a uniform scalar.
    pub(super) ymm: [Ymm; MOST_PARTS],
    /// Number of parts.
    pub(super) parts: u8,
    /// True if the row of the frame has an older value.
    pub(super) dirty: bool,
}

impl Cached {
    pub(super) const NONE: Cached = Cached {
        gpr: None,
        ymm: [Ymm(0); MOST_PARTS],
        parts: 0,
        dirty: false,
    };

    /// Returns the vector registers.
    pub(super) fn parts(&self) -> &[Ymm] {
        &self.ymm[..usize::from(self.parts)]
    }
}

/// The registers of the kernel that are in machine registers, in ascending order. There are few of them, and each exit
/// has a copy of them, so that a list is faster than a map.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache(Vec<(Reg, Cached)>);

impl Cache {
    /// Returns the place of a register in the list, or the place where it belongs.
    fn find(&self, reg: Reg) -> Result<usize, usize> {
        self.0.binary_search_by_key(&reg, |(reg, _)| *reg)
    }

    pub(super) fn get(&self, reg: Reg) -> Option<&Cached> {
        Some(&self.0[self.find(reg).ok()?].1)
    }

    pub(super) fn get_mut(&mut self, reg: Reg) -> Option<&mut Cached> {
        let at = self.find(reg).ok()?;
        Some(&mut self.0[at].1)
    }

    /// Adds a register, or replaces its machine registers.
    pub(super) fn insert(&mut self, reg: Reg, cached: Cached) {
        match self.find(reg) {
            Ok(at) => self.0[at].1 = cached,
            Err(at) => self.0.insert(at, (reg, cached)),
        }
    }

    pub(super) fn remove(&mut self, reg: Reg) -> Option<Cached> {
        let at = self.find(reg).ok()?;
        Some(self.0.remove(at).1)
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(Reg) -> bool) {
        self.0.retain(|(reg, _)| keep(*reg));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Reg, &Cached)> {
        self.0.iter().map(|(reg, cached)| (*reg, cached))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Cached> {
        self.0.iter().map(|(_, cached)| cached)
    }

    /// Marks all rows as up to date.
    pub(super) fn clean(&mut self) {
        self.0.iter_mut().for_each(|(_, cached)| cached.dirty = false);
    }
}

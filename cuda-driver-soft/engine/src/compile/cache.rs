//! The registers of the kernel that are in machine registers.

use super::registers::Cached;
use ptx::ir::Reg;

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

    /// Marks all rows as complete.
    pub(super) fn clean(&mut self) {
        self.0.iter_mut().for_each(|(_, cached)| cached.dirty = false);
    }
}

//! A set of registers, or of other small numbers, with one bit for each.

use crate::lanes;
use ptx::ir::Reg;

/// A set of registers.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Set(Vec<u64>);

impl Set {
    /// Returns an empty set for registers below `n`.
    pub(crate) fn empty(n: usize) -> Self {
        Set(vec![0; n.div_ceil(64)])
    }

    /// Returns a set of all registers below `n`. It may also contain numbers from `n` on, up to a multiple of 64.
    pub(super) fn all(n: usize) -> Self {
        Set(vec![!0; n.div_ceil(64)])
    }

    /// Returns an empty set of the same size.
    pub(super) fn emptied(&self) -> Self {
        Set(vec![0; self.0.len()])
    }

    /// Returns the number of 64-bit words that the set takes.
    pub(super) fn words(&self) -> usize {
        self.0.len()
    }

    /// Adds a register.
    pub(crate) fn insert(&mut self, reg: Reg) {
        self.0[reg.0 as usize / 64] |= 1 << (reg.0 % 64);
    }

    /// Removes a register.
    pub(crate) fn remove(&mut self, reg: Reg) {
        self.0[reg.0 as usize / 64] &= !(1 << (reg.0 % 64));
    }

    /// Returns the registers in the set, in ascending order.
    pub(crate) fn registers(&self) -> Vec<Reg> {
        let words = (0..).step_by(64).zip(&self.0);
        let bits = words.flat_map(|(first, word)| {
            let (low, high) = (*word as u32, (*word >> 32) as u32);
            let of = |mask, first| lanes::iter(mask).map(move |i| Reg(first + i as u32));
            of(low, first).chain(of(high, first + 32))
        });
        bits.collect()
    }

    /// Returns the lowest number in the set that is not below `from`.
    pub(super) fn first_from(&self, from: usize) -> Option<usize> {
        let mut at = from / 64;
        let mut word = self.0.get(at)? & (!0 << (from % 64));
        while word == 0 {
            at += 1;
            word = *self.0.get(at)?;
        }
        Some(64 * at + word.trailing_zeros() as usize)
    }

    /// Returns true if the register is in the set.
    pub(crate) fn has(&self, reg: Reg) -> bool {
        self.0[reg.0 as usize / 64] >> (reg.0 % 64) & 1 != 0
    }

    /// Keeps the registers that are in both sets. Returns true if that removes any.
    pub(super) fn intersect(&mut self, other: &Set) -> bool {
        let mut less = false;
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            less |= *a & !b != 0;
            *a &= b;
        }
        less
    }

    /// Removes the registers of another set.
    pub(super) fn subtract(&mut self, other: &Set) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a &= !b;
        }
    }

    /// Adds the registers of another set.
    pub(crate) fn union(&mut self, other: &Set) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
    }
}

//! The share of a kernel's instructions that are machine code.

/// Times that a loop is assumed to run.
const ROUNDS: u64 = 8;
/// Nesting of loops up to which inner instructions count more.
const MOST_NESTING: u32 = 5;

/// Instructions of the interpreter, weighted by the loops around them.
#[derive(Debug, Default)]
pub(super) struct Share {
    all: u64,
    native: u64,
}

impl Share {
    /// Counts instructions with this number of loops around them.
    pub(super) fn count(&mut self, nesting: usize, insts: u32, native: bool) {
        let nesting = u32::try_from(nesting).map_or(MOST_NESTING, |n| n.min(MOST_NESTING));
        let weight = u64::from(insts) * ROUNDS.pow(nesting);
        self.all += weight;
        if native {
            self.native += weight;
        }
    }

    /// Returns the percentage that is machine code.
    pub(super) fn percent(&self) -> u32 {
        (100 * self.native / self.all.max(1)) as u32
    }
}

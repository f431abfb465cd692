//! Counts the instructions of a compiled kernel by the way in which they run: as machine code, or by the interpreter.

#![forbid(unsafe_code)]

/// Number of rounds that each loop is assumed to run.
const ROUNDS: u64 = 8;
/// Nesting depth of loops beyond which the weight of instructions does not grow.
const MOST_NESTING: u32 = 5;

/// The way in which compiled code runs an instruction of the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) enum RunBy {
    /// As machine code.
    MachineCode,
    /// By a call of the interpreter for each group.
    Call,
    /// By one call of the interpreter or the scheduler for the whole warp.
    Together,
    /// The code leaves, and the interpreter continues.
    Interpreter,
}

/// Numbers of instructions of the interpreter, weighted by the loops around them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    /// The sum of all instructions.
    pub(crate) all: u64,
    /// The instructions that the code calls the interpreter for, once for each group.
    pub(crate) called: u64,
    /// The instructions at which the code leaves, or for which it makes one call for the whole warp.
    pub(crate) outside: u64,
}

#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
impl Share {
    /// Counts instructions with this number of loops around them.
    pub(crate) fn count(&mut self, nesting: usize, insts: u32, by: RunBy) {
        let nesting = u32::try_from(nesting).map_or(MOST_NESTING, |n| n.min(MOST_NESTING));
        let weight = u64::from(insts) * ROUNDS.pow(nesting);
        self.all += weight;
        match by {
            RunBy::MachineCode => {}
            RunBy::Call => self.called += weight,
            // One call for the whole warp costs about as much as the instruction outside of compiled code.
            RunBy::Together | RunBy::Interpreter => self.outside += weight,
        }
    }
}

//! The code of one function: registers, frame and instructions.

use super::ids::Reg;
use super::op::Op;
use super::operand::Operand;

/// Width of a register. A PTX register of 8 bits takes 16.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegClass {
    Pred,
    B16,
    B32,
    B64,
    B128,
}

/// The code of one function.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// Width of each register.
    pub registers: Vec<RegClass>,
    /// Names of the declared registers, in ascending order of their first registers. Registers that lowering adds have
    /// no names.
    pub names: Vec<RegisterName>,
    /// Places of a device function's formal parameters, in order. Empty for a kernel.
    pub params: Vec<Formal>,
    /// Places of a device function's results when it returns.
    pub returns: Vec<Formal>,
    /// Bytes of local memory that one invocation needs for `.local` variables, `.param` variables, formal parameters
    /// and results. Memory of `alloca` is not included.
    pub frame_size: u32,
    /// Bytes of the `.local` variables in the frame.
    pub local_bytes: u32,
    /// Alignment of the frame, a power of two.
    pub frame_align: u32,
    /// The instructions. A thread that reaches the end returns as with `ret`.
    pub insts: Vec<Inst>,
}

/// The name in a declaration of registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterName {
    /// The first register.
    pub first: Reg,
    /// The name; without the number of registers for a range: `%r` in `.reg .b32 %r<4>`.
    pub name: String,
    /// True if the declaration is a range such as `%r<4>`.
    pub is_range: bool,
    /// Elements of each register, if it is a vector; else 1.
    pub vec: u32,
    /// Number of registers that the declaration adds to [`Body::registers`]: one for each element of a vector.
    pub count: u32,
}

impl Body {
    /// Returns the name of a declared register in PTX.
    pub fn register_name(&self, reg: Reg) -> Option<String> {
        let after = self.names.partition_point(|name| name.first.0 <= reg.0);
        let name = self.names[..after].last()?;
        let index = reg.0 - name.first.0;
        if index >= name.count {
            return None;
        }
        let mut text = name.name.clone();
        if name.is_range {
            text += &(index / name.vec).to_string();
        }
        if name.vec > 1 {
            text += [".x", ".y", ".z", ".w"].get((index % name.vec) as usize)?;
        }
        Some(text)
    }
}

/// The place of a formal parameter or result in its own function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formal {
    /// A `.reg` parameter or result.
    Reg(Reg),
    /// A `.param` parameter or result: bytes of the frame.
    Frame {
        /// Offset from the start of the frame.
        offset: u32,
        /// Size in bytes.
        size: u32,
    },
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct Inst {
    /// `@p` or `@!p`: the predicate register, and true if it is negated.
    pub guard: Option<(Reg, bool)>,
    /// The operation with all its modifiers.
    pub op: Op,
    /// Destination registers; `None` is the sink `_`. `setp p|q` has two, a vector load one per element.
    pub dsts: Vec<Option<Reg>>,
    /// Source operands in the manual's order, except where the documentation of the [`Op`] gives another.
    pub srcs: Vec<Operand>,
    /// Line in the PTX source, from 1.
    pub line: u32,
}

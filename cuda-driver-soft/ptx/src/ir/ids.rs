//! Typed indices of variables, functions, registers and instructions.

/// Index of a [`Variable`](super::Variable) in its [`Module`](super::Module).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub u32);

/// Index of a [`Function`](super::Function) in its [`Module`](super::Module).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncId(pub u32);

/// A virtual register: an index into [`Body::registers`](super::Body::registers).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(pub u32);

/// Index of an instruction in [`Body::insts`](super::Body::insts).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstId(pub u32);

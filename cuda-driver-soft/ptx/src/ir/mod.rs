//! The typed intermediate representation, which loading a module produces and an engine runs.
//!
//! A [`Module`] holds variables and functions, with every name resolved. A function's [`Body`] is a flat list of
//! [`Inst`]s over virtual registers: labels are instruction indices, `.local` and function-scope `.param` variables are
//! offsets into the function's frame, and every modifier that has an effect is a field of the instruction's [`Op`].
//! The representation does not depend on the way in which instructions are executed.

mod body;
mod display;
mod ids;
mod location;
mod module;
mod op;
mod opcode;
mod operand;
mod tensor;
mod texture;
mod types;
mod video;

pub use body::{Body, Formal, Inst, RegClass, RegisterName};
pub use ids::{FuncId, InstId, Reg, VarId};
pub use location::{Location, SourceMap, SourcePlace};
pub use module::{
    Code, Directives, Function, FunctionKind, Linkage, Module, Param, Reloc, RelocTarget, Target, Variable,
};
pub use op::{Cvt, FloatMods, MemMods, Op};
pub use operand::{Address, CallSlot, Callee, Operand, Special};
pub use tensor::{TensorCopy, TensorDirection, TensorMapField, TensorMapReplace, TensorMode};
pub use texture::{Bounds, Geometry, Level, Opaque, Query, Surface, SurfaceOp, Tex};
pub use types::{
    AtomOp, BarOp, BoolOp, Compare, CopyGroup, CopyPart, FloatTest, MatrixPart, MbarrierOp, Mma, MmioOrder, Order,
    Part, Precision, PrmtMode, Rounding, Scope, ShflMode, Space, Type, VoteMode, Wgmma,
};
pub use video::{Video, VideoEach, VideoInst, VideoMad, VideoOp, VideoPacked, VideoPart, VideoThen};

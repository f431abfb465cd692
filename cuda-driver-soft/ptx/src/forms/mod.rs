//! The instruction table: opcodes, their modifiers and operands, and the PTX version and architecture that they
//! require.
//!
//! Each row has a syntax line (`Row::syntax`) like those of the PTX manual, in this notation:
//!
//! | text | meaning |
//! |--|--|
//! | `.sat` | the modifier is required |
//! | `{.a\|.b}` | one of these or none |
//! | `(.a\|.b)` | one of these |
//! | `<int>`, `{<rnd>}` | one member of a class (see `classes`), required or optional |
//!
//! Like ptxas, the matcher accepts modifiers in any order, except for types and the modifiers that are part of the
//! opcode's name. The operands are separated by commas:
//!
//! | text | meaning |
//! |--|--|
//! | `d` | destination register |
//! | `a`, `b`, `c`, `f`, `m`, `n` | source: register or constant |
//! | `p` | destination predicate |
//! | `p\|q`, `d\|p` | pair of destinations; the second is an optional predicate |
//! | `!c` | source predicate, which may be negated |
//! | `!a`, `!b` | source, which may be negated if it is a predicate |
//! | `#i` and other letters | constant |
//! | `[a]` and other letters | address; for textures and surfaces, a handle with coordinates, or without |
//! | `[t]` | address of a tensor map, with coordinates |
//! | `policy` | cache policy, present if the opcode has `.L2::cache_hint` |
//! | `{, x}` | optional operand |
//!
//! `mov`, `bra`, `brx`, `call`, `cvta`, `mapa` and `getctarank` also allow operands that their rows do not describe,
//! such as labels, functions and variables; `cvt` also allows special registers, and the video instructions allow
//! selectors. Lowering has checks of its own for them.
//!
//! A predicate has the type `.pred`, and a cache policy `.u64`. Every other operand has the last type of the opcode.
//! Suffixes change the type and other properties:
//!
//! | text | meaning |
//! |--|--|
//! | `:t` | of type `.t` |
//! | `:1`, `:2` | of the first or second type in the opcode |
//! | `:w` | of twice the width of the last type |
//! | `~` | registers may be wider than the type |
//! | `?` | may be `_` |
//! | `&` | both operands of a pair are required |
//! | `*` | a vector if the opcode has `.v2`, `.v4` or `.v8` |
//! | `^4` | a vector of 4 elements; `^1` is one element in braces |
//! | `^n/2`, `^n/4` | a vector with one element for each 2 or 4 columns (`n`) of the shape |

mod classes;
mod find;
mod form;
mod mods;
mod older;
mod operand;
mod row;
mod rows;
mod samples;
mod since;
mod table;
#[cfg(test)]
mod tests;
mod unimplemented;
mod why_not;

pub(crate) use find::find;
pub(crate) use form::{Candidate, Form, FormErrors};
pub(crate) use older::{current, saturates_floats};
pub(crate) use operand::{OperandSpec, Role};
pub(crate) use row::Lowering;
pub use samples::{Sample, every_form, modifier_classes, samples};
pub(crate) use since::unmet;
pub use table::{TableRow, table_rows};
pub use unimplemented::{UnimplementedOpcode, unimplemented_opcodes};

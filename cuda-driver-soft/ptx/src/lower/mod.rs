//! Function bodies: every name is resolved, every operand is checked against the instruction table, and the result is
//! an [`ir::Body`](crate::ir::Body).
//!
//! One walk has two uses. [`verify`] reports errors and builds no instructions. [`lower`] builds the body of a function
//! that was verified, when the body is first needed.

mod address;
mod address_conversion;
mod body;
mod branch;
mod call;
mod declarations;
mod errors;
mod frame;
mod instruction;
mod memory;
mod mov;
mod operands;
mod pointers;
mod ranges;
mod sparse;
mod subscript;
mod tensor;
mod texture;
mod types;
mod video;
mod walker;
mod wgmma;

pub(crate) use walker::Uses;

use crate::diagnostics::Diagnostics;
use crate::ir::{Body, FuncId};
use crate::unit::Unit;

use walker::{Reporter, Walker};

/// Checks a body and returns the functions and variables that it uses.
pub(crate) fn verify(unit: &Unit, id: FuncId, text: &[u8], diagnostics: &mut Diagnostics) -> Uses {
    let mut uses = Uses::default();
    let reporter = Reporter {
        text,
        diagnostics,
        uses: &mut uses,
    };
    Walker::new(unit, id, Some(reporter)).run();
    uses
}

/// Returns the body of a function that was verified.
pub(crate) fn lower(unit: &Unit, id: FuncId) -> Body {
    Walker::new(unit, id, None).run()
}

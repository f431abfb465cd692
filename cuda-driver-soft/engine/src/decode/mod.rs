//! From the typed IR of a function to the code that the engine runs.
//!
//! * `layout` cuts it into blocks and puts them together again, with branches;
//! * `order` numbers the blocks as the scheduler wants them;
//! * `defined` finds the registers that must be zero at the start;
//! * `constants` finds those that are another name of a constant;
//! * `builder` gives every register and constant its slot;
//! * `lower` turns each instruction into one with handlers, or several;
//! * `converged` does all that once more for warps whose lanes go the same way.

mod asynchronous;
mod atomic;
mod builder;
mod constants;
mod converged;
mod defined;
mod layout;
mod lower;
mod matrix;
mod order;
mod stack;
mod texture;

use crate::code::Code;
use crate::code::isa::Isa;
use crate::ops::collective::Collective;
use crate::ops::control;
use crate::program::Image;
use builder::Builder;
use layout::{Layout, Step};
use ptx::ir::{Body, FuncId, Op};
use std::fmt;

/// An instruction that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CannotRun {
    /// The instruction.
    pub(crate) opcode: String,
    /// Its line in the PTX source, from 1.
    pub(crate) line: u32,
}

impl fmt::Display for CannotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (PTX line {})", self.opcode, self.line)
    }
}

/// Decodes a function for an instruction set; `grid`: for warps whose lanes are in several rows of their block.
pub(super) fn decode(
    image: &Image,
    id: FuncId,
    body: &Body,
    isa: Isa,
    grid: bool,
) -> Result<Code, CannotRun> {
    let layout = Layout::of(body);
    let uses = defined::uses(body, &layout);
    let mut builder = Builder::new(image, id, body, isa, &uses);
    // Where each step begins.
    let mut places = vec![0; layout.steps.len()];
    let begins = layout.emit(&mut builder, control::branch(), |builder, number, step| {
        places[number] = builder.here();
        match step {
            Step::Plain(inst) => lower::lower(builder, inst),
            Step::Branch { .. } => Ok(()),
        }
    })?;
    let converged = if builder.is_kernel() {
        converged::lower(&mut builder, &layout, &uses, &places, grid)?
    } else {
        None
    };
    let mut code = builder.finish(converged);
    for action in &mut code.actions {
        if let crate::code::Action::Branch { targets, .. } = action {
            for target in targets {
                *target = begins[layout.block_at(*target)];
            }
        }
    }
    Ok(code.check())
}

/// What the scheduler runs: with a guard, a branch goes around it.
fn is_control(op: &Op) -> bool {
    matches!(
        op,
        Op::Brx { .. }
            | Op::Call { .. }
            | Op::Ret { .. }
            | Op::Exit
            | Op::Bar { .. }
            | Op::ClusterBarrier { .. }
            | Op::Alloca
            | Op::Stacksave
            | Op::Stackrestore
    ) || matrix::is(op)
        || texture::is(op)
        || Collective::of(op).is_some()
}

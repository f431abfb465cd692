//! Decodes the typed IR of a function to the code that the engine runs.
//!
//! | file | |
//! | --- | --- |
//! | `constants` | registers that are aliases of constants |
//! | `builder` | slots of registers and constants; collects the instructions |
//! | `operands` | translates operands to slots |
//! | `asynchronous`, `atomic`, `calls`, `matrix`, `memory`, `stack`, `texture` | instructions of these kinds |
//! | `lower` | one instruction of any kind |
//! | `emit` | turns basic blocks and branches into instructions |
//! | `unsupported` | the error for an unsupported instruction |

#![forbid(unsafe_code)]

mod asynchronous;
mod atomic;
mod builder;
mod calls;
mod constants;
mod emit;
mod lower;
mod matrix;
mod memory;
mod operands;
mod stack;
mod texture;
pub(crate) mod unsupported;

use crate::code::action::Action;
use crate::code::function::Code;
use crate::code::isa::Isa;
use crate::code::site::Site;
use crate::ops::control;
use crate::plan::defined;
use crate::plan::source::SourceFunction;
use crate::plan::steps::{Layout, Step};
use builder::Builder;
use ptx::ir::{Body, FuncId, Module, Op};
use unsupported::UnsupportedInst;

/// The purpose of decoded code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To run fast.
    Run,
    /// To be observed: with [`sites`](Code::sites), and at least one decoded instruction for each reachable PTX
    /// instruction.
    Observe,
}

/// Decodes a function for an instruction set.
pub(crate) fn decode(
    module: &Module,
    id: FuncId,
    body: &Body,
    isa: Isa,
    purpose: Purpose,
) -> Result<Code, UnsupportedInst> {
    let source = SourceFunction { module, id, body };
    let layout = Layout::of(body);
    let uses = defined::uses(body, &layout);
    let observed = purpose == Purpose::Observe;
    let mut builder = Builder::new(source, isa, &uses, observed);
    // The decoded instructions of each step: the first one, and the one after the last.
    let mut places = vec![0; layout.steps.len()];
    let mut ends = vec![0; layout.steps.len()];
    let begins = emit::emit(&layout, &mut builder, |builder, number, step| {
        places[number] = builder.here();
        if observed {
            let (inst, guarded) = layout.origin(number);
            let branches = matches!(body.insts[inst as usize].op, Op::Bra { .. });
            let guard = !branches && matches!(step, Step::Branch { .. });
            builder.begin_site(Site {
                inst: Some(inst),
                first: !guarded,
                effect: !guard,
                guard,
                ..Site::default()
            });
        }
        match step {
            Step::Plain(inst) => {
                lower::lower(builder, inst)?;
                if observed && builder.here() == places[number] {
                    builder.push(control::nop(), inst.line, |_| {});
                }
            }
            Step::Branch { .. } => {}
        }
        // A conditional branch is one instruction, which is added next.
        let branch = matches!(step, Step::Branch { guard: Some(_), .. });
        ends[number] = builder.here() + u32::from(branch);
        Ok(())
    })?;
    let steps = places.into_iter().zip(ends).collect();
    let end = layout
        .block_of
        .get(layout.steps.len())
        .map_or(0, |block| begins[*block]);
    let mut code = builder.finish(steps, end);
    for action in &mut code.actions {
        if let Action::Branch { targets, .. } = action {
            for target in targets {
                *target = begins[layout.block_at(*target)];
            }
        }
    }
    Ok(code.check())
}

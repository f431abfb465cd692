//! Decodes instructions on textures and surfaces, such as `tex` and `suld`. The scheduler runs them.

use super::builder::Builder;
use super::operands::source;
use crate::code::action::Action;
use crate::code::texture::TextureInst;
use ptx::ir::{Inst, Operand, RegClass};

/// Returns the bytes of a class of registers for each lane, 0 for predicates; `None` for 128 bits.
fn width(class: RegClass) -> Option<u8> {
    match class {
        RegClass::Pred => Some(0),
        RegClass::B16 => Some(2),
        RegClass::B32 => Some(4),
        RegClass::B64 => Some(8),
        RegClass::B128 => None,
    }
}

/// Decodes an instruction on a texture or surface.
pub(super) fn lower(b: &mut Builder<'_>, inst: &Inst) -> Option<()> {
    let (handle, rest) = inst.srcs.split_first()?;
    let handle = source(b, handle, RegClass::B64, inst.line)?;
    let mut srcs = Vec::with_capacity(rest.len());
    for operand in rest {
        let class = match *operand {
            Operand::Reg(reg) => b.class(reg),
            // The operand is a constant, which may be for an element of 64 bits.
            _ => RegClass::B64,
        };
        srcs.push((source(b, operand, class, inst.line)?, width(class)?));
    }
    let mut dsts = Vec::with_capacity(inst.dsts.len());
    for d in &inst.dsts {
        let class = d.map_or(RegClass::B64, |d| b.class(d));
        dsts.push((b.destination(*d, class), width(class)?));
    }
    let texture = TextureInst {
        op: inst.op.clone(),
        handle,
        dsts,
        srcs,
    };
    b.push_action(Action::Texture(Box::new(texture)), inst.line);
    Some(())
}

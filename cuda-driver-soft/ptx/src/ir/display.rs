//! The intermediate representation as text, for debugging.

use super::body::{Body, Inst};
use super::module::{Module, Variable};
use super::operand::Operand;
use std::fmt::{Display, Formatter, Result};

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, "module {}.{} sm_{}", self.version.0, self.version.1, self.target.sm)?;
        for (i, variable) in self.variables.iter().enumerate() {
            let Variable {
                name,
                space,
                linkage,
                size,
                align,
                init,
                relocs,
                ..
            } = variable;
            write!(f, "v{i} {name}: {space:?} {linkage:?} size {size} align {align}")?;
            writeln!(f, " init {} bytes, {} addresses", init.len(), relocs.len())?;
        }
        for (i, function) in self.functions.iter().enumerate() {
            writeln!(f, "f{i} {:?} {}", function.kind, function.name)?;
            for param in function.returns.iter().chain(&function.params) {
                writeln!(
                    f,
                    "    {} {:?} at {} size {}",
                    param.name, param.ty, param.offset, param.size
                )?;
            }
            if let Some(body) = function.body() {
                write!(f, "{body}")?;
            }
        }
        Ok(())
    }
}

impl Display for Body {
    /// Prints the number of registers, the frame, the places of results and parameters, then one line per instruction:
    /// index, guard, destinations, operation, sources, line of the source.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(
            f,
            "  {} registers, frame {} align {}",
            self.registers.len(),
            self.frame_size,
            self.frame_align
        )?;
        for formal in self.returns.iter().chain(&self.params) {
            writeln!(f, "  {formal:?}")?;
        }
        for (i, inst) in self.insts.iter().enumerate() {
            writeln!(f, "  {i:4}  {inst}")?;
        }
        Ok(())
    }
}

impl Display for Inst {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some((reg, negated)) = self.guard {
            write!(f, "@{}r{} ", if negated { "!" } else { "" }, reg.0)?;
        }
        for (i, dst) in self.dsts.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            match dst {
                Some(reg) => write!(f, "{comma}r{}", reg.0)?,
                None => write!(f, "{comma}_")?,
            }
        }
        if !self.dsts.is_empty() {
            write!(f, " = ")?;
        }
        write!(f, "{:?}", self.op)?;
        for (i, src) in self.srcs.iter().enumerate() {
            write!(f, "{} {src}", if i > 0 { "," } else { "" })?;
        }
        write!(f, "  // line {}", self.line)
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Operand::Reg(reg) => write!(f, "r{}", reg.0),
            Operand::NotReg(reg) => write!(f, "!r{}", reg.0),
            Operand::Imm(bits) => write!(f, "{bits:#x}"),
            Operand::Special(special) => write!(f, "%{special:?}"),
            Operand::Address(address) => write!(f, "{address:?}"),
        }
    }
}

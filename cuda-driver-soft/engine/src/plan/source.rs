//! A function of a module, with queries about its registers, parameters and constants.

use crate::code::constant::Constant;
use crate::window;
use ptx::ir::{Address, Body, FuncId, Function, FunctionKind, Inst, MemMods, Module, Operand, Reg, RegClass, Space};

/// The function that is being decoded or planned.
#[derive(Clone, Copy)]
pub(crate) struct SourceFunction<'b> {
    pub(crate) module: &'b Module,
    pub(crate) id: FuncId,
    pub(crate) body: &'b Body,
}

impl<'b> SourceFunction<'b> {
    fn function(&self) -> &'b Function {
        &self.module.functions[self.id.0 as usize]
    }

    /// Returns true if the function is a kernel.
    pub(crate) fn is_kernel(&self) -> bool {
        self.function().kind == FunctionKind::Entry
    }

    /// Returns the size of a kernel's parameter buffer; 0 for other functions.
    fn param_bytes(&self) -> u32 {
        let bytes = self
            .function()
            .params
            .iter()
            .map(|p| p.offset + p.size)
            .max()
            .filter(|_| self.is_kernel());
        bytes.and_then(|b| u32::try_from(b).ok()).unwrap_or(0)
    }

    /// Returns the class of a register.
    pub(crate) fn class(&self, reg: Reg) -> RegClass {
        self.body.registers[reg.0 as usize]
    }

    /// Returns the offset in the kernel's parameters that a load reads. Returns `None` unless the load's offset is
    /// constant, aligned and inside the parameters, and its elements have at most 8 bytes.
    pub(crate) fn parameter(&self, inst: &Inst, m: &MemMods) -> Option<u32> {
        let (Space::Param, Operand::Address(Address::Param { offset })) = (m.space, inst.srcs.first()?) else {
            return None;
        };
        let offset = offset.checked_add(m.offset).and_then(|o| u32::try_from(o).ok())?;
        let size = m.ty.size();
        // A load past the parameters stays a load, which checks its address.
        let end = offset.checked_add(size.checked_mul(u32::from(m.vec))?)?;
        let inside = end <= self.param_bytes() && offset.is_multiple_of(size) && size <= 8;
        inside.then_some(offset)
    }
}

/// Returns the constant of a source operand. Returns `None` for registers.
pub(crate) fn constant_of(operand: &Operand) -> Option<Constant> {
    Some(match *operand {
        Operand::Reg(_) | Operand::NotReg(_) => return None,
        Operand::Imm(bits) => Constant::Bits(bits),
        Operand::Special(special) => Constant::Special(special),
        Operand::Address(Address::Variable { var, offset }) => Constant::Variable(var, offset),
        Operand::Address(Address::Frame { offset }) => Constant::Frame(offset),
        Operand::Address(Address::Param { offset }) => Constant::Bits(offset as u64),
        Operand::Address(Address::Function(id)) => Constant::Bits(window::function_address(id.0)),
    })
}

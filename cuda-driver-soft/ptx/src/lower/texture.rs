//! Textures and surfaces: what is between the brackets.

use super::operands::source;
use super::*;
use crate::ast::Operand as Source;
use crate::forms::Spec;
use crate::ir::{Address, Geometry, MemMods, Opaque, Order, Space};

impl Walker<'_> {
    /// `tex`, `suld` and their kin: the handle and the coordinates go before the other sources.
    pub(super) fn texture(&mut self, inst: &Inst, op: &Op, address: Option<&Source>) {
        let Some(address) = address else { return };
        let mut op = op.clone();
        let (wanted, coordinates) = match &mut op {
            Op::Tex(tex) => {
                // What is behind the level or the gradients are offsets.
                let level = match tex.level {
                    ir::Level::Base | ir::Level::Gather(_) => 0,
                    ir::Level::Given => 1,
                    ir::Level::Gradient(each) => 2 * usize::from(each),
                };
                tex.offsets = self.srcs.len().saturating_sub(level) as u8;
                (Opaque::Texture, Some((tex.geometry, tex.coordinates)))
            }
            Op::Surface(surface) => (Opaque::Surface, Some((surface.geometry, Type::S32))),
            Op::Query { surface: true, .. } => (Opaque::Surface, None),
            _ => (Opaque::Texture, None),
        };
        let parts = match address.kind {
            OperandKind::Multi(span) => self.unit.ast.operands.get(span.range()).unwrap_or(&[]),
            _ => std::slice::from_ref(address),
        };
        let tail = std::mem::take(&mut self.srcs);
        match (parts, coordinates) {
            ([object], None) => {
                if let Some(handle) = self.handle(inst, object, wanted) {
                    self.srcs.push(handle);
                }
            }
            ([object, place], Some((geometry, ty))) => {
                if let Some(handle) = self.handle(inst, object, wanted) {
                    self.srcs.push(handle);
                }
                self.coordinates(place, geometry, ty);
            }
            // With a sampler of its own.
            ([_, _, _], Some(_)) if matches!(op, Op::Tex(_)) => {
                self.dsts.clear();
                return self.unsupported(inst, parts);
            }
            _ => {
                self.faults.mismatch = true;
                return self.note_unknown(parts);
            }
        }
        self.srcs.extend(tail);
        if self.faults.is_empty() {
            self.emit(inst, op);
        }
    }

    fn coordinates(&mut self, place: &Source, geometry: Geometry, ty: Type) {
        let OperandKind::Vector(span) = place.kind else {
            // One of them, or a register that is a vector.
            let spec = Spec {
                vec: geometry.written(),
                ..source(ty)
            };
            return self.operand(1, place, &spec);
        };
        if span.len != u32::from(geometry.written()) {
            self.faults.mismatch = true;
        }
        let elements = self.unit.ast.operands.get(span.range()).unwrap_or(&[]);
        for (i, element) in elements.iter().enumerate() {
            let layer = i == 0 && geometry.is_layered();
            self.operand(1, element, &source(if layer { Type::U32 } else { ty }));
        }
    }

    /// The texture or surface: a handle in a register, or a variable that stands for it.
    fn handle(&mut self, inst: &Inst, object: &Source, wanted: Opaque) -> Option<Operand> {
        let OperandKind::Address {
            base: Some(name),
            offset: 0,
        } = object.kind
        else {
            self.faults.mismatch = true;
            return None;
        };
        let kind = match wanted {
            Opaque::Surface => ".surfref",
            _ => ".texref",
        };
        match self.resolve(name) {
            Some(Symbol::Reg { first, ty, vec: 1 })
                if ty.size() == 8 && !ty.is_float() && ty != Type::Pred =>
            {
                Some(Operand::Reg(Reg(first)))
            }
            Some(Symbol::Variable { var, .. }) => {
                let opaque = self.unit.opaques.get(var.0 as usize).copied().flatten();
                match opaque {
                    Some(opaque) if opaque == wanted => {
                        if let Some(reporter) = &mut self.reporter {
                            reporter.uses.variables.insert(var);
                        }
                        Some(Operand::Address(Address::Variable { var, offset: 0 }))
                    }
                    Some(_) => {
                        let message = format!(
                            "Argument 1 of instruction '{}': {kind} or .u64 register expected",
                            self.name
                        );
                        self.say(object.pos, message);
                        None
                    }
                    None => {
                        self.faults.mismatch = true;
                        None
                    }
                }
            }
            Some(Symbol::Param { offset, .. }) => self.handle_parameter(inst, name, offset, wanted),
            Some(_) => {
                self.faults.mismatch = true;
                None
            }
            None => {
                self.unknown(name, object.pos);
                None
            }
        }
    }

    /// `.param .texref t` of a kernel: its value is the handle.
    fn handle_parameter(
        &mut self,
        inst: &Inst,
        name: Name,
        offset: u32,
        wanted: Opaque,
    ) -> Option<Operand> {
        let params = self.function.map(|f| f.params.clone()).unwrap_or(0..0);
        let is_opaque = self
            .unit
            .vars(&params)
            .iter()
            .any(|var| var.name == name && var.ty == DeclType::Opaque(wanted));
        if !is_opaque {
            self.faults.mismatch = true;
            return None;
        }
        let handle = self.new_register(Type::B64);
        let dsts = std::mem::replace(&mut self.dsts, vec![Some(handle)]);
        let address = Address::Param {
            offset: i64::from(offset),
        };
        let srcs = std::mem::replace(&mut self.srcs, vec![Operand::Address(address)]);
        let load = Op::Ld(MemMods {
            space: Space::Param,
            ty: Type::B64,
            vec: 1,
            order: Order::Weak,
            offset: 0,
        });
        self.emit_guarded(None, load, inst.pos.line);
        (self.dsts, self.srcs) = (dsts, srcs);
        Some(Operand::Reg(handle))
    }
}

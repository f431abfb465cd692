//! Lowers texture and surface instructions, whose address operand holds a handle and coordinates.

use crate::ast::{self, DeclType, Inst, OperandKind, Selector};
use crate::forms::OperandSpec;
use crate::ir::{Address, Geometry, Level, MemMods, Op, Opaque, Operand, Order, Reg, Space, Type};
use crate::scopes::Symbol;

use super::types::source;
use super::walker::Walker;

impl Walker<'_> {
    /// Lowers texture and surface instructions: the handle and the coordinates become the first sources.
    pub(super) fn texture(&mut self, inst: &Inst, op: &Op, address: Option<&ast::Operand>) {
        let Some(address) = address else { return };
        let mut op = op.clone();
        let (wanted, coordinates) = match &mut op {
            Op::Tex(tex) => {
                // The sources after the level or the gradients are offsets.
                let level = match tex.level {
                    Level::Base | Level::Gather(_) => 0,
                    Level::Given => 1,
                    Level::Gradient(each) => 2 * usize::from(each),
                };
                tex.offsets = self.srcs.len().saturating_sub(level) as u8;
                (Opaque::Texture, Some((tex.geometry, tex.coordinates)))
            }
            Op::Surface(surface) => (Opaque::Surface, Some((surface.geometry, Type::S32))),
            Op::Query { surface: true, .. } => (Opaque::Surface, None),
            _ => (Opaque::Texture, None),
        };
        let parts = match address.kind {
            OperandKind::Multi(span) => self.unit.ast.operands(span),
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
            // A separate sampler is not implemented.
            ([_, _, _], Some(_)) if matches!(op, Op::Tex(_)) => {
                self.dsts.clear();
                return self.unsupported(inst, parts);
            }
            _ => {
                self.errors.mismatch = true;
                return self.note_unknown(parts);
            }
        }
        self.srcs.extend(tail);
        if self.errors.is_empty() {
            self.emit(inst, op);
        }
    }

    /// Checks and adds the coordinates. A vector of them may have two or four elements if the geometry has fewer; the
    /// elements after the coordinates are checked, but not added.
    fn coordinates(&mut self, place: &ast::Operand, geometry: Geometry, ty: Type) {
        let written = geometry.written();
        let fits = |count: u32| count == u32::from(written) || count > u32::from(written) && matches!(count, 2 | 4);
        let first = self.srcs.len();
        if let OperandKind::Vector(span) = place.kind {
            self.errors.mismatch |= !fits(span.len);
            let elements = self.unit.ast.operands(span);
            for (i, element) in elements.iter().enumerate() {
                let layer = i == 0 && geometry.is_layered();
                self.operand(1, element, &source(if layer { Type::U32 } else { ty }));
            }
        } else {
            // A single coordinate, or a vector register.
            let vec = match place.kind {
                OperandKind::Name(name, Selector::None) => match self.resolve(name) {
                    Some(Symbol::Reg { vec, .. }) if fits(vec.into()) => vec,
                    _ => written,
                },
                _ => written,
            };
            self.operand(1, place, &OperandSpec { vec, ..source(ty) });
        }
        self.srcs.truncate(first + usize::from(written));
    }

    /// Returns the operand for a texture or surface: a register with its handle, or an opaque variable. The handle in a
    /// kernel's parameter is loaded into a register.
    fn handle(&mut self, inst: &Inst, object: &ast::Operand, wanted: Opaque) -> Option<Operand> {
        let OperandKind::Address {
            base: Some(name),
            offset: 0,
        } = object.kind
        else {
            self.errors.mismatch = true;
            return None;
        };
        let kind = match wanted {
            Opaque::Surface => ".surfref",
            _ => ".texref",
        };
        match self.resolve(name) {
            Some(Symbol::Reg { first, ty, vec: 1 }) if ty.size() == 8 && !ty.is_float() && ty != Type::Pred => {
                let access = match wanted {
                    Opaque::Surface => "indirect surface access",
                    _ => "indirect texture access",
                };
                self.require(inst.pos, access, 31, 0);
                Some(Operand::Reg(Reg(first)))
            }
            Some(Symbol::Variable { var, .. }) => {
                let opaque = self.unit.opaques.get(var.0 as usize).copied().flatten();
                match opaque {
                    Some(opaque) if opaque == wanted => {
                        self.note_variable(var);
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
                        self.errors.mismatch = true;
                        None
                    }
                }
            }
            Some(Symbol::Param { offset, decl }) => self.handle_parameter(inst, offset, decl, wanted),
            Some(_) => {
                self.errors.mismatch = true;
                None
            }
            None => {
                self.unknown(name, object.pos);
                None
            }
        }
    }

    /// Returns the handle in a kernel's parameter, such as `.param .texref t`, by a load before the current
    /// instruction.
    fn handle_parameter(&mut self, inst: &Inst, offset: u32, decl: u32, wanted: Opaque) -> Option<Operand> {
        let declared = self.unit.ast.vars.get(decl as usize).map(|var| var.ty);
        if declared != Some(DeclType::Opaque(wanted)) {
            self.errors.mismatch = true;
            return None;
        }
        let address = Operand::Address(Address::Param {
            offset: i64::from(offset),
        });
        let load = Op::Ld(MemMods {
            space: Space::Param,
            ty: Type::B64,
            vec: 1,
            order: Order::Weak,
            offset: 0,
        });
        let handle = self.emit_before(load, Type::B64, &[address], inst.pos.line);
        Some(Operand::Reg(handle))
    }
}

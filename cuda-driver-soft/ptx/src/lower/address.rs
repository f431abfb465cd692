//! Resolves address operands: the base, the offset and the state space.

use crate::ast::{self, Inst, OperandKind, Pos};
use crate::ir::{Address, Operand, Reg, Space, Type};
use crate::names::Name;
use crate::scopes::{FrameKind, Symbol};

use super::walker::Walker;

/// The meaning of an address operand.
pub(super) struct ResolvedAddress {
    /// A register, a constant, or the address of a variable including its offset.
    pub(super) operand: Operand,
    /// Offset from a register, which the caller must add.
    pub(super) offset: i64,
    /// The state space of a variable or array element; `None` for a constant, and for a register that the operand
    /// names, which can hold an address in any space.
    pub(super) space: Option<Space>,
    /// The kind of a variable in the frame; `None` for all other operands.
    pub(super) kind: Option<FrameKind>,
}

impl Walker<'_> {
    /// Returns the bytes of an element of the variable with this index in `Ast::vars`.
    pub(super) fn element(&self, decl: u32) -> u32 {
        self.unit.ast.vars.get(decl as usize).map_or(1, |v| v.element() as u32)
    }

    /// Returns the meaning of `name+offset`, or of `name[offset]` if `index` is true; `None` after adding an error.
    pub(super) fn named_address(&mut self, name: Name, offset: i64, index: bool, pos: Pos) -> Option<ResolvedAddress> {
        let scaled = |element: u32| {
            if index {
                offset.wrapping_mul(i64::from(element))
            } else {
                offset
            }
        };
        let named = |address, space, kind| ResolvedAddress {
            operand: Operand::Address(address),
            offset: 0,
            space: Some(space),
            kind,
        };
        match self.resolve(name) {
            Some(Symbol::Reg { first, ty, vec: 1 }) => {
                let integer = !ty.is_float() && !matches!(ty, Type::Pred | Type::B128);
                if !integer {
                    let (text, ty) = (self.text(name), format!("{ty:?}").to_lowercase());
                    let message = format!(
                        "Illegal to use symbol '{text}' of type .{ty} as address operand. Use integer or bit only."
                    );
                    self.say(pos, message);
                    return None;
                }
                if index {
                    self.say(pos, "Array indexing on non-array".to_owned());
                    return None;
                }
                Some(ResolvedAddress {
                    operand: Operand::Reg(Reg(first)),
                    offset,
                    space: None,
                    kind: None,
                })
            }
            Some(Symbol::Variable { var, element }) => {
                self.note_variable(var);
                let space = self.unit.spaces.get(var.0 as usize).copied().unwrap_or(Space::Global);
                Some(named(
                    Address::Variable {
                        var,
                        offset: scaled(element),
                    },
                    space,
                    None,
                ))
            }
            Some(Symbol::Frame {
                offset: start,
                decl,
                kind,
            }) => {
                let offset = i64::from(start).wrapping_add(scaled(self.element(decl)));
                Some(named(Address::Frame { offset }, Space::Local, Some(kind)))
            }
            Some(Symbol::Param { offset: start, decl }) => {
                let offset = i64::from(start).wrapping_add(scaled(self.element(decl)));
                Some(named(Address::Param { offset }, Space::Param, None))
            }
            Some(_) => {
                let text = self.text(name);
                let message = format!(
                    "Illegal to use symbol '{text}' of type unexpected as address operand. Use integer or bit only."
                );
                self.say(pos, message);
                None
            }
            None => {
                self.unknown(name, pos);
                None
            }
        }
    }

    /// Returns the meaning of an address operand of an instruction with the state space `space`.
    pub(super) fn address(&mut self, space: Space, address: &ast::Operand) -> Option<ResolvedAddress> {
        match address.kind {
            OperandKind::Address {
                base: Some(name),
                offset,
            } => {
                let unknown = self.resolve(name).is_none() && !self.unit.specials.contains_key(&name);
                if unknown && self.reporter.is_some() && !self.is_label(name) {
                    let message = format!("Illegal operand type to instruction '{}'", self.name);
                    self.say(address.pos, message);
                    self.unknown.push((name, address.pos));
                    return None;
                }
                self.named_address(name, offset, false, address.pos)
            }
            // `array[2]` without brackets around it.
            OperandKind::Offset {
                name,
                offset,
                index: true,
            } if matches!(self.root, "ld" | "ldu" | "st") => self.named_address(name, offset, true, address.pos),
            OperandKind::Subscript { name, index, offset } if matches!(self.root, "ld" | "ldu" | "st") => {
                self.subscript(name, index, offset, address.pos)
            }
            OperandKind::Address { base: None, offset } => {
                if space != Space::Local {
                    let message = "Immediate addresses allowed only for .local state space";
                    self.say(address.pos, message.to_owned());
                }
                Some(ResolvedAddress {
                    operand: Operand::Imm(offset as u64),
                    offset: 0,
                    space: None,
                    kind: None,
                })
            }
            _ => {
                self.errors.mismatch = true;
                self.note_unknown(std::slice::from_ref(address));
                None
            }
        }
    }

    /// Returns the space in which an instruction with the state space `space` accesses an address; `None` after adding
    /// an error.
    pub(super) fn access_space(&mut self, inst: &Inst, space: Space, address: &ResolvedAddress) -> Option<Space> {
        let entry = self.function.is_some_and(|f| f.entry);
        let param = address.kind.is_some_and(|kind| kind != FrameKind::Local);
        match (space, address.space) {
            // The `.param` variables of calls and device functions are in the frame; kernel parameters are not.
            (Space::Param, Some(Space::Param)) => Some(Space::Param),
            (Space::Param, Some(Space::Local)) if param => Some(Space::Local),
            (Space::Param, None) if self.root == "ld" && (entry || self.opcode_contains(inst, "::entry")) => {
                Some(Space::Param)
            }
            (Space::Param, None) => Some(Space::Local),
            (space, None) => Some(space),
            // An instruction without a state space uses that of a `.global`, `.shared` or `.local` variable.
            (Space::Generic, Some(found)) if !param && !matches!(found, Space::Param | Space::Const) => Some(found),
            (Space::SharedCluster, Some(Space::Shared)) => Some(Space::SharedCluster),
            (space, Some(found)) if space == found && !param => Some(found),
            _ => {
                let message = format!(
                    "State space mismatch between instruction and address in instruction '{}'",
                    self.name
                );
                self.say(inst.pos, message);
                None
            }
        }
    }

    /// Returns the name in an address such as `[name+offset]` or `name[offset]`, for messages; an empty string if it
    /// has none.
    pub(super) fn address_text(&self, address: &ast::Operand) -> String {
        match address.kind {
            OperandKind::Address { base: Some(name), .. }
            | OperandKind::Offset { name, .. }
            | OperandKind::Subscript { name, .. } => self.text(name),
            _ => String::new(),
        }
    }
}

//! Addresses: of loads and stores, and of `cvta`.

use super::*;
use crate::ast::Operand as Source;
use crate::ir::{Address, AtomOp, MbarrierOp, Space};

/// What an address operand is.
pub(super) struct Place {
    pub(super) operand: Operand,
    /// Still to be added: the offset from a register. Offsets from variables are in `operand`.
    pub(super) offset: i64,
    /// Where a named thing is; a register can point anywhere.
    pub(super) space: Option<Space>,
    /// Of the frame: what kind.
    pub(super) kind: Option<FrameKind>,
}

impl Walker<'_> {
    /// What `name+offset` (or `name[index]`) is the address of.
    pub(super) fn place(
        &mut self,
        name: Name,
        offset: i64,
        index: bool,
        pos: Pos,
    ) -> Option<Place> {
        let scaled = |element: u32| {
            if index {
                offset.wrapping_mul(i64::from(element))
            } else {
                offset
            }
        };
        let named = |address, space, kind| Place {
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
                Some(Place {
                    operand: Operand::Reg(Reg(first)),
                    offset,
                    space: None,
                    kind: None,
                })
            }
            Some(Symbol::Variable { var, element }) => {
                if let Some(reporter) = &mut self.reporter {
                    reporter.uses.variables.insert(var);
                }
                let space = self
                    .unit
                    .spaces
                    .get(var.0 as usize)
                    .copied()
                    .unwrap_or(Space::Global);
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
                let element = self
                    .unit
                    .ast
                    .vars
                    .get(decl as usize)
                    .map_or(1, |v| v.element() as u32);
                let offset = i64::from(start).wrapping_add(scaled(element));
                Some(named(Address::Frame { offset }, Space::Local, Some(kind)))
            }
            Some(Symbol::Param {
                offset: start,
                element,
            }) => {
                let offset = i64::from(start).wrapping_add(scaled(element));
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

    /// The address operand of an instruction.
    fn address(&mut self, space: Space, address: &Source) -> Option<Place> {
        match address.kind {
            OperandKind::Address {
                base: Some(name),
                offset,
            } => {
                let unknown =
                    self.resolve(name).is_none() && !self.unit.specials.contains_key(&name);
                if unknown && self.reporter.is_some() && !self.is_label(name) {
                    let message = format!("Illegal operand type to instruction '{}'", self.name);
                    self.say(address.pos, message);
                    self.unknown.push((name, address.pos));
                    return None;
                }
                self.place(name, offset, false, address.pos)
            }
            // `array[2]`, without brackets around it.
            OperandKind::Offset {
                name,
                offset,
                index: true,
            } if matches!(self.root, "ld" | "ldu" | "st") => {
                self.place(name, offset, true, address.pos)
            }
            OperandKind::Subscript {
                name,
                index,
                offset,
            } if matches!(self.root, "ld" | "ldu" | "st") => {
                self.subscript(name, index, offset, address.pos)
            }
            OperandKind::Address { base: None, offset } => {
                if space != Space::Local {
                    let message = "Immediate addresses allowed only for .local state space";
                    self.say(address.pos, message.to_owned());
                }
                Some(Place {
                    operand: Operand::Imm(offset as u64),
                    offset: 0,
                    space: None,
                    kind: None,
                })
            }
            _ => {
                self.faults.mismatch = true;
                self.note_unknown(std::slice::from_ref(address));
                None
            }
        }
    }

    /// The space in which an instruction that names `space` accesses `place`.
    fn space(&mut self, inst: &Inst, space: Space, place: &Place) -> Option<Space> {
        let entry = self.function.is_some_and(|f| f.entry);
        let param = place.kind.is_some_and(|kind| kind != FrameKind::Local);
        match (space, place.space) {
            // `.param` of a call or of a device function is in the frame, that of a kernel is not.
            (Space::Param, Some(Space::Param)) => Some(Space::Param),
            (Space::Param, Some(Space::Local)) if param => Some(Space::Local),
            (Space::Param, None) if entry && self.root == "ld" => Some(Space::Param),
            (Space::Param, None) => Some(Space::Local),
            (space, None) => Some(space),
            // Without a space in the instruction, that of the variable holds.
            (Space::Generic, Some(found))
                if !param && !matches!(found, Space::Param | Space::Const) =>
            {
                Some(found)
            }
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

    fn address_text(&self, address: &Source) -> String {
        match address.kind {
            OperandKind::Address {
                base: Some(name), ..
            } => self.text(name),
            _ => String::new(),
        }
    }

    /// `ld`, `st`, `atom`, `red`: the address goes before the other sources, its space and offset into the operation.
    pub(super) fn memory(&mut self, inst: &Inst, op: &Op, address: &Source) {
        let mut op = op.clone();
        let (mem, values) = match &mut op {
            Op::Ld(mem) => (mem, 0),
            Op::St(mem) => (&mut *mem, 1),
            Op::Atom {
                op: AtomOp::Cas,
                mem,
            } => (mem, 2),
            Op::Atom { mem, .. } | Op::Red { mem, .. } => (mem, 1),
            _ => return,
        };
        let Some(place) = self.address(mem.space, address) else {
            return;
        };
        let Some(space) = self.space(inst, mem.space, &place) else {
            return;
        };
        let opcode = self.unit.ast.opcodes.string(inst.opcode);
        if place.space.is_none() && opcode.windows(6).any(|w| w == b"::func") {
            let message = format!(
                "Illegal state space for address operand '::func' with instruction '{}'",
                self.name
            );
            return self.say(inst.pos, message);
        }
        if matches!(self.root, "ld" | "ldu") && place.kind == Some(FrameKind::Output) {
            let text = self.address_text(address);
            let message = format!("Illegal to read function return parameter '{text}'");
            return self.say(inst.pos, message);
        }
        let input =
            matches!(place.kind, Some(FrameKind::Input)) || place.space == Some(Space::Param);
        let constant = space == Space::Const;
        if !matches!(self.root, "ld" | "ldu") && (input || constant) {
            let text = self.address_text(address);
            let message = if constant {
                format!("State space incorrect for instruction '{}'", self.name)
            } else {
                format!("Illegal to write to function input parameter '{text}'")
            };
            return self.say(inst.pos, message);
        }
        // A cache policy may follow the values.
        self.srcs.truncate(values * usize::from(mem.vec));
        self.srcs.insert(0, place.operand);
        (mem.space, mem.offset) = (space, place.offset);
        match op {
            Op::Atom {
                op: AtomOp::Exch | AtomOp::Cas,
                ..
            } => {}
            // Without a result it is a reduction.
            Op::Atom { op: kind, mem } if self.dsts.iter().all(Option::is_none) => {
                self.dsts.clear();
                op = Op::Red { op: kind, mem };
            }
            _ => {}
        }
        if let Op::Atom { mem, .. } = op
            && mem.vec > 1
        {
            self.keep_values(inst, mem.ty);
        }
        self.emit(inst, op);
    }

    /// An atomic operation on a vector is one on each element: copies the values whose registers an earlier element's result
    /// goes to.
    fn keep_values(&mut self, inst: &Inst, ty: Type) {
        let bits = match ty.size() {
            2 => Type::B16,
            4 => Type::B32,
            _ => Type::B64,
        };
        let (dsts, mut srcs) = (
            std::mem::take(&mut self.dsts),
            std::mem::take(&mut self.srcs),
        );
        for value in srcs.iter_mut().skip(1) {
            if let Operand::Reg(reg) = *value
                && dsts.contains(&Some(reg))
            {
                let copy = self.new_register(bits);
                (self.dsts, self.srcs) = (vec![Some(copy)], vec![*value]);
                self.emit_guarded(None, Op::Mov { ty: bits }, inst.pos.line);
                *value = Operand::Reg(copy);
            }
        }
        (self.dsts, self.srcs) = (dsts, srcs);
    }

    /// `prefetch` and the like: the address must make sense.
    pub(super) fn hint(&mut self, inst: &Inst, space: Space, address: &Source) {
        if let Some(place) = self.address(space, address) {
            self.space(inst, space, &place);
        }
    }

    /// `cp.async`, `mbarrier`: the addresses go before the other sources, with nothing left to be added to them.
    pub(super) fn pointers(&mut self, inst: &Inst, op: &Op, addresses: &[&Source]) {
        let mut op = op.clone();
        let spaces = match op {
            Op::Mbarrier { space, .. }
            | Op::Ldmatrix { space, .. }
            | Op::Stmatrix { space, .. }
            | Op::WmmaLd { space, .. }
            | Op::WmmaSt { space, .. } => [space; 3],
            // The third is that of a barrier.
            Op::Bulk { to, from, .. } => [to, from, Space::SharedCluster],
            _ => [Space::Shared, Space::Global, Space::Shared],
        };
        let mut pointers = Vec::new();
        for (address, space) in addresses.iter().zip(spaces) {
            let Some(place) = self.address(space, address) else {
                return;
            };
            let Some(found) = self.space(inst, space, &place) else {
                return;
            };
            if let Op::Mbarrier { space, .. }
            | Op::Ldmatrix { space, .. }
            | Op::Stmatrix { space, .. }
            | Op::WmmaLd { space, .. }
            | Op::WmmaSt { space, .. } = &mut op
            {
                *space = found;
            }
            pointers.push(self.added(place, address));
        }
        if let Op::CpAsync { bytes, part } = &mut op {
            // The size is the first of the other sources, a cache policy the last.
            let size = match self.srcs.first() {
                Some(Operand::Imm(size)) => *size,
                _ => 0,
            };
            let right = matches!((*bytes, size), (0, 4 | 8 | 16) | (16, 16));
            if !right {
                let message = format!("Invalid copy size for instruction '{}'", self.name);
                return self.say(inst.pos, message);
            }
            *bytes = size as u8;
            let more = usize::from(*part != crate::ir::CopyPart::All);
            self.srcs.remove(0);
            self.srcs.truncate(more);
        }
        // Of `mbarrier.try_wait` a time limit may follow. In another block of the cluster there is no result.
        if let Op::Mbarrier { space, .. } = op {
            let opcode = self.unit.ast.opcodes.string(inst.opcode);
            let remote = opcode.windows(9).any(|w| w == b"::cluster");
            if remote && space == Space::SharedCluster && self.dsts.iter().any(Option::is_some) {
                self.faults.mismatch = true;
            }
            self.srcs.truncate(1);
        }
        if let Op::Bulk { multicast, .. } = op {
            return self.bulk(inst, op, &pointers, multicast);
        }
        self.srcs.splice(0..0, pointers);
        self.emit(inst, op);
    }

    /// A bulk copy; then the barrier, if there is one, is told how many bytes it was.
    fn bulk(&mut self, inst: &Inst, op: Op, pointers: &[Operand], multicast: bool) {
        let (Some(copied), Some(size)) = (pointers.get(..2), self.srcs.first().copied()) else {
            return;
        };
        if let (true, Some(mask), Some(barrier)) = (multicast, self.srcs.get(1), pointers.get(2)) {
            self.srcs = [copied, &[size, *mask, *barrier]].concat();
            return self.emit(inst, op);
        }
        self.srcs = [copied, &[size]].concat();
        self.emit(inst, op);
        if let Some(barrier) = pointers.get(2) {
            self.srcs = vec![*barrier, size];
            let op = Op::Mbarrier {
                op: MbarrierOp::CompleteTx,
                space: Space::SharedCluster,
            };
            self.emit(inst, op);
        }
    }

    /// `st.async`, `red.async`: the store, then the barrier is told how many bytes it was.
    pub(super) fn told(&mut self, inst: &Inst, op: &Op, addresses: &[&Source]) {
        let ([to, barrier], Op::St(mem) | Op::Red { mem, .. }) = (addresses, op) else {
            return;
        };
        let operands = (
            std::mem::take(&mut self.dsts),
            std::mem::take(&mut self.srcs),
        );
        self.emit(inst, Op::WantsCluster);
        (self.dsts, self.srcs) = operands;
        let before = self.count;
        self.memory(inst, op, to);
        if self.count == before {
            return;
        }
        self.dsts.clear();
        let bytes = u64::from(mem.vec) * u64::from(mem.ty.size());
        self.srcs = vec![Operand::Imm(bytes)];
        let op = Op::Mbarrier {
            op: MbarrierOp::CompleteTx,
            space: mem.space,
        };
        self.pointers(inst, &op, &[barrier]);
    }

    /// A pointer with its offset added, by an instruction of its own.
    fn added(&mut self, place: Place, address: &Source) -> Operand {
        let OperandKind::Address {
            base: Some(name), ..
        } = address.kind
        else {
            return place.operand;
        };
        let Some(Symbol::Reg { ty, .. }) = self.resolve(name) else {
            return place.operand;
        };
        if place.offset == 0 {
            return place.operand;
        }
        let ty = if ty.size() == 4 { Type::U32 } else { Type::U64 };
        let sum = self.new_register(ty);
        let (dsts, srcs) = (
            std::mem::replace(&mut self.dsts, vec![Some(sum)]),
            std::mem::replace(
                &mut self.srcs,
                vec![place.operand, Operand::Imm(place.offset as u64)],
            ),
        );
        self.emit_guarded(None, Op::Add { ty, sat: false }, address.pos.line);
        (self.dsts, self.srcs) = (dsts, srcs);
        Operand::Reg(sum)
    }

    /// `mapa d, a, b` and `getctarank d, a`: `a` is a register or a variable in shared memory, perhaps with an offset.
    pub(super) fn mapa(&mut self, inst: &Inst, form: &Form, operands: &[Source], rank: bool) {
        let specs = form.candidates.first().map_or(&[][..], |c| &c.specs);
        if operands.len() != specs.len() {
            self.faults.mismatch = true;
            return self.note_unknown(operands);
        }
        for (index, (operand, spec)) in operands.iter().zip(specs).enumerate() {
            let variable = match operand.kind {
                OperandKind::Name(name, Selector::None) => Some((name, 0, false)),
                OperandKind::Offset {
                    name,
                    offset,
                    index,
                } => Some((name, offset, index)),
                _ => None,
            };
            match variable {
                Some((name, offset, element))
                    if index == 1
                        && matches!(self.resolve(name), Some(Symbol::Variable { .. })) =>
                {
                    let Some(place) = self.place(name, offset, element, operand.pos) else {
                        return;
                    };
                    self.faults.mismatch |= place.space != Some(Space::Shared);
                    self.srcs.push(place.operand);
                }
                _ => self.operand(index, operand, spec),
            }
        }
        // The type of the address.
        let ty = specs.get(1).map_or(Type::U32, |spec| spec.ty);
        let op = if rank {
            Op::Getctarank { ty }
        } else {
            Op::Mapa { ty }
        };
        self.emit(inst, op);
    }

    /// `cvta.space d, variable` as well as `cvta.space d, a`.
    pub(super) fn cvta(&mut self, inst: &Inst, op: &Op, operands: &[Source]) {
        let Op::Cvta { space, to, ty } = *op else {
            return;
        };
        let [_, source] = operands else { return };
        let variable = match source.kind {
            OperandKind::Name(name, Selector::None) => Some((name, 0, false)),
            OperandKind::Offset {
                name,
                offset,
                index,
            } => Some((name, offset, index)),
            _ => None,
        };
        if let Some((name, offset, index)) = variable
            && !matches!(self.resolve(name), Some(Symbol::Reg { .. }) | None)
        {
            self.faults.clear();
            self.srcs.clear();
            if to {
                return self.say(
                    inst.pos,
                    "Argument 1 of instruction 'cvta.to': must be register".to_owned(),
                );
            }
            let Some(place) = self.place(name, offset, index, source.pos) else {
                return;
            };
            // The parameters of a device function are in its frame.
            let input = space == Space::Param && place.kind == Some(FrameKind::Input);
            if place.space != Some(space) && !input {
                let message =
                    "State space mismatch between instruction and address in instruction 'cvta'";
                return self.say(inst.pos, message.to_owned());
            }
            self.srcs.push(place.operand);
            if input {
                let op = Op::Cvta {
                    space: Space::Local,
                    to,
                    ty,
                };
                return self.emit(inst, op);
            }
        }
        self.emit(inst, op.clone());
    }
}

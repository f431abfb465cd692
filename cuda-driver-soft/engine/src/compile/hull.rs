//! Machine code of one check for several loads, or several stores, of a basic block whose addresses are the same
//! register plus constants.
//!
//! The first access checks the range of all. If that check fails, the interpreter runs the first access, which may
//! change the window, and the range is checked again. If the second check fails, too, the code ends, and the
//! interpreter runs the other accesses: one of them may raise a fault, or they are not in one window.

use super::assembler::{Alu, Gpr, Label, Mem, When, Width, Word};
use super::emitter::Emitter;
use super::lanes::{Addresses, reach};
use super::ranges::{Checked, Memory};
use super::registers::{State, field};
use super::stubs::{Failure, Retry, Stub};
use crate::code::compiled::{CompiledContext, Exit};
use crate::plan::defined;
use crate::plan::shape::Shape;
use crate::plan::steps::Step;
use ptx::ir::{Inst, Op, Operand, Order, Reg};
use std::mem::offset_of;

/// Returns the place of a general register's copy, which survives calls.
fn copy_of(host: Gpr) -> Mem {
    field(offset_of!(CompiledContext, hosts)).plus(8 * i32::from(host.0))
}

impl Emitter<'_> {
    /// Returns the checked range that an access is in. If there is none, adds a check for the access and later accesses
    /// whose addresses are in the same register, if that saves checks; then the second value is for
    /// [`retry`](Self::retry).
    pub(super) fn hull(
        &mut self,
        addresses: &Addresses,
        inst: &Inst,
        write: bool,
    ) -> Option<(Checked, Option<Failure>)> {
        let Some(Operand::Reg(base)) = inst.srcs.first() else {
            return None;
        };
        if addresses.memory == Memory::Local
            || !addresses.value.is_register(*base)
            || addresses.value.shape == Shape::Any
        {
            return None;
        }
        let step = self.step;
        let wanted = self.range(addresses.offset.into(), addresses.size, addresses.value.shape)?;
        let fits = |c: &Checked| {
            (c.base, c.memory, c.write) == (*base, addresses.memory, write)
                && c.low <= wanted.0
                && wanted.1 <= c.high
                && (addresses.aligned || (c.align >= addresses.size && is_multiple(addresses.offset, addresses.size)))
        };
        if let Some(found) = self.state.checked.iter_mut().find(|c| fits(c)) {
            found.used = step;
            return Some((*found, None));
        }
        if self.guarded || self.masked {
            return None;
        }
        let (count, checked) = self.find(addresses, *base, write)?;
        if count < 2 || self.state.free_gpr().is_none() {
            return None;
        }
        self.copy_first_lane(addresses.value, Gpr::AX);
        if addresses.value.width == Width::Bits32 {
            self.asm.alu(Alu::Mov, Width::Bits32, Gpr::AX, Word::Gpr(Gpr::AX));
        }
        let host = self.take_gpr();
        // If the first access is known to be aligned, alignment is not tested. Larger accesses that are not known to be
        // aligned then need checks of their own.
        let align = if addresses.aligned {
            addresses.size
        } else {
            checked.align
        };
        let checked = Checked { host, align, ..checked };
        let (label, before) = (self.asm.label(), self.state.clone());
        let window = self.window_of(checked.memory);
        self.check_hull(&checked, addresses.aligned, window, label);
        self.state.checked.push(checked);
        let failure = Failure {
            label,
            before,
            window,
            first: wanted.0,
        };
        Some((checked, Some(failure)))
    }

    /// Returns the first byte and the end of the bytes that an access of a whole group needs, relative to the first
    /// lane's address without `offset`; `None` if one is too far from it.
    fn range(&self, offset: i64, size: u32, shape: Shape) -> Option<(i32, i32)> {
        let step = match shape {
            Shape::Affine(step) => step,
            _ => 0,
        };
        let reach = i64::from(reach(step, self.lanes)?);
        let (low, high) = (offset + reach.min(0), offset + reach.max(0) + i64::from(size));
        let near = |n: i64| i32::try_from(n).ok().filter(|n| n.unsigned_abs() < 1 << 28);
        Some((near(low)?, near(high)?))
    }

    /// Returns the number of loads, or stores if `write` is true, with their addresses in `base`, from the current step
    /// to the end of the piece or to a change of `base`, and their range.
    fn find(&self, addresses: &Addresses, base: Reg, write: bool) -> Option<(usize, Checked)> {
        let shape = addresses.value.shape;
        let (mut low, mut high) = self.range(addresses.offset.into(), addresses.size, shape)?;
        let mut align = addresses.size;
        if !is_multiple(addresses.offset, addresses.size) {
            return None;
        }
        let mut count = 0;
        for step in &self.input.plan.layout.steps[self.step..self.piece_end] {
            let Step::Plain(inst) = step else { break };
            let access = match &inst.op {
                Op::Ld(m) if !write => Some(m),
                Op::St(m) if write => Some(m),
                _ => None,
            };
            if let Some(m) = access
                && inst.guard.is_none()
                && m.order == Order::Weak
                && inst.srcs.first() == Some(&Operand::Reg(base))
                && Memory::of(m.space) == Some(addresses.memory)
            {
                let size = m.ty.size() * u32::from(m.vec);
                let range = self
                    .range(m.offset, size, shape)
                    .filter(|_| m.offset % i64::from(size.max(1)) == 0);
                if let Some(range) = range.filter(|_| size.is_power_of_two() && size <= 16) {
                    (low, high) = (low.min(range.0), high.max(range.1));
                    align = align.max(size);
                    count += 1;
                }
            }
            let mut changes = false;
            defined::writes_of(inst, |reg| changes |= reg == base);
            if changes {
                break;
            }
        }
        let checked = Checked {
            base,
            width: addresses.value.width,
            memory: addresses.memory,
            write,
            low,
            high,
            align,
            host: Gpr::AX,
            used: self.step,
        };
        Some((count, checked))
    }

    /// Adds the check of a range; the address of the first lane is in `AX`. Sets the general register with its host
    /// address, and the copy of that register. If the check fails, the code jumps to `label`.
    fn check_hull(&mut self, checked: &Checked, aligned: bool, window: u32, label: Label) {
        let (wide, host) = (Width::Bits64, checked.host);
        if !aligned && checked.align > 1 {
            let low = Word::Imm(checked.align as i32 - 1);
            self.asm.alu(Alu::Test, Width::Bits32, Gpr::AX, low);
            self.asm.jump_when(When::NotEqual, label);
        }
        let span = checked.high - checked.low;
        if checked.low != 0 {
            self.asm.lea(wide, Gpr::AX, Mem::at(Gpr::AX, checked.low));
        }
        let to_host = self.check_span(checked.memory, span, window, label);
        self.asm.lea(wide, host, Mem::at(Gpr::AX, -checked.low));
        self.asm.alu(Alu::Add, wide, host, to_host);
        self.asm.store(8, copy_of(host), host);
    }

    /// Adds the code that runs after a failed check of a range.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn retry(
        &mut self,
        inst: &Inst,
        checked: Checked,
        aligned: bool,
        failure: Failure,
        live: &[Reg],
        rest: u32,
    ) {
        let step = self.step;
        let mut live = live.to_vec();
        live.extend(inst.dsts.iter().flatten().filter(|reg| !self.is_alias(**reg)));
        live.sort_unstable();
        live.dedup();
        let retry = Retry {
            failure,
            back: self.asm.here(),
            after: self.state.clone(),
            scalars: self.scalar_sources(inst),
            insts: self.insts(step),
            checked,
            aligned,
            live,
            rest: (rest - self.counted(step)) as i32,
        };
        self.push_stub(Stub::Retry(Box::new(retry)));
    }

    /// Adds the code of a [`Retry`].
    pub(super) fn retry_stub(&mut self, retry: &Retry) {
        let failure = &retry.failure;
        self.flush(&failure.before);
        for reg in &retry.scalars {
            self.spread(*reg, &failure.before);
        }
        // The interpreter checks this access only, so the window is selected by its address, not by the first address
        // of the range.
        let base = Word::Mem(self.home(retry.checked.base));
        self.asm.alu(Alu::Mov, retry.checked.width, Gpr::AX, base);
        self.asm.lea(Width::Bits64, Gpr::AX, Mem::at(Gpr::AX, failure.first));
        self.call_interpreter(retry.insts, failure.window, None);
        let over = self.asm.label();
        let home = self.home(retry.checked.base);
        self.asm.alu(Alu::Mov, retry.checked.width, Gpr::AX, Word::Mem(home));
        self.check_hull(&retry.checked, retry.aligned, failure.window, over);
        self.reload(&retry.after);
        self.asm.jump(retry.back);
        self.asm.bind(over);
        self.way_out(over);
        let (live, at) = (&retry.live, retry.insts.1);
        self.leave(&State::default(), live, live, at, Exit::Leave, retry.rest);
    }

    /// Reads the registers of checked ranges back from their copies.
    pub(super) fn reload_checked(&mut self, checked: &[Checked]) {
        for c in checked {
            self.asm
                .alu(Alu::Mov, Width::Bits64, c.host, Word::Mem(copy_of(c.host)));
        }
    }

    /// Removes the checked ranges of the registers that a step changes.
    pub(super) fn forget_checked(&mut self, step: &Step<'_>) {
        if let Step::Plain(inst) = step {
            // A guarded write may change the register, too.
            defined::writes_of(inst, |reg| self.state.checked.retain(|c| c.base != reg));
        }
    }
}

/// Returns true if an offset is a multiple of a size.
fn is_multiple(offset: i32, size: u32) -> bool {
    size > 0 && i64::from(offset) % i64::from(size) == 0
}

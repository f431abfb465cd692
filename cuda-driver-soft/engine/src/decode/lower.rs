//! Decodes one instruction of the IR, here or in the module for its family.

use super::builder::{Builder, Scratch};
use super::operands::{half_of, reg, source, window_of};
use super::unsupported::UnsupportedInst;
use super::{asynchronous, atomic, calls, matrix, memory, stack, texture};
use crate::code::action::{Action, BarrierInst};
use crate::code::collective::Collective;
use crate::code::constant::Constant;
use crate::code::registers::Slot;
use crate::ops::{self, Form, collective, control, logic, mov};
use crate::plan::class::{is_matrix, is_scheduled, is_tensor, is_texture};
use ptx::ir::{BarOp, BoolOp, Compare, Inst, Op, Operand, RegClass, Type, VideoInst};

/// Adds the decoded instructions of `inst`.
pub(super) fn lower(b: &mut Builder<'_>, inst: &Inst) -> Result<(), UnsupportedInst> {
    if b.defines_alias(inst) {
        return Ok(());
    }
    let start = b.here();
    let done = lower_unguarded(b, inst);
    if done.is_none() {
        return Err(UnsupportedInst::new(inst));
    }
    if let Some((reg, negated)) = inst.guard
        && !is_scheduled(&inst.op)
    {
        let predicate = b.register(reg);
        b.guard_from(start, (predicate, negated), inst.line);
    }
    Ok(())
}

fn lower_unguarded(b: &mut Builder<'_>, inst: &Inst) -> Option<()> {
    match &inst.op {
        Op::Nop => {}
        // Only the checkers need commits and waits of copies: a copy completes with its instruction.
        Op::CopyGroup(_) if b.observed() => b.push(control::fence(), inst.line, |_| {}),
        Op::CopyGroup(_) => {}
        Op::Ret { .. } => b.push_action(Action::Return, inst.line),
        Op::Exit => b.push_action(Action::Exit, inst.line),
        Op::Trap => b.push(control::trap(), inst.line, |_| {}),
        Op::Brx { targets, .. } => {
            let index = source(b, inst.srcs.first()?, RegClass::B32, inst.line)?;
            // These are instructions of the body for now; `decode` replaces them by decoded instructions.
            let targets = targets.iter().map(|t| t.0).collect();
            b.push_action(Action::Branch { index, targets }, inst.line);
        }
        Op::Call { callee, args, rets, .. } => calls::call(b, inst, callee, args, rets)?,
        Op::Bar { op, aligned } => calls::barrier(b, inst, *op, *aligned)?,
        Op::ClusterBarrier { arrive, aligned, .. } => b.push_action(
            Action::Barrier(BarrierInst {
                op: if *arrive { BarOp::Arrive } else { BarOp::Sync },
                aligned: *aligned,
                id: None,
                count: None,
                predicate: None,
                result: None,
            }),
            inst.line,
        ),
        Op::WantsCluster { .. } => b.push(control::wants_cluster(), inst.line, |_| {}),
        Op::CpAsync { bytes, part } => asynchronous::copy(b, inst, *bytes, *part)?,
        Op::Bulk { .. } => asynchronous::bulk(b, inst)?,
        Op::Mbarrier { op, space } => asynchronous::mbarrier(b, inst, *op, *space)?,
        op if is_matrix(op) => matrix::lower(b, inst)?,
        op if is_texture(op) => texture::lower(b, inst)?,
        op if is_tensor(op) => asynchronous::tensor(b, inst)?,
        Op::Atom { op, mem } => atomic::lower(b, inst, *op, mem, true)?,
        Op::Red { op, mem } => atomic::lower(b, inst, *op, mem, false)?,
        Op::Alloca | Op::Stacksave | Op::Stackrestore => stack::lower(b, inst)?,
        // Threads on one host thread see each other's accesses in order; threads on other host threads need a fence.
        Op::Fence { .. } => b.push(control::fence(), inst.line, |_| {}),
        Op::Nanosleep => {}
        Op::Activemask => {
            let d = b.destination(*inst.dsts.first()?, RegClass::B32);
            b.push(collective::activemask(), inst.line, |inst| inst.d = d);
        }
        op if Collective::of(op).is_some() => calls::collective(b, inst)?,
        Op::Ld(m) => memory::load(b, inst, m)?,
        Op::St(m) => memory::store(b, inst, m)?,
        Op::Mov { ty: Type::B128 } => {
            let (d, a) = (inst.dsts.first()?, reg(inst.srcs.first()?)?);
            let d = b.destination(*d, RegClass::B128);
            let form = mov::of_class(RegClass::B64)?;
            for half in 0..2 {
                let (d, a) = (half_of(d, half), half_of(b.register(a), half));
                b.push_form(&form, [d, Slot(0)], &[a], inst.line);
            }
        }
        Op::AddC {
            carry_in, carry_out, ..
        } => carry(b, inst, 2, *carry_in, *carry_out)?,
        Op::MadC {
            carry_in, carry_out, ..
        } => carry(b, inst, 3, *carry_in, *carry_out)?,
        Op::Video(operation) => video(b, inst, *operation)?,
        Op::Lop3 { lut, bool_op: Some(op) } => lop3(b, inst, *lut, *op)?,
        Op::Pack { .. } => pack(b, inst)?,
        Op::Unpack { .. } => unpack(b, inst)?,
        Op::Cvta { space, to, ty } => {
            let window = window_of(*space);
            if ty.size() != 8 && window != 0 {
                return None;
            }
            let op = if window == 0 {
                Op::Mov { ty: *ty }
            } else if *to {
                Op::Sub {
                    ty: Type::U64,
                    sat: false,
                }
            } else {
                Op::Add {
                    ty: Type::U64,
                    sat: false,
                }
            };
            let srcs = inst
                .srcs
                .iter()
                .copied()
                .chain((window != 0).then_some(Operand::Imm(window)));
            simple(
                b,
                &Inst {
                    op,
                    srcs: srcs.collect(),
                    ..inst.clone()
                },
            )?;
        }
        _ => simple(b, inst)?,
    }
    Some(())
}

/// Decodes an instruction that has a [`Form`].
fn simple(b: &mut Builder<'_>, inst: &Inst) -> Option<()> {
    if let Some(()) = widened(b, inst) {
        return Some(());
    }
    let (from, to) = classes(b, inst);
    let form: Form = ops::form(inst, from, to)?;
    let mut dsts = [Slot(0); 2];
    for (i, class) in form.dsts.iter().enumerate() {
        if let Some(class) = *class {
            let reg = inst.dsts.get(i).copied().flatten();
            if reg.is_some_and(|r| b.class(r) != class) {
                return None;
            }
            dsts[i] = b.destination(reg, class);
        }
    }
    let wanted = form.srcs.iter().flatten().count();
    if inst.srcs.len() != wanted {
        return None;
    }
    let mut srcs = Vec::with_capacity(wanted);
    for (i, (operand, class)) in (0..).zip(inst.srcs.iter().zip(form.srcs.iter().flatten())) {
        let mut slot = source(b, operand, *class, inst.line)?;
        // The handlers of comparisons negate their predicate.
        let compares = matches!(inst.op, Op::Setp { .. } | Op::Set { .. });
        if matches!(operand, Operand::NotReg(_)) && !compares {
            let negation = logic::negation();
            let negated = b.scratch(RegClass::Pred, Scratch::Negated(i));
            b.push_form(&negation, [negated, Slot(0)], &[slot], inst.line);
            slot = negated;
        }
        srcs.push(slot);
    }
    b.push_form(&form, dsts, &srcs, inst.line);
    Some(())
}

/// Decodes `cvt.rn.f16x2.f32 d, a, b` and similar instructions into a register of 64 bits, whose upper half becomes
/// zero. Returns `None` for other instructions.
fn widened(b: &mut Builder<'_>, inst: &Inst) -> Option<()> {
    let (Op::Cvt(_), [Some(d)], [_, _]) = (&inst.op, inst.dsts.as_slice(), inst.srcs.as_slice()) else {
        return None;
    };
    let (narrow, wide) = (RegClass::B32, RegClass::B64);
    let form = ops::form(inst, narrow, narrow).filter(|f| f.dsts[0] == Some(narrow))?;
    if b.class(*d) != wide {
        return None;
    }
    let mut srcs = Vec::with_capacity(2);
    for operand in &inst.srcs {
        srcs.push(source(b, operand, narrow, inst.line)?);
    }
    let pair = b.scratch(narrow, Scratch::Pair);
    b.push_form(&form, [pair, Slot(0)], &srcs, inst.line);
    let zeros = b.constant(Constant::Bits(0), narrow);
    let d = b.register(*d);
    b.push_form(&mov::pack(narrow)?, [d, Slot(0)], &[pair, zeros], inst.line);
    Some(())
}

/// Decodes `lop3.and.b32 d|p, a, b, c, lut, q`, where `p` is `(d != 0) and q`; or the same with `or`.
fn lop3(b: &mut Builder<'_>, inst: &Inst, lut: u8, bool_op: BoolOp) -> Option<()> {
    let class = RegClass::B32;
    let ([a, y, c, q], [d, p]) = (inst.srcs.as_slice(), inst.dsts.as_slice()) else {
        return None;
    };
    let plain = Inst {
        op: Op::Lop3 { lut, bool_op: None },
        ..inst.clone()
    };
    let mut srcs = Vec::with_capacity(3);
    for operand in [a, y, c] {
        srcs.push(source(b, operand, class, inst.line)?);
    }
    let d = match d {
        Some(d) => b.register(*d),
        None => b.scratch(class, Scratch::Lop3),
    };
    b.push_form(&ops::form(&plain, class, class)?, [d, Slot(0)], &srcs, inst.line);
    let compare = Inst {
        op: Op::Setp {
            cmp: Compare::Ne,
            ty: Type::U32,
            ftz: false,
            bool_op: Some(bool_op),
        },
        dsts: vec![*p],
        srcs: vec![Operand::Imm(0), Operand::Imm(0), *q],
        ..inst.clone()
    };
    let form = ops::form(&compare, class, RegClass::Pred)?;
    let zero = b.constant(Constant::Bits(0), class);
    let q = source(b, q, RegClass::Pred, inst.line)?;
    let p = b.destination(*p, RegClass::Pred);
    b.push_form(&form, [p, Slot(0)], &[d, zero, q], inst.line);
    Some(())
}

/// Decodes an instruction with a carry: the carry in follows `sources` sources, and the carry out one destination.
fn carry(b: &mut Builder<'_>, inst: &Inst, sources: usize, carry_in: bool, carry_out: bool) -> Option<()> {
    let form = ops::form(inst, RegClass::B32, RegClass::B32)?;
    let class = form.dsts[0]?;
    let operand = |b: &mut Builder<'_>, i: usize| source(b, inst.srcs.get(i)?, class, inst.line);
    let (first, second) = (operand(b, 0)?, operand(b, 1)?);
    let third = if sources > 2 { operand(b, 2)? } else { first };
    let carry_in = match inst.srcs.get(sources).filter(|_| carry_in) {
        Some(operand) => source(b, operand, RegClass::Pred, inst.line)?,
        // The flag begins as no carry (false) for a sum, and as no borrow (true) for a difference, which runs as a sum
        // with the complement.
        None => {
            let subtracts = matches!(inst.op, Op::AddC { sub: true, .. });
            b.constant(Constant::Bits(u64::from(subtracts)), RegClass::Pred)
        }
    };
    let d = b.destination(inst.dsts.first().copied()?, class);
    let carry_out = inst.dsts.get(1).copied().flatten().filter(|_| carry_out);
    let carry_out = b.destination(carry_out, RegClass::Pred);
    b.push(form.handlers, inst.line, |inst| {
        (inst.d, inst.f) = (d, carry_out);
        (inst.a, inst.b, inst.c, inst.e) = (first, second, third, carry_in);
    });
    Some(())
}

/// Returns the register classes of the first source and destination. Operands that are not registers have the class of
/// the type in conversions, and 32 bits in other instructions.
fn classes(b: &Builder<'_>, inst: &Inst) -> (RegClass, RegClass) {
    let of_type = |ty: Type| match ty.size() {
        1 | 2 => RegClass::B16,
        4 => RegClass::B32,
        8 => RegClass::B64,
        _ => RegClass::B128,
    };
    let (from, to) = match &inst.op {
        Op::Cvt(c) => (of_type(c.from), of_type(c.to)),
        _ => (RegClass::B32, RegClass::B32),
    };
    let source = inst.srcs.first().and_then(reg).map_or(from, |r| b.class(r));
    let destination = inst.dsts.first().copied().flatten().map_or(to, |r| b.class(r));
    (source, destination)
}

/// Decodes a video instruction. It has two sources if there is no `c`.
fn video(b: &mut Builder<'_>, inst: &Inst, operation: VideoInst) -> Option<()> {
    let class = RegClass::B32;
    let mut slots = [Slot(0); 3];
    for (slot, operand) in slots.iter_mut().zip(&inst.srcs) {
        *slot = source(b, operand, class, inst.line)?;
    }
    let d = b.destination(inst.dsts.first().copied()?, class);
    b.push(ops::video::handlers(), inst.line, |inst| {
        [inst.a, inst.b, inst.c] = slots;
        (inst.d, inst.imm) = (d, ops::video::pack(operation));
    });
    Some(())
}

/// Decodes `mov.b64 d, {a, b}` and similar instructions.
fn pack(b: &mut Builder<'_>, inst: &Inst) -> Option<()> {
    let d = inst.dsts.first().copied()?;
    let whole = d.map_or(RegClass::B128, |r| b.class(r));
    let d = b.destination(d, whole);
    let part = |class| match class {
        RegClass::B32 => RegClass::B16,
        RegClass::B64 => RegClass::B32,
        _ => RegClass::B64,
    };
    match (whole, inst.srcs.as_slice()) {
        (RegClass::B128, parts @ [_, _]) => {
            // The destination cannot overlap a source: their registers differ in width.
            for (half, operand) in (0..).zip(parts) {
                let a = source(b, operand, RegClass::B64, inst.line)?;
                b.push_form(
                    &mov::of_class(RegClass::B64)?,
                    [half_of(d, half), Slot(0)],
                    &[a],
                    inst.line,
                );
            }
        }
        (RegClass::B16, [low, high]) => {
            let low = source(b, low, whole, inst.line)?;
            let high = source(b, high, whole, inst.line)?;
            b.push_form(&mov::pack_bytes(), [d, Slot(0)], &[low, high], inst.line);
        }
        (_, [low, high]) => {
            let low = source(b, low, part(whole), inst.line)?;
            let high = source(b, high, part(whole), inst.line)?;
            b.push_form(&mov::pack(part(whole))?, [d, Slot(0)], &[low, high], inst.line);
        }
        (RegClass::B32 | RegClass::B64, [p0, p1, p2, p3]) => {
            let (of_two, half_class) = match whole {
                RegClass::B64 => (mov::pack(RegClass::B16)?, RegClass::B32),
                _ => (mov::pack_bytes(), RegClass::B16),
            };
            let mut halves = [Slot(0); 2];
            for (half, [low, high]) in [[p0, p1], [p2, p3]].into_iter().enumerate() {
                let low = source(b, low, RegClass::B16, inst.line)?;
                let high = source(b, high, RegClass::B16, inst.line)?;
                halves[half] = b.scratch(half_class, Scratch::PackedHalf(half as u32));
                b.push_form(&of_two, [halves[half], Slot(0)], &[low, high], inst.line);
            }
            b.push_form(&mov::pack(half_class)?, [d, Slot(0)], &halves, inst.line);
        }
        _ => return None,
    }
    Some(())
}

/// Decodes `mov.b64 {d, e}, a` and similar instructions.
fn unpack(b: &mut Builder<'_>, inst: &Inst) -> Option<()> {
    let Op::Unpack { ty } = inst.op else {
        return None;
    };
    let whole = match ty.size() {
        2 => RegClass::B16,
        4 => RegClass::B32,
        8 => RegClass::B64,
        16 => RegClass::B128,
        _ => return None,
    };
    let a = source(b, inst.srcs.first()?, whole, inst.line)?;
    let bits = ty.size() * 8 / u32::try_from(inst.dsts.len()).ok()?.max(1);
    for (i, d) in (0..).zip(&inst.dsts) {
        let Some(d) = *d else { continue };
        let (class, to) = (b.class(d), b.register(d));
        let (form, from) = if bits == 8 {
            (mov::byte(whole, i * bits)?, a)
        } else if whole == RegClass::B128 {
            (mov::of_class(RegClass::B64)?, half_of(a, i))
        } else {
            (mov::extract(whole, class, i * bits)?, a)
        };
        b.push_form(&form, [to, Slot(0)], &[from], inst.line);
    }
    Some(())
}

//! Decodes functions for converged warps, whose lanes all run and take the same branches.
//!
//! This code computes *scalar* registers once for the warp: those that are uniform, or whose values differ by the same
//! step from each lane to the next. The analysis covers the whole function: starting from constants, a register is
//! scalar if all instructions that write it give a scalar result. Of these, only registers that an address or a
//! comparison needs stay scalar. If other instructions read such a register as a row, the row is written where the
//! register is computed.

use super::builder::Builder;
use super::emit::emit;
use super::lower;
use super::operands::{elements, reg, source, window_of};
use super::unsupported::UnsupportedInst;
use crate::code::collective::Collective;
use crate::code::constant::{Constant, Lifetime};
use crate::code::converged::{Converged, Leave, Resume};
use crate::code::handlers::Handlers;
use crate::code::registers::{Slot, bytes_of};
use crate::ops::memory::{self, Access};
use crate::ops::{affine, control, mov};
use crate::plan::class::{is_matrix, is_scheduled};
use crate::plan::defined::{self, Use};
use crate::plan::set::Set;
use crate::plan::source::constant_of;
use crate::plan::steps::{Layout, Step};
use ptx::ir::{Address, Formal, Inst, MemMods, Op, Operand, Reg, RegClass, Special};
use std::collections::{HashMap, HashSet};

/// A property of the values in the lanes of a register, from the most to the least precise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lanes {
    /// All lanes have the same value.
    Uniform,
    /// The step from each lane to the next is the same.
    Affine,
    /// Nothing is known.
    Any,
}

/// Approximate time in nanoseconds to return to the code for converged warps and leave it again, excluding the time for
/// each register.
const COST_OF_COMING_BACK: u32 = 24;

/// Live scalar registers.
struct Live {
    /// The live registers at each step at which a warp may leave the code.
    at_leaves: HashMap<usize, Vec<Reg>>,
    /// The live registers at the beginning of each basic block.
    at_begin: Vec<Set>,
}

/// The results of the analysis of a function's registers.
struct Registers {
    lanes: Vec<Lanes>,
    /// True for scalar registers that are also read as a row.
    rows: Vec<bool>,
    /// True if the lanes of a warp lie in several rows of their thread block.
    grid: bool,
}

/// Adds the code for converged warps if it would be faster. `places` holds the first instruction of each step in the
/// code for any lanes; `grid` is true if the lanes of a warp lie in several rows of their thread block.
pub(super) fn lower(
    b: &mut Builder<'_>,
    layout: &Layout<'_>,
    uses: &[Use],
    places: &[u32],
    grid: bool,
) -> Result<Option<Converged>, UnsupportedInst> {
    let registers = Registers::of(b, layout, uses, grid);
    if !layout.reached().any(|step| match step {
        Step::Plain(inst) => registers.access(b, inst).is_some(),
        Step::Branch { .. } => false,
    }) {
        return Ok(None);
    }
    let mut scalars = Scalars::default();
    let first = b.here();
    let kept = registers.kept_from_block_to_block(b, layout);
    for number in &kept {
        if let Step::Plain(inst) = &layout.steps[*number] {
            registers.instruction(b, &mut scalars, inst)?;
        }
    }
    let entry = b.here() + 1;
    b.push(control::begin(), 0, |inst| {
        (inst.aux, inst.mods) = (entry, entry - first);
    });
    let written = kept.iter().map(|number| match &layout.steps[*number] {
        Step::Plain(inst) => inst.dsts.first().copied().flatten(),
        Step::Branch { .. } => None,
    });
    let writes_of_kept: HashSet<Reg> = written.flatten().collect();
    let kept: HashSet<usize> = kept.into_iter().collect();
    let live = registers.live(b, layout);
    let mut with_branches = Vec::new();
    let mut leaves = Vec::new();
    let mut list = Vec::new();
    let begins = emit(layout, b, control::branch_together(), |b, number, step| {
        if kept.contains(&number) {
            return Ok(());
        }
        let live = live.at_leaves.get(&number).map(|live| {
            let only_scalar = live.iter().filter(|reg| !registers.rows[reg.0 as usize]);
            scalars.list(b, &mut list, only_scalar)
        });
        let mut leave = |at: u32| {
            if let Some(spread) = live.clone() {
                let to = places[number];
                leaves.push(Leave { at, to, spread });
            }
        };
        match step {
            Step::Plain(inst) if let Some((what, _)) = Collective::of(&inst.op) => {
                registers.instruction(b, &mut scalars, inst)?;
                // The instructions that compute its operands come before it.
                let at = b.here() - 1;
                b.set_handlers(at, what.handlers_together());
                leave(at);
                Ok(())
            }
            Step::Plain(inst) => {
                leave(b.here());
                registers.instruction(b, &mut scalars, inst)
            }
            Step::Branch { guard, .. } => {
                leave(b.here());
                if let (Some((at, predicate, handlers)), Some((reg, _))) = (scalars.tested, guard)
                    && at + 1 == b.here()
                    && predicate == b.register(*reg)
                {
                    with_branches.push((at, handlers));
                }
                Ok(())
            }
        }
    })?;
    for (at, handlers) in with_branches {
        b.add_branch(at, handlers);
    }
    // Registers that are the same for all thread blocks of a warp keep their values.
    let stays = |reg: &&Reg| !writes_of_kept.contains(reg);
    let mut resumes: Vec<Resume> = Vec::new();
    for block in &layout.order {
        let live = live.at_begin[*block].registers();
        let gathered: Vec<&Reg> = live.iter().filter(stays).collect();
        if let Some(step) = layout.steps_of(*block).next()
            && registers.gain(b, layout, *block) > COST_OF_COMING_BACK + 8 * gathered.len() as u32
        {
            resumes.push(Resume {
                at: places[step],
                to: begins[*block],
                gathered: scalars.list(b, &mut list, gathered.into_iter()),
            });
        }
    }
    // In the code for any lanes, an empty basic block begins at the same instruction as the block after it. Either
    // entry is correct.
    resumes.sort_by_key(|resume| resume.at);
    resumes.dedup_by_key(|resume| resume.at);
    let mut constants = scalars.filled;
    constants.sort_by_key(|(_, _, constant)| constant.lifetime());
    let needs_rows = |c: &(Slot, RegClass, Constant)| matches!(c.2, Constant::Special(Special::Tid(_)));
    Ok(Some(Converged {
        first,
        entry,
        needs_rows: constants.iter().any(needs_rows),
        kept_constants: constants.partition_point(|(_, _, c)| c.lifetime() < Lifetime::Block),
        constants,
        // A placeholder: `Builder::finish` sets the final value.
        reads_block_constants: true,
        leaves,
        resumes,
        kept: list,
    }))
}

/// The slots of scalar registers and constants.
#[derive(Default)]
struct Scalars {
    registers: HashMap<Reg, Slot>,
    constants: HashMap<(Constant, RegClass), Slot>,
    filled: Vec<(Slot, RegClass, Constant)>,
    /// The last comparison: the instruction, its predicate, and the handlers that include the branch after it.
    tested: Option<(u32, Slot, Handlers)>,
}

impl Scalars {
    fn register(&mut self, b: &mut Builder<'_>, reg: Reg) -> Slot {
        *self.registers.entry(reg).or_insert_with(|| b.affine())
    }

    /// Adds registers to a list of rows, bytes per lane and affine slots. Returns their range.
    fn list<'r>(
        &mut self,
        b: &mut Builder<'_>,
        list: &mut Vec<(Slot, u8, Slot)>,
        registers: impl Iterator<Item = &'r Reg>,
    ) -> std::ops::Range<usize> {
        let start = list.len();
        for reg in registers {
            let width = (bytes_of(b.class(*reg)) / 32) as u8;
            list.push((b.register(*reg), width, self.register(b, *reg)));
        }
        start..list.len()
    }

    fn constant(&mut self, b: &mut Builder<'_>, constant: Constant, class: RegClass) -> Slot {
        let filled = &mut self.filled;
        *self.constants.entry((constant, class)).or_insert_with(|| {
            let slot = b.affine();
            filled.push((slot, class, constant));
            slot
        })
    }

    fn source(&mut self, b: &mut Builder<'_>, operand: &Operand, class: RegClass) -> Option<Slot> {
        let constant = match operand {
            Operand::Reg(reg) => match b.alias(*reg) {
                Some(constant) => constant,
                None => return Some(self.register(b, *reg)),
            },
            operand => constant_of(operand)?,
        };
        Some(self.constant(b, constant, class))
    }
}

impl Registers {
    fn of(b: &Builder<'_>, layout: &Layout<'_>, uses: &[Use], grid: bool) -> Self {
        let count = b.source.body.registers.len();
        let mut registers = Registers {
            lanes: vec![Lanes::Uniform; count],
            rows: vec![false; count],
            grid,
        };
        for (i, class) in b.source.body.registers.iter().enumerate() {
            let wide_enough = matches!(class, RegClass::B32 | RegClass::B64);
            if !wide_enough || uses[i] != Use::Defined {
                registers.lanes[i] = Lanes::Any;
            }
        }
        for formal in &b.source.body.params {
            if let Formal::Reg(reg) = formal {
                registers.lanes[reg.0 as usize] = Lanes::Any;
            }
        }
        // Start with the most precise assumption, and weaken it until nothing changes.
        let mut changed = true;
        while changed {
            changed = false;
            for step in layout.reached() {
                let Step::Plain(inst) = step else { continue };
                let result = registers.result(b, inst);
                defined::writes_of(inst, |reg| {
                    let lanes = &mut registers.lanes[reg.0 as usize];
                    if *lanes < result {
                        *lanes = result;
                        changed = true;
                    }
                });
            }
        }
        registers.keep_needed(b, layout);
        for step in layout.reached() {
            if let Step::Plain(inst) = step
                && leaves(inst)
            {
                continue;
            }
            let mut rows: Vec<Reg> = Vec::new();
            defined::reads(step, |reg| rows.push(reg));
            if let Step::Plain(inst) = step {
                let scalar = registers.scalar_sources(b, inst);
                // A store may store its own address.
                let values = if matches!(inst.op, Op::St(_)) {
                    &inst.srcs[1..]
                } else {
                    &[]
                };
                let value = |reg: &Reg| values.contains(&Operand::Reg(*reg));
                rows.retain(|reg| !scalar.contains(reg) || value(reg));
            }
            for reg in rows {
                registers.rows[reg.0 as usize] = true;
            }
        }
        registers
    }

    /// Keeps only scalars that an address or a comparison needs.
    fn keep_needed(&mut self, b: &Builder<'_>, layout: &Layout<'_>) {
        let mut needed = vec![false; self.lanes.len()];
        // Iterate backwards: registers are usually written before they are read, so that one pass is usually enough.
        let steps: Vec<&Step<'_>> = layout.reached().collect();
        let mut changed = true;
        while changed {
            changed = false;
            for step in steps.iter().rev() {
                let Step::Plain(inst) = step else { continue };
                let result = inst.dsts.first().copied().flatten();
                let wanted = self.access(b, inst).is_some()
                    || self.test(b, inst).is_some()
                    || result.is_some_and(|r| needed[r.0 as usize]);
                if wanted {
                    for reg in self.scalar_sources(b, inst) {
                        changed |= !std::mem::replace(&mut needed[reg.0 as usize], true);
                    }
                }
            }
        }
        for (lanes, needed) in self.lanes.iter_mut().zip(needed) {
            if !needed {
                *lanes = Lanes::Any;
            }
        }
    }

    /// Returns the registers that an instruction reads as scalars.
    fn scalar_sources(&self, b: &Builder<'_>, inst: &Inst) -> Vec<Reg> {
        let count = if self.access(b, inst).is_some() {
            1
        } else if self.test(b, inst).is_some() || self.scalar(b, inst).is_some() {
            inst.srcs.len()
        } else {
            0
        };
        let sources = inst.srcs[..count.min(inst.srcs.len())].iter();
        sources.filter_map(reg).collect()
    }

    fn of_constant(&self, constant: &Constant) -> Lanes {
        match constant {
            Constant::Special(Special::Tid(0) | Special::Laneid) => Lanes::Affine,
            Constant::Special(Special::Tid(1)) if self.grid => Lanes::Affine,
            Constant::Special(
                Special::LanemaskEq
                | Special::LanemaskLt
                | Special::LanemaskLe
                | Special::LanemaskGt
                | Special::LanemaskGe,
            ) => Lanes::Any,
            _ => Lanes::Uniform,
        }
    }

    fn of_reg(&self, b: &Builder<'_>, reg: Reg) -> Lanes {
        match b.alias(reg) {
            Some(constant) => self.of_constant(&constant),
            None => self.lanes[reg.0 as usize],
        }
    }

    fn of_operand(&self, b: &Builder<'_>, operand: &Operand, class: RegClass) -> Lanes {
        match operand {
            Operand::Reg(reg) if b.class(*reg) == class => self.of_reg(b, *reg),
            Operand::Reg(_) | Operand::NotReg(_) => Lanes::Any,
            Operand::Special(special) if mov::changing(*special).is_some() => Lanes::Any,
            operand => constant_of(operand).map_or(Lanes::Any, |c| self.of_constant(&c)),
        }
    }

    /// Returns the property of the lanes of an instruction's result.
    fn result(&self, b: &Builder<'_>, inst: &Inst) -> Lanes {
        if inst.guard.is_some() {
            return Lanes::Any;
        }
        if let Op::Ld(m) = &inst.op {
            let known = m.vec == 1 && b.source.parameter(inst, m).is_some();
            return if known { Lanes::Uniform } else { Lanes::Any };
        }
        let (Some(form), [Some(to)]) = (affine::form(&inst.op, self.grid), inst.dsts.as_slice()) else {
            return Lanes::Any;
        };
        // `cvta` of a space with a window needs an addition, which these forms do not do.
        if matches!(&inst.op, Op::Cvta { space, .. } if window_of(*space) != 0)
            || form.dst != b.class(*to)
            || form.srcs.len() != inst.srcs.len()
        {
            return Lanes::Any;
        }
        let sources = inst.srcs.iter().zip(&form.srcs);
        let lanes: Vec<Lanes> = sources.map(|(s, class)| self.of_operand(b, s, *class)).collect();
        let all = lanes.iter().copied().max().unwrap_or(Lanes::Any);
        let uniform = |i: usize| lanes.get(i) == Some(&Lanes::Uniform);
        let affine = match form.law {
            affine::Law::Sum => true,
            affine::Law::Product => uniform(0) || uniform(1),
            affine::Law::Scale => uniform(1),
            affine::Law::Pick => !inst.srcs.iter().any(|s| self.is_constant_affine(b, s)),
            affine::Law::Uniform => false,
        };
        if all == Lanes::Affine && !affine {
            self.of_lane_bits(b, inst)
        } else {
            all
        }
    }

    /// Returns true if an operand is the number of a thread or lane itself.
    fn is_constant_affine(&self, b: &Builder<'_>, operand: &Operand) -> bool {
        let constant = match operand {
            Operand::Reg(reg) => b.alias(*reg),
            operand => constant_of(operand),
        };
        constant.is_some_and(|constant| self.of_constant(&constant) == Lanes::Affine)
    }

    /// Returns the result of the analysis for `%tid.x >> 5`, `%tid.x & 31` and similar expressions, which programs use
    /// to compute the numbers of a warp and of a lane. In each warp that runs this code, `%tid.x` counts up from a
    /// multiple of 32, or from 0 in each row.
    fn of_lane_bits(&self, b: &Builder<'_>, inst: &Inst) -> Lanes {
        let [of, Operand::Imm(bits)] = inst.srcs.as_slice() else {
            return Lanes::Any;
        };
        let constant = match of {
            Operand::Reg(reg) => b.alias(*reg),
            operand => constant_of(operand),
        };
        match (constant, &inst.op) {
            (Some(Constant::Special(Special::Tid(0) | Special::Laneid)), Op::Shr { .. }) if *bits >= 5 => {
                Lanes::Uniform
            }
            (Some(Constant::Special(Special::Tid(0) | Special::Laneid)), Op::And { .. })
                if bits & 31 == 31 && bits & (bits + 1) == 0 =>
            {
                Lanes::Affine
            }
            _ => Lanes::Any,
        }
    }

    /// Returns the form of an instruction whose result is scalar; `Some(None)` for a load of a parameter.
    fn scalar(&self, b: &Builder<'_>, inst: &Inst) -> Option<Option<affine::Form>> {
        let [Some(to)] = inst.dsts.as_slice() else {
            return None;
        };
        let scalar = self.lanes[to.0 as usize] != Lanes::Any && b.alias(*to).is_none();
        scalar.then(|| affine::form(&inst.op, self.grid))
    }

    /// Returns the class of the operands of a comparison of scalars.
    fn test(&self, b: &Builder<'_>, inst: &Inst) -> Option<RegClass> {
        if inst.guard.is_some() || inst.dsts.get(1).is_some_and(Option::is_some) {
            return None;
        }
        let class = affine::test(&inst.op, self.grid)?.class;
        let scalar = |operand| self.of_operand(b, operand, class) != Lanes::Any;
        (inst.srcs.len() == 2 && inst.srcs.iter().all(scalar)).then_some(class)
    }

    /// Returns the access of a load or store that has handlers for a scalar address.
    fn access<'i>(&self, b: &Builder<'_>, inst: &'i Inst) -> Option<(&'i MemMods, Access)> {
        let (m, store) = match &inst.op {
            Op::Ld(m) => (m, false),
            Op::St(m) => (m, true),
            _ => return None,
        };
        if b.defines_alias(inst) {
            return None;
        }
        let address = inst.srcs.first()?;
        let class = match address {
            Operand::Reg(reg) => b.class(*reg),
            Operand::Address(Address::Variable { .. }) => RegClass::B64,
            _ => return None,
        };
        if self.of_operand(b, address, class) == Lanes::Any {
            return None;
        }
        let values: Vec<Option<Reg>> = if store {
            inst.srcs[1..].iter().map(reg).collect()
        } else {
            inst.dsts.clone()
        };
        let (element, value) = elements(b, m, &values)?;
        let count = u32::from(m.vec);
        if value == RegClass::B128 || !matches!(count, 1 | 2 | 4) {
            return None;
        }
        let access = Access::new(m, element, count, class == RegClass::B64, value);
        let handlers = if store {
            memory::store_affine(&access, self.grid)
        } else {
            memory::load_affine(&access, self.grid)
        };
        handlers.map(|_| (m, access))
    }

    /// Adds an instruction of the IR.
    fn instruction(&self, b: &mut Builder<'_>, scalars: &mut Scalars, inst: &Inst) -> Result<(), UnsupportedInst> {
        let done = if leaves(inst) {
            b.push(control::leave(), inst.line, |_| {});
            Some(())
        } else if b.defines_alias(inst) {
            Some(())
        } else if let Some((m, access)) = self.access(b, inst) {
            self.access_at(b, scalars, inst, m, &access)
        } else if let Some(class) = self.test(b, inst) {
            self.add_test(b, scalars, inst, class)
        } else if let Some(form) = self.scalar(b, inst) {
            self.compute(b, scalars, inst, form)
        } else {
            return lower::lower(b, inst);
        };
        // The analysis has accepted the instruction, so this fails only if the analysis and this code disagree.
        done.ok_or_else(|| UnsupportedInst::new(inst))
    }

    /// Adds an instruction whose result is scalar.
    fn compute(
        &self,
        b: &mut Builder<'_>,
        scalars: &mut Scalars,
        inst: &Inst,
        form: Option<affine::Form>,
    ) -> Option<()> {
        let to = inst.dsts.first().copied().flatten()?;
        let class = b.class(to);
        let d = scalars.register(b, to);
        if let Op::Ld(m) = &inst.op {
            let offset = b.source.parameter(inst, m)?;
            let constant = Constant::Param(offset, m.ty.size() as u8, m.ty.is_signed());
            let a = scalars.constant(b, constant, class);
            let copy = affine::copy(class, self.grid)?;
            b.push(copy, inst.line, |inst| (inst.d, inst.a) = (d, a));
        } else {
            let form = form?;
            let mut srcs = [Slot(0); 3];
            for ((slot, operand), class) in srcs.iter_mut().zip(&inst.srcs).zip(&form.srcs) {
                *slot = scalars.source(b, operand, *class)?;
            }
            b.push(form.handlers, inst.line, |inst| {
                [inst.a, inst.b, inst.c] = srcs;
                inst.d = d;
            });
        }
        if self.rows[to.0 as usize] {
            let row = b.register(to);
            b.push(affine::spread(class, self.grid), inst.line, |inst| {
                (inst.d, inst.a) = (row, d);
            });
        }
        Some(())
    }

    /// Returns the steps, in order, whose results are the same for every thread block that a warp runs.
    fn kept_from_block_to_block(&self, b: &Builder<'_>, layout: &Layout<'_>) -> Vec<usize> {
        let writes = defined::write_counts(b.source.body);
        let mut kept_registers = vec![false; writes.len()];
        let mut kept = Vec::new();
        let steps = layout.order.iter().flat_map(|block| layout.steps_of(*block));
        for number in steps {
            let Step::Plain(inst) = &layout.steps[number] else {
                continue;
            };
            let (Some(Some(form)), [Some(to)]) = (self.scalar(b, inst), inst.dsts.as_slice()) else {
                continue;
            };
            let constant = |operand: &Operand| match operand {
                Operand::Reg(reg) => b.alias(*reg),
                operand => constant_of(operand),
            };
            // Thread numbers are too small to wrap, and a uniform value cannot wrap in only some lanes.
            let stays = |operand: &Operand, class: RegClass| {
                constant(operand).is_some() || self.of_operand(b, operand, class) == Lanes::Uniform
            };
            let mut sources = inst.srcs.iter().zip(&form.srcs);
            let before = sources.all(|(operand, class)| {
                let same = match (constant(operand), operand) {
                    (Some(constant), _) => constant.lifetime() < Lifetime::Block,
                    (None, Operand::Reg(reg)) => kept_registers[reg.0 as usize],
                    _ => false,
                };
                same && (!form.may_leave || stays(operand, *class))
            });
            if before && writes[to.0 as usize] == 1 {
                kept_registers[to.0 as usize] = true;
                kept.push(number);
            }
        }
        kept
    }

    /// Returns the approximate time in nanoseconds that the code for converged warps saves from the start of a basic
    /// block up to the next step at which the warp leaves it.
    fn gain(&self, b: &Builder<'_>, layout: &Layout<'_>, block: usize) -> u32 {
        // Enough steps for an estimate, even in the largest kernels.
        const MOST: usize = 256;
        let mut gain = 0u32;
        let mut seen = HashSet::new();
        let mut next = vec![block];
        let mut looked_at = 0;
        while let Some(block) = next.pop()
            && looked_at < MOST
        {
            looked_at += 1 + layout.steps_of(block).len();
            if !seen.insert(block) {
                // The block is usually the start of a loop: count a few iterations.
                gain = gain.saturating_mul(2);
                continue;
            }
            let mut tested = None;
            let mut stays = true;
            for number in layout.steps_of(block).take(MOST) {
                match &layout.steps[number] {
                    Step::Plain(inst) if leaves(inst) => {
                        stays = false;
                        break;
                    }
                    Step::Plain(inst) if self.access(b, inst).is_some() => {
                        gain = gain.saturating_add(8);
                    }
                    Step::Plain(inst) if self.test(b, inst).is_some() => {
                        tested = inst.dsts.first().copied().flatten();
                        gain = gain.saturating_add(3);
                    }
                    Step::Plain(inst) if self.scalar(b, inst).is_some() => {
                        gain = gain.saturating_add(3);
                    }
                    Step::Plain(_) => {}
                    Step::Branch {
                        guard: Some((reg, _)), ..
                    } => stays = tested == Some(*reg),
                    Step::Branch { guard: None, .. } => {}
                }
            }
            if stays {
                next.extend(&layout.blocks[block].successors);
            }
        }
        gain
    }

    /// Returns the live scalar registers.
    fn live(&self, b: &Builder<'_>, layout: &Layout<'_>) -> Live {
        let count = self.lanes.len();
        let scalar = |reg: Reg| self.lanes[reg.0 as usize] != Lanes::Any && b.alias(reg).is_none();
        let before = |live: &mut Set, step: &Step<'_>| {
            defined::writes(step, |reg| live.remove(reg));
            defined::reads(step, |reg| {
                if scalar(reg) {
                    live.insert(reg);
                }
            });
        };
        let mut at_begin = vec![Set::empty(count); layout.blocks.len()];
        let at_end = |at_begin: &[Set], block: usize| {
            let mut live = Set::empty(count);
            for next in &layout.blocks[block].successors {
                live.union(&at_begin[*next]);
            }
            live
        };
        let mut changed = true;
        while changed {
            changed = false;
            for block in layout.order.iter().rev() {
                let mut live = at_end(&at_begin, *block);
                for step in layout.steps_of(*block).rev() {
                    before(&mut live, &layout.steps[step]);
                }
                changed |= at_begin[*block] != live;
                at_begin[*block] = live;
            }
        }
        let mut at_leaves = HashMap::new();
        for block in &layout.order {
            let mut live = at_end(&at_begin, *block);
            for number in layout.steps_of(*block).rev() {
                let step = &layout.steps[number];
                before(&mut live, step);
                let may_leave = match step {
                    Step::Branch { guard, .. } => guard.is_some(),
                    Step::Plain(inst) => {
                        let form = self.scalar(b, inst).flatten();
                        let collective = Collective::of(&inst.op).is_some();
                        leaves(inst) || collective || form.is_some_and(|form| form.may_leave)
                    }
                };
                if may_leave {
                    at_leaves.insert(number, live.registers());
                }
            }
        }
        Live { at_leaves, at_begin }
    }

    fn access_at(
        &self,
        b: &mut Builder<'_>,
        scalars: &mut Scalars,
        inst: &Inst,
        m: &MemMods,
        access: &Access,
    ) -> Option<()> {
        let class = if access.wide_address {
            RegClass::B64
        } else {
            RegClass::B32
        };
        let at = scalars.source(b, inst.srcs.first()?, class)?;
        let store = matches!(inst.op, Op::St(_));
        let mut slots = [Slot(0); 4];
        let handlers = if store {
            for (slot, value) in slots.iter_mut().zip(&inst.srcs[1..]) {
                *slot = source(b, value, access.class, inst.line)?;
            }
            memory::store_affine(access, self.grid)?
        } else {
            for (slot, to) in slots.iter_mut().zip(&inst.dsts) {
                *slot = b.destination(*to, access.class);
            }
            memory::load_affine(access, self.grid)?
        };
        let (start, aux) = (b.here(), b.new_cache());
        b.push(handlers, inst.line, |inst| {
            (inst.a, inst.aux) = (at, aux);
            inst.mods = memory::affine::mods(access, self.grid);
            inst.imm = m.offset as u64;
            [inst.d, inst.b, inst.c, inst.e] = slots;
            if store {
                (inst.b, inst.d) = (slots[0], slots[1]);
            }
        });
        if let Some((reg, negated)) = inst.guard {
            b.guard_from(start, (b.register(reg), negated), inst.line);
        }
        Some(())
    }

    fn add_test(&self, b: &mut Builder<'_>, scalars: &mut Scalars, inst: &Inst, class: RegClass) -> Option<()> {
        let test = affine::test(&inst.op, self.grid)?;
        let [x, y] = inst.srcs.as_slice() else {
            return None;
        };
        let (mut x, mut y) = (scalars.source(b, x, class)?, scalars.source(b, y, class)?);
        if test.swapped {
            std::mem::swap(&mut x, &mut y);
        }
        let d = b.destination(inst.dsts.first().copied()?, RegClass::Pred);
        scalars.tested = Some((b.here(), d, test.with_branch));
        b.push(test.handlers, inst.line, |inst| {
            (inst.d, inst.a, inst.b) = (d, x, y);
        });
        Some(())
    }
}

/// Returns true for instructions at which a warp must leave the code for converged warps: the scheduler runs them, and
/// lanes may continue separately.
fn leaves(inst: &Inst) -> bool {
    let stays = matches!(inst.op, Op::Bar { .. } | Op::Ret { .. } | Op::Exit);
    is_scheduled(&inst.op) && !stays && !is_matrix(&inst.op) && Collective::of(&inst.op).is_none()
}
